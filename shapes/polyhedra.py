"""The convex polyhedron: one linear constraint a facet, everything else in closed form."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.process.lazy import cached_property
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.sampled.mass import Moments, polytope_moments
from implicit_geom.shapes.shape import Constraint, Inequality, Shape
from implicit_geom.shapes.validate import points_of

SAME_PLANE = 1e-9  # difference of unit normals, and of offsets over size, below which facets are merged


class Polyhedron(Shape):
    """The convex hull of some points: {n_i . x <= d_i for every facet i}.

    vertices   at least four points (x, y, z), m, in any order and not all in one plane

    Points inside the hull are dropped, triangles in one plane are merged. theta holds the facets,
    (n_1, d_1, n_2, d_2, ...), so that polyhedra with the same number of facets share a structure.

    >>> corner = shapes.polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
    >>> round(corner.volume, 6), len(corner.planes)
    (0.166667, 4)
    """

    kind = "polyhedron"
    dim = 3

    def __init__(self, vertices: Sequence[Sequence[float]]) -> None:
        from scipy.spatial import ConvexHull, QhullError

        points = points_of(self.kind, "vertices", vertices, 3, least=4)
        try:
            hull = ConvexHull(points)
        except QhullError as error:
            raise ShapeError(f"{self.kind}: the vertices lie in one plane; a solid is needed") from error
        self.vertices = points[np.sort(hull.vertices)]
        self.planes = merged(hull.equations, float(np.max(np.ptp(points, axis=0))))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"vertices": tuple(map(tuple, self.vertices.tolist()))}

    @property
    def structure(self) -> Hashable:
        return (self.kind, len(self.planes))

    @cached_property
    def values(self) -> np.ndarray:
        return np.asarray(self.planes.ravel())

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        m = len(self.planes)
        return [Inequality(ca.dot(theta[4 * i : 4 * i + 3], x) - theta[4 * i + 3]) for i in range(m)]

    def support(self, directions: np.ndarray) -> np.ndarray:
        return self.vertices[np.argmax(directions @ self.vertices.T, axis=1)]

    @cached_property
    def moments(self) -> Moments:
        """Volume, centre of mass and second moments at uniform density."""
        return polytope_moments(self.vertices)

    @property
    def volume(self) -> float:
        return self.moments.volume

    @property
    def com(self) -> np.ndarray:
        return self.moments.com

    def inertia(self, mass: float) -> Any:
        return self.moments.inertia(mass)


def merged(equations: np.ndarray, size: float) -> np.ndarray:
    """Rows (n, d) of n . x <= d from Qhull's (n, -d), each plane once; (F, 4) -> (M, 4)."""
    planes = equations * np.array([1, 1, 1, -1])
    scaled = planes / np.array([1, 1, 1, size])
    kept: list[int] = []
    for i, row in enumerate(scaled):
        if not kept or np.min(np.max(np.abs(scaled[kept] - row), axis=1)) >= SAME_PLANE:
            kept.append(i)
    return np.asarray(planes[kept])
