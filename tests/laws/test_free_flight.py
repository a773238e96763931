"""A body without contact: momentum is kept, energy never rises."""

from __future__ import annotations

import numpy as np
import pytest

import shapes
from implicit_geom import Scene, Trajectory, simulate
from implicit_geom.rotation import matrix


def spinning(step: float, duration: float) -> Trajectory:
    scene = Scene(gravity=(0, 0, 0))
    spin = 20 * np.array([0.6, 0.0, 0.8])
    scene.add("rod", shapes.ellipsoid(0.05, 0.05, 1.0), mass=1.0, angular_velocity=spin)
    return simulate(scene, duration=duration, step=step)


@pytest.mark.parametrize(("step", "duration"), [(1e-3, 2.0), (1e-2, 10.0), (5e-2, 10.0)])
def test_thin_spinning_body_never_gains(step: float, duration: float) -> None:
    """A free 1:1:20 body at 20 rad/s: energy never rises, world angular momentum is kept."""
    run = spinning(step, duration)
    assert np.all(run.energy <= run.energy[0] * (1 + 1e-12))
    assert np.all(np.diff(run.energy) <= 1e-9 * run.energy[0])
    body = run.scene.bodies["rod"]
    R = matrix(run["rod"].orientation)
    momentum = np.einsum("tij,jk,tlk,tl->ti", R, body.inertia, R, run["rod"].angular_velocity)
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (len(R), 1)), atol=1e-9 * abs(momentum).max())


def test_projectile() -> None:
    """A ball thrown without contact: velocity exact, position off by the known g h t / 2."""
    h, n = 0.01, 100
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ball", shapes.sphere(0.1), mass=3.0, velocity=(1, 2, 3), angular_velocity=(1, 2, 3))
    run = simulate(scene, duration=n * h, step=h)
    t = run.time[:, None]
    g = np.array([[0, 0, -9.81]])
    v = np.array([[1, 2, 3]])
    np.testing.assert_allclose(run["ball"].velocity, v + t * g, atol=1e-12)
    np.testing.assert_allclose(run["ball"].position, v * t + g * t * (t + h) / 2, atol=1e-12)
    np.testing.assert_allclose(run["ball"].angular_velocity, np.tile(v, (n + 1, 1)), atol=1e-12)
