"""Euler's disc: a coin that rolls round on its rim and sinks, its precession the faster the flatter it lies.

The coin (radius R = 50 mm, thickness l = 5 mm, 0.1 kg) starts in steady rolling with its centre at rest and
its plane 30 degrees from the ground. Friction (mu = 0.3, e_r = R / 5) takes its energy. The spin about the
normal exceeds the slip, e_r |w_z| > 2.5 |slip|, so that the coin all but rolls, by a smooth law; its fastest
rate k, near mu N / (e_r |w_z|) times the compliance of the contact point, grows from 70 to 240 1/s as the
coin sinks (eigenvalues of the ODE). A step of 2 ms resolves that; with one of 4 ms, h k near 1 at the end,
the orders are not yet those of the limit.

With the centre at rest the angular velocity lies along the arm from the centre to the contact,
w = Omega sin a ((l / 2 R) n - e) with the tilt a, the axis n, the lowest direction e of the coin's plane and
the precession Omega, where

    Omega^2 sin a (I_1 cos a - I_3 sin a l / 2 R) = m g (R cos a - l / 2 sin a)

which is Omega^2 = 4 g / (R sin a) for a thin coin: as it sinks the precession quickens. Friction by torsion
alone would have a' ~ -a^(3/2), so that the coin never quite lies flat.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.experiments.approach import constraint_checks, constraints
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, ledger_checks, ledger_table
from implicit_geom.experiments.ellipsoid_reference import rotation
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, label, panels, paper, solid
from implicit_geom.experiments.regression import order
from implicit_geom.experiments.sliding_reference import Body, Friction, rim
from implicit_geom.experiments.sliding_runs import (
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
    texts,
)

TITLE = "Euler's disc: a coin spinning down under torsional friction, against an ODE"
PARAMS: dict[str, Any] = {
    "duration": 1.0,
    "step": 1e-3,  # of the motion and the ledger that are shown
    "steps": {
        "implicit-rattle": (2e-3, 1e-3, 5e-4),
        "implicit-rattle-4": (2e-3, 1e-3),
        "implicit-euler": (2e-3, 1e-3, 5e-4),
    },
}
QUICK: dict[str, Any] = {
    "duration": 0.2,
    "step": 2e-3,
    "steps": {"implicit-rattle": (4e-3, 2e-3), "implicit-euler": (4e-3, 2e-3)},
}

RADIUS, THICKNESS, MASS = 0.05, 0.005, 0.1
TILT = np.radians(30)
FRICTION = Friction(0.3, e_r=0.01)
GRAVITY = 9.81
WORDS = {"position": "largest error, m", "spin": "largest error, rad/s", "energy": "largest error, J"}


def coin() -> Body:
    shape = shapes.cylinder(RADIUS, THICKNESS)
    return Body(rim(RADIUS, -THICKNESS / 2), MASS, shape.inertia(MASS), np.zeros(3), GRAVITY)


def steady_precession(body: Body, *, radius: float, thickness: float, tilt: np.ndarray) -> np.ndarray:
    """Omega of steady rolling with the centre at rest, rad/s."""
    s, c, slope = np.sin(tilt), np.cos(tilt), thickness / (2 * radius)
    turning = body.inertia[0, 0] * c - body.inertia[2, 2] * s * slope
    return np.sqrt(body.mass * body.gravity * radius * (c - slope * s) / (s * turning))


def steady_rolling(
    body: Body, *, radius: float, thickness: float, tilt: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Orientation, angular velocity and precession of steady rolling; the axis leans towards +x."""
    s, c = np.sin(tilt), np.cos(tilt)
    precession = float(steady_precession(body, radius=radius, thickness=thickness, tilt=np.asarray(tilt)))
    e, n = np.array([c, 0.0, -s]), np.array([s, 0.0, c])
    spin = precession * s * (thickness / (2 * radius) * n - e)
    return np.array([np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0]), spin, precession


def start() -> Start:
    orientation, spin, _ = steady_rolling(coin(), radius=RADIUS, thickness=THICKNESS, tilt=TILT)
    return Start(shapes.cylinder(RADIUS, THICKNESS), coin(), FRICTION, orientation, spin)


def run(params: dict[str, Any]) -> dict[str, Table]:
    duration, shown = params["duration"], params["step"]
    problem = start()
    exact = problem.reference(np.linspace(0, duration, round(duration / shown) + 1))
    runs = problem.runs(params["steps"], duration)
    common = every(exact, round(max(h for _, h in runs) / shown))
    best = runs["implicit-rattle", shown]
    motion = motion_table(best, exact)
    motion["tilt_euler"] = motion_table(runs["implicit-euler", shown], exact)["tilt"]
    named = {f"{name}, h = {h:g}": r for (name, h), r in runs.items()}
    return {
        "motion": motion,
        "ledger": ledger_table(best),
        "errors": errors(runs, common),
        "reference": reference_table(exact),
        "constraints": constraints(named, "body"),
    }


def report(tables: dict[str, Table]) -> str:
    return texts(tables, ("errors", "reference", "constraints"))


