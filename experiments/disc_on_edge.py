"""A thin disc rolling on its edge without slip: steadily at 30 degrees, and upright with a wobble.

Steady: the centre stays at rest while the disc precesses with Omega and turns about its axis with nu,

    R(t) = exp(Omega t e_z) R(0) exp(nu t e_z),     x(t) = x(0)

Upright: the disc rolls at 1 m/s, leaning by 2 degrees, above the speed at which it would fall over; its
lean and heading oscillate. The reference integrates the equations of rolling.

The disc is a cylinder without thickness, its edge the curve that touches. `implicit-euler` is shown for
comparison: with 40 steps a period the steady disc has fallen flat before five periods are over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, rotation, shapes, simulate
from implicit_geom.experiments.approach import constraint_checks, constraints
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import (
    Table,
    columns,
    contact_path,
    energy_error,
    errors_over_time,
    ledger_checks,
    ledger_table,
    motion_table,
    of_case,
    order_checks,
    own_share,
    state_errors,
    turn_between,
)
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, label, panels, paper
from implicit_geom.experiments.motion_figures import draw_ledger, draw_order, draw_over_time
from implicit_geom.experiments.references import reference

TITLE = "a thin disc rolling on its edge: steady at 30 degrees, and upright with a wobble"
PARAMS: dict[str, Any] = {
    "periods": 5,
    "duration": 3.0,
    # steady: steps a period; upright: seconds
    "steady": {
        "implicit-euler": (40, 80, 160),
        "implicit-rattle": (20, 40, 80, 160),
        "implicit-rattle-4": (10, 20, 40),
    },
    "upright": {
        "implicit-euler": (0.01, 0.005, 0.0025),
        "implicit-rattle": (0.02, 0.01, 0.005, 0.0025),
        "implicit-rattle-4": (0.05, 0.025, 0.0125),
    },
}
QUICK: dict[str, Any] = {
    "periods": 1,
    "duration": 0.5,
    "steady": {"implicit-rattle": (20, 40, 80), "implicit-rattle-4": (10, 20)},
    "upright": {"implicit-rattle": (0.02, 0.01, 0.005), "implicit-rattle-4": (0.05, 0.025)},
}

RADIUS, MASS, MU, GRAVITY = 0.1, 1.0, 0.4, 9.81
PER_PERIOD = 10  # times a period at which the steady motion is compared; every count of steps hits them
EVERY = 0.1  # s: likewise for the upright disc
CASES = ("steady", "upright")
ORDERS = {"implicit-rattle": 1.9, "implicit-rattle-4": 3.7}
QUANTITIES = {"position": "position", "energy": "energy"}


def _start(case: str) -> dict[str, Any]:
    return reference("disc_on_edge")[case][0]


def period() -> float:
    """Of the steady motion, s."""
    return float(_start("steady")["period"])


def steady_states(times: np.ndarray) -> dict[str, np.ndarray]:
    """The steady motion at any time, in the reference's columns."""
    case = _start("steady")
    first = {name: np.array(column[0]) for name, column in case["states"].items()}
    up, turns = np.array([0.0, 0.0, 1.0]), np.outer(times, case["Omega"] * np.array([0.0, 0.0, 1.0]))
    precession = rotation.exp(turns)
    spin = rotation.exp(np.outer(times, case["nu_relative_spin"] * up))
    R = rotation.matrix(precession)
    q = rotation.multiply(rotation.multiply(precession, first["q"]), spin)
    still = np.zeros((len(times), 3))
    return {
        "t": np.asarray(times, float),
        "x": still + first["x"],
        "q": q,
        "v": still,
        "omega": R @ first["omega"],
        "contact_point": R @ first["contact_point"],
    }


def scene(case: str) -> Scene:
    """The disc as the reference starts it."""
    states = _start(case)["states"]
    s = Scene(gravity=(0, 0, -GRAVITY))
    s.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add(
        "body",
        shapes.cylinder(RADIUS, 0),
        mass=MASS,
        position=states["x"][0],
        orientation=states["q"][0],
        velocity=states["v"][0],
        angular_velocity=states["omega"][0],
    )
    s.friction(mu=MU)
    return s


def run(params: dict[str, Any]) -> dict[str, Table]:
    tables: dict[str, Table] = {"closed_form": _closed_form()}
    errors, named = [], {}
    for case in CASES:
        steady = case == "steady"
        duration = params["periods"] * period() if steady else params["duration"]
        count = params["periods"] * PER_PERIOD if steady else round(duration / EVERY)
        times = np.arange(1, count + 1) * (period() / PER_PERIOD if steady else EVERY)
        states = steady_states(np.append(0.0, times)) if steady else _start(case)["states"]
        runs = {
            (stepper, h): simulate(scene(case), duration=duration, step=h, stepper=stepper, progress=False)
            for stepper, steps in params[case].items()
            for h in sorted((period() / n if steady else n for n in steps), reverse=True)
        }
        errors += [(case, stepper, h, *_errors(r, states, times)) for (stepper, h), r in runs.items()]
        finest = {stepper: r for (stepper, _), r in runs.items()}
        main = finest["implicit-rattle"]
        tables[f"{case}_over_time"] = errors_over_time(finest, "body", states)
        tables[f"{case}_motion"] = motion_table(main, "body")
        tables[f"{case}_contact"] = contact_path(main)
        tables[f"{case}_ledger"] = ledger_table(main)
        named |= {f"{case}, {stepper}, h = {h:.4g}": r for (stepper, h), r in runs.items()}
    names = ("case", "stepper", "step", "position", "turn", "energy", "closed", "slides", "own_form")
    tables["errors"] = columns(names, errors)
    return {**tables, "constraints": constraints(named, "body")}


