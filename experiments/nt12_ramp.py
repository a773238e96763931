"""NT12, Figs. 6 and 7: a box falls on a ramp with a crack and slides over it, or tumbles.

The paper gives no sizes. Here the ramp falls by 30 degrees, the box is 1 m long and 0.8 m high with mass
1 kg and mu = 0.2, the crack is 8 mm wide (0.8 % of the box's length), and h = 0.008 s as in the paper. The
box starts 1.5 m (with its front edge) up the ramp from the crack, 5 to 10 cm over it and turned by up to
0.05 rad; each start is perturbed in all three. The ramp is a union of two blocks.

Where the old model has lodged the box in the crack its half-spaces may leave no room at all: such steps
have no solution and end the run. They are counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, shapes
from implicit_geom.experiments import nt12
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import GREY, PAGE, label, mosaic, paper

TITLE = "NT12, Figs. 6 and 7: a box slides over a crack in a ramp, or tumbles"
PARAMS: dict[str, Any] = {"starts": 20, "duration": 1.8, "step": 0.008}
QUICK = {"starts": 1}

SLOPE, MU, CRACK = np.radians(30.0), 0.2, 0.008
HALF = (0.5, 0.4)  # of the box's length and height, m
UPPER, LOWER, THICK = 3.0, 4.0, 0.3  # lengths of the ramp's blocks and their thickness, m
ALONG, ACROSS = np.array([np.cos(SLOPE), -np.sin(SLOPE)]), np.array([np.sin(SLOPE), np.cos(SLOPE)])
ACCELERATION = 9.81 * (np.sin(SLOPE) - MU * np.cos(SLOPE))
LANDED = 0.5  # s
MODELS = ("new", "implicit-euler", "implicit-rattle")


def scene(start: int) -> Scene:
    """The box over the ramp; starts differ in place, height and angle."""
    random = np.random.default_rng(start)
    place, turn, height = random.uniform((-2.1, -0.05, 0.05), (-1.9, 0.05, 0.1))
    s = Scene(dim=2)
    blocks = [
        shapes.rectangle(UPPER / 2, THICK / 2).moved((-UPPER / 2, -THICK / 2)),
        shapes.rectangle(LOWER / 2, THICK / 2).moved((CRACK + LOWER / 2, -THICK / 2)),
    ]
    s.add("ramp", shapes.union(*blocks), fixed=True, orientation=-SLOPE)
    position = place * ALONG + (HALF[1] + height) * ACROSS
    s.add("box", shapes.rectangle(*HALF), mass=1.0, position=position, orientation=turn - SLOPE)
    s.friction(mu=MU)
    return s


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    found = nt12.runs(scene, params["starts"], params["duration"], params["step"])
    table = nt12.law_table(found)
    for name, measure in (("rear", _rear), ("turn", _turn), ("turn_after_landing", _late), ("speed", _speed)):
        table[name] = np.array([measure(r["box"], r.time) for r in found.values()])
    return {"runs": table, "motion": nt12.motion(found, "box")}


def _rear(box: Any, _: np.ndarray) -> float:
    """How far the box's middle is beyond where its rear edge is over the crack, m."""
    return float(box.position[-1] @ ALONG - CRACK - HALF[0])


def _turn(box: Any, _: np.ndarray) -> float:
    return float(np.max(np.abs(box.orientation + SLOPE)))


def _late(box: Any, time: np.ndarray) -> float:
    return float(np.max(np.abs(box.orientation + SLOPE)[time >= LANDED]))


def _speed(box: Any, time: np.ndarray) -> float:
    """The largest deviation from uniform acceleration since landing, m/s."""
    k = int(np.argmax(time >= LANDED))
    v = box.velocity[k:] @ ALONG
    return float(np.max(np.abs(v - v[0] - ACCELERATION * (time[k:] - time[k]))))


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    table = tables["runs"]
    starts = np.unique(table["start"]).size
    slid, tumbled = _outcomes(table).values()
    checks = []
    for model in MODELS:
        own = table["model"] == model
        rows = nt12.of(table, model)
        checks += [
            at_least(f"{model}: starts of {starts} that slide over the crack", np.sum(slid[own]), starts),
            at_most(f"{model}: steps that failed", np.sum(rows["failed"]), 0),
            at_most(f"{model}: change of speed at the crack", np.max(rows["speed"]), 1e-6, "m/s"),
        ]
    over = np.sum(tumbled[table["model"] == "old"])
    checks.append(at_least(f"old: starts of {starts} that tumble (turn by 80 degrees)", over, starts))
    return checks + nt12.law_checks(table)


def _outcomes(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    smooth = (table["turn_after_landing"] < 1e-6) & (table["speed"] < 1e-6)
    return {"slide over the crack": (table["rear"] > 0) & smooth, "tumble": table["turn"] > 1.4}


def report(tables: dict[str, dict[str, np.ndarray]]) -> str:
    return nt12.report(tables["runs"], _outcomes(tables["runs"]))


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    motion = tables["motion"]
    end = float(motion["time"].max())
    layout = [["old", "new", "implicit-rattle"], ["turn"] * 3]
    figure, axes = mosaic(layout, (PAGE, 4.3), height_ratios=(1.35, 1))
    times = np.arange(0.0, end + 1e-9, 0.3)
    for letter, model in zip("abc", ("old", "new", "implicit-rattle")):
        axis = axes[model]
        for lower, upper in ((-UPPER, 0.0), (CRACK, CRACK + LOWER)):
            ends = [lower * ALONG, upper * ALONG]
            nt12.ground(axis, np.array([*ends, *(e - THICK * ACROSS for e in ends[::-1])]))
        nt12.snapshots(axis, nt12.of(motion, model, 0), HALF, times, nt12.COLOURS[model])
        axis.annotate(
            "crack", -0.1 * ACROSS + CRACK / 2 * ALONG, xytext=(-34, -26), textcoords="offset points",
            fontsize=8, color=GREY, arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6},
        )  # fmt: skip
        nt12.bare(axis)
        label(axis, letter, nt12.NAMES.get(model, model))
    axis = axes["turn"]
    for model in ("old", "new", "implicit-rattle"):
        rows = nt12.of(motion, model)
        for k in np.unique(rows["start"]):
            one = nt12.of(motion, model, int(k))
            style = {"linestyle": "--", "zorder": 3} if model == "new" else {}
            axis.plot(
                one["time"],
                np.degrees(-(one["angle"] + SLOPE)),
                color=nt12.COLOURS[model],
                linewidth=0.7,
                label=nt12.NAMES.get(model, model) if k == 0 else None,
                **style,
            )
    axis.set(xlabel="time, s", ylabel="turn forwards, degrees", xlim=(0, end))
    axis.legend(loc="upper left")
    label(axis, "d", nt12.starts(motion))
    return {"figure_6_7": figure}
