"""Energy lost per metre rolled, by shape: ellipsoids as polyhedra stepped by an LCP, and as they are.

An ellipsoid (a, b, 0.3) of 1 kg rolls along x about its axis b at 1.5 m/s for 1 s. The motion keeps its
energy; what is lost per metre, over the weight, is a coefficient of rolling resistance that the simulation
invents. A grid over a, b and the number of vertices, by `sweep`, in processes of this machine.

The polyhedra have the ellipsoid's mass and inertia and start where it starts: they fall by up to 5 mm
(64 vertices) before they touch, which is part of what facets cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, shapes, sweep
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table
from implicit_geom.experiments.figures import BLUE, GREEN, GREY, ORANGE, PAGE, RED, label, panels, paper

TITLE = "energy lost per metre rolled as a function of shape: ellipsoids with facets and without"
PARAMS: dict[str, Any] = {
    "a": (0.2, 0.225, 0.25, 0.275, 0.3, 0.325, 0.35, 0.375, 0.4),
    "b": (0.2, 0.25, 0.3, 0.35, 0.4),
    "facets": (64, 256, 1024),
    "duration": 1.0,
    "step": 0.005,
    "workers": None,  # one a processor
}
QUICK: dict[str, Any] = {
    "a": (0.25, 0.3, 0.4),
    "b": (0.25, 0.35),
    "facets": (64, 256),
    "duration": 0.25,
    "workers": 1,
}

MASS, GRAVITY, HEIGHT, SPEED, MU = 1.0, 9.81, 0.3, 1.5, 0.6
SHAPE = {"a": "bodies.body.shape.a", "b": "bodies.body.shape.b"}
FACETS, STEPPER = "simulation.stepper.facets", "simulation.stepper"
IMPLICIT = ("implicit-euler", "implicit-rattle")
OSCILLATION = 1e-4  # a symmetric step gives back within a turn what it takes
LAWS = ("dynamics", "gap", "complementarity", "friction")


def scene() -> Scene:
    """The sphere among the ellipsoids, rolling; its inertia follows the shape."""
    s = Scene(gravity=(0, 0, -GRAVITY))
    s.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    moves = {"velocity": (SPEED, 0, 0), "angular_velocity": (0, SPEED / HEIGHT, 0)}
    ball = shapes.ellipsoid(HEIGHT, HEIGHT, HEIGHT)
    s.add("body", ball, mass=MASS, position=(0, 0, HEIGHT), **moves)
    s.friction(mu=MU)
    return s


def resistance(run: Trajectory) -> float:
    """Energy lost per metre of the path seen from above, over the weight."""
    moves = np.diff(run["body"].position[:, :2], axis=0)
    lost = run.energy[0] - run.energy[-1]
    return float(lost / np.sum(np.linalg.norm(moves, axis=1)) / (MASS * GRAVITY))


def residual(run: Trajectory) -> float:
    """The largest residual of the stepper's own laws, m/s and m."""
    return float(max(np.max(run.steps[name]) for name in LAWS))


SUMMARY = {
    "resistance": resistance,
    "lost": "energy_lost_per_metre",
    "distance": "distance",
    "aside": "final_position",
    "penetration": "max_penetration",
    "residual": residual,
    "failed": "steps_failed",
}


def run(params: dict[str, Any]) -> dict[str, Table]:
    grid = {path: list(params[name]) for name, path in SHAPE.items()}
    options = {name: params[name] for name in ("duration", "step", "workers")}
    options["progress"] = False
    faceted = sweep(
        scene(), grid | {FACETS: list(params["facets"])}, SUMMARY, stepper="stewart-trinkle", **options
    )
    smooth = sweep(scene(), grid | {STEPPER: list(IMPLICIT)}, SUMMARY, **options)
    return {"faceted": faceted.table, "smooth": smooth.table}


