"""A body without contact: momentum is kept, energy never rises."""

from __future__ import annotations

import numpy as np
import pytest
from law_scenes import RATTLE, STEPPERS, assert_lawful

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.rotation import matrix
from implicit_geom.shapes.shape import Shape

ROD = shapes.ellipsoid(0.05, 0.05, 1.0)
BLADE = shapes.ellipsoid(0.05, 0.3, 1.0)


def spinning(shape: Shape, step: float, duration: float, stepper: str) -> Trajectory:
    scene = Scene(gravity=(0, 0, 0))
    spin = 20 * np.array([0.6, 0.0, 0.8])
    scene.add("body", shape, mass=1.0, angular_velocity=spin)
    return simulate(scene, duration=duration, step=step, stepper=stepper)


def assert_momentum_is_kept(run: Trajectory, tolerance: float) -> None:
    """World angular momentum is that of the start, relative to its largest component."""
    body = run.scene.bodies["body"]
    R = matrix(run["body"].orientation)
    momentum = np.einsum("tij,jk,tlk,tl->ti", R, body.inertia, R, run["body"].angular_velocity)
    expected = np.tile(momentum[0], (len(R), 1))
    np.testing.assert_allclose(momentum, expected, rtol=0, atol=tolerance * abs(momentum).max())


@pytest.mark.parametrize(("step", "duration"), [(1e-3, 2.0), (1e-2, 10.0), (5e-2, 10.0)])
def test_thin_spinning_body_never_gains(step: float, duration: float) -> None:
    """A free 1:1:20 body at 20 rad/s by implicit Euler: energy never rises, angular momentum is kept."""
    run = spinning(ROD, step, duration, "implicit-euler")
    assert np.all(run.energy <= run.energy[0] * (1 + 1e-12))
    assert np.all(np.diff(run.energy) <= 1e-9 * run.energy[0])
    assert_momentum_is_kept(run, 1e-9)


@pytest.mark.parametrize("stepper", RATTLE)
@pytest.mark.parametrize(("step", "duration"), [(1e-2, 2.0), (5e-2, 10.0)])
def test_thin_spinning_top_keeps_its_energy(step: float, duration: float, stepper: str) -> None:
    """The same body by RATTLE: energy and angular momentum are kept to 1e-11, at 1 rad a step too."""
    run = spinning(ROD, step, duration, stepper)
    np.testing.assert_allclose(run.energy, run.energy[0], rtol=1e-11)
    assert_momentum_is_kept(run, 1e-11)
    assert set(run.steps["guard"]) == {"none"}


@pytest.mark.parametrize("stepper", RATTLE)
@pytest.mark.parametrize(("step", "duration"), [(1e-2, 2.0), (5e-2, 4.0)])
def test_thin_tumbling_body_stays_within_its_bounds(step: float, duration: float, stepper: str) -> None:
    """A free 1:6:20 body at 20 rad/s by RATTLE: momentum kept, no step gains more than it may, no drift."""
    run = spinning(BLADE, step, duration, stepper)
    assert_lawful(run, 0.05)
    assert_momentum_is_kept(run, 1e-11)
    off = {1e-2: 2e-3, 5e-2: 0.1}[step]
    assert np.all(np.abs(run.energy / run.energy[0] - 1) < off)


def thrown(h: float, n: int, stepper: str) -> Trajectory:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ball", shapes.sphere(0.1), mass=3.0, velocity=(1, 2, 3), angular_velocity=(1, 2, 3))
    return simulate(scene, duration=n * h, step=h, stepper=stepper)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_projectile(stepper: str) -> None:
    """A ball thrown without contact: all exact, but for the known g h t / 2 of the position in Euler."""
    h, n = 0.01, 100
    run = thrown(h, n, stepper)
    late = h if stepper == "implicit-euler" else 0.0
    t = run.time[:, None]
    g = np.array([[0, 0, -9.81]])
    v = np.array([[1, 2, 3]])
    np.testing.assert_allclose(run["ball"].velocity, v + t * g, atol=1e-12)
    np.testing.assert_allclose(run["ball"].position, v * t + g * t * (t + late) / 2, atol=1e-12)
    np.testing.assert_allclose(run["ball"].angular_velocity, np.tile(v, (n + 1, 1)), atol=1e-12)
