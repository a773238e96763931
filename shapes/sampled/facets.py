"""The polygon or polyhedron inscribed in a shape: what a faceted simulator would use instead.

All vertices lie on the surface, so that the facets are inside the body and converge to it from
within as n grows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.planar import Disc, Polygon, Rectangle, RegularPolygon, cross
from implicit_geom.shapes.polyhedra import Polyhedron
from implicit_geom.shapes.sampled.boundary import boundary_points, sphere_directions
from implicit_geom.shapes.sampled.rays import Rays
from implicit_geom.shapes.sampled.sampled_shape import SampledShape
from implicit_geom.shapes.shape import DERIVED, Shape
from implicit_geom.shapes.spatial import Box, Cone, Cylinder
from implicit_geom.shapes.validate import count


def inscribed(shape: Shape, n: int) -> Shape:
    """Planar: a polygon with n vertices on the boundary, the first on the +x side, at equal steps of
    the angle t in (w_x cos t, w_y sin t), w the half-widths. Spatial: a polyhedron with at most n
    vertices on the surface. Polygons, boxes and polyhedra are their own facets whatever n is."""
    n = count("faceted", "n", n, least=shape.dim + 1)
    if not shape.bounded:
        raise ShapeError(f"{shape.kind}: an unbounded shape has no inscribed polyhedron")
    if isinstance(shape, Moved):
        return shape.shape.faceted(n).moved(shape.position.tolist(), shape.parameters["orientation"])
    return _planar(shape, n) if shape.dim == 2 else _spatial(shape, n)


DERIVED["faceted"] = inscribed


def _planar(shape: Shape, n: int) -> Shape:
    if isinstance(shape, Disc):
        return RegularPolygon(n, shape.r)
    if isinstance(shape, Polygon):
        return shape
    if isinstance(shape, Rectangle):
        return Polygon((np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * shape.half).tolist())
    rays = rays_of(shape)
    if isinstance(shape, SampledShape) and rays.all_affine:
        return Polygon(shape.samples.tolist())
    if rays.count == 1:
        return Polygon(rays.cast(_stretched(shape, n))[0].tolist())
    for m in _fewer(4 * n):
        corners = _strict_corners(boundary_points(rays, m))
        if len(corners) <= n:
            return Polygon(corners.tolist())
    raise ShapeError(f"{shape.kind}: has more than {n} corners; ask for more")


def _spatial(shape: Shape, n: int) -> Shape:
    if isinstance(shape, Polyhedron):
        return shape
    if isinstance(shape, Cylinder) and shape.length == 0:
        raise ShapeError("cylinder: a disc of length 0 has no inscribed polyhedron; give it a length")
    if (features := feature_points(shape, n)) is not None:
        return Polyhedron(features.tolist())
    rays = rays_of(shape)
    if isinstance(shape, SampledShape) and rays.count > 1:
        return _with_edges(shape, rays, n)
    return Polyhedron(rays.cast(_stretched(shape, n))[0].tolist())


def _with_edges(shape: SampledShape, rays: Rays, n: int) -> Shape:
    """Edges and corners come on top of the rays, so fewer rays are cast until n vertices remain."""
    from scipy.spatial import ConvexHull

    if rays.all_affine:
        return Polyhedron(shape.samples.tolist())
    for m in _fewer(2 * n):
        points = boundary_points(rays, m)
        if len(ConvexHull(points).vertices) <= n:
            return Polyhedron(points.tolist())
    return Polyhedron(rays.cast(_stretched(shape, n))[0].tolist())


def _fewer(start: int) -> Iterator[int]:
    m = start
    while m >= 6:
        yield m
        m = min(m - 1, int(m * 0.9))


def _strict_corners(points: np.ndarray) -> np.ndarray:
    """Hull vertices counter-clockwise without those on a straight side; (M, 2) -> (K, 2)."""
    from scipy.spatial import ConvexHull

    corners = points[ConvexHull(points).vertices]
    while True:
        before, after = corners - np.roll(corners, 1, axis=0), np.roll(corners, -1, axis=0) - corners
        sine = cross(before, after) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
        if np.min(sine) > 1e-9:
            return corners
        corners = np.delete(corners, np.argmin(sine), axis=0)


def _stretched(shape: Shape, n: int) -> np.ndarray:
    lower, upper = shape.bounds
    return sphere_directions(n, shape.dim) * (upper - lower) / 2


def rays_of(shape: Shape) -> Rays:
    return shape.rays if isinstance(shape, SampledShape) else Rays(shape, shape.interior, shape.size)


def feature_points(shape: Shape, n: int) -> np.ndarray | None:
    """Corners of a box, rims of a cylinder or cone with its tip, n points in all; otherwise None."""
    if isinstance(shape, Box):
        signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
        return np.asarray(signs * shape.half)
    if isinstance(shape, Cylinder):
        rim = _circle(shape.radius, max(3, n // 2))
        up = np.array([0, 0, shape.length / 2])
        return np.vstack([rim - up, rim + up])
    if isinstance(shape, Cone):
        return np.vstack([_circle(shape.radius, max(3, n - 1)), [0, 0, shape.height]])
    return None


def _circle(r: float, n: int) -> np.ndarray:
    angle = 2 * np.pi * np.arange(n) / n
    return np.column_stack([r * np.cos(angle), r * np.sin(angle), np.zeros(n)])
