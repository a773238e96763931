"""Cannonball arrangements of discs in the plane [AH02, section 4 B], and what is measured on them.

AH02 names the diameter, the step and the friction, not the mass or the inertia of a disc. Mass does not
matter; inertia does: `pile` takes it as a multiple of m r^2, one half for a disc of one material.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection

from implicit_geom import Scene, Stepper, Trajectory, shapes, simulate

DIAMETER, STEP = 3.0, 0.05  # m, s: AH02's
UNIFORM, LIGHT = (
    0.5,
    0.05,
)  # inertia over m r^2: of one material; fitted to AH02's Table 1 (see `ah02-table1`)
PRESSED = 1e-9  # of the largest impulse in a step: contacts above it press
Table = dict[str, np.ndarray]


def count(rows: int) -> int:
    """Discs of a pile with that many in its lowest row: 21 of 6, 136 of 16, 210 of 20."""
    return rows * (rows + 1) // 2


def pile(rows: int, mu: float, diameter: float = DIAMETER, inertia: float = UNIFORM) -> Scene:
    """Discs in a triangle on the floor, each touching its neighbours; `rows` of them in the lowest row."""
    scene = Scene(dim=2, gravity=(0.0, -9.81))
    scene.add("floor", shapes.halfplane((0, 1)), fixed=True)
    disc = shapes.disc(diameter / 2)
    for row in range(rows):
        for k in range(rows - row):
            place = (diameter * (k + row / 2), diameter * (0.5 + row * np.sqrt(3) / 2))
            spin = inertia * diameter**2 / 4
            scene.add(f"d{row}-{k}", disc, mass=1.0, inertia=spin, position=place)
    scene.friction(mu=mu)
    return scene


def collapse(rows: int, mu: float, duration: float, stepper: str | Stepper) -> Trajectory:
    """A pile under its own weight, as far as the stepper gets."""
    return simulate(
        pile(rows, mu), duration=duration, step=STEP, stepper=stepper, on_failure="record", progress=False
    )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the CPU time that it took, s."""
    begun = time.process_time()
    found = work()
    return found, time.process_time() - begun


def relaxed(model: str, **options: Any) -> Stepper:
    """`anitescu-hart` with LCP0, LCP1 or LCP2."""
    return Stepper.named("anitescu-hart", relaxation=model, **options)


def separations(run: Trajectory, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Largest and mean normal velocity error mu lambda of LCP2 in every step, of the contacts that press."""
    steps = run.good_steps
    largest, mean = np.zeros(len(steps)), np.zeros(len(steps))
    contacts = run.contacts
    number = np.searchsorted(steps["time"] - 1e-9, contacts["time"], side="right") - 1
    for k in range(len(steps)):
        own = contacts[number == k]
        own = own[own["p_n"] > PRESSED * own["p_n"].max(initial=0.0)]
        if len(own):
            largest[k], mean[k] = mu * own["slip_speed"].max(), mu * own["slip_speed"].mean()
    return largest, mean


def places(run: Trajectory) -> np.ndarray:
    """(T+1, discs, 2) centres of all discs, m."""
    names = [name for name in run.scene.bodies if name != "floor"]
    return np.stack([run[name].position for name in names], axis=1)


def summary(run: Trajectory, duration: float) -> dict[str, Any]:
    """How a run went: steps solved and failed, its residuals and its penetration."""
    steps = run.steps[run.steps["status"] != "failed"]
    return {
        "reached_s": float(run.time[-1]),
        "solved": len(steps),
        "failed": int(run.failed),
        "not_taken": round(duration / STEP) - len(steps),
        "iterations": int(steps["iterations"].max(initial=0)),
        "lcp_error": float(steps["residual"].max(initial=0.0)),
        "complementarity": float(steps["complementarity"].max(initial=0.0)),
        "friction": float(steps["friction"].max(initial=0.0)),
        "penetration_m": run.max_penetration,
    }


def table_of(rows: list[dict[str, Any]]) -> Table:
    """Rows with the same keys as columns."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def frames(run: Trajectory, times: tuple[float, ...]) -> Table:
    """Centres and angles of the discs at given times, one row a disc and time."""
    at = [int(np.argmin(np.abs(run.time - t))) for t in times]
    names = [name for name in run.scene.bodies if name != "floor"]
    centres = places(run)
    angle = np.stack([run[name].orientation for name in names], axis=1)
    return {
        "time": np.repeat(run.time[at], len(names)),
        "x": centres[at, :, 0].ravel(),
        "y": centres[at, :, 1].ravel(),
        "angle": angle[at].ravel(),
    }


def draw(axis: Axes, x: np.ndarray, y: np.ndarray, angle: np.ndarray) -> None:
    """Discs with a mark that turns with them, on the floor."""
    wide = np.full(x.size, DIAMETER)
    axis.add_collection(
        EllipseCollection(
            wide,
            wide,
            np.zeros(x.size),
            units="xy",
            offsets=np.stack([x, y], axis=1),
            offset_transform=axis.transData,
            facecolor="#dbe7f3",
            edgecolor="#1d3f5e",
            linewidth=0.5,
        )
    )
    reach = 0.5 * DIAMETER * np.stack([np.sin(angle), np.cos(angle)])
    axis.plot(np.stack([x, x - reach[0]]), np.stack([y, y + reach[1]]), color="#1d3f5e", linewidth=0.4)
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set(aspect="equal", xticks=[], yticks=[])
    axis.grid(False)
    axis.spines[["left", "bottom"]].set_visible(False)
