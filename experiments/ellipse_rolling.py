"""An ellipse (0.4, 0.3) rolling without slip on a line: polygons stepped by an LCP against implicit steppers.

The motion keeps its energy and has one coordinate, so that it is known to 12 digits. Stewart and
Trinkle's step on an inscribed polygon loses energy whatever the step is: with more vertices the loss falls
to what the step costs, with shorter steps to what the vertices cost. On the ellipse itself the steppers
have their orders: `implicit-euler` one, `implicit-rattle` two, `implicit-rattle-4` four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Stepper, Trajectory, shapes, simulate
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns, order_checks, rows_at
from implicit_geom.experiments.ellipse_reference import Rolling
from implicit_geom.experiments.figures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PAGE,
    PURPLE,
    RED,
    label,
    panels,
    paper,
)
from implicit_geom.experiments.own_laws import law_checks, laws

TITLE = "an ellipse rolling in the plane: polygons stepped by an LCP against implicit steppers"
PARAMS: dict[str, Any] = {
    "duration": 2.0,
    "implicit": {
        "implicit-euler": (0.02, 0.01, 0.005, 0.0025, 0.00125),
        "implicit-rattle": (0.02, 0.01, 0.005, 0.0025, 0.00125),
        "implicit-rattle-4": (0.04, 0.02, 0.01),
    },
    "facets": (16, 32, 64, 256, 1000),
    "steps": (0.02, 0.01, 0.005, 0.0025),
}
QUICK: dict[str, Any] = {
    "duration": 0.8,
    "implicit": {
        "implicit-euler": (0.01, 0.005, 0.0025),
        "implicit-rattle": (0.02, 0.01),
        "implicit-rattle-4": (0.04, 0.02),
    },
    "facets": (16, 64, 256),
    "steps": (0.01, 0.005),
}

ELLIPSE = Rolling(0.4, 0.3, 1.0, 9.81, -5.0)  # rolls to the right, over its tips
MU = 0.4
EVERY = 0.04  # s: errors are the largest at multiples of this, which every step hits
DRAWN = 0.01  # s: step of the runs whose energy is drawn
ORDERS = {"implicit-euler": 0.9, "implicit-rattle": 1.9, "implicit-rattle-4": 3.7}
POLYGON = "stewart-trinkle"


def scene() -> Scene:
    """The ellipse on its long side, with v = omega x r."""
    e = ELLIPSE
    s = Scene(dim=2, gravity=(0, -e.gravity))
    s.add("line", shapes.halfplane(normal=(0, 1)), fixed=True)
    moves = {"velocity": (-e.spin * e.b, 0), "angular_velocity": e.spin}
    s.add("ellipse", shapes.ellipse(e.a, e.b), mass=e.mass, position=(0, e.b), **moves)
    s.friction(mu=MU)
    return s


def run(params: dict[str, Any]) -> dict[str, Table]:
    options = {"duration": params["duration"], "progress": False}
    runs: dict[tuple[str, int, float], Trajectory] = {}
    for name, steps in params["implicit"].items():
        for h in steps:
            runs[name, 0, h] = simulate(scene(), stepper=name, step=h, **options)
    for n in params["facets"]:
        stepper = Stepper.named(POLYGON, facets=n)
        for h in params["steps"]:
            runs[POLYGON, n, h] = simulate(scene(), stepper=stepper, step=h, on_failure="record", **options)
    named = {f"{name} {n}, h = {h:g}": r for (name, n, h), r in runs.items()}
    return {
        "errors": _errors(runs, params["duration"]),
        "energy": _energies(runs),
        "reference": _reference(params["duration"]),
        "laws": laws(named),
    }


def _errors(runs: dict[tuple[str, int, float], Trajectory], duration: float) -> Table:
    """One row a run: largest position error, largest energy error and energy lost at the end, over E_kin."""
    times = np.arange(1, round(duration / EVERY) + 1) * EVERY
    exact = ELLIPSE.motion(times)
    rows = []
    for (name, n, h), r in runs.items():
        at = rows_at(r.time, times)
        off = np.max(np.linalg.norm(r["ellipse"].position[at] - exact[:, :2], axis=1))
        change = (r.energy - r.energy[0]) / r.kinetic_energy[0]
        iterations = float(np.mean(r.good_steps["iterations"]))
        rows.append((name, n, h, off, np.max(np.abs(change[at])), -change[at[-1]], iterations))
    return columns(("stepper", "facets", "step", "position", "energy", "lost", "iterations"), rows)


def _energies(runs: dict[tuple[str, int, float], Trajectory]) -> Table:
    """Energy over time at one step, over the kinetic energy at the start."""
    rows = []
    for (name, n, h), r in runs.items():
        if h == DRAWN:
            change = (r.energy - r.energy[0]) / r.kinetic_energy[0]
            rows += [(name, n, t, e) for t, e in zip(r.time.tolist(), change.tolist())]
    return columns(("stepper", "facets", "time", "change"), rows)


def _reference(duration: float) -> Table:
    times = np.linspace(0, duration, 201)
    motion = ELLIPSE.motion(times)
    normal, friction = ELLIPSE.forces(motion)
    names = ("x", "y", "angle", "spin")
    return {"time": times, **dict(zip(names, motion.T)), "normal": normal, "needed": abs(friction) / normal}


def check(tables: dict[str, Table]) -> list[Check]:
    errors, exact = tables["errors"], tables["reference"]
    checks = [
        at_least("reference: least normal force", np.min(exact["normal"]), 1.0, "N"),
        at_most("reference: friction needed to roll", np.max(exact["needed"]), MU / 2),
    ]
    checks += order_checks(errors, ORDERS, {"position": "position", "energy": "energy"})
    polygon = errors["stepper"] == POLYGON
    facets, steps = np.unique(errors["facets"][polygon]), np.unique(errors["step"][polygon])
    lost = {
        (n, h): errors["lost"][polygon & (errors["facets"] == n) & (errors["step"] == h)][0]
        for n in facets for h in steps
    }  # fmt: skip
    shortest, few, many = steps[0], facets[0], facets[-1]
    checks += [
        at_least(f"{few}-gon, h = {shortest:g}: share of the kinetic energy lost", lost[few, shortest], 0.2),
        at_most(f"loss of {many} vertices over that of {few}, h = {shortest:g}",
                lost[many, shortest] / lost[few, shortest], 0.5),
        at_most(f"{many} vertices: loss at h = {shortest:g} over that at {steps[-1]:g}",
                lost[many, shortest] / lost[many, steps[-1]], 0.8),
    ]  # fmt: skip
    second = (errors["stepper"] == "implicit-rattle") & (errors["step"] == DRAWN)
    best = np.min(errors["energy"][polygon & (errors["step"] == DRAWN)])
    ratio = errors["energy"][second][0] / best
    checks.append(at_most("energy error, implicit-rattle over the best polygon, h = 0.01", ratio, 0.01))
    return checks + law_checks(tables["laws"])


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    figure, axes = panels(1, 3, (PAGE, 2.7), width_ratios=(1.1, 1, 1))
    energy, loss, order = axes[0]
    table, errors = tables["energy"], tables["errors"]
    shades = (RED, ORANGE, "#d6a300", GREEN, PURPLE)
    facets = np.unique(errors["facets"][errors["stepper"] == POLYGON])
    for n, colour in zip(facets, shades):
        rows = (table["stepper"] == POLYGON) & (table["facets"] == n)
        energy.plot(table["time"][rows], table["change"][rows], color=colour, linewidth=0.9, label=f"{n}-gon")
    for name, line, colour in (("implicit-euler", "-.", GREY), ("implicit-rattle", "-", BLUE)):
        rows = table["stepper"] == name
        energy.plot(table["time"][rows], table["change"][rows], line, color=colour, label=name, linewidth=1.5)
    energy.set(xlabel="time, s", ylabel=r"$(E - E_0) / T_0$", xlim=(0, table["time"].max()))
    label(energy, "a", "energy, $h$ = 0.01 s")
    for n, colour in zip(facets, shades):
        rows = (errors["stepper"] == POLYGON) & (errors["facets"] == n)
        for axis, column in ((loss, "energy"), (order, "position")):
            axis.loglog(errors["step"][rows], errors[column][rows], "s-", color=colour, linewidth=0.9)
    for name, mark, colour in (
        ("implicit-euler", "^-.", GREY),
        ("implicit-rattle", "o-", BLUE),
        ("implicit-rattle-4", "D-", "black"),
    ):
        rows = errors["stepper"] == name
        for axis, column in ((loss, "energy"), (order, "position")):
            axis.loglog(errors["step"][rows], errors[column][rows], mark, color=colour, label=name)
    for axis, words in ((loss, r"largest $|E - E_0| / T_0$"), (order, "largest position error, m")):
        axis.set(xlabel="step, s", ylabel=words, xlim=(1e-3, 6e-2), xticks=(1e-3, 1e-2))
        axis.xaxis.set_minor_formatter("")
    label(loss, "b", "energy")
    label(order, "c", "position")
    handles, words = energy.get_legend_handles_labels()
    more, told = loss.get_legend_handles_labels()
    figure.legend(handles + more[-1:], words + told[-1:], loc="outside lower center", ncols=4)
    return {"rolling": figure}
