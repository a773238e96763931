"""The spinning egg: a prolate spheroid spun fast on its side rises and stands on its end.

H. K. Moffatt and Y. Shimomura, Spinning eggs: a paradox resolved, Nature 416 (2002). The body (semi-axes 20,
20 and 28 mm, 50 g) starts with its axis 85 degrees from the vertical and its angular momentum vertical, with
the precession L / I_1 = 165 rad/s; friction is isotropic sliding friction with mu = 0.3, without torsion. The
contact slides until the axis is about 10 degrees from the vertical; there the comparison ends.

With the angular momentum L about the centre of mass and the arm r from there to the contact, the Jellett
quantity is J = -L . r. Friction has no moment about the contact, so that J' = -L . r', which is 0

    for a body whose surface is a sphere, wherever its centre of mass: the tippe top, exactly
    for any body of revolution, as far as L is vertical (r' + r x w is horizontal): the egg, nearly

so that what friction takes is energy, and the least energy that J allows is that of the egg on its end. The
experiment has both: the egg's J must follow the reference's with the order of the method. That of a top (a
sphere of 20 mm with its centre of mass 6 mm off, spun at 150 rad/s) is kept by `implicit-rattle` to rounding:
each stage's impulse acts at the arm r of its own pose, and between the stages L . e_z and L . n are kept, of
which J is a combination with constant factors. `implicit-euler` keeps it to first order only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.experiments.approach import constraint_checks, constraints
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, ledger_checks, ledger_table, rows_at
from implicit_geom.experiments.ellipsoid_reference import rotation
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, label, panels, paper, solid
from implicit_geom.experiments.motion_figures import draw_order
from implicit_geom.experiments.regression import order
from implicit_geom.experiments.sliding_reference import Body, Friction, ellipsoid, lowest
from implicit_geom.experiments.sliding_runs import (
    Runs,
    Start,
    chosen,
    errors,
    every,
    figure_ledger,
    figure_order,
    fourth_order_checks,
    motion_table,
    reference_checks,
    reference_table,
    step_ticks,
    texts,
)

TITLE = "spinning egg: a spheroid spun on its side rises to stand on its end, against an ODE"
PARAMS: dict[str, Any] = {
    "duration": 0.66,
    "step": 1e-3,  # of the motion and the ledger that are shown
    "steps": {
        "implicit-rattle": (4e-3, 2e-3, 1e-3, 5e-4),
        "implicit-rattle-4": (4e-3, 2e-3, 1e-3),
        "implicit-euler": (2e-3, 1e-3, 5e-4),
    },
    "top_duration": 0.2,
}
QUICK: dict[str, Any] = {
    "step": 2e-3,
    "steps": {"implicit-rattle": (4e-3, 2e-3), "implicit-euler": (4e-3, 2e-3)},
    "top_duration": 0.04,
}

AXES, MASS = (0.02, 0.02, 0.028), 0.05
TILT, SPEED = np.radians(85), 165.0
FRICTION = Friction(0.3)
STANDS = np.radians(15)
WORDS = {"position": "largest error, m", "energy": "largest error, J", "jellett": "largest error / $J_0$"}
TOP_RADIUS, TOP_OFFSET, TOP_TILT, TOP_SPEED = 0.02, 0.006, np.radians(10), 150.0


def egg() -> Start:
    shape = shapes.ellipsoid(*AXES)
    body = Body(ellipsoid(np.array(AXES)), MASS, shape.inertia(MASS), np.zeros(3))
    orientation = np.array([np.cos(TILT / 2), 0.0, np.sin(TILT / 2), 0.0])
    R = rotation(orientation)
    momentum = np.array([0.0, 0.0, body.inertia[0, 0] * SPEED])
    spin = R @ np.linalg.solve(body.inertia, R.T @ momentum)
    return Start(shape, body, FRICTION, orientation, spin)


def tippe_top() -> Start:
    """A sphere with its centre of mass below its centre, spun about the vertical."""
    shape = shapes.sphere(TOP_RADIUS)
    body = Body(
        ellipsoid(np.full(3, TOP_RADIUS)), MASS, shape.inertia(MASS), np.array([0.0, 0.0, -TOP_OFFSET])
    )
    orientation = np.array([np.cos(TOP_TILT / 2), 0.0, np.sin(TOP_TILT / 2), 0.0])
    return Start(shape, body, FRICTION, orientation, np.array([0.0, 0.0, TOP_SPEED]))


def jellett(body: Body, motion: Any) -> np.ndarray:
    """(T,) J s m: -L . r of a run's body or of a reference."""
    values = []
    for q, w in zip(motion.orientation, motion.angular_velocity):
        R = rotation(q)
        values.append(-(R @ (body.inertia @ (R.T @ w))) @ lowest(body, R))
    return np.array(values)


