"""Planar primitives: sets, support points, area, centre of mass and inertia in closed form.

`volume` of a planar shape is its area in m^2; `inertia(mass)` is one number in kg m^2 about the
centre of mass.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.process.lazy import cached_property
from implicit_geom.shapes.ellipsoids import beta, exponent, quadratic_form, root_form, superellipsoid_support
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.shape import Constraint, Inequality, Shape, Slab
from implicit_geom.shapes.spatial import Halfspace
from implicit_geom.shapes.validate import count, points_of, positive

STRAIGHT = 1e-12  # sine of the angle below which two sides count as one straight line


class Ellipse(Shape):
    """A planar ellipse about the origin: {(x/a)^2 + (y/b)^2 <= 1}.

    a, b   semi-axes along x and y, m

    >>> round(shapes.ellipse(0.5, 0.4).volume, 6)
    0.628319
    """

    kind = "ellipse"
    strictly_convex = True
    dim = 2

    def __init__(self, a: float, b: float) -> None:
        self.axes = np.array([positive(self.kind, n, v) for n, v in zip("ab", (a, b), strict=True)])

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(zip("ab", self.axes.tolist(), strict=True))

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Inequality(quadratic_form(x, theta, 2))]

    def support(self, directions: np.ndarray) -> np.ndarray:
        scaled = directions * self.axes
        return self.axes * scaled / np.linalg.norm(scaled, axis=1, keepdims=True)

    @property
    def volume(self) -> float:
        return float(np.pi * np.prod(self.axes))

    @property
    def com(self) -> np.ndarray:
        return np.zeros(2)

    def inertia(self, mass: float) -> float:
        return float(mass * np.sum(self.axes**2) / 4)


class Disc(Ellipse):
    """A planar disc about the origin: {x^2 + y^2 <= r^2}.

    r   radius, m

    >>> shapes.disc(0.1).inertia(mass=2.0)
    0.010000000000000002
    """

    kind = "disc"

    def __init__(self, r: float) -> None:
        self.r = positive(self.kind, "r", r)
        self.axes = np.full(2, self.r)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"r": self.r}

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Inequality((x[0] ** 2 + x[1] ** 2) / (2 * theta) - theta / 2)]


class Superellipse(Shape):
    """A planar rounded rectangle about the origin: {|x/a|^p + |y/b|^p <= 1}.

    a, b   semi-axes along x and y, m
    p      exponent, at least 2: an ellipse at 2, the nearer to rectangle(a, b) the larger it is

    In the equations the p-th root is taken, which keeps them well scaled.

    >>> round(shapes.superellipse(1, 1, 8).volume, 3)
    3.914
    """

    kind = "superellipse"
    strictly_convex = True
    dim = 2

    def __init__(self, a: float, b: float, p: float) -> None:
        self.axes = np.array([positive(self.kind, n, v) for n, v in zip("ab", (a, b), strict=True)])
        self.p = exponent(self.kind, p)

    @property
    def parameters(self) -> dict[str, Any]:
        return {**dict(zip("ab", self.axes.tolist(), strict=True)), "p": self.p}

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Inequality(root_form(x, theta[:2], theta[2], 2))]

    def support(self, directions: np.ndarray) -> np.ndarray:
        return superellipsoid_support(directions, self.axes, self.p)

    @property
    def volume(self) -> float:
        return float(4 * np.prod(self.axes) * quadrant_moment(self.p, 0))

    @property
    def com(self) -> np.ndarray:
        return np.zeros(2)

    def inertia(self, mass: float) -> float:
        mean_square = quadrant_moment(self.p, 2) / quadrant_moment(self.p, 0)
        return float(mass * mean_square * np.sum(self.axes**2))


class Rectangle(Shape):
    """A planar rectangle about the origin: {|x| <= a, |y| <= b}.

    a, b   half-lengths along x and y, m: the sides are twice as long

    >>> shapes.rectangle(0.5, 0.4).volume
    0.8
    """

    kind = "rectangle"
    dim = 2

    def __init__(self, a: float, b: float) -> None:
        self.half = np.array([positive(self.kind, n, v) for n, v in zip("ab", (a, b), strict=True)])

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(zip("ab", self.half.tolist(), strict=True))

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        return [Slab(x[i], theta[i]) for i in range(2)]

    def support(self, directions: np.ndarray) -> np.ndarray:
        return np.sign(directions) * self.half

    @property
    def volume(self) -> float:
        return float(4 * np.prod(self.half))

    @property
    def com(self) -> np.ndarray:
        return np.zeros(2)

    def inertia(self, mass: float) -> float:
        return float(mass * np.sum(self.half**2) / 3)


class Polygon(Shape):
    """A convex polygon: {n_i . (x - v_i) <= 0 for every side i}.

    n_i is the outward unit normal of the side v_i v_(i+1).

    vertices   at least three points (x, y) in order, m; those given clockwise are reversed

    ShapeError where they are not convex, one is given twice or lies on the line through its neighbours.

    >>> shapes.polygon([(0, 0), (1, 0), (0, 1)]).com.round(6)
    array([0.333333, 0.333333])
    """

    kind = "polygon"
    dim = 2

    def __init__(self, vertices: Sequence[Sequence[float]]) -> None:
        self.vertices = convex_vertices(self.kind, vertices)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"vertices": tuple(map(tuple, self.vertices.tolist()))}

    @property
    def structure(self) -> Hashable:
        return (self.kind, len(self.vertices))

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        n = len(self.vertices)
        corner = [theta[2 * i : 2 * i + 2] for i in range(n)]
        sides: list[Constraint] = []
        for i in range(n):
            edge = corner[(i + 1) % n] - corner[i]
            outward = ca.vertcat(edge[1], -edge[0]) / ca.sqrt(ca.sumsqr(edge))
            sides.append(Inequality(ca.dot(outward, x - corner[i])))
        return sides

    def support(self, directions: np.ndarray) -> np.ndarray:
        return self.vertices[np.argmax(directions @ self.vertices.T, axis=1)]

    @property
    def volume(self) -> float:
        return float(np.sum(self._fan()[1]))

    @property
    def com(self) -> np.ndarray:
        mean, area = self._fan()
        return self.vertices[0] + area @ mean / area.sum()

    def inertia(self, mass: float) -> float:
        """mass * mean |x - com|^2, each triangle of the fan by its vertices and centroid."""
        _, area = self._fan()
        com = self.com - self.vertices[0]
        corners = self._triangles() - com
        # mean of |y|^2 over a triangle is (sum |y_k|^2 + |sum y_k|^2) / 12
        square = (np.sum(corners**2, axis=(1, 2)) + np.sum(corners.sum(axis=1) ** 2, axis=1)) / 12
        return float(mass * area @ square / area.sum())

    def _triangles(self) -> np.ndarray:
        """Triangles of the fan about vertex 0, relative to it; (n-2, 3, 2)."""
        rest = self.vertices[1:] - self.vertices[0]
        return np.stack([np.zeros_like(rest[1:]), rest[:-1], rest[1:]], axis=1)

    def _fan(self) -> tuple[np.ndarray, np.ndarray]:
        corners = self._triangles()
        return corners.mean(axis=1), cross(corners[:, 1], corners[:, 2]) / 2


class RegularPolygon(Polygon):
    """A planar regular polygon about the origin, with vertex 0 on the +x axis.

    n   sides, at least 3
    r   circumradius: from the centre to a vertex, m

    {n_i . x <= r cos(pi/n)}, n_i = (cos a_i, sin a_i), a_i = (2 i + 1) pi / n.

    >>> shapes.regular_polygon(4, 1.0).vertices.round(6)[0]
    array([1., 0.])
    """

    kind = "regular_polygon"

    def __init__(self, n: int, r: float) -> None:
        self.n = count(self.kind, "n", n, least=3)
        self.r = positive(self.kind, "r", r)
        angle = 2 * np.pi * np.arange(self.n) / self.n
        self.vertices = self.r * np.column_stack([np.cos(angle), np.sin(angle)])

    @property
    def parameters(self) -> dict[str, Any]:
        return {"n": self.n, "r": self.r}

    @cached_property
    def values(self) -> np.ndarray:
        return np.array([self.r])

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        angles = (2 * np.arange(self.n) + 1) * np.pi / self.n
        apothem = theta[0] * np.cos(np.pi / self.n)
        return [Inequality(float(np.cos(a)) * x[0] + float(np.sin(a)) * x[1] - apothem) for a in angles]

    @property
    def com(self) -> np.ndarray:
        return np.zeros(2)


class Halfplane(Halfspace):
    """All points on one side of a line: {normal . x <= offset}. Mostly for fixed bodies: it is unbounded.

    normal   outward, of any length but zero (it is made a unit vector)
    offset   distance of the line from the origin along the normal, m

    >>> shapes.halfplane(normal=(0, 1))
    halfplane(normal=(0.0, 1.0), offset=0.0)
    """

    kind = "halfplane"
    dim = 2


def cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u_x v_y - u_y v_x, row by row."""
    return np.asarray(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])


