"""A block that rocks on its corners (Housner 1963): the share of energy kept, impact by impact.

A block of half-width b and half-height H is released tilted and at rest on one lower corner; mu = 3, e = 0.
Upright it strikes the ground with the other corner, about which it goes on: the angular momentum about that
corner is kept, so that of the energy above that of standing there is left

    (1 - 3/2 sin^2 alpha)^2,     tan alpha = b / H

whatever the speed. The corner that leaves takes no impulse. To a time stepper the impact is a new contact
of a pair that touches already, at a place far from the old one: a step that pushes at the old corner while
the new one closes gives any share between one half and all, depending on where in the step the block is
upright. The release is chosen so that this is at ten phases of the step.

Then the block is left to rock, and its angle is compared with the event-driven solution after one, three
and five impacts.

The error of a step depends on where in it an impact falls: from one step size to the next that of
`implicit-rattle-4` over h^4 varies by a factor of three about the same mean, from 0.045 s down to 0.007 s,
where rounding begins. So its order is the slope through many steps, not through three.

G. W. Housner, The behavior of inverted pendulum structures during earthquakes, Bulletin of the
Seismological Society of America 53 (1963) 403-417.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq

from implicit_geom import Trajectory, shapes
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.event_driven import GRAVITY, Body, Rocking, State
from implicit_geom.experiments.figures import BLUE, GREEN, GREY, ORANGE, PAGE, label, panels, paper
from implicit_geom.experiments.impact_runs import order_checks, through, whole_steps
from implicit_geom.experiments.motion_figures import draw_order
from implicit_geom.experiments.regression import order

TITLE = "a rocking block: Housner's share of energy at every phase of the step, and several impacts"
PARAMS: dict[str, Any] = {
    "ratios": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8),
    "bodies": ("rectangle", "box"),
    "steps": {"implicit-euler": (1e-2, 1e-3), "implicit-rattle": (1e-2, 1e-3), "implicit-rattle-4": (1e-2,)},
    "phases": 10,
    "orders": {
        "implicit-rattle": (0.02, 0.01, 0.005, 0.0025),
        "implicit-rattle-4": tuple(np.geomspace(0.045, 0.007, 24).tolist()),
    },
    "shown": 0.01,
}
QUICK: dict[str, Any] = {
    "ratios": (0.2, 0.6),
    "steps": {"implicit-euler": (1e-2,), "implicit-rattle": (1e-3,)},
    "phases": 2,
    "orders": {
        "implicit-rattle": (0.02, 0.01, 0.005),
        "implicit-rattle-4": tuple(np.geomspace(0.045, 0.007, 24).tolist()),
    },
}

HEIGHT, DEPTH, MU = 0.5, 0.3, 3.0  # half-height and half-depth, m
TILT = 0.4  # of the angle at which it would fall over: the release, about
ROCKER = Rocking(0.25 * HEIGHT, HEIGHT)  # rocks through several impacts
IMPACTS = (1, 3, 5)
CLOSE = 1e-3  # relative, of the share at h = 1e-3
SPREAD = 1e-6  # of the share over the phases at h = 1e-3
ORDERS = {"implicit-rattle": 1.9, "implicit-rattle-4": 3.7}


def released(kind: str, block: Rocking, angle: float) -> tuple[Body, State]:
    """Turned about its left lower corner (edge), which lies at the origin, and at rest."""
    c, s = np.cos(angle), np.sin(angle)
    x, z = c * block.b - s * block.H, s * block.b + c * block.H
    if kind == "rectangle":
        flat = State(0.0, np.array([x, z]), np.array(angle), np.zeros(2), np.zeros(1))
        return Body(shapes.rectangle(block.b, block.H), mu=MU), flat
    q = np.array([np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0])
    body = Body(shapes.box(block.b, DEPTH, block.H), mu=MU)
    return body, State(0.0, np.array([x, 0.0, z]), q, np.zeros(3), np.zeros(3))


def release_for(block: Rocking, time: float) -> float:
    """The angle from which the block is upright first at this time."""
    low, high = 0.5 * TILT * block.alpha, 2 * TILT * block.alpha
    return float(brentq(lambda angle: block.fall(angle) - time, low, high, xtol=1e-14))


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows = []
    for ratio in params["ratios"]:
        block = Rocking(ratio * HEIGHT, HEIGHT)
        about = block.fall(TILT * block.alpha)
        for stepper, steps in params["steps"].items():
            for h in steps:
                for phase in (np.arange(params["phases"]) + 0.5) / params["phases"]:
                    time = (np.floor(about / h) + phase) * h
                    angle = release_for(block, time)
                    for kind in params["bodies"]:
                        kept = _kept(kind, block, angle, time, h, stepper)
                        rows.append((kind, stepper, h, ratio, phase, kept, block.factor**2))
    names = ("body", "stepper", "step", "ratio", "phase", "kept", "exact")
    shown = through(*released("rectangle", ROCKER, TILT * ROCKER.alpha), 2.0, params["shown"])
    tables = {"share": columns(names, rows), "motion": _motion(shown)}
    return {**tables, "errors": _errors(params["orders"])}


def _kept(kind: str, block: Rocking, angle: float, time: float, h: float, stepper: str) -> float:
    """Share of the energy above that of standing, a tenth of the fall's time after the impact."""
    body, start = released(kind, block, angle)
    r = through(body, start, h * np.ceil(1.1 * time / h + 1), h, stepper)
    standing = body.mass * GRAVITY * block.H
    return float((r.energy[-1] - standing) / (body.energy(start) - standing))