def run(params: dict[str, Any]) -> dict[str, Table]:
    duration, shown = params["duration"], params["step"]
    problem, top = egg(), tippe_top()
    exact = problem.reference(np.linspace(0, duration, round(duration / shown) + 1))
    runs = problem.runs(params["steps"], duration)
    common = every(exact, round(max(h for _, h in runs) / shown))
    best, first_order = runs["implicit-rattle", shown], runs["implicit-euler", shown]
    motion = motion_table(best, exact)
    motion["tilt_euler"] = motion_table(first_order, exact)["tilt"]
    J = motion["jellett_exact"] = jellett(problem.body, exact)
    for name, r in (("jellett", best), ("jellett_euler", first_order)):
        motion[name] = jellett(problem.body, r["body"])
    J_common = jellett(problem.body, common)
    table = errors(runs, common)
    table["jellett"] = np.array(
        [
            np.max(np.abs(jellett(problem.body, r["body"])[rows_at(r.time, common.time)] - J_common)) / J[0]
            for r in runs.values()
        ]
    )
    reference = reference_table(exact)
    reference["jellett"] = np.array([np.max(np.abs(J / J[0] - 1))])
    named = {f"egg, {name}, h = {h:g}": r for (name, h), r in runs.items()}
    tops = top.runs(params["steps"], params["top_duration"])
    named |= {f"top, {name}, h = {h:g}": r for (name, h), r in tops.items()}
    return {
        "motion": motion,
        "ledger": ledger_table(best),
        "errors": table,
        "top": _top_table(top, tops, params["top_duration"]),
        "reference": reference,
        "constraints": constraints(named, "body"),
    }


def _top_table(top: Start, runs: Runs, duration: float) -> Table:
    """One row a run: largest relative change of J, and largest distance from the reference."""
    exact = top.reference(np.linspace(0, duration, round(duration / max(h for _, h in runs)) + 1))
    found = errors(runs, exact)
    kept = [jellett(top.body, r["body"]) for r in runs.values()]
    table = {name: found[name] for name in ("stepper", "step", "position", "energy", "other_forms")}
    return table | {"jellett": np.array([np.max(np.abs(J / J[0] - 1)) for J in kept])}


def report(tables: dict[str, Table]) -> str:
    return texts(tables, ("errors", "top", "reference", "constraints"))


def check(tables: dict[str, Table]) -> list[Check]:
    motion, reference = tables["motion"], tables["reference"]
    rattle, top = (chosen(tables[name], "implicit-rattle") for name in ("errors", "top"))
    h, lost = rattle["step"], float(reference["friction_loss"][0])
    finest = int(np.argmin(h))
    tilt = np.degrees(motion["tilt"])
    off = np.max(np.abs(tilt - np.degrees(motion["tilt_exact"])))
    checks = reference_checks(reference)
    checks += [
        at_most("reference: the egg's Jellett quantity, relative change", reference["jellett"][0], 0.01),
        at_least("reference: least slip", reference["least_slip"][0], 1e-3, "m/s"),
    ]
    words = "implicit-rattle: "
    for name in ("position", "spin", "energy", "friction", "jellett"):
        checks.append(at_least(f"{words}{name}, order", order(h, rattle[name]), 1.9))
    for name in ("position", "energy"):
        checks.append(at_least(f"{words}tippe top, {name}, order", order(top["step"], top[name]), 1.9))
    checks += [
        at_most(f"{words}position error / size, finest step", rattle["position"][finest] / AXES[2], 1e-2),
        at_most(f"{words}tippe top, change of Jellett's J, any step", np.max(top["jellett"]), 1e-12),
        at_most(f"{words}remainder / friction loss, finest step", rattle["remainder"][finest] / lost, 1e-2),
        at_most(f"{words}impact / friction loss, any step", np.max(rattle["impact"]) / lost, 1e-9),
        at_most(f"{words}steps of another form", np.sum(rattle["other_forms"]), 0),
        at_least("angle of the axis to the vertical at the start", tilt[0], 80, "degrees"),
        at_most("angle of the axis to the vertical at the end", tilt[-1], np.degrees(STANDS), "degrees"),
        at_most("that angle, largest distance from the reference", off, 2, "degrees"),
    ]
    checks += fourth_order_checks(tables["errors"])
    return checks + ledger_checks(tables["ledger"]) + constraint_checks(tables["constraints"])


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    motion = tables["motion"]
    return {
        "rise": _figure_rise(motion),
        "path": _figure_path(motion),
        "energy": figure_ledger(tables["ledger"], motion),
        "jellett": _figure_jellett(motion, tables["top"]),
        "order": figure_order(tables["errors"], WORDS, without_order=("implicit-euler",)),
    }


