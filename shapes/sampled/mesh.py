"""Triangles (segments in the plane) of a shape's surface, outward oriented, for drawing.

Points on the surface, with edges and corners among them, and their convex hull. Vertices lie on
the surface, so the mesh is inside the body and its volume grows to the body's as it is refined.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.planar import Polygon
from implicit_geom.shapes.polyhedra import Polyhedron
from implicit_geom.shapes.sampled.boundary import boundary_points
from implicit_geom.shapes.sampled.facets import feature_points, rays_of
from implicit_geom.shapes.sampled.sampled_shape import SampledShape
from implicit_geom.shapes.shape import DERIVED, Shape
from implicit_geom.shapes.spatial import Cylinder, Halfspace
from implicit_geom.shapes.validate import count

Mesh = tuple[np.ndarray, np.ndarray]


def surface_mesh(shape: Shape, resolution: int = 32, *, size: float = 10.0) -> Mesh:
    """Vertices (V, dim) in m and triangles (T, 3), or segments (S, 2) in the plane.

    `resolution` is the number of points round the body. A half-space is drawn as a square patch
    (a segment in the plane) of half-width `size` in m about the point of its plane nearest the origin.
    """
    resolution = count("mesh", "resolution", resolution, least=3)
    if len(shape.pieces) > 1:
        return _together([surface_mesh(piece, resolution, size=size) for piece in shape.pieces])
    if isinstance(shape, Halfspace):
        return _patch(shape.normal, shape.offset, size)
    if not shape.bounded:
        raise ShapeError(f"{shape.kind}: an unbounded shape has no surface mesh; cut it off by a box")
    if isinstance(shape, Moved):
        vertices, cells = surface_mesh(shape.shape, resolution)
        return shape.position + vertices @ shape.R.T, cells
    return _outline(shape, resolution) if shape.dim == 2 else _solid(shape, resolution)


DERIVED["mesh"] = surface_mesh


def _together(meshes: list[Mesh]) -> Mesh:
    """Several meshes as one."""
    before = np.cumsum([0, *(len(vertices) for vertices, _ in meshes)])
    cells = [cells + k for k, (_, cells) in zip(before, meshes, strict=False)]
    return np.vstack([vertices for vertices, _ in meshes]), np.vstack(cells)


def _outline(shape: Shape, resolution: int) -> Mesh:
    points = shape.vertices if isinstance(shape, Polygon) else _points(shape, resolution)
    y = points - shape.interior
    points = points[np.argsort(np.arctan2(y[:, 1], y[:, 0]), kind="stable")]
    k = np.arange(len(points))
    return points, np.column_stack([k, np.roll(k, -1)])


def _solid(shape: Shape, resolution: int) -> Mesh:
    from scipy.spatial import ConvexHull

    if isinstance(shape, Cylinder) and shape.length == 0:
        return _disc(shape.radius, resolution)
    points = feature_points(shape, 2 * resolution)
    if points is None and isinstance(shape, Polyhedron):
        points = shape.vertices
    if points is None:
        # resolution points round a great circle are about resolution^2 / pi points over the sphere
        points = _points(shape, max(12, round(resolution**2 / np.pi)))
    hull = ConvexHull(points)
    used, cells = np.unique(hull.simplices, return_inverse=True)
    vertices, triangles = points[used], cells.reshape(hull.simplices.shape)
    return vertices, _outward(vertices, triangles, hull.equations[:, :3])


def _points(shape: Shape, n: int) -> np.ndarray:
    rays = rays_of(shape)
    if isinstance(shape, SampledShape) and rays.all_affine:
        return shape.samples
    return boundary_points(rays, n)


def _outward(vertices: np.ndarray, triangles: np.ndarray, normals: np.ndarray) -> np.ndarray:
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), normals) < 0
    triangles = triangles.copy()
    triangles[inward] = triangles[inward][:, [0, 2, 1]]
    return triangles


def _disc(radius: float, resolution: int) -> Mesh:
    """A flat disc seen from both sides: two fans over one rim."""
    angle = 2 * np.pi * np.arange(resolution) / resolution
    rim = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(resolution)])
    k = np.arange(1, resolution - 1)
    top = np.column_stack([np.zeros_like(k), k, k + 1])
    return rim, np.vstack([top, top[:, [0, 2, 1]]])


def _patch(normal: np.ndarray, offset: float, size: float) -> Mesh:
    centre = offset * normal
    if len(normal) == 2:
        along = np.array([-normal[1], normal[0]])  # turns left: the body lies on its left side
        return np.array([centre - size * along, centre + size * along]), np.array([[0, 1]])
    t = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    t /= np.linalg.norm(t)
    o = np.cross(normal, t)
    corners = np.array([centre + size * (a * t + b * o) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
    return corners, np.array([[0, 1, 2], [0, 2, 3]])
