"""Ellipsoids and superellipsoids: sets, support points, volume and inertia in closed form."""

from __future__ import annotations

import math
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.interface.words import shown
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.shape import Constraint, Inequality, Shape
from implicit_geom.shapes.validate import finite, positive

TINY = 1e-30  # below any length squared that matters: keeps sqrt and powers differentiable at zero


def root_form(x: ca.SX, axes: ca.SX, p: ca.SX, n: int) -> ca.SX:
    """scale * ((sum |x_i/a_i|^p)^(1/p) - 1), convex and homogeneous; scale makes |grad| about one."""
    y = [ca.sqrt((x[i] / axes[i]) ** 2 + TINY) for i in range(n)]
    biggest = y[0]
    for v in y[1:]:
        biggest = ca.fmax(biggest, v)
    # (max is factored out so that no power overflows; its derivative cancels exactly)
    total = sum((v / biggest) ** p for v in y)
    return geometric_mean(axes, n) * (biggest * total ** (1 / p) - 1)


def quadratic_form(x: ca.SX, axes: ca.SX, n: int) -> ca.SX:
    """scale/2 * (sum (x_i/a_i)^2 - 1)."""
    return geometric_mean(axes, n) / 2 * (sum((x[i] / axes[i]) ** 2 for i in range(n)) - 1)


def geometric_mean(axes: ca.SX, n: int) -> ca.SX:
    product = axes[0]
    for i in range(1, n):
        product = product * axes[i]
    return product ** (1.0 / n)


class Ellipsoid(Shape):
    """An ellipsoid about the origin: {(x/a)^2 + (y/b)^2 + (z/c)^2 <= 1}.

    a, b, c   semi-axes along x, y and z, m

    >>> egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    >>> egg
    ellipsoid(a=0.5, b=0.4, c=0.3)
    >>> round(egg.volume, 6)
    0.251327
    """

    kind = "ellipsoid"
    strictly_convex = True
    dim = 3

    def __init__(self, a: float, b: float, c: float) -> None:
        self.axes = np.array([positive(self.kind, n, v) for n, v in zip("abc", (a, b, c), strict=True)])

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(zip("abc", self.axes.tolist(), strict=True))

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Inequality(quadratic_form(x, theta, 3))]

    def support(self, directions: np.ndarray) -> np.ndarray:
        scaled = directions * self.axes
        return self.axes * scaled / np.linalg.norm(scaled, axis=1, keepdims=True)

    @property
    def volume(self) -> float:
        return float(4 / 3 * np.pi * np.prod(self.axes))

    @property
    def com(self) -> np.ndarray:
        return np.zeros(3)

    def inertia(self, mass: float) -> np.ndarray:
        return diagonal_inertia(mass, self.axes**2 / 5)


class Sphere(Ellipsoid):
    """A ball about the origin: {x^2 + y^2 + z^2 <= r^2}.

    r   radius, m

    >>> shapes.sphere(0.1).inertia(mass=1.0).diagonal().round(6)
    array([0.004, 0.004, 0.004])
    """

    kind = "sphere"

    def __init__(self, r: float) -> None:
        self.r = positive(self.kind, "r", r)
        self.axes = np.full(3, self.r)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"r": self.r}

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Inequality(quadratic_form(x, ca.vertcat(theta, theta, theta), 3))]


class Superellipsoid(Shape):
    """A rounded box about the origin: {|x/a|^p + |y/b|^p + |z/c|^p <= 1}.

    a, b, c   semi-axes along x, y and z, m
    p         exponent, at least 2: an ellipsoid at 2, the nearer to box(a, b, c) the larger it is

    In the equations the p-th root is taken, which keeps them well scaled.

    >>> round(shapes.superellipsoid(1, 1, 1, 8).volume, 3)
    7.517
    """

    kind = "superellipsoid"
    strictly_convex = True
    dim = 3

    def __init__(self, a: float, b: float, c: float, p: float) -> None:
        self.axes = np.array([positive(self.kind, n, v) for n, v in zip("abc", (a, b, c), strict=True)])
        self.p = exponent(self.kind, p)

    @property
    def parameters(self) -> dict[str, Any]:
        return {**dict(zip("abc", self.axes.tolist(), strict=True)), "p": self.p}

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Inequality(root_form(x, theta[:3], theta[3], 3))]

    def support(self, directions: np.ndarray) -> np.ndarray:
        return superellipsoid_support(directions, self.axes, self.p)

    @property
    def volume(self) -> float:
        return float(8 * np.prod(self.axes) * octant_moment(self.p, 0))

    @property
    def com(self) -> np.ndarray:
        return np.zeros(3)

    def inertia(self, mass: float) -> np.ndarray:
        second = self.axes**2 * octant_moment(self.p, 2) / octant_moment(self.p, 0)
        return diagonal_inertia(mass, second)


def exponent(kind: str, p: Any) -> float:
    value = finite(kind, "p", p)
    if value < 2:
        raise ShapeError(f"{kind}: p = {shown(p)} must be at least 2")
    return value


def superellipsoid_support(directions: np.ndarray, axes: np.ndarray, p: float) -> np.ndarray:
    """Support points by the dual exponent: x_i ~ a_i |a_i n_i|^(1/(p-1))."""
    scaled = np.abs(directions * axes)
    scaled = scaled / scaled.max(axis=1, keepdims=True)
    x = scaled ** (1 / (p - 1))
    x = x / np.sum(x**p, axis=1, keepdims=True) ** (1 / p)
    return np.sign(directions) * axes * x


def beta(a: float, b: float) -> float:
    """Euler's beta function (written out: scipy.special would double the time to import the package)."""
    return math.gamma(a) * math.gamma(b) / math.gamma(a + b)


def octant_moment(p: float, power: int) -> float:
    """Integral of x^power over {x, y, z >= 0, x^p + y^p + z^p <= 1} (Dirichlet's integral)."""
    inner = beta(1 / p, 1 / p + 1) / p
    return float(inner * beta((power + 1) / p, 2 / p + 1) / p)


def diagonal_inertia(mass: float, second_moments: np.ndarray) -> np.ndarray:
    """Inertia from the mean squares of the coordinates."""
    return mass * np.diag(second_moments.sum() - second_moments)
