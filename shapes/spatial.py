"""Bars, cones, boxes, half-spaces: sets, support points, volume, centre of mass and inertia in closed form.

Ellipsoids are in `shapes.ellipsoids`; all three-dimensional primitives can be had from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.shapes.combine import pose
from implicit_geom.shapes.ellipsoids import Ellipsoid, Sphere, Superellipsoid, diagonal_inertia
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.shape import ConeConstraint, Constraint, Inequality, Shape, Slab
from implicit_geom.shapes.validate import direction, finite, positive

__all__ = [
    "Box", "Capsule", "Cone", "Cylinder", "Ellipsoid", "Halfspace", "Sphere", "Superellipsoid",
]  # fmt: skip


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
    """A solid cylinder about the z axis: {x^2 + y^2 <= radius^2, |z| <= length/2}.

    radius   m
    length   whole length, m; 0 is a thin disc

    The origin is its centre.

    >>> shapes.cylinder(0.1, 0.4).bounds
    (array([-0.1, -0.1, -0.2]), array([0.1, 0.1, 0.2]))
    """

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
    """A cylinder with half balls at its ends: all points within `radius` of the segment |z| <= length/2.

    radius   m
    length   of the cylindrical part alone, m, 0 or more; from end to end it is length + 2 radius

    The origin is its centre.

    >>> shapes.capsule(0.1, 0.4).bounds
    (array([-0.1, -0.1, -0.3]), array([0.1, 0.1, 0.3]))
    """

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
    """A solid cone about the z axis: {sqrt(x^2 + y^2)/radius <= 1 - z/height, z >= 0}.

    radius   of the base, m
    height   from the base to the apex, m

    The origin is the centre of the base, the apex is up at z = height.

    >>> shapes.cone(0.1, 0.4).com
    array([0. , 0. , 0.1])
    """

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
    """A box about the origin: {|x| <= a, |y| <= b, |z| <= c}.

    a, b, c   half-lengths along x, y and z, m: the edges are twice as long

    >>> box = shapes.box(0.5, 0.4, 0.3)
    >>> round(box.volume, 6)
    0.48
    >>> box.bounds[1]
    array([0.5, 0.4, 0.3])
    """

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
    """All points on one side of a plane: {normal . x <= offset}. Mostly for fixed bodies: it is unbounded.

    normal   outward, of any length but zero (it is made a unit vector)
    offset   distance of the plane from the origin along the normal, m

    >>> shapes.halfspace(normal=(0, 0, 2), offset=0.1)
    halfspace(normal=(0.0, 0.0, 1.0), offset=0.1)
    """

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


def unit_or_zero(v: np.ndarray) -> np.ndarray:
    """Rows made unit vectors; zero rows stay zero."""
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(norm > 0, norm, 1.0)
