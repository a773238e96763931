"""An ellipsoid that bounces on a plane: its energy at e = 1, and a hundred bounces at e = 0.8.

Without friction and with e = 1 no impact loses anything: what the energy does over 3 s is the error of free
flight, and the change in each impact is rounding.

With e = 0.8, without friction, with little and with enough to stick, the state after one and after five
impacts is compared with the event-driven solution: second order for `implicit-rattle`, fourth for
`implicit-rattle-4`, although the impacts lie anywhere within the steps. (Between impacts nothing touches:
the order is that of the instant and pose at which the impact is taken, and of flight.)

Infinitely many impacts follow each other in a finite time. A hundred are over in 2.7 s, the last ones
within microseconds: a step takes the first of them one by one, and what is left of it without restitution.
The error after the hundredth is that of the remaining speed, g h at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.event_driven import Body, State, first_impacts
from implicit_geom.experiments.figures import BLUE, GREEN, GREY, ORANGE, PAGE, label, panels, paper
from implicit_geom.experiments.impact_runs import (
    STATES,
    apart,
    end_of,
    errors_after,
    order_checks,
    orders,
    recorded,
    through,
)
from implicit_geom.experiments.motion_figures import draw_order, step_axis

TITLE = "a bouncing ellipsoid: energy at e = 1, order through impacts, a hundred bounces at e = 0.8"
PARAMS: dict[str, Any] = {
    "elastic": {"step": 0.01, "duration": 3.0},
    "steps": {
        "implicit-rattle": (0.04, 0.02, 0.01, 0.005),
        "implicit-rattle-4": (0.08, 0.04, 0.02),
    },
    "cases": ("mu = 0", "mu = 0.05", "mu = 1"),
    "bounces": 100,
    "hundred": (0.01, 0.005, 0.0025, 0.00125),
}
QUICK: dict[str, Any] = {
    "elastic": {"step": 0.01, "duration": 1.0},
    "steps": {"implicit-rattle": (0.04, 0.02, 0.01), "implicit-rattle-4": (0.08, 0.04)},
    "cases": ("mu = 0.05",),
    "hundred": (0.01, 0.005),
}

EGG = shapes.ellipsoid(0.22, 0.2, 0.18)
CASES = {"mu = 0": 0.0, "mu = 0.05": 0.05, "mu = 1": 1.0}
E = 0.8
IMPACTS = (1, 5)
ORDERS = {"implicit-rattle": 1.9, "implicit-rattle-4": 3.7}
KEPT = 1e-9  # relative change of the kinetic energy in an impact with e = 1
FLIGHT = 1e-4  # relative error of the energy in flight at h = 0.01


def start() -> State:
    """Half a metre above the plane, spinning."""
    q = np.array([0.9, 0.2, -0.3, 0.25])
    q /= np.linalg.norm(q)
    s = State(0.0, np.zeros(3), q, np.array([0.7, -0.3, 0.0]), np.array([4.0, -3.0, 5.0]))
    height = 0.5 - Body(EGG).lowest(s)[0]
    return State(0.0, np.array([0.0, 0.0, height]), q, s.v, s.w)


def run(params: dict[str, Any]) -> dict[str, Table]:
    cases = {name: (Body(EGG, mu=CASES[name], e=E), start()) for name in params["cases"]}
    return {
        **_elastic(**params["elastic"]),
        "errors": errors_after(cases, params["steps"], IMPACTS),
        **_hundred(params["bounces"], params["hundred"]),
    }


def _elastic(step: float, duration: float) -> dict[str, Table]:
    body = Body(EGG, e=1.0)
    r = through(body, start(), duration, step)
    impacts = recorded(r)
    rows = [
        (before.time, _kinetic(body, before), _kinetic(body, after) / _kinetic(body, before) - 1)
        for before, after in impacts
    ]
    energy = {"time": r.time, "energy": r.energy, "height": r["body"].position[:, 2]}
    return {"energy": energy, "impacts": columns(("time", "kinetic", "change"), rows)}


def _kinetic(body: Body, s: State) -> float:
    return body.energy(s) - body.mass * body.gravity * float(s.x[-1])


def _hundred(count: int, steps: tuple[float, ...]) -> dict[str, Table]:
    """The instants of the impacts, and the error right before the last one."""
    body = Body(EGG, e=E)
    found = first_impacts(body, start(), 100.0, count)
    exact = np.array([impact.before.time for impact in found])
    rows, instants = [], {}
    for h in steps:
        r = through(body, start(), exact[-1], h)
        own = np.array([before.time for before, _ in recorded(r)])
        alone = int(np.sum(np.diff(exact) > 2 * h))
        rows.append(
            (
                h,
                len(own),
                alone,
                np.max(np.abs(own[:alone] - exact[:alone])),
                *apart(end_of(r), found[-1].before),
            )
        )
        instants[h] = own
    names = ("step", "impacts", "alone", "instant", *STATES)
    last = instants[steps[-1]][:count]
    own = np.concatenate([last, np.full(count - len(last), np.nan)])
    times = {"impact": np.arange(1, count + 1), "exact": exact, "found": own}
    return {"hundred": columns(names, rows), "instants": times}


def check(tables: dict[str, Table]) -> list[Check]:
    energy, impacts = tables["energy"]["energy"], tables["impacts"]
    drift = np.max(np.abs(energy / energy[0] - 1))
    checks = [
        at_most("e = 1: change of energy in an impact, relative", np.max(np.abs(impacts["change"])), KEPT),
        at_most("e = 1: error of the energy over the whole run", drift, FLIGHT),
    ]
    for stepper, bound in ORDERS.items():
        for count in IMPACTS:
            for quantity in ("position", "velocity"):
                found = orders(tables["errors"], stepper, count, quantity).values()
                checks += order_checks(f"{stepper}: {quantity} after {count} impacts", found, bound)
    hundred = tables["hundred"]
    h = hundred["step"]
    for name, scale in (("position", 0.1), ("velocity", 1.0)):
        checks.append(
            at_most(
                f"a hundred bounces: error of the {name} over {scale:g} h",
                np.max(hundred[name] / (scale * h)),
                1.0,
            )
        )
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    return {
        "energy": _figure_energy(tables),
        "order": _figure_order(tables["errors"]),
        "hundred": _figure_hundred(tables),
    }


def _figure_energy(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.5))
    energy = tables["energy"]
    height, drift = axes[0]
    height.plot(energy["time"], energy["height"], color=BLUE)
    height.set(xlabel="time, s", ylabel="height of the centre, m")
    label(height, "a", "e = 1, no friction")
    drift.plot(energy["time"], energy["energy"] / energy["energy"][0] - 1, color=BLUE)
    for time in tables["impacts"]["time"]:
        drift.axvline(time, color=GREY, linewidth=0.5)
    drift.set(xlabel="time, s", ylabel="$E / E_0 - 1$")
    label(drift, "b", "energy; grey: impacts")
    return figure


def _figure_order(errors: Table) -> Any:
    figure, axes = panels(1, 2, (PAGE, 3.0))
    chosen = (errors["case"] == "mu = 0.05") & (errors["impacts"] == IMPACTS[-1])
    rows = {name: column[chosen] for name, column in errors.items()}
    for axis, letter, (quantity, unit) in zip(axes[0], "ab", (("position", "m"), ("velocity", "m/s"))):
        draw_order(axis, rows, quantity)
        axis.set(ylabel=f"error, {unit}")
        label(axis, letter, f"{quantity} after {IMPACTS[-1]} impacts, mu = 0.05, e = {E:g}")
    return figure


def _figure_hundred(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.6))
    instants, hundred = tables["instants"], tables["hundred"]
    when, error = axes[0]
    end = instants["exact"][-1] + 1e-10
    when.semilogy(
        instants["impact"], end - instants["exact"] + 1e-10, color=GREY, linewidth=2.5, label="event-driven"
    )
    when.semilogy(
        instants["impact"],
        np.maximum(end - instants["found"], 1e-10),
        ".",
        color=BLUE,
        label=f"h = {hundred['step'][-1]:g} s",
    )
    when.set(xlabel="impact", ylabel="time to the last one, s")
    when.legend(loc="upper right")
    label(when, "a", f"instants, e = {E:g}")
    for name, unit, colour in (("position", "m", BLUE), ("velocity", "m/s", ORANGE), ("instant", "s", GREEN)):
        error.loglog(hundred["step"], hundred[name], "o-", color=colour, label=f"{name}, {unit}")
    step_axis(error)
    error.set(ylabel="error")
    error.legend(loc="lower right")
    label(error, "b", "after the last one; instants of those apart")
    return figure
