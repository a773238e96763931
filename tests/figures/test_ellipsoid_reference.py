"""The constrained reference conserves what it must, and on a huge sphere is the motion on a plane."""

import numpy as np
import pytest

from implicit_geom.experiments.ellipsoid_reference import Bodies, ContactFrame, integrate, rotation

GRAVITY = np.array([0.0, 0.0, -9.81])
# ellipsoid (0.5, 0.4, 0.3), 1 kg, rolling without slip on a plane from rest, after 1 s
ORIENTATION = np.array([0.9580325796404554, 0.24462587947773934, 0.14479246283091118, -0.036971585637570345])
VELOCITY_ON_PLANE = np.array([0.41127353295960106, -0.09107370544229565, 0.0017553077794950566])
SPIN_ON_PLANE = np.array([0.27647557964366337, 1.2484727312293322, -0.0023076524993432047])


def on_sphere(radius: float, times: np.ndarray):
    bodies = Bodies(np.full(3, radius), np.array([0.5, 0.4, 0.3]), 1.0, GRAVITY)
    return integrate(bodies, np.array([0.0, 0.0, 1.0]), ORIENTATION, times, rolling=True)


def test_rolling_on_a_huge_sphere_tends_to_rolling_on_a_plane() -> None:
    exact = np.append(VELOCITY_ON_PLANE, SPIN_ON_PLANE)
    errors = []
    for radius in (1e2, 1e3):
        motion = on_sphere(radius, np.array([0.0, 1.0]))
        found = np.append(motion.velocity[-1], motion.angular_velocity[-1])
        errors.append(np.linalg.norm(found - exact))
    assert errors[1] < 0.02
    assert errors[0] / errors[1] == pytest.approx(10, rel=0.05)  # linear in the curvature


@pytest.mark.parametrize("rolling", [False, True])
def test_gap_constraint_and_energy_are_conserved(rolling: bool) -> None:
    bodies = Bodies(np.array([1.0, 0.8, 0.6]), np.array([0.3, 0.25, 0.2]), 2.0, GRAVITY)
    normal, turn = np.array([0.2, 0.1, 0.97]), np.array([0.9, 0.2, -0.1, 0.3])
    motion = integrate(bodies, normal, turn, np.linspace(0, 0.4, 9), rolling=rolling)
    assert np.max(np.abs(motion.gap)) < 1e-11
    assert np.max(motion.slip) < 1e-11
    assert np.ptp(motion.energy) < 1e-11
    assert np.min(motion.normal_force) > 0


def test_closest_points_satisfy_the_definition() -> None:
    """The points lie on their surfaces and their difference is d n, for separate bodies too."""
    bodies = Bodies(np.array([1.0, 0.8, 0.6]), np.array([0.3, 0.25, 0.2]), 1.0, GRAVITY)
    x, R = np.array([0.5, -0.7, 1.1]), rotation(np.array([0.3, 0.5, -0.2, 0.7]))
    c = ContactFrame(bodies, x, R, x)
    other = x + c.r
    assert np.sum((c.point / bodies.fixed) ** 2) == pytest.approx(1, abs=1e-13)
    assert np.sum((R.T @ c.r / bodies.moving) ** 2) == pytest.approx(1, abs=1e-13)
    np.testing.assert_allclose(other - c.point, c.d * c.n, atol=1e-13)
    assert c.d > 0