def check(tables: dict[str, Table]) -> list[Check]:
    faceted, smooth = tables["faceted"], tables["smooth"]
    rattle = smooth[STEPPER] == "implicit-rattle"
    everything = [*faceted["status"], *smooth["status"]]
    counts = np.unique(faceted[FACETS])
    maps = [_map(faceted, FACETS, n) for n in counts]
    few, many = maps[0], maps[-1]
    exact = _map(smooth, STEPPER, "implicit-rattle")
    ball = smooth[SHAPE["a"]] == HEIGHT
    largest = np.max(np.abs(smooth["resistance"][rattle]))
    return [
        at_most("runs that failed", np.sum(np.array(everything) != "done"), 0),
        at_least(f"{counts[-1]} vertices: least rolling resistance of all shapes", np.min(many), 0.02),
        at_most(f"{counts[-1]} vertices over {counts[0]}, any shape", np.max(many / few), 0.9),
        at_most("implicit-rattle: largest rolling resistance", largest, OSCILLATION),
        at_most("implicit-rattle over the best polyhedron", largest / np.min(many), 1e-2),
        at_most("implicit-rattle: spread over b", np.max(np.ptp(exact, axis=0)), 1e-9),
        at_most("rolling on a circle, smooth: resistance", np.max(np.abs(smooth["resistance"][ball])), 1e-12),
        at_most("largest residual of a stepper's own laws",
                max(np.max(faceted["residual"]), np.max(smooth["residual"])), 1e-9, "m/s"),
    ]  # fmt: skip


def _map(table: Table, column: str, value: Any) -> np.ndarray:
    """(b, a) rolling resistance."""
    rows = table[column] == value
    a, b = np.unique(table[SHAPE["a"]]), np.unique(table[SHAPE["b"]])
    out = np.full((len(b), len(a)), np.nan)
    at = np.searchsorted(b, table[SHAPE["b"]][rows]), np.searchsorted(a, table[SHAPE["a"]][rows])
    out[at] = table["resistance"][rows]
    return out


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    faceted, smooth = tables["faceted"], tables["smooth"]
    counts = np.unique(faceted[FACETS])
    a, b = np.unique(faceted[SHAPE["a"]]), np.unique(faceted[SHAPE["b"]])
    figure, axes = panels(1, len(counts) + 1, (PAGE, 2.5), width_ratios=(*[1] * len(counts), 1.15))
    *maps, lines = axes[0]
    top = float(np.max(faceted["resistance"]))
    for axis, n, letter in zip(maps, counts, "abcdefg"):
        image = axis.pcolormesh(
            a, b, _map(faceted, FACETS, n), vmin=0, vmax=top, cmap="viridis", shading="nearest"
        )
        axis.set(xlabel="$a$, m", aspect="equal", xticks=(a[0], HEIGHT, a[-1]))
        axis.grid(False)
        label(axis, letter, f"{n} vertices")
    maps[0].set(ylabel="$b$, m")
    bar = figure.colorbar(image, ax=list(maps), orientation="horizontal", shrink=0.8, aspect=40, pad=0.03)
    bar.set_label("energy lost per metre and weight")
    middle = int(np.argmin(np.abs(b - HEIGHT)))
    for n, colour in zip(counts, (RED, ORANGE, GREEN)):
        lines.semilogy(a, _map(faceted, FACETS, n)[middle], "s-", color=colour)
    for name, colour in zip(IMPLICIT, (GREY, BLUE)):
        found = np.abs(_map(smooth, STEPPER, name)[middle])
        lines.semilogy(a, np.where(found > 1e-14, found, np.nan), "o-", color=colour)
        where = {"xytext": (0, -19), "textcoords": "offset points", "ha": "right", "fontsize": 7.5}
        lines.annotate(name, (a[-1], found[-1]), color=colour, **where)
    told = ", ".join(str(n) for n in counts)
    lines.text(a[-1], 0.4, f"polyhedra: {told}", ha="right", fontsize=7.5, color=GREEN)
    lines.set(xlabel="$a$, m", ylabel="absolute value", ylim=(1e-10, 10))
    label(lines, "abcdefg"[len(counts)], f"cut at $b$ = {b[middle]:g} m")
    return {"resistance": figure}
