"""Three-dimensional primitives: sets, support points, volume, centre of mass and inertia in closed form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.interface.words import shown
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.shape import Cone as ConeConstraint
from implicit_geom.shapes.shape import Constraint, Inequality, Shape, Slab
from implicit_geom.shapes.validate import direction, finite, positive

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
    """{(x/a)^2 + (y/b)^2 + (z/c)^2 <= 1}."""

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
    """{x^2 + y^2 + z^2 <= r^2}."""

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
    """{|x/a|^p + |y/b|^p + |z/c|^p <= 1}, p >= 2; the p-th root is taken to keep it well scaled."""

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


class RoundBar(Shape):
    """What a cylinder and a capsule share: the axis z, a radius and a length that may be zero."""

    dim = 3

    def __init__(self, radius: float, length: float) -> None:
        self.radius = positive(self.kind, "radius", radius)
        self.length = positive(self.kind, "length", length, zero=True)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"radius": self.radius, "length": self.length}

    @property
    def com(self) -> np.ndarray:
        return np.zeros(3)


class Cylinder(RoundBar):
    """{x^2 + y^2 <= radius^2, |z| <= length/2}; length 0 is a thin disc."""

    kind = "cylinder"

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        r = theta[0]
        return [Inequality((x[0] ** 2 + x[1] ** 2) / (2 * r) - r / 2), Slab(x[2], theta[1] / 2)]

    def support(self, directions: np.ndarray) -> np.ndarray:
        rim = self.radius * unit_or_zero(directions[:, :2])
        return np.column_stack([rim, np.sign(directions[:, 2]) * self.length / 2])

    @property
    def volume(self) -> float:
        return float(np.pi * self.radius**2 * self.length)

    def inertia(self, mass: float) -> np.ndarray:
        r2 = self.radius**2 / 4
        return diagonal_inertia(mass, np.array([r2, r2, self.length**2 / 12]))


class Capsule(RoundBar):
    """{distance to the segment |z| <= length/2 is at most radius}."""

    kind = "capsule"

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        r, half = theta[0], theta[1] / 2
        beyond = ca.fmax(x[2] - half, 0) + ca.fmin(x[2] + half, 0)
        return [Inequality((x[0] ** 2 + x[1] ** 2 + beyond**2) / (2 * r) - r / 2)]

    def support(self, directions: np.ndarray) -> np.ndarray:
        points = self.radius * unit_or_zero(directions)
        points[:, 2] += np.sign(directions[:, 2]) * self.length / 2
        return points

    @property
    def volume(self) -> float:
        r = self.radius
        return float(np.pi * r**2 * (self.length + 4 / 3 * r))

    def inertia(self, mass: float) -> np.ndarray:
        r, half = self.radius, self.length / 2
        tube, caps = np.pi * r**2 * self.length, 4 / 3 * np.pi * r**3
        across = tube * r**2 / 4 + caps * r**2 / 5
        # a cap is a half ball moved by `half`; its centre of mass is 3r/8 beyond the cut
        along = tube * half**2 / 3 + caps * (r**2 / 5 + half**2 + 2 * half * 3 * r / 8)
        return diagonal_inertia(mass, np.array([across, across, along]) / (tube + caps))


class Cone(Shape):
    """{sqrt(x^2 + y^2)/radius <= 1 - z/height, z >= 0}: base at the origin, apex up."""

    kind = "cone"
    dim = 3

    def __init__(self, radius: float, height: float) -> None:
        self.radius = positive(self.kind, "radius", radius)
        self.height = positive(self.kind, "height", height)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"radius": self.radius, "height": self.height}

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        r, height = theta[0], theta[1]
        slope = 1 / ca.sqrt(1 + (r / height) ** 2)
        side = ConeConstraint(slope * x[:2], slope * r * (1 - x[2] / height))
        return [side, Inequality(-x[2])]

    def support(self, directions: np.ndarray) -> np.ndarray:
        rim = np.column_stack([self.radius * unit_or_zero(directions[:, :2]), np.zeros(len(directions))])
        apex = np.array([0.0, 0.0, self.height])
        up = directions @ apex > np.einsum("ij,ij->i", directions, rim)
        return np.where(up[:, None], apex, rim)

    @property
    def volume(self) -> float:
        return float(np.pi * self.radius**2 * self.height / 3)

    @property
    def com(self) -> np.ndarray:
        return np.array([0.0, 0.0, self.height / 4])

    def inertia(self, mass: float) -> np.ndarray:
        r2 = 3 / 20 * self.radius**2
        return diagonal_inertia(mass, np.array([r2, r2, 3 / 80 * self.height**2]))


class Box(Shape):
    """{|x| <= a, |y| <= b, |z| <= c}: half-lengths."""

    kind = "box"
    dim = 3

    def __init__(self, a: float, b: float, c: float) -> None:
        self.half = np.array([positive(self.kind, n, v) for n, v in zip("abc", (a, b, c), strict=True)])

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(zip("abc", self.half.tolist(), strict=True))

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Slab(x[i], theta[i]) for i in range(3)]

    def support(self, directions: np.ndarray) -> np.ndarray:
        return np.sign(directions) * self.half

    @property
    def volume(self) -> float:
        return float(8 * np.prod(self.half))

    @property
    def com(self) -> np.ndarray:
        return np.zeros(3)

    def inertia(self, mass: float) -> np.ndarray:
        return diagonal_inertia(mass, self.half**2 / 3)


class Halfspace(Shape):
    """{normal . x <= offset}; the normal is made a unit vector."""

    kind = "halfspace"
    dim = 3
    bounded = False

    def __init__(self, normal: Any, offset: float = 0.0) -> None:
        self.normal = np.array(direction(self.kind, "normal", normal, self.dim))
        self.offset = finite(self.kind, "offset", offset)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"normal": tuple(self.normal.tolist()), "offset": self.offset}

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Inequality(ca.dot(theta[: self.dim], x) - theta[self.dim])]

    def support(self, directions: np.ndarray) -> np.ndarray:  # noqa: ARG002
        raise ShapeError(f"{self.kind}: an unbounded shape has no support points")

    @property
    def interior(self) -> np.ndarray:
        return (self.offset - 1.0) * self.normal

    def moved(self, position: Sequence[float] | None = None, orientation: Any = None) -> Shape:
        """Another half-space: normal' = R normal, offset' = offset + normal' . position."""
        from implicit_geom.shapes.combine import pose

        p, _, R = pose(self.kind, self.dim, position, orientation)
        normal = R @ self.normal
        return type(self)(normal, self.offset + float(normal @ p))

    @property
    def volume(self) -> float:
        return np.inf

    @property
    def com(self) -> np.ndarray:
        raise ShapeError(f"{self.kind}: an unbounded shape has no centre of mass; give com= or fix the body")

    def inertia(self, mass: float) -> Any:  # noqa: ARG002
        raise ShapeError(f"{self.kind}: an unbounded shape has no inertia; give inertia= or fix the body")


def exponent(kind: str, p: Any) -> float:
    value = finite(kind, "p", p)
    if value < 2:
        raise ShapeError(f"{kind}: p = {shown(p)} must be at least 2")
    return value


def unit_or_zero(v: np.ndarray) -> np.ndarray:
    """Rows made unit vectors; zero rows stay zero."""
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(norm > 0, norm, 1.0)


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
