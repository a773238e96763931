"""What tests of laws share: scenes on the ground, references, measured orders, common claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, shapes
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model, State

G = 9.81
STEPPERS = ("implicit-euler", "implicit-rattle", "implicit-rattle-4")
TWO = STEPPERS[:2]  # where implicit-rattle-4 has nothing to add, or takes long
RATTLE = STEPPERS[1:]


def reference(name: str) -> dict[str, Any]:
    """A file of tests/references."""
    path = Path(__file__).parents[1] / "references" / f"{name}.json"
    return dict(json.loads(path.read_text()))


def turned(axis: Sequence[float], degrees: float) -> tuple[float, ...]:
    """The quaternion of a turn about an axis."""
    half = np.radians(degrees) / 2
    n = np.asarray(axis, float)
    return (float(np.cos(half)), *(np.sin(half) * n / np.linalg.norm(n)).tolist())


def on_ground(shape: Any, *, mass: float = 1.0, slope: float = 0.0, **start: Any) -> Scene:
    """A body over the plane z = 0; gravity tilted by `slope` radians drives it along +x."""
    scene = Scene(gravity=(G * np.sin(slope), 0, -G * np.cos(slope)))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("body", shape, mass=mass, **start)
    return scene


def measured_order(steps: Sequence[float], error: Callable[[float], float]) -> float:
    """The slope of log error over log step."""
    errors = [error(h) for h in steps]
    assert min(errors) > 0, errors
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def at(run: Trajectory, time: float) -> int:
    """The row of a time."""
    k = int(np.argmin(np.abs(run.time - time)))
    assert abs(run.time[k] - time) < 1e-9, time
    return k


def assert_lawful(run: Trajectory, size: float, *, resolved: bool = True) -> None:
    """No step failed, no body enters another (1e-9 of its size), the energy never rises.

    In implicit-euler a contact pushes at its end-of-step point, which may move away from the other
    body: where a step does not resolve the motion it may gain a little, but never above the start.
    The RATTLE steppers may gain in a step what is documented, `allowed_gain`.
    """
    assert not run.failed
    assert "failed" not in run.steps["status"]
    assert run.max_penetration < 1e-9 * size
    # of the energy at hand: what moves, what was lost, and what lifting the bodies by their size takes
    mass = sum(b.mass for b in run.scene.bodies.values() if not b.fixed)
    lift = mass * float(np.linalg.norm(run.scene.gravity)) * size
    scale = np.ptp(run.energy) + float(run.kinetic_energy.max()) + lift
    before = run.energy[:-1] if resolved else run.energy[0]
    never = np.max(run.energy[1:] - before, initial=0.0) <= 1e-9 * scale
    if run.options.stepper == "implicit-euler":
        assert never
    elif not (never and resolved):
        assert np.all(np.diff(run.energy) <= allowed_gain(run) + 1e-9 * scale)


def allowed_gain(run: Trajectory) -> np.ndarray:
    """What each step of a RATTLE stepper may gain, (T,) J.

    1e-3 of the energy above the lowest configuration.
    """
    s, scale = run.states, EnergyScale(Model(run.scene))
    states = [State(t, s.x[k], s.q[k], s.v[k], s.w[k]) for k, t in enumerate(run.time)]
    above = np.array([scale.above_lowest(state) for state in states])
    return np.asarray(1e-3 * np.maximum(above[1:], above[:-1]))


def assert_at_rest(run: Trajectory, name: str = "body", speed: float = 1e-6, length: float = 1.0) -> None:
    """The body's points move slower than `speed` at the end."""
    body = run[name]
    assert np.linalg.norm(body.velocity[-1]) < speed
    assert length * np.linalg.norm(body.angular_velocity[-1]) < speed
