"""An ellipsoid on a fixed ellipsoid, from rest beside the top: sliding without friction, then rolling.

What C07 names as out of reach of methods that need a gap function in closed form. The reference is
the constrained motion (`experiments.ellipsoid_reference`); `implicit-euler` must approach it with
first order, `implicit-rattle` with second and `implicit-rattle-4` with fourth. The energy of
`implicit-euler` stays below the start, but not every step loses some: the gap is closed at the end of
the step, not on the way, so that the normal velocity there is of order h of either sign, and so is the
work of the normal impulse (1e-5 J in a step at h = 0.01 s, by turns).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.experiments.certified import certificate, certificate_checks
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import columns
from implicit_geom.experiments.ellipsoid_reference import Bodies, Motion, integrate, rotation, touching
from implicit_geom.experiments.figures import (
    BLUE,
    COLUMN,
    GREEN,
    GREY,
    ORANGE,
    PAGE,
    label,
    order_line,
    panels,
    paper,
)
from implicit_geom.experiments.regression import order

TITLE = "an ellipsoid sliding, then rolling, on a fixed ellipsoid, against a constrained ODE"
PARAMS: dict[str, Any] = {
    "step": 0.01,
    "duration": 0.5,
    "steps": {
        "implicit-euler": (0.01, 0.005, 0.0025, 0.00125),
        "implicit-rattle": (0.02, 0.01, 0.005, 0.0025),
        "implicit-rattle-4": (0.05, 0.025, 0.0125),
    },
}
QUICK: dict[str, Any] = {
    "steps": {
        "implicit-euler": (0.01, 0.005, 0.0025),
        "implicit-rattle": (0.02, 0.01, 0.005),
        "implicit-rattle-4": (0.05, 0.025),
    }
}

FIXED, MOVING, MASS = (1.0, 0.8, 0.6), (0.3, 0.25, 0.2), 1.0
GRAVITY = (0.0, 0.0, -9.81)
POLAR, AZIMUTH = np.radians(15), np.radians(30)
NORMAL = np.array(
    [np.sin(POLAR) * np.cos(AZIMUTH), np.sin(POLAR) * np.sin(AZIMUTH), np.cos(POLAR)]
)  # at the first contact
ORIENTATION = np.array([0.8, 0.1, 0.1, 0.5]) / np.linalg.norm([0.8, 0.1, 0.1, 0.5])
FRICTION = {"sliding": 0.0, "rolling": 1.0}
QUANTITIES = {"position": "m", "velocity": "m/s", "angular_velocity": "rad/s", "energy": "J"}
# at h = 0.01 s, after 0.5 s; energy: largest on the way
BOUNDS = {
    "implicit-euler": {"position": 0.02, "velocity": 0.04, "angular_velocity": 0.25, "energy": 0.1},
    "implicit-rattle": {"position": 1e-3, "velocity": 4e-3, "angular_velocity": 2e-2, "energy": 1e-3},
    "implicit-rattle-4": {"position": 1e-6, "velocity": 4e-6, "angular_velocity": 2e-5, "energy": 1e-6},
}
ORDERS = {"implicit-euler": (0.9, 1.1), "implicit-rattle": (1.9, 2.2), "implicit-rattle-4": (3.7, 4.6)}
COLOURS = {"implicit-euler": ORANGE, "implicit-rattle": BLUE, "implicit-rattle-4": GREEN}
SHOWN = "implicit-rattle"  # whose paths are drawn


def bodies() -> Bodies:
    return Bodies(np.array(FIXED), np.array(MOVING), MASS, np.array(GRAVITY))


def scene(mu: float) -> Scene:
    s = Scene(gravity=GRAVITY)
    s.add("fixed", shapes.ellipsoid(*FIXED), fixed=True)
    place = touching(bodies(), NORMAL, ORIENTATION)
    s.add("moving", shapes.ellipsoid(*MOVING), mass=MASS, position=place, orientation=ORIENTATION)
    s.friction(mu=mu)
    return s


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    duration, step = params["duration"], params["step"]
    times = np.linspace(0, duration, round(duration / step) + 1)
    tables: dict[str, dict[str, np.ndarray]] = {}
    errors: list[tuple[Any, ...]] = []
    drifts: list[tuple[Any, ...]] = []
    runs: dict[str, Trajectory] = {}
    for case, mu in FRICTION.items():
        exact = integrate(bodies(), NORMAL, ORIENTATION, times, rolling=case == "rolling")
        drifts.append((case, *_drift(exact, mu)))
        for stepper, steps in params["steps"].items():
            for h in sorted({step, *steps}, reverse=True):
                found = simulate(scene(mu), duration=duration, step=h, stepper=stepper, progress=False)
                runs[f"{case}, {stepper}, h = {h:g}"] = found
                kept = len(found.contacts) / len(found.steps)
                errors.append((case, stepper, h, *_errors(found, exact), kept))
                if h == step:
                    tables[f"{case}-{stepper}"] = _comparison(found, exact)
    names = ("case", "gap", "constraint", "energy", "least_normal_force", "largest_friction_ratio")
    tables["reference"] = columns(names, drifts)
    tables["errors"] = columns(("case", "stepper", "step", *QUANTITIES, "closed"), errors)
    return {**tables, "certificate": certificate(runs)}


def _drift(exact: Motion, mu: float) -> tuple[float, ...]:
    """What the reference must conserve, and whether its mode lasts; energy relative to m g times 1 m."""
    energy = np.max(np.abs(exact.energy - exact.energy[0])) / (MASS * 9.81)
    ratio = np.max(exact.friction_force / exact.normal_force) if mu > 0 else 0.0
    return np.max(np.abs(exact.gap)), np.max(exact.slip), energy, np.min(exact.normal_force), ratio


def _errors(found: Trajectory, exact: Motion) -> tuple[float, ...]:
    """Distance from the reference at the end, by quantity; of the energy the largest on the way."""
    body = found["moving"]
    names = ("position", "velocity", "angular_velocity")
    apart = [np.linalg.norm(getattr(body, name)[-1] - getattr(exact, name)[-1]) for name in names]
    return (*map(float, apart), float(np.max(np.abs(found.energy - found.energy[0]))))


def _comparison(found: Trajectory, exact: Motion) -> dict[str, np.ndarray]:
    """Both motions at the same times; the contact at a time is that of the step that ends there."""
    body, rows = found["moving"], found.contacts
    at = np.rint(rows["time"] / found.options.step).astype(int)
    force = np.full(len(found.time), np.nan)
    force[at] = rows["p_n"] / found.options.step
    table = {"time": found.time, "energy": found.energy, "energy_exact": exact.energy}
    table |= {"normal_force": force, "normal_force_exact": exact.normal_force}
    for i, axis in enumerate("xyz"):
        point = np.full(len(found.time), np.nan)
        point[at] = rows["point"][:, i]
        table[axis] = body.position[:, i]
        table[f"{axis}_exact"] = exact.position[:, i]
        table[f"point_{axis}"] = point
        table[f"point_{axis}_exact"] = exact.point[:, i]
    table |= {f"q_{c}": body.orientation[:, i] for i, c in enumerate("wxyz")}
    return table


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    reference, errors = tables["reference"], tables["errors"]
    checks = [
        at_most("reference: largest gap", np.max(reference["gap"]), 1e-9, "m"),
        at_most(
            "reference: largest violation of its constraint", np.max(reference["constraint"]), 1e-9, "m/s"
        ),
        at_most("reference: largest change of energy / (m g 1 m)", np.max(reference["energy"]), 1e-9),
        at_least("reference: least normal force", np.min(reference["least_normal_force"]), 0.1, "N"),
        at_most(
            "reference: friction needed to roll / mu",
            np.max(reference["largest_friction_ratio"]) / FRICTION["rolling"],
            0.9,
        ),
        at_least("contact closed in every step, share", np.min(errors["closed"]), 1.0),
    ]
    for case in FRICTION:
        for stepper, (least, most) in ORDERS.items():
            chosen = (errors["case"] == case) & (errors["stepper"] == stepper)
            h = errors["step"][chosen]
            for name, unit in QUANTITIES.items():
                error = errors[name][chosen]
                words = f"{case}, {stepper}: {name.replace('_', ' ')}"
                at_step = error[np.argmin(np.abs(h - 0.01))]
                checks.append(at_most(f"{words} error at h = 0.01", at_step, BOUNDS[stepper][name], unit))
                checks.append(at_least(f"{words}, order", order(h, error), least))
                checks.append(at_most(f"{words}, order", order(h, error), most))
        energy = tables[f"{case}-implicit-euler"]["energy"]
        gain = np.max(energy - energy[0]) / (MASS * 9.81)
        checks.append(at_most(f"{case}, implicit-euler: energy above its start / (m g 1 m)", gain, 1e-9))
    return checks + certificate_checks(tables["certificate"])


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    return {
        "paths": _figure_paths(tables),
        "order": _figure_order(tables["errors"]),
        "energy": _figure_energy(tables),
    }


def _figure_paths(tables: dict[str, dict[str, np.ndarray]]) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.9), width_ratios=(1.35, 1))
    side, above = axes[0]
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), 0 * angle, np.sin(angle)])
    fixed = shapes.ellipsoid(*FIXED).support(circle)
    side.fill(fixed[:, 0], fixed[:, 2], facecolor="#ededed", edgecolor=GREY, linewidth=0.7)
    for case, colour in zip(FRICTION, (BLUE, ORANGE)):
        t = tables[f"{case}-{SHOWN}"]
        for row in (0, len(t["time"]) - 1):
            outline = _silhouette(t, row, circle)
            start = row == 0
            side.plot(outline[:, 0], outline[:, 2], color=GREY if start else colour, linewidth=0.8)
        side.plot(t["x"], t["z"], color=colour)
        side.plot(t["x_exact"][::5], t["z_exact"][::5], ".", color=colour)
        above.plot(t["x"], t["y"], color=colour, label=f"{case}: centre")
        above.plot(t["point_x"], t["point_y"], "--", color=colour, label=f"{case}: contact")
        for prefix in ("", "point_"):
            above.plot(t[f"{prefix}x_exact"][::5], t[f"{prefix}y_exact"][::5], ".", color=colour)
    above.plot([], [], ".", color=GREY, label="reference")
    side.set(xlabel="$x$, m", ylabel="$z$, m", aspect="equal", xlim=(-0.15, 1.1), ylim=(0.1, 1.0))
    above.set(xlabel="$x$, m", ylabel="$y$, m", aspect="equal")
    label(side, "a", "from the side: start (grey) and end")
    label(above, "b", "paths from above")
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def _silhouette(table: dict[str, np.ndarray], row: int, directions: np.ndarray) -> np.ndarray:
    """The moving body's outline: its support points in world directions."""
    R = rotation(np.array([table[f"q_{c}"][row] for c in "wxyz"]))
    centre = np.array([table[c][row] for c in "xyz"])
    return centre + shapes.ellipsoid(*MOVING).support(directions @ R) @ R.T