def quadrant_moment(p: float, power: int) -> float:
    """Integral of x^power over {x, y >= 0, x^p + y^p <= 1} (Dirichlet's integral)."""
    return float(beta((power + 1) / p, 1 / p + 1) / p)


def convex_vertices(kind: str, vertices: Any) -> np.ndarray:
    """The vertices counter-clockwise, (n, 2); an error names the first one that breaks convexity."""
    points = points_of(kind, "vertices", vertices, 2, least=3)
    repeated = [i for i, v in enumerate(points) if np.any(np.all(points[:i] == v, axis=1))]
    if repeated:
        i = repeated[0]
        raise ShapeError(f"{kind}: vertices[{i}] = {points[i].tolist()} is there twice; leave one out")
    area = np.sum(cross(points, np.roll(points, -1, axis=0)))
    if area < 0:
        points = points[::-1].copy()
    before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
    sine = cross(before, after) / (np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1))
    worst = int(np.argmin(sine))
    if sine[worst] < -STRAIGHT:
        raise ShapeError(f"{kind}: not convex at vertex {points[worst].tolist()}; give a convex polygon")
    if sine[worst] <= STRAIGHT:
        where = points[worst].tolist()
        raise ShapeError(f"{kind}: vertex {where} lies on the line through its neighbours; leave it out")
    turn = np.sum(
        np.arctan2(
            sine,
            np.einsum("ij,ij->i", before, after)
            / np.linalg.norm(before, axis=1)
            / np.linalg.norm(after, axis=1),
        )
    )
    if turn > 3 * np.pi:  # a star turns left at every vertex too, but goes round more than once
        raise ShapeError(f"{kind}: the sides of {points.tolist()} cross; give the vertices in order")
    return points
