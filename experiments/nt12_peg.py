"""NT12, Figs. 8 and 9: a peg of width 9.99 falls into a hole of width 10 and reaches its bottom, or jams.

Lengths are taken as metres, h = 0.0125 s as in the paper, g = 9.81 m/s^2. What the paper does not give: the
peg is 10 m high and of mass 1 kg, the hole 10 m deep, and the peg starts 0.5 to 1.5 m above it, off its
middle by up to 4 mm of the 5 mm on either side, and turned by up to 0.2 mrad. The hole is a union of three
blocks. Without friction, and with mu = 0.2: there the peg that the old model has wedged at the rim comes to
steps whose problem has no solution (of all combinations of open, sticking and sliding contacts none is
feasible); such a step ends the run, and is counted.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from implicit_geom import Scene, shapes
from implicit_geom.experiments import nt12
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import PAGE, label, mosaic, paper

TITLE = "NT12, Figs. 8 and 9: a peg reaches the bottom of a close hole, or jams"
PARAMS: dict[str, Any] = {"starts": 20, "duration": 2.0, "step": 0.0125, "friction": (0.0, 0.2)}
QUICK = {"starts": 1, "friction": (0.0,), "duration": 1.7}

PEG, HOLE, DEPTH, HEIGHT = 9.99, 10.0, 10.0, 10.0  # m
WALL = 4.0  # thickness of the blocks, m
HALF = (PEG / 2, HEIGHT / 2)
REACH = ("new", "implicit-euler", "implicit-rattle")
ON_THE_FLOOR, JAMMED = 1e-6, 0.9 * DEPTH  # height over the floor, m


def blocks() -> list[np.ndarray]:
    """Lower left and upper right corners of the two sides and the floor."""
    return [
        np.array([(-HOLE / 2 - WALL, -DEPTH - WALL), (-HOLE / 2, 0.0)]),
        np.array([(HOLE / 2, -DEPTH - WALL), (HOLE / 2 + WALL, 0.0)]),
        np.array([(-HOLE / 2, -DEPTH - WALL), (HOLE / 2, -DEPTH)]),
    ]


def scene(start: int, mu: float) -> Scene:
    """The peg over the hole; starts differ in place, height and angle."""
    random = np.random.default_rng(start)
    x, height, turn = random.uniform((-4e-3, 0.5, -2e-4), (4e-3, 1.5, 2e-4))
    s = Scene(dim=2)
    made = [shapes.rectangle(*(c[1] - c[0]) / 2).moved(c.mean(axis=0).tolist()) for c in blocks()]
    s.add("hole", shapes.union(*made), fixed=True)
    s.add("peg", shapes.rectangle(*HALF), mass=1.0, position=(x, HEIGHT / 2 + height), orientation=turn)
    s.friction(mu=mu)
    return s


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    tables: list[dict[str, np.ndarray]] = []
    motion: dict[str, np.ndarray] = {}
    for mu in params["friction"]:
        found = nt12.runs(partial(scene, mu=mu), params["starts"], params["duration"], params["step"])
        table = nt12.law_table(found)
        table["mu"] = np.full(len(found), mu)
        table["height"] = np.array([r["peg"].position[-1, 1] - HALF[1] + DEPTH for r in found.values()])
        table["ended"] = np.array([r.time[-1] for r in found.values()])
        tables.append(table)
        if mu == params["friction"][0]:
            motion = nt12.motion(found, "peg")
    return {"runs": {k: np.concatenate([t[k] for t in tables]) for k in tables[0]}, "motion": motion}


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    table = tables["runs"]
    starts = np.unique(table["start"]).size
    checks = []
    for mu in np.unique(table["mu"]):
        at = {name: column[table["mu"] == mu] for name, column in table.items()}
        for model in REACH:
            rows = nt12.of(at, model)
            down = np.abs(rows["height"]) < ON_THE_FLOOR
            what = f"mu = {mu:g}, {model}"
            checks += [
                at_least(f"{what}: starts of {starts} that reach the bottom", np.sum(down), starts),
                at_most(f"{what}: steps that failed", np.sum(rows["failed"]), 0),
                # (first order in the step where the gap is linearised)
                at_most(
                    f"{what}: penetration", np.max(rows["penetration"]), 1e-5 if model == "new" else 1e-9, "m"
                ),
            ]
        old = nt12.of(at, "old")
        jammed = np.sum(old["height"] > JAMMED)
        checks.append(at_least(f"mu = {mu:g}, old: starts of {starts} that jam at the rim", jammed, starts))
    return checks + nt12.law_checks(table)


def report(tables: dict[str, dict[str, np.ndarray]]) -> str:
    lines = []
    for mu in np.unique(tables["runs"]["mu"]):
        at = {name: column[tables["runs"]["mu"] == mu] for name, column in tables["runs"].items()}
        ends = {"reach the bottom": np.abs(at["height"]) < ON_THE_FLOOR, "jam": at["height"] > JAMMED}
        lines += [f"  mu = {mu:g}", nt12.report(at, ends)]
    return "\n".join(lines)


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    motion = tables["motion"]
    shown = ("old", "new", "implicit-rattle")
    figure, axes = mosaic([[*shown, "height"]], (PAGE, 3.0), width_ratios=(1, 1, 1, 1.25))
    for letter, model in zip("abc", shown):
        axis = axes[model]
        for low, high in blocks():
            nt12.ground(axis, np.array([low, (high[0], low[1]), high, (low[0], high[1])]))
        nt12.snapshots(
            axis, nt12.of(motion, model, 0), HALF, np.array([0.0, 0.8, 1.2, 2.0]), nt12.COLOURS[model]
        )
        nt12.bare(axis)
        axis.set(xlim=(-HOLE / 2 - WALL, HOLE / 2 + WALL), ylim=(-DEPTH - WALL, 1.2 * HEIGHT))
        label(axis, letter, {"old": "half-spaces", "new": "shape [NT12]"}.get(model, model))
    axis = axes["height"]
    for model in shown:
        for k in np.unique(motion["start"]):
            one = nt12.of(motion, model, int(k))
            axis.plot(
                one["time"],
                one["y"] - HALF[1] + DEPTH,
                color=nt12.COLOURS[model],
                linewidth=0.7,
                linestyle="--" if model == "new" else "-",
                label={"old": "half-spaces", "new": "shape"}.get(model, model) if k == 0 else None,
            )
    axis.set(xlabel="time, s", ylabel="height over the floor, m", xlim=(0, None), ylim=(-0.3, None))
    axis.legend(loc="lower left")
    label(axis, "d", nt12.starts(motion))
    return {"figure_8_9": figure}