def _figure_order(errors: dict[str, np.ndarray]) -> Any:
    figure, axes = panels(2, 2, (PAGE, 4.6), sharex=True, sharey="row")
    for row, (name, words) in zip(axes, {"position": "position, m", "energy": "energy, J"}.items()):
        for axis, letter, case in zip(row, "ab" if name == "position" else "cd", FRICTION):
            for (stepper, colour), marker in zip(COLOURS.items(), "os^"):
                chosen = (errors["case"] == case) & (errors["stepper"] == stepper)
                h, error = errors["step"][chosen], errors[name][chosen]
                measured = f"{stepper}: {order(h, error):.2f}"
                axis.loglog(h, error, marker + "-", color=colour, label=measured)
                order_line(axis, h, error, round(order(h, error)))
            axis.legend(title="order", loc="best")
            label(axis, letter, f"{case}: error of {words}")
    for axis in axes[-1]:
        axis.set(xlabel="step $h$, s")
        axis.tick_params(axis="x", which="minor", labelbottom=False)
    return figure


def _figure_energy(tables: dict[str, dict[str, np.ndarray]]) -> Any:
    figure, axes = panels(2, 1, (COLUMN, 3.8), sharex=True)
    top, bottom = axes[:, 0]
    for stepper, colour in COLOURS.items():
        for case, dashes in zip(FRICTION, ("-", "--")):
            t = tables[f"{case}-{stepper}"]
            change = np.maximum(np.abs(t["energy"] - t["energy"][0]), 1e-16)
            top.semilogy(t["time"][1:], change[1:], dashes, color=colour)
        top.plot([], [], color=colour, label=stepper)
    for case, colour in zip(FRICTION, (BLUE, ORANGE)):
        t = tables[f"{case}-{SHOWN}"]
        bottom.plot(t["time"], t["normal_force"], color=colour, label=case)
        bottom.plot(t["time"][::4], t["normal_force_exact"][::4], ".", color=colour)
    top.set(ylabel="error of energy, J")
    bottom.plot([], [], ".", color=GREY, label="reference")
    bottom.set(xlabel="time, s", ylabel="normal force, N", xlim=(0, t["time"][-1]))
    top.legend(loc="lower right")
    bottom.legend(loc="lower left")
    label(top, "a", "energy, $h$ = 0.01 s: sliding (full) and rolling (dashed)")
    label(bottom, "b", f"normal force, {SHOWN}")
    return figure
