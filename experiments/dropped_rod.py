"""A slender rod dropped nearly flat: one end strikes, then the other, harder.

A rod of length L falls with speed v and strikes with one end. Without friction its other end then moves
down with

    v (1 + (1 + e) / 2)

in the limit of a level rod: the second blow is up to twice as fast as the first, and follows it within a
small part of the time of the fall. The far end is a new contact of a pair that touched a moment ago. A
rectangle in the plane with and without friction and a capsule in space, thrown with a spin about the
vertical, are compared with the event-driven solution after the first, second and fourth blow (in the plane
flight is exact, and the whole motion with it), and the speed of the second blow with the closed form.

S. Goyal, J. M. Papadopoulos, P. A. Sullivan, The dynamics of clattering, Journal of Dynamic Systems,
Measurement, and Control 120 (1998) 83-102, treat such sequences.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.event_driven import Body, State, first_impacts
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, label, panels, paper
from implicit_geom.experiments.impact_runs import errors_after, order_checks, orders, recorded, through
from implicit_geom.experiments.motion_figures import draw_order

TITLE = "a dropped rod: one end strikes, then the other, against closed form and event-driven solution"
PARAMS: dict[str, Any] = {
    "plane": {"implicit-rattle": (0.04, 0.02, 0.01), "implicit-rattle-4": (0.04, 0.02, 0.01)},
    "space": {"implicit-rattle": (0.005, 0.0025, 0.00125), "implicit-rattle-4": (0.02, 0.014, 0.01)},
    "tilts": (0.2, 0.1, 0.05, 0.02, 0.01),
    "restitutions": (0.25, 0.5, 1.0),
    "shown": 1e-3,
}
QUICK: dict[str, Any] = {
    "plane": {"implicit-rattle": (0.04, 0.01), "implicit-rattle-4": (0.04,)},
    "space": {"implicit-rattle": (0.005, 0.0025), "implicit-rattle-4": (0.02, 0.01)},
    "tilts": (0.1, 0.01),
    "restitutions": (0.25, 1.0),
    "shown": 2.5e-3,
}

LENGTH, RADIUS = 1.0, 0.1
DROP = 0.5  # m, of the lower end
IMPACTS = (1, 2, 4)
ORDERS = {"implicit-rattle": 1.9, "implicit-rattle-4": 3.7}
CLOSE = 1e-3
EXACT = 1e-8  # flight in the plane has no error of the step: what is left is that of the instants
SPACE = "space, mu = 0.1"


def rod(mu: float, e: float) -> Body:
    """In the plane, no thicker than a thousandth of its length: its inertia is that of a line to 1e-6."""
    return Body(shapes.rectangle(LENGTH / 2, LENGTH / 2000), mu=mu, e=e)


def dropped(body: Body, tilt: float, height: float = DROP) -> State:
    """At rest, turned by `tilt`, its lower end at a height."""
    s = State(0.0, np.zeros(2), np.array(tilt), np.zeros(2), np.zeros(1))
    return replace(s, x=np.array([0.0, height - body.lowest(s)[0]]))


def thrown() -> tuple[Body, State]:
    """A capsule in space, tilted by 0.3 rad and spinning about the vertical."""
    body = Body(shapes.capsule(RADIUS, LENGTH), mu=0.1, e=0.6)
    lying = (np.pi / 2 - 0.3) / 2
    q = np.array([np.cos(lying), 0.0, np.sin(lying), 0.0])
    s = State(0.0, np.zeros(3), q, np.array([0.3, 0.2, 0.0]), np.array([0.0, 0.0, 2.0]))
    return body, replace(s, x=np.array([0.0, 0.0, DROP - body.lowest(s)[0]]))


def cases() -> dict[str, tuple[Body, State]]:
    smooth, rough = rod(0.0, 0.6), rod(0.3, 0.6)
    return {
        "plane, mu = 0": (smooth, dropped(smooth, 0.3)),
        "plane, mu = 0.3": (rough, dropped(rough, 0.3)),
        SPACE: thrown(),
    }


def run(params: dict[str, Any]) -> dict[str, Table]:
    body, start = cases()["plane, mu = 0.3"]
    r = through(body, start, 1.0, params["shown"])
    flat, space = {k: c for k, c in cases().items() if k != SPACE}, {SPACE: cases()[SPACE]}
    parts = [errors_after(flat, params["plane"], IMPACTS), errors_after(space, params["space"], IMPACTS)]
    motion = {"time": r.time, "height": r["body"].position[:, 1], "angle": r["body"].orientation}
    return {
        "errors": {name: np.concatenate([part[name] for part in parts]) for name in parts[0]},
        "second": _second(params),
        "motion": {**motion, "energy": r.energy},
    }


def _second(params: dict[str, Any]) -> Table:
    """Speed of the second blow over that of the first: limit, event-driven, and as stepped."""
    rows = []
    for e in params["restitutions"]:
        body = rod(0.0, e)
        for tilt in params["tilts"]:
            start = dropped(body, tilt)
            first, second = first_impacts(body, start, 10.0, 2)
            duration = second.before.time + 5 * params["shown"]
            blows = [
                _approach(body, before)
                for before, _ in recorded(through(body, start, duration, params["shown"]))
            ]
            ratio = blows[1] / blows[0] if len(blows) > 1 else np.nan
            gap = second.before.time - first.before.time
            rows.append((e, tilt, gap, 1 + (1 + e) / 2, second.approach / first.approach, ratio))
    return columns(("e", "tilt", "between", "limit", "exact", "found"), rows)


def _approach(body: Body, s: State) -> float:
    return -float(body.contact(s, body.lowest(s)[1])[1][0])


def check(tables: dict[str, Table]) -> list[Check]:
    second, checks = tables["second"], []
    off = np.max(np.abs(second["found"] / second["exact"] - 1))
    checks.append(at_most("speed of the second blow over the first, relative error", off, CLOSE))
    level = second["tilt"] == np.min(second["tilt"])
    limit = np.max(np.abs(second["found"] / second["limit"] - 1)[level])
    checks.append(at_most("the same for a nearly level rod, distance from the limit", limit, 0.02))
    for stepper, bound in ORDERS.items():
        for count in IMPACTS:
            for quantity in ("position", "velocity"):
                found = orders(tables["errors"], stepper, count, quantity)[SPACE]
                checks += order_checks(f"{stepper}: {quantity} after {count} blows, capsule", [found], bound)
    flat = tables["errors"]["case"] != SPACE
    for quantity, unit in (("position", "m"), ("velocity", "m/s")):
        worst = np.max(tables["errors"][quantity][flat])
        checks.append(at_most(f"in the plane, any step: error of the {quantity}", worst, EXACT, unit))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    return {"blows": _figure_blows(tables), "order": _figure_order(tables["errors"])}


def _figure_blows(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.6))
    motion, second = tables["motion"], tables["second"]
    ends, ratio = axes[0]
    lift = LENGTH / 2 * np.sin(motion["angle"])
    ends.plot(motion["time"], motion["height"] - lift, color=BLUE, label="one end")
    ends.plot(motion["time"], motion["height"] + lift, color=ORANGE, label="the other")
    ends.set(xlabel="time, s", ylabel="height, m", xlim=(0, 1))
    ends.legend(loc="upper right")
    label(ends, "a", "tilt 0.3 rad, mu = 0.3, e = 0.6")
    for e, colour in zip(np.unique(second["e"]), (GREY, BLUE, ORANGE)):
        rows = second["e"] == e
        ratio.axhline(second["limit"][rows][0], color=colour, linewidth=0.8, linestyle="--")
        ratio.plot(second["tilt"][rows], second["exact"][rows], color=colour, label=f"e = {e:g}")
        ratio.plot(second["tilt"][rows], second["found"][rows], ".", color=colour)
    ratio.set(xlabel="tilt, rad", ylabel="second blow / first")
    ratio.legend(loc="center right", bbox_to_anchor=(1, 0.62))
    label(ratio, "b", "dots: implicit-rattle; dashed: level rod")
    return figure


def _figure_order(errors: Table) -> Any:
    figure, axes = panels(1, 2, (PAGE, 3.0))
    chosen = (errors["case"] == SPACE) & (errors["impacts"] == IMPACTS[-1])
    rows = {name: column[chosen] for name, column in errors.items()}
    for axis, letter, (quantity, unit) in zip(axes[0], "ab", (("position", "m"), ("velocity", "m/s"))):
        draw_order(axis, rows, quantity)
        axis.set(ylabel=f"error, {unit}")
        label(axis, letter, f"{quantity} after {IMPACTS[-1]} blows, capsule")
    return figure
