"""What the tests of this folder share: scenes on the ground, references, measured orders, common claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import shapes
from implicit_geom import Scene, Trajectory

G = 9.81


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

    A contact pushes at its end-of-step point, which may move away from the other body: where a
    step does not resolve the motion it may gain a little, but never above the start.
    """
    assert not run.failed
    assert "failed" not in run.steps["status"]
    assert run.max_penetration < 1e-9 * size
    # of the energy at hand: what moves, what was lost, and what lifting the bodies by their size takes
    mass = sum(b.mass for b in run.scene.bodies.values() if not b.fixed)
    lift = mass * float(np.linalg.norm(run.scene.gravity)) * size
    scale = np.ptp(run.energy) + float(run.kinetic_energy.max()) + lift
    before = run.energy[:-1] if resolved else run.energy[0]
    assert np.max(run.energy[1:] - before, initial=0.0) <= 1e-9 * scale


def assert_at_rest(run: Trajectory, name: str = "body", speed: float = 1e-6, length: float = 1.0) -> None:
    """The body's points move slower than `speed` at the end."""
    body = run[name]
    assert np.linalg.norm(body.velocity[-1]) < speed
    assert length * np.linalg.norm(body.angular_velocity[-1]) < speed
