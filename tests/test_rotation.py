"""D, the inverse of the exponential map's tangent: against a block exponential, and as a derivative."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from implicit_geom.rotation import SERIES, exp, matrix, skew, tangent_inverse, tangent_inverse_symbolic

SWITCH = float(np.sqrt(SERIES))
ANGLES = (0.0, 1e-9, 1e-3, 0.2, SWITCH * (1 - 1e-9), SWITCH * (1 + 1e-9), 0.8, 2.0, 3.1, 3.2, 5.0)


def rotation_vectors(angle: float) -> np.ndarray:
    """A few rotation vectors of that angle, (12, 3)."""
    axes = np.random.default_rng(7).normal(size=(12, 3))
    return angle * axes / np.linalg.norm(axes, axis=1, keepdims=True)


def tangent(theta: np.ndarray) -> np.ndarray:
    """The integral of exp(s [theta]x) over 0 <= s <= 1, the upper right block of one exponential."""
    block = np.zeros((6, 6))
    block[:3, :3], block[:3, 3:] = skew(theta), np.eye(3)
    return np.asarray(expm(block)[:3, 3:])


@pytest.mark.parametrize("angle", ANGLES)
def test_inverts_the_integral_of_the_exponential(angle: float) -> None:
    """D(theta) times the integral of exp(s [theta]x) is the identity, on both sides of the series switch."""
    for theta in rotation_vectors(angle):
        assert np.max(np.abs(tangent_inverse(theta) @ tangent(theta) - np.eye(3))) < 2e-14


def test_series_and_closed_form_meet() -> None:
    """At the switch the series and the closed form differ by rounding: D does not jump."""
    for axis in rotation_vectors(1.0):
        below, above = (tangent_inverse(axis * SWITCH * (1 + d)) for d in (-1e-13, 1e-13))
        assert np.max(np.abs(above - below)) < 1e-12
    half = SWITCH / 2
    c = (1 - half / np.tan(half)) / SERIES
    below = tangent_inverse(np.array([0.0, 0.0, SWITCH * (1 - 1e-15)]))
    assert abs((1 - below[0, 0]) / SERIES - c) < 4e-15


@pytest.mark.parametrize("angle", ANGLES)
def test_symbolic_equals_numeric(angle: float) -> None:
    """The CasADi expression has the same values, for one vector and for many at once."""
    theta = ca.SX.sym("theta", 3)
    symbolic = ca.Function("D", [theta], [tangent_inverse_symbolic(theta)])
    vectors = rotation_vectors(angle)
    many = tangent_inverse(vectors)
    assert many.shape == (12, 3, 3)
    for vector, D in zip(vectors, many, strict=True):
        assert np.max(np.abs(np.asarray(symbolic(vector)) - D)) < 1e-15
        assert np.array_equal(tangent_inverse(vector), D)


@pytest.mark.parametrize("angle", [0.0, 1e-3, 0.3, SWITCH * (1 - 1e-9), SWITCH * (1 + 1e-9), 0.9, 2.5])
def test_derivative_of_the_symbolic_form(angle: float) -> None:
    """The Jacobian of the expression equals central differences, at zero and beside the switch as well."""
    theta = ca.SX.sym("theta", 3)
    D = ca.vec(tangent_inverse_symbolic(theta))
    jacobian = ca.Function("J", [theta], [ca.jacobian(D, theta)])
    d = 1e-6
    for vector in rotation_vectors(angle):
        differences = np.array(
            [
                (tangent_inverse(vector + d * e) - tangent_inverse(vector - d * e)).ravel("F") / (2 * d)
                for e in np.eye(3)
            ]
        ).T
        assert np.max(np.abs(np.asarray(jacobian(vector)) - differences)) < 1e-9


@pytest.mark.parametrize("angle", ANGLES)
def test_is_the_derivative_it_claims(angle: float) -> None:
    """exp(theta + D(theta) eps) = exp(eps) exp(theta) to first order: the error falls with eps squared."""
    eps = np.array([0.3, -0.5, 0.4])
    for theta in rotation_vectors(angle):
        errors = []
        for size in (1e-3, 1e-4):
            left = matrix(exp(theta + tangent_inverse(theta) @ (size * eps)))
            errors.append(np.max(np.abs(left - matrix(exp(size * eps)) @ matrix(exp(theta)))))
        assert errors[0] < 2e-6 * (1 + angle)
        assert errors[1] < 0.011 * errors[0] + 1e-14
