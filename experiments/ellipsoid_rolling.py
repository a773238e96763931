"""An ellipsoid (0.5, 0.4, 0.3) rolling without slip on a plane from a tilted rest.

The motion keeps its energy, so that what a stepper gains or loses is its own error. The reference
integrates the equations of rolling. `implicit-euler` is of first order and loses energy;
`implicit-rattle` must be of second order and `implicit-rattle-4` of fourth, in position and energy.
`implicit-rattle` is symmetric in time: with all velocities reversed it must run back to its start.

No slip needs mu >= 0.2725.
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
    order_checks,
    own_share,
    state_errors,
    turn_between,
)
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, label, panels, paper, solid
from implicit_geom.experiments.motion_figures import (
    draw_over_time,
    draw_reference,
    ledger_figure,
    order_figure,
)
from implicit_geom.experiments.references import reference

TITLE = "an ellipsoid rolling without slip: order, energy and reversibility of the steppers"
PARAMS: dict[str, Any] = {
    "duration": 5.0,
    "steps": {
        "implicit-euler": (0.01, 0.005, 0.0025),
        "implicit-rattle": (0.02, 0.01, 0.005, 0.0025, 0.001),
        "implicit-rattle-4": (0.04, 0.02, 0.01),
    },
    "step": 0.01,  # of the runs that are drawn
    "reversed_steps": 200,
}
QUICK: dict[str, Any] = {
    "duration": 0.6,
    "steps": {"implicit-rattle": (0.02, 0.01), "implicit-rattle-4": (0.04, 0.02)},
    "reversed_steps": 50,
}

AXES, MASS, MU, GRAVITY = (0.5, 0.4, 0.3), 1.0, 0.4, 9.81
EVERY = 0.2  # s: the largest error is taken over multiples of this, which every step size hits
COMPARED = (0.5, 1.0, 2.0, 5.0)  # s: times of the bounds on the position
# stepper, step, relative energy error at the end and at most on the way, position error in m
BOUNDS = (
    ("implicit-rattle", 0.01, 2e-4, 1e-3, 2e-4),
    ("implicit-rattle", 0.001, 2e-6, 1e-5, 2e-6),
    ("implicit-rattle-4", 0.04, 5e-5, 5e-5, 1e-6),
)
ORDERS = {"implicit-rattle": 1.9, "implicit-rattle-4": 3.7}
QUANTITIES = {"position": "position", "energy": "energy"}
TILT = 0.35  # rad: how steeply the figure looks down
BACK = 1e-10  # m, rad, m/s, rad/s: distance from the start after running back


def scene(after: Trajectory | None = None) -> Scene:
    """The ellipsoid at rest on the plane, tilted; or as a run left it, with its velocities reversed."""
    inputs = reference("ellipsoid_rolling")["inputs"]
    start = {"position": inputs["x0"], "orientation": inputs["q0"]}
    if after is not None:
        body = after["body"]
        start = {"position": body.position[-1], "orientation": body.orientation[-1]}
        start |= {"velocity": -body.velocity[-1], "angular_velocity": -body.angular_velocity[-1]}
    s = Scene(gravity=(0, 0, -GRAVITY))
    s.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add("body", shapes.ellipsoid(*AXES), mass=MASS, **start)
    s.friction(mu=MU)
    return s


def run(params: dict[str, Any]) -> dict[str, Table]:
    duration, drawn = params["duration"], params["step"]
    runs = {
        (stepper, h): simulate(scene(), duration=duration, step=h, stepper=stepper, progress=False)
        for stepper, steps in params["steps"].items()
        for h in sorted(steps, reverse=True)
    }
    shown = {
        stepper: runs[stepper, drawn if drawn in steps else min(steps)]
        for stepper, steps in params["steps"].items()
    }
    there, back, distances = _there_and_back(params["reversed_steps"], drawn)
    named = {f"{stepper}, h = {h:g}": r for (stepper, h), r in runs.items()}
    main = shown["implicit-rattle"]
    return {
        "errors": _errors(runs, duration),
        "over_time": errors_over_time(shown, "body", reference("ellipsoid_rolling")["states"]),
        "motion": motion_table(main, "body"),
        "contact": contact_path(main),
        "ledger": ledger_table(main),
        "reversed": distances,
        "constraints": constraints({**named, "there": there, "back": back}, "body"),
    }


def _errors(runs: dict[tuple[str, float], Trajectory], duration: float) -> Table:
    """One row a run: errors at the compared times, the largest on the way, and how it was stepped."""
    states = reference("ellipsoid_rolling")["states"]
    often = np.arange(1, round(duration / EVERY) + 1) * EVERY
    rows = []
    for (stepper, h), r in runs.items():
        at = [_position_at(r, states, t) for t in COMPARED]
        largest = state_errors(r, "body", states, often)
        energy = energy_error(r)
        closed, slides = len(r.contacts) / len(r.steps), np.sum(r.contacts["mode"] == "slide")
        rows.append(
            (
                stepper,
                h,
                *at,
                np.max(largest["position"]),
                np.max(largest["turn"]),
                np.max(energy),
                energy[-1],
            )
            + (closed, int(slides), own_share(r))
        )
    names = ("stepper", "step", *(f"at_{t:g}" for t in COMPARED), "position", "turn", "energy", "energy_end")
    return columns((*names, "closed", "slides", "own_form"), rows)


def _position_at(r: Trajectory, states: dict[str, Any], t: float) -> float:
    """Position error at a time, NaN where the run has no such time."""
    if np.min(np.abs(r.time - t)) > 1e-9:
        return np.nan
    return float(state_errors(r, "body", states, np.array([t]))["position"][0])


def _there_and_back(count: int, h: float) -> tuple[Trajectory, Trajectory, Table]:
    """`count` steps, all velocities reversed, and `count` more: both runs, and how far from the start."""
    options = {"duration": count * h, "step": h, "stepper": "implicit-rattle", "progress": False}
    there = simulate(scene(), **options)
    back = simulate(scene(there), **options)
    start, end = there["body"], back["body"]
    distance = {
        "steps": count,
        "position": np.linalg.norm(end.position[-1] - start.position[0]),
        "turn": turn_between(end.orientation[-1], start.orientation[0]),
        "velocity": np.linalg.norm(end.velocity[-1] + start.velocity[0]),
        "spin": np.linalg.norm(end.angular_velocity[-1] + start.angular_velocity[0]),
    }
    return there, back, {name: np.array([value]) for name, value in distance.items()}


def check(tables: dict[str, Table]) -> list[Check]:
    errors = tables["errors"]
    checks = []
    for stepper, h, end, most, position in BOUNDS:
        for row in np.flatnonzero((errors["stepper"] == stepper) & np.isclose(errors["step"], h)):
            words = f"{stepper}, h = {h:g}:"
            checks.append(
                at_most(f"{words} relative energy error at the end", errors["energy_end"][row], end)
            )
            checks.append(at_most(f"{words} largest relative energy error", errors["energy"][row], most))
            for t in COMPARED:
                found = errors[f"at_{t:g}"][row]
                if np.isfinite(found):
                    checks.append(at_most(f"{words} position error at t = {t:g} s", found, position, "m"))
    checks += order_checks(errors, ORDERS, QUANTITIES)
    checks.append(at_least("contact closed in every step, share", np.min(errors["closed"]), 1.0))
    checks.append(at_most("rows of a sliding contact", np.sum(errors["slides"]), 0))
    for name, unit in {"position": "m", "turn": "rad", "velocity": "m/s", "spin": "rad/s"}.items():
        apart = tables["reversed"][name][0]
        checks.append(at_most(f"there and back: distance from the start, {name}", apart, BACK, unit))
    ledger = tables["ledger"]
    friction = np.sum(ledger["friction"]) / (ledger["kinetic"][0] + ledger["potential"][0])
    checks.append(at_most("ledger: lost by friction without slip / energy", friction, 1e-9))
    return checks + ledger_checks(ledger) + constraint_checks(tables["constraints"])


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    units = {"position": "largest position error, m", "energy": "largest $|E / E_0 - 1|$"}
    return {
        "path": _figure_path(tables),
        "reference": _figure_reference(tables),
        "energy": ledger_figure(tables["ledger"], tables["over_time"], "implicit-rattle, $h$ = 0.01 s"),
        "order": order_figure(tables["errors"], units, {"position": "position", "energy": "energy"}),
    }


def _figure_path(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.9), width_ratios=(1.2, 1))
    view, above = axes[0]
    motion, contact = tables["motion"], tables["contact"]
    vertices, triangles = shapes.ellipsoid(*AXES).mesh(96)
    R = rotation.matrix(np.array([motion[f"q_{c}"][0] for c in "wxyz"]))
    centre = np.array([motion[c][0] for c in "xyz"])
    solid(view, vertices @ R.T + centre, triangles, ground=0.8, tilt=TILT)
    for artist in (view.collections[-1], view.patches[-1]):
        artist.set_zorder(3)  # the body stands on its path
    for line, width, above_body in (("-", 0.9, False), (":", 0.5, True)):  # dotted where it is hidden
        height = np.sin(TILT) * contact["point_y"]
        view.plot(
            contact["point_x"], height, line, color=BLUE, linewidth=width, zorder=4 if above_body else 2
        )
    view.set(aspect="equal")
    view.axis("off")
    states = reference("ellipsoid_rolling")["states"]
    shown = np.array(states["t"]) <= motion["time"][-1] + 1e-9
    for x, y, key, colour, words in (
        (motion["x"], motion["y"], "x", ORANGE, "centre"),
        (contact["point_x"], contact["point_y"], "contact_point", BLUE, "contact"),
    ):
        above.plot(x, y, color=colour, label=words, linewidth=0.9)
        exact = np.array(states[key])[shown]
        above.plot(exact[:, 0], exact[:, 1], ".", color=colour, markersize=2.5)
    above.plot([], [], ".", color=GREY, label="reference")
    above.set(xlabel="$x$, m", ylabel="$y$, m", aspect="equal")
    label(view, "a", "the start, and the path of the contact")
    label(above, "b", "paths from above")
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _figure_reference(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.6))
    spin, error = axes[0]
    components = {f"w_{c}": ("omega", i, rf"$\omega_{c}$") for i, c in enumerate("xyz")}
    draw_reference(spin, tables["motion"], reference("ellipsoid_rolling")["states"], components)
    low, high = spin.get_ylim()
    spin.set(ylabel="rad/s", ylim=(low, high + 0.25 * (high - low)))
    spin.legend(loc="upper center", ncols=4, columnspacing=1.2)
    label(spin, "a", "angular velocity, implicit-rattle, $h$ = 0.01 s")
    draw_over_time(error, tables["over_time"], "position")
    error.set(ylabel="m")
    label(error, "b", "error of the position, $h$ = 0.01 s")
    return figure