def _errors(r: Trajectory, states: dict[str, Any], times: np.ndarray) -> tuple[float, ...]:
    """The largest errors over the compared times (energy: over all), and how the run was stepped."""
    found = state_errors(r, "body", states, times)
    closed, slides = len(r.contacts) / len(r.steps), int(np.sum(r.contacts["mode"] == "slide"))
    largest = np.max(found["position"]), np.max(found["turn"]), np.max(energy_error(r))
    return (*largest, closed, slides, own_share(r))


def _closed_form() -> Table:
    """Distance of the closed form from the reference's states over one period."""
    states = {name: np.array(column) for name, column in _start("steady")["states"].items()}
    found = steady_states(states["t"])
    apart = {
        name: np.linalg.norm(found[name] - states[name], axis=1) for name in ("x", "omega", "contact_point")
    }
    return {"time": states["t"], **apart, "turn": turn_between(found["q"], states["q"])}


def check(tables: dict[str, Table]) -> list[Check]:
    form = tables["closed_form"]
    off = max(np.max(form[name]) for name in ("x", "contact_point", "turn"))
    checks = [at_most("closed form of the steady motion, distance from the reference", off, 1e-12)]
    for case in CASES:
        errors = of_case(tables["errors"], case)
        checks += order_checks(errors, ORDERS, QUANTITIES, f"{case}: ")
        checks.append(at_least(f"{case}: contact closed in every step, share", np.min(errors["closed"]), 1.0))
        slides = np.sum(errors["slides"][np.isin(errors["stepper"], list(ORDERS))])
        checks.append(at_most(f"{case}: rows of a sliding contact", slides, 0))
        checks += ledger_checks(tables[f"{case}_ledger"], f"{case}: ")
    return checks + constraint_checks(tables["constraints"])


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    return {
        "path": _figure_path(tables),
        "reference": _figure_reference(tables),
        "energy": _figure_energy(tables),
        "order": _figure_order(tables["errors"]),
    }


def _figure_path(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.9), width_ratios=(1, 1.5))
    for axis, letter, case in zip(axes[0], "ab", CASES):
        motion, contact = tables[f"{case}_motion"], tables[f"{case}_contact"]
        states = _start(case)["states"]
        shown = np.array(states["t"]) <= motion["time"][-1] + 1e-9
        for x, y, key, colour, words in (
            (motion["x"], motion["y"], "x", ORANGE, "centre"),
            (contact["point_x"], contact["point_y"], "contact_point", BLUE, "contact"),
        ):
            axis.plot(x, y, color=colour, label=words, linewidth=0.9)
            exact = np.array(states[key])[shown]
            axis.plot(exact[:, 0], exact[:, 1], ".", color=colour, markersize=3)
        axis.plot([], [], ".", color=GREY, label="reference")
        axis.set(xlabel="$x$, m", ylabel="$y$, m", aspect="equal")
        label(axis, letter, f"{case}, seen from above")
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _figure_reference(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.6))
    lean, error = axes[0]
    motion, states = tables["upright_motion"], _start("upright")["states"]
    q = np.column_stack([motion[f"q_{c}"] for c in "wxyz"])
    # the disc's plane is upright where its axis is level
    found = np.degrees(np.arcsin(rotation.matrix(q)[:, 2, 2]))
    shown = np.array(states["t"]) <= motion["time"][-1] + 1e-9
    lean.plot(motion["time"], found, color=BLUE, label="implicit-rattle")
    exact = np.degrees(np.array(states["lean"]))[shown]
    lean.plot(np.array(states["t"])[shown], exact, ".", color="black", label="reference")
    lean.set(xlabel="time, s", ylabel="degrees", xlim=(0, motion["time"][-1]))
    low, high = lean.get_ylim()
    lean.set(ylim=(low, high + 0.2 * (high - low)))
    lean.legend(loc="upper right", ncols=2)
    label(lean, "a", "upright: lean")
    draw_over_time(error, tables["upright_over_time"], "position")
    error.set(ylabel="m")
    label(error, "b", "upright: error of the position, finest steps")
    return figure


def _figure_energy(tables: dict[str, Table]) -> Any:
    figure, axes = panels(2, 2, (PAGE, 4.6))
    for row, letters, case in zip(axes, ("ab", "cd"), CASES):
        draw_ledger(row[0], tables[f"{case}_ledger"], changes=True)
        label(row[0], letters[0], f"{case}: implicit-rattle")
        draw_over_time(row[1], tables[f"{case}_over_time"], "energy")
        row[1].set(ylabel="$|E / E_0 - 1|$")
        label(row[1], letters[1], f"{case}: error of the energy, finest steps")
    return figure


def _figure_order(errors: Table) -> Any:
    figure, axes = panels(2, 2, (PAGE, 5.2), sharex="row")
    for row, letters, case in zip(axes, ("ab", "cd"), CASES):
        for axis, letter, (column, words) in zip(
            row, letters, {"position": "position error, m", "energy": "$|E / E_0 - 1|$"}.items()
        ):
            draw_order(axis, of_case(errors, case), column)
            axis.set(ylabel=f"largest {words}")
            label(axis, letter, f"{case}: {column}")
    return figure
