"""What the experiments of NT12 share: the contact models compared, runs as tables, snapshots in figures.

new     `nguyen-trinkle`: a vertex against a whole convex shape [NT12, eq. 11]
old     the conjunction of the half-spaces of all facets nearby [NT12, eq. 12]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from implicit_geom import Scene, Stepper, Trajectory, simulate
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.figures import BLUE, GREEN, PURPLE, RED
from implicit_geom.experiments.own_laws import BOUNDS, laws

MODELS: dict[str, str | Stepper] = {
    "new": "nguyen-trinkle",
    "old": Stepper.named("nguyen-trinkle", scheme="conjunction"),
    "implicit-euler": "implicit-euler",
    "implicit-rattle": "implicit-rattle",
}
COLOURS = {"new": BLUE, "old": RED, "implicit-euler": PURPLE, "implicit-rattle": GREEN}
NAMES = {"new": "vertex against shape [NT12]", "old": "vertex against half-spaces"}
Table = dict[str, np.ndarray]


def runs(scene: Callable[[int], Scene], starts: int, duration: float, step: float) -> dict[str, Trajectory]:
    """Every model from every start, named "model, start"; a step that fails ends its run and is recorded."""
    return {
        f"{model}, {k}": simulate(
            scene(k), duration=duration, step=step, stepper=stepper, on_failure="record", progress=False
        )
        for model, stepper in MODELS.items()
        for k in range(starts)
    }


def motion(found: dict[str, Trajectory], body: str, only: int | None = None) -> Table:
    """Model, start, time, x, y and angle at every step, of all starts or of `only` one."""
    columns: dict[str, list[Any]] = {n: [] for n in ("model", "start", "time", "x", "y", "angle")}
    for name, run in found.items():
        model, start = name.rsplit(", ", 1)
        if only is not None and int(start) != only:
            continue
        b, n = run[body], len(run.time)
        parts = ([model] * n, [int(start)] * n, run.time, *b.position.T, b.orientation)
        for column, part in zip(columns.values(), parts, strict=True):
            column.extend(np.asarray(part).tolist())
    return {name: np.array(column) for name, column in columns.items()}


def of(table: Table, model: str, start: int | None = None) -> Table:
    """The rows of a model, and of a start."""
    kept = table["model"] == model
    if start is not None:
        kept &= table["start"] == start
    return {name: column[kept] for name, column in table.items()}


def starts(table: Table) -> str:
    """How many starts a table holds, in words."""
    n = np.unique(table["start"]).size
    return f"all {n} starts" if n > 1 else "one start"


def law_table(found: dict[str, Trajectory]) -> Table:
    """`experiments.own_laws.laws` with the model and the start apart."""
    table = laws(found)
    names = [name.rsplit(", ", 1) for name in table.pop("run").tolist()]
    return {"model": np.array([m for m, _ in names]), "start": np.array([int(k) for _, k in names]), **table}


def law_checks(table: Table) -> list[Check]:
    """The largest residuals over all runs; that of the complementarity problems over those that are such."""
    checks = []
    for name, (unit, bound) in BOUNDS.items():
        values = table[name]
        if name == "residual":
            values = values[np.isin(table["model"], ("new", "old"))]
        checks.append(at_most(f"own laws, largest {name} residual", np.max(values), bound, unit))
    return checks


def report(table: Table, outcomes: dict[str, np.ndarray]) -> str:
    """Of every model: its starts, how they ended, and the steps that were not solved, which end a run."""
    lines = [
        f"  {'model':<18}{'starts':>7}" + "".join(f"{name:>22}" for name in (*outcomes, "unsolved steps"))
    ]
    for model in MODELS:
        own = table["model"] == model
        counts = [int(np.sum(own)), *(int(np.sum(o[own])) for o in outcomes.values())]
        counts.append(int(np.sum(table["failed"][own])))
        lines.append(f"  {model:<18}{counts[0]:>7}" + "".join(f"{n:>22}" for n in counts[1:]))
    return "\n".join(lines)


def snapshots(axis: Axes, rows: Table, half: tuple[float, float], times: np.ndarray, colour: str) -> None:
    """Outlines of a box at some times, later ones darker."""
    corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * half
    for shade, t in zip(np.linspace(0.25, 1.0, len(times)), times):
        k = int(np.argmin(np.abs(rows["time"] - t)))
        c, s = np.cos(rows["angle"][k]), np.sin(rows["angle"][k])
        outline = corners @ np.array([[c, s], [-s, c]]) + (rows["x"][k], rows["y"][k])
        axis.fill(*outline.T, facecolor=colour, alpha=0.12 * shade, linewidth=0)
        axis.fill(*outline.T, facecolor="none", edgecolor=colour, alpha=shade, linewidth=0.8)


def ground(axis: Axes, corners: np.ndarray) -> None:
    axis.fill(*corners.T, facecolor="#d9d9d9", edgecolor="#8a8a8a", linewidth=0.5)


def bare(axis: Axes) -> None:
    """Without frame and ticks, lengths to scale."""
    axis.set_aspect("equal")
    axis.axis("off")