def _figure_rise(motion: Table) -> Any:
    """The egg at six times, its angle to the vertical, and the normal force."""
    times = np.linspace(0, motion["time"][-1], 6)
    figure, axes = panels(2, 2, (PAGE, 3.9), height_ratios=(1, 1.7))
    grid = axes[0, 0].get_gridspec()
    for axis in axes[0]:
        axis.remove()
    row_of_eggs = figure.add_subplot(grid[0, :])
    row_of_eggs.set_axis_off()
    vertices, triangles = shapes.ellipsoid(*AXES).mesh(64)
    for place, time in enumerate(times):
        axis = row_of_eggs.inset_axes((place / len(times), 0.0, 1 / len(times), 1.0))
        row = int(np.argmin(np.abs(motion["time"] - time)))
        R = rotation(np.array([motion[f"q_{c}"][row] for c in "wxyz"]))
        solid(axis, np.array([0, 0, motion["z"][row]]) + vertices @ R.T, triangles, ground=0.03)
        axis.collections[-1].set_rasterized(True)  # thousands of facets
        axis.set(xlim=(-0.031, 0.031), ylim=(-0.01, 0.06), aspect="equal")
        axis.set_axis_off()
        axis.set_title(f"$t$ = {motion['time'][row]:.2f} s")
    tilt, force = axes[1]
    t, some = motion["time"], slice(None, None, max(1, len(motion["time"]) // 24))
    tilt.plot(t, np.degrees(motion["tilt"]), color=BLUE, label="implicit-rattle")
    tilt.plot(t, np.degrees(motion["tilt_euler"]), color=ORANGE, label="implicit-euler")
    tilt.plot(t[some], np.degrees(motion["tilt_exact"][some]), ".", color="black", label="reference")
    tilt.set(xlabel="time, s", ylabel="axis to the vertical, degrees", xlim=(0, t[-1]), ylim=(0, 95))
    tilt.legend(loc="lower left")
    weight = MASS * egg().body.gravity
    force.plot(t, motion["normal_force"] / weight, color=BLUE, label="implicit-rattle")
    exact = motion["normal_force_exact"] / weight
    force.plot(t, exact, "--", color="black", linewidth=0.8, label="reference")
    force.set(xlabel="time, s", ylabel="normal force / weight", xlim=(0, t[-1]))
    force.legend(loc="lower left")
    label(tilt, "a", f"angle of the axis, $h$ = {1e3 * t[1]:g} ms")
    label(force, "b", "normal force")
    return figure


def _figure_path(motion: Table) -> Any:
    figure, axes = panels(1, 2, (PAGE, 3.0))
    sides = (("point_", "contact point on the ground"), ("", "centre from above"))
    motions = (("", "-", BLUE, "implicit-rattle"), ("_exact", ":", "black", "reference"))
    for axis, letter, (prefix, words) in zip(axes[0], "ab", sides):
        for suffix, style, colour, name in motions:
            x, y = 1e3 * motion[f"{prefix}x{suffix}"], 1e3 * motion[f"{prefix}y{suffix}"]
            axis.plot(x, y, style, color=colour, linewidth=0.7, label=name)
        axis.set(xlabel="$x$, mm", ylabel="$y$, mm", aspect="equal")
        label(axis, letter, words)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _figure_jellett(motion: Table, top: Table) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.6))
    over_time, over_step = axes[0]
    t, start = motion["time"], motion["jellett_exact"][0]
    lines = (("jellett_euler", ORANGE, "-", "implicit-euler"), ("jellett", BLUE, "-", "implicit-rattle"))
    for name, colour, style, words in (*lines, ("jellett_exact", "black", "--", "reference")):
        over_time.plot(t, 100 * (motion[name] / start - 1), style, color=colour, label=words)
    over_time.axhline(0, color=GREY, linewidth=0.6)
    over_time.set(xlabel="time, s", ylabel="change of $J$, per cent", xlim=(0, t[-1]))
    over_time.legend(loc="best")
    draw_order(over_step, top, "jellett")
    step_ticks(over_step, top["step"])
    over_step.set(ylabel="relative change of $J$")
    label(over_time, "a", f"Jellett quantity of the egg, $h$ = {1e3 * t[1]:g} ms")
    label(over_step, "b", "of the tippe top: largest change")
    return figure