def check(tables: dict[str, Table]) -> list[Check]:
    motion, ledger, all_errors = tables["motion"], tables["ledger"], tables["errors"]
    rattle = chosen(all_errors, "implicit-rattle")
    h, lost = rattle["step"], float(tables["reference"]["friction_loss"][0])
    steady = steady_precession(coin(), radius=RADIUS, thickness=THICKNESS, tilt=motion["tilt"])
    early, late = (motion["time"] <= 0.1), (motion["time"] >= motion["time"][-1] - 0.1)
    whole = motion["time"][-1] > 0.9
    words = "implicit-rattle: "
    finest = int(np.argmin(h))
    quickened = np.mean(motion["precession"][late]) / np.mean(motion["precession"][early])
    apart = np.max(np.abs(motion["precession"] / steady - 1))
    fallen = motion["tilt"][-1] / motion["tilt"][0]
    checks = reference_checks(tables["reference"])
    for name in ("position", "spin", "energy", "friction"):
        checks.append(at_least(f"{words}{name}, order", order(h, rattle[name]), 1.9))
    checks += [
        at_most(f"{words}position error / radius, finest step", rattle["position"][finest] / RADIUS, 1e-3),
        at_most(f"{words}remainder / friction loss, finest step", rattle["remainder"][finest] / lost, 1e-3),
        at_most(f"{words}impact / friction loss, any step", np.max(rattle["impact"]) / lost, 1e-9),
        at_most(f"{words}steps of another form", np.sum(rattle["other_forms"]), 0),
        at_most("tilt at the end / at the start", fallen, 0.5 if whole else 0.9),
        at_least("mean precession of the last 0.1 s / of the first", quickened, 1.3 if whole else 1.02),
        at_most("precession / that of steady rolling, distance from 1", apart, 0.2),
    ]
    checks += fourth_order_checks(all_errors)
    return checks + ledger_checks(ledger) + constraint_checks(tables["constraints"])


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    motion = tables["motion"]
    return {
        "path": _figure_path(motion),
        "tilt": _figure_tilt(motion),
        "energy": figure_ledger(tables["ledger"], motion),
        "order": figure_order(tables["errors"], WORDS, without_order=("implicit-euler",)),
    }


def _figure_path(motion: Table) -> Any:
    """The coin at the start and at the end; the paths of contact and centre, with the reference."""
    figure, axes = panels(2, 3, (PAGE, 2.9), width_ratios=(1, 1.1, 1.1))
    grid = axes[0, 0].get_gridspec()
    vertices, triangles = shapes.cylinder(RADIUS, THICKNESS).mesh(64)
    for axis, row, letter in ((axes[0, 0], 0, "a"), (axes[1, 0], -1, "b")):
        q = np.array([motion[f"q_{c}"][row] for c in "wxyz"])
        place = np.array([motion[c][row] for c in "xyz"])
        solid(axis, place + vertices @ rotation(q).T, triangles, ground=0.075, tilt=0.35)
        axis.collections[-1].set_rasterized(True)  # thousands of facets
        axis.set(xlim=(-0.08, 0.08), ylim=(-0.03, 0.06), aspect="equal")
        axis.set_axis_off()
        label(axis, letter, f"$t$ = {motion['time'][row]:g} s, tilt {np.degrees(motion['tilt'][row]):.1f}°")
    for axis in axes[:, 1:].ravel():
        axis.remove()
    contact, centre = figure.add_subplot(grid[:, 1]), figure.add_subplot(grid[:, 2])
    for axis, prefix, letter, words in (
        (contact, "point_", "c", "contact on the ground"),
        (centre, "", "d", "centre from above"),
    ):
        x, y = 1e3 * motion[f"{prefix}x"], 1e3 * motion[f"{prefix}y"]
        axis.plot(x, y, color=BLUE, linewidth=0.7, label="implicit-rattle")
        x, y = 1e3 * motion[f"{prefix}x_exact"], 1e3 * motion[f"{prefix}y_exact"]
        axis.plot(x, y, ":", color="black", linewidth=0.7, label="reference")
        axis.set(xlabel="$x$, mm", ylabel="$y$, mm", aspect="equal")
        label(axis, letter, words)
    contact.legend(loc="center")
    return figure


def _figure_tilt(motion: Table) -> Any:
    figure, axes = panels(1, 3, (PAGE, 2.5))
    tilt, rate, steady = axes[0]
    t, some = motion["time"], slice(None, None, max(1, len(motion["time"]) // 20))
    tilt.plot(t, np.degrees(motion["tilt"]), color=BLUE, label="implicit-rattle")
    tilt.plot(t, np.degrees(motion["tilt_euler"]), color=ORANGE, label="implicit-euler")
    tilt.plot(t[some], np.degrees(motion["tilt_exact"][some]), ".", color="black", label="reference")
    tilt.set(xlabel="time, s", ylabel="tilt, degrees", xlim=(0, t[-1]), ylim=(0, None))
    tilt.legend(loc="lower left")
    rate.plot(t, motion["precession"], color=BLUE, label="implicit-rattle")
    rate.plot(t[some], motion["precession_exact"][some], ".", color="black", label="reference")
    rate.set(xlabel="time, s", ylabel="precession, rad/s", xlim=(0, t[-1]))
    rate.legend(loc="upper left")
    angle = np.linspace(np.min(motion["tilt"]), np.max(motion["tilt"]), 100)
    curve = steady_precession(coin(), radius=RADIUS, thickness=THICKNESS, tilt=angle)
    steady.plot(np.degrees(motion["tilt"]), motion["precession"], color=BLUE, label="implicit-rattle")
    steady.plot(np.degrees(angle), curve, "--", color=GREY, label="steady rolling")
    steady.set(xlabel="tilt, degrees", ylabel="precession, rad/s")
    steady.legend(loc="upper right")
    label(tilt, "a", f"tilt, $h$ = {1e3 * t[1]:g} ms")
    label(rate, "b", "precession")
    label(steady, "c", "precession over tilt")
    return figure
