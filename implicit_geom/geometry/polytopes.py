"""Polygons and polyhedra by their vertices and planes."""

from __future__ import annotations

import numpy as np

from implicit_geom.model.pieces import is_polytope
from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.planar import Rectangle
from implicit_geom.shapes.polyhedra import Polyhedron
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.spatial import Box

__all__ = ["is_polytope", "polytope", "rings"]

ON_PLANE = 1e-9  # distance of a vertex from its face's plane, over the body's size


def polytope(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, dim) and planes (F, dim + 1), outward normals and offsets, in the shape's frame.

    In the plane counter-clockwise, side i from vertex i to vertex i + 1.
    """
    if isinstance(shape, Moved):
        vertices, planes = polytope(shape.shape)
        n = planes[:, :-1] @ shape.R.T
        return vertices @ shape.R.T + shape.position, np.column_stack([n, planes[:, -1] + n @ shape.position])
    if isinstance(shape, Rectangle | Box):
        shape = shape.faceted(8)
    if isinstance(shape, Polyhedron):
        return shape.vertices, shape.planes
    corners = shape.vertices  # type: ignore[attr-defined]
    edge = np.roll(corners, -1, axis=0) - corners
    n = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.linalg.norm(edge, axis=1)[:, None]
    return corners, np.column_stack([n, np.sum(n * corners, axis=1)])


def rings(vertices: np.ndarray, planes: np.ndarray) -> list[np.ndarray]:
    """The vertices of every face of a polyhedron, in order round its outward normal."""
    slack = ON_PLANE * float(np.max(np.ptp(vertices, axis=0)))
    out = []
    for plane in planes:
        on = np.flatnonzero(np.abs(vertices @ plane[:3] - plane[3]) <= slack)
        across = np.linalg.svd(plane[None, :3])[2][1:]
        if np.linalg.det(np.vstack([across, plane[:3]])) < 0:
            across = across[::-1]
        flat = (vertices[on] - vertices[on].mean(axis=0)) @ across.T
        out.append(on[np.argsort(np.arctan2(flat[:, 1], flat[:, 0]))])
    return out