def _motion(r: Trajectory) -> Table:
    exact = ROCKER.states_at(TILT * ROCKER.alpha, r.time)
    body = r["body"]
    found = {"angle": body.orientation, "rate": body.angular_velocity, "energy": r.energy}
    return {"time": r.time, **found, "exact_angle": exact[:, 0], "exact_rate": exact[:, 1]}


def _errors(steps: dict[str, tuple[float, ...]]) -> Table:
    """Of angle and rate, and of both over the rate of the pendulum, halfway from an impact to the next."""
    angle = TILT * ROCKER.alpha
    body, start = released("rectangle", ROCKER, angle)
    instants = ROCKER.impacts(angle, 4.0)
    rows = []
    for count in IMPACTS:
        time = (instants[count - 1] + instants[count]) / 2
        exact = ROCKER.states_at(angle, np.array([time]))[0]
        for stepper, sizes in steps.items():
            for h in whole_steps(time, sizes):
                motion = through(body, start, time, h, stepper)["body"]
                off = motion.orientation[-1] - exact[0], motion.angular_velocity[-1] - exact[1]
                rows.append((stepper, count, h, *np.abs(off), np.hypot(off[0], off[1] / ROCKER.rate)))
    return columns(("stepper", "impacts", "step", "angle", "rate", "state"), rows)


def check(tables: dict[str, Table]) -> list[Check]:
    share, checks = tables["share"], []
    fine = (share["stepper"] == "implicit-rattle") & (share["step"] == 1e-3)
    off = np.abs(share["kept"] / share["exact"] - 1)[fine]
    checks.append(at_most("share of energy kept at h = 1e-3, relative error, any phase", np.max(off), CLOSE))
    spread = [np.ptp(kept) for kept in _by_phase(share, fine)]
    checks.append(at_most("share of energy kept at h = 1e-3, spread over the phases", max(spread), SPREAD))
    errors = tables["errors"]
    for stepper, bound in ORDERS.items():
        for count in IMPACTS:
            rows = (errors["stepper"] == stepper) & (errors["impacts"] == count)
            found = order(errors["step"][rows], errors["state"][rows])
            checks += order_checks(f"{stepper}: state after {count} impacts", [found], bound)
    return checks


def _by_phase(share: Table, chosen: np.ndarray) -> list[np.ndarray]:
    """The shares of each body and ratio among the chosen rows."""
    keys = list(zip(share["body"].tolist(), share["ratio"].tolist()))
    groups: dict[tuple[str, float], list[float]] = {}
    for k in np.flatnonzero(chosen):
        groups.setdefault(keys[k], []).append(share["kept"][k])
    return [np.array(group) for group in groups.values()]


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    return {"share": _figure_share(tables["share"]), "motion": _figure_motion(tables)}


def _figure_share(share: Table) -> Any:
    figure, axes = panels(1, 2, (PAGE, 2.8))
    ratio = np.linspace(0, 0.85, 200)
    axes[0, 0].plot(ratio, (1 - 1.5 * ratio**2 / (1 + ratio**2)) ** 2, color="black", label="Housner")
    colours = {"implicit-euler": ORANGE, "implicit-rattle": BLUE, "implicit-rattle-4": GREEN}
    for k, (stepper, colour) in enumerate(colours.items()):
        here = share["stepper"] == stepper
        if not np.any(here):
            continue
        coarse = here & (share["step"] == np.max(share["step"][here]))
        shifted = share["ratio"][coarse] + 0.008 * (k - 1)
        axes[0, 0].plot(
            shifted,
            share["kept"][coarse],
            ".",
            color=colour,
            label=f"{stepper}, h = {np.max(share['step'][here]):g} s",
        )
        off = np.abs(share["kept"] / share["exact"] - 1)
        for h, marker in zip(sorted(set(share["step"][here]), reverse=True), "o."):
            rows = here & (share["step"] == h)
            worst = [
                np.max(off[rows & (share["ratio"] == b)], initial=1e-17) for b in np.unique(share["ratio"])
            ]
            axes[0, 1].semilogy(
                np.unique(share["ratio"]), worst, marker + "-", color=colour, label=f"{stepper}, h = {h:g} s"
            )
    axes[0, 0].set(xlabel="$b / H$", ylabel="energy kept in the impact", ylim=(0, 1.05))
    axes[0, 0].legend(loc="lower left")
    label(axes[0, 0], "a", "every phase of the step")
    axes[0, 1].set(xlabel="$b / H$", ylabel="relative error")
    label(axes[0, 1], "b", "worst phase")
    handles = axes[0, 1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3)
    return figure


def _figure_motion(tables: dict[str, Table]) -> Any:
    figure, axes = panels(1, 3, (PAGE, 2.8))
    motion = tables["motion"]
    axes[0, 0].plot(motion["time"], motion["exact_angle"], color=GREY, linewidth=2.5, label="event-driven")
    axes[0, 0].plot(motion["time"], motion["angle"], color=BLUE, linewidth=0.9, label="implicit-rattle")
    axes[0, 0].set(xlabel="time, s", ylabel="angle, rad", xlim=(0, motion["time"][-1]))
    axes[0, 0].legend(loc="upper right")
    label(axes[0, 0], "a", f"$b / H$ = {ROCKER.b / ROCKER.H:g}, h = {motion['time'][1]:g} s")
    for axis, letter, count in zip(axes[0, 1:], "bc", (IMPACTS[0], IMPACTS[-1])):
        chosen = tables["errors"]["impacts"] == count
        draw_order(axis, {name: column[chosen] for name, column in tables["errors"].items()}, "state")
        axis.set(ylabel="error of the state, rad")
        label(axis, letter, f"after {count} impact{'s' if count > 1 else ''}")
    return figure
