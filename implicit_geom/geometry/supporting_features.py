"""The flat part of a shape's surface that faces a direction, by its extreme points: a face, a line, a point.

polygon, polyhedron   the side or face at the farthest vertex that faces the direction most
cylinder              points on the rim of an end, or the two ends of a line along its side
cone                  points on the rim of the base, or the line from the rim to the apex
capsule               the two ends of its line, or its end
other shapes          where their support function has a kink, the support points on its two sides
strictly convex ones  the support point
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from implicit_geom.geometry.polytopes import is_polytope, polytope, rings
from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.spatial import Capsule, Cone, Cylinder

RIM = 8  # points that stand for a circle, and one more where it is farthest along a direction
LEVEL = 1e-12  # rad by which a round face may tilt, and points on its rim be apart, that is none
STEEP = np.sqrt(0.5)  # cosine to the axis of a bar from which on its end faces a direction, not its side
FARTHEST = 1e-9  # height below the farthest vertex, over the shape's size, that counts as none
TILT = 1e-5  # rad, to the two sides of a direction
WIDE = 1e-2  # width of a kink, over the shape's size, that is one


def supporting_feature(shape: Shape, d: np.ndarray) -> np.ndarray:
    """(k, dim) extreme points of the part of a bounded shape that faces d, in order round it; its own frame.

    Three and more span a face, two a line (in the plane: a side).
    """
    if isinstance(shape, Moved):
        return supporting_feature(shape.shape, shape.R.T @ d) @ shape.R.T + shape.position
    if is_polytope(shape):
        return _of_polytope(shape, d)
    if isinstance(shape, Cylinder):
        return _of_cylinder(shape, d)
    if isinstance(shape, Capsule):
        return _of_capsule(shape, d)
    if isinstance(shape, Cone):
        return _of_cone(shape, d)
    if shape.strictly_convex:
        return shape.support(d[None])
    return _of_kinks(shape, d)


def has_rim(shape: Shape) -> bool:
    """Whether `RIM` extreme points of a face stand for a circle."""
    if isinstance(shape, Moved):
        return has_rim(shape.shape)
    return isinstance(shape, Cylinder | Cone)


def vertices_of(shape: Shape) -> np.ndarray:
    """(V, dim) all vertices of a polygon or polyhedron, its own frame."""
    return _solid(shape)[0]


def planes_of(shape: Shape) -> np.ndarray:
    """(F, dim + 1) outward normals and offsets of the faces of a polygon or polyhedron, its own frame."""
    return _solid(shape)[1]


@lru_cache(maxsize=1024)
def _solid(shape: Shape) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Vertices, planes, and the vertices of every plane in order."""
    vertices, planes = polytope(shape)
    if shape.dim == 3:
        return vertices, planes, rings(vertices, planes)
    count = len(vertices)
    return vertices, planes, [np.array([i, (i + 1) % count]) for i in range(count)]


def _of_polytope(shape: Shape, d: np.ndarray) -> np.ndarray:
    vertices, planes, faces = _solid(shape)
    height = vertices @ d
    farthest = height >= height.max() - FARTHEST * shape.size
    facing = planes[:, :-1] @ d
    # the most of the farthest vertices first: an edge has two of them
    best = max(range(len(faces)), key=lambda k: (int(farthest[faces[k]].sum()), facing[k]))
    return np.asarray(vertices[faces[best]])


def _of_cylinder(shape: Cylinder, d: np.ndarray) -> np.ndarray:
    if abs(d[2]) > STEEP * np.linalg.norm(d):
        return _rim(shape.radius, np.sign(d[2]) * shape.length / 2, d)
    side = shape.radius * d[:2] / np.linalg.norm(d[:2])
    if shape.length == 0:
        return np.array([[*side, 0.0]])
    return np.array([[*side, -shape.length / 2], [*side, shape.length / 2]])


def _of_capsule(shape: Capsule, d: np.ndarray) -> np.ndarray:
    unit = d / np.linalg.norm(d)
    if abs(unit[2]) > STEEP or shape.length == 0:
        return shape.support(d[None])
    end = np.array([0.0, 0.0, shape.length / 2])
    return shape.radius * unit + np.array([-end, end])


def _of_cone(shape: Cone, d: np.ndarray) -> np.ndarray:
    unit = d / np.linalg.norm(d)
    across = float(np.linalg.norm(unit[:2]))
    side = (shape.height * across + shape.radius * unit[2]) / np.hypot(shape.height, shape.radius)
    if -unit[2] > side:
        return _rim(shape.radius, 0.0, d)
    apex = np.array([0.0, 0.0, shape.height])
    if across == 0:
        return apex[None]
    return np.array([[*(shape.radius * unit[:2] / across), 0.0], apex])


def _rim(radius: float, z: float, d: np.ndarray) -> np.ndarray:
    """Points on a circle about the z axis, and where it is farthest along d, unless that is one of them.

    They keep their places on the body: a face that hardly tilts has no direction of its own.
    """
    angle = 2 * np.pi * np.arange(RIM) / RIM
    across = float(np.hypot(d[0], d[1]))
    if across > LEVEL * abs(d[2]):
        farthest = np.arctan2(d[1], d[0])
        if np.min(np.abs(np.sin((farthest - angle) / 2))) > LEVEL:
            angle = np.append(angle, farthest)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), np.full(angle.size, z)])


def _of_kinks(shape: Shape, d: np.ndarray) -> np.ndarray:
    """Support points for directions tilted to both sides of d, where the support function has a kink."""
    d = d / np.linalg.norm(d)
    count = 1 if shape.dim == 2 else RIM // 2
    basis = np.linalg.svd(d[None])[2][1:]
    angle = np.pi * np.arange(count) / count
    across = (np.column_stack([np.cos(angle), np.sin(angle)]) if shape.dim == 3 else np.ones((1, 1))) @ basis
    both = np.vstack([d + TILT * across, d - TILT * across])
    value = shape.support_value(np.vstack([d[None], both]))
    width = (value[1 : count + 1] + value[count + 1 :] - 2 * value[0]) / TILT
    wide = np.concatenate([width, width]) > WIDE * shape.size
    if not np.any(wide):
        return shape.support(d[None])
    points = shape.support(both[wide])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    same = np.tril(apart < WIDE * shape.size, -1).any(axis=1)
    return np.asarray(points[~same])
