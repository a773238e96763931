"""Functions of a rotation vector, as SX: exact for any angle, or as series for the turns of ordinary steps.

The series are polynomials of the squared angle: no root, no quotient, nothing from the C library. They are
exact to rounding up to LARGEST; a step that turns farther must not use them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial, pi

import casadi as ca

from implicit_geom import rotation
from implicit_geom.rotation import NO_ANGLE

LARGEST = 1.55  # rad
ROUNDING = 1e-17  # terms below this part of the first are left out
SLOPE = 1e-8  # the same for derivatives, which only say where Newton's method looks next
ZETA = 2000  # terms of zeta(2k), k > 2


@dataclass(frozen=True)
class RotationFunctions:
    """half(theta): cos(a/2) and sin(a/2)/a, a = |theta|; inverse(theta): see `rotation.tangent_inverse`."""

    half_angle: Callable[[ca.SX], tuple[ca.SX, ca.SX]]
    tangent_inverse: Callable[[ca.SX], ca.SX]

    def matrix(self, theta: ca.SX) -> ca.SX:
        """exp([theta]x) = (1 - b x) I + 2 c s [theta]x + b theta theta^T.

        c = cos(a/2), s = sin(a/2)/a, b = 2 s^2, x = a^2.
        """
        c, s = self.half_angle(theta)
        b = 2 * s**2
        turned = ca.skew(2 * c * s * theta) + _symmetric((b * theta) @ theta.T)
        return turned + (1 - b * ca.sumsqr(theta)) * ca.SX.eye(3)


def _half_exact(theta: ca.SX) -> tuple[ca.SX, ca.SX]:
    angle = ca.sqrt(ca.sumsqr(theta) + NO_ANGLE)
    return ca.cos(angle / 2), ca.sin(angle / 2) / angle


def _half_series(theta: ca.SX) -> tuple[ca.SX, ca.SX]:
    x = ca.sumsqr(theta)
    cosine = _polynomial(x, lambda k: (-0.25) ** k / factorial(2 * k))
    sine = _polynomial(x, lambda k: (-0.25) ** k / factorial(2 * k + 1))
    return cosine, sine / 2


def tangent_product(g: ca.SX, h: ca.SX, w: ca.SX) -> ca.SX:
    """h g T, (n, 3), where h dw turns exp(h w) by T h dw: T = (1 - s x) I + f [theta]x + s theta theta^T."""
    theta = h * w
    x = ca.sumsqr(theta)
    f = h * _polynomial(x, lambda k: (-1.0) ** k / factorial(2 * k + 2), SLOPE)
    s = h * _polynomial(x, lambda k: (-1.0) ** k / factorial(2 * k + 3), SLOPE)
    across, along, rest = f * theta, s * theta, h - s * x
    rows = [
        rest * row + ca.cross(row.T, across).T + (row @ along) * theta.T
        for row in ca.vertsplit(ca.densify(g))
    ]
    return ca.vertcat(*rows)


def inverse_tangent_product(theta: ca.SX, y: ca.SX) -> ca.SX:
    """D(theta)^T y = (1 - c x) y + theta x y / 2 + c (theta . y) theta, x = theta . theta."""
    x = ca.sumsqr(theta)
    c = _polynomial(x, _inverse_coefficient)
    return (1 - c * x) * y + ca.cross(theta, y) / 2 + c * ca.dot(theta, y) * theta


def inverse_tangent_derivative(w: ca.SX, h: ca.SX, J: ca.SX) -> ca.SX:
    """The derivative of D(h w)^T J w by w, for a symmetric J: with y = J w, theta = h w, d = theta . y

    (1 - c x) J + [theta]x J / 2 - h [y]x / 2 + 2 c theta (h y)^T + h c d I
        + 2 (c' d theta - (c' x + c) y) (h theta)^T
    """
    theta, y = h * w, J @ w
    x, d = ca.sumsqr(theta), ca.dot(theta, y)
    c = _polynomial(x, _inverse_coefficient)
    slope = _polynomial(x, lambda k: (k + 1) * _inverse_coefficient(k + 1), SLOPE)
    turned = ca.horzcat(*[ca.cross(theta / 2, column) for column in ca.horzsplit(J)])
    along = (2 * slope * d) * theta - (2 * (slope * x + c)) * y
    pairs = (2 * h * c * theta) @ y.T + along @ (h * theta).T
    return (1 - c * x) * J + turned + pairs + h * c * d * ca.SX.eye(3) - ca.skew(h / 2 * y)


def symmetric_product(R: ca.SX, M: ca.SX) -> ca.SX:
    """R M R^T of a symmetric M."""
    return _symmetric((R @ M) @ R.T)


def _symmetric(M: ca.SX) -> ca.SX:
    """M from its upper half."""
    n = M.size1()
    return ca.vertcat(*[ca.horzcat(*[M[min(i, j), max(i, j)] for j in range(n)]) for i in range(n)])


def _inverse_coefficient(k: int) -> float:
    """Of x^k in c = sum_k 2 zeta(2k + 2) / (2 pi)^(2k + 2) x^k."""
    exact = {0: pi**2 / 6, 1: pi**4 / 90}
    zeta = exact[k] if k in exact else sum(n ** -(2.0 * k + 2) for n in range(ZETA, 0, -1))
    return float(2 * zeta / (2 * pi) ** (2 * k + 2))


def _inverse_series(theta: ca.SX) -> ca.SX:
    """D = I - [theta]x / 2 + c [theta]x^2."""
    cross = ca.skew(theta)
    return ca.SX.eye(3) - cross / 2 + _polynomial(ca.sumsqr(theta), _inverse_coefficient) * cross @ cross


def _polynomial(x: ca.SX, coefficient: Callable[[int], float], error: float = ROUNDING) -> ca.SX:
    """The sum of coefficient(k) x^k by Horner's rule, with a relative error for x up to LARGEST^2."""
    terms = [coefficient(0)]
    while abs(terms[-1]) * LARGEST ** (2 * len(terms) - 2) > error * abs(terms[0]):
        terms.append(coefficient(len(terms)))
    total = ca.SX(terms[-1])
    for value in reversed(terms[:-1]):
        total = total * x + value
    return total


EXACT = RotationFunctions(_half_exact, rotation.tangent_inverse_symbolic)
SERIES = RotationFunctions(_half_series, _inverse_series)
