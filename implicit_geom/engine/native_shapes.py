"""Shapes as plain numbers for the native engine: a primitive, and its place in the shape's frame.

Rectangles, boxes, polygons and polyhedra become POLYTOPE, with vertices, planes and rings. Intersections,
surfaces of formulas and sampled shapes become FOREIGN: Python alone knows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from implicit_geom.geometry.polytopes import is_polytope
from implicit_geom.geometry.supporting_features import _solid
from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.planar import Disc, Ellipse, Superellipse
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.spatial import Capsule, Cone, Cylinder, Ellipsoid, Halfspace, Sphere, Superellipsoid

# numbers of the kinds, as `cpp/geometry.hpp` has them
HALFSPACE, SPHERE, ELLIPSOID, SUPERELLIPSOID, CYLINDER, CAPSULE, CONE, POLYTOPE, FOREIGN = range(9)


@dataclass(frozen=True)
class NativeShape:
    """A primitive in its own frame, and that frame in the shape's: shape point = o + R own point.

    kind       one of the numbers above
    dim        2 or 3; planar shapes lie in z = 0
    par        (4,) parameters, by kind: m, but a normal and an exponent
    size       half of the largest extent, m; inf where unbounded
    inside     (3,) a point well inside, the primitive's frame, m
    R, o       (3, 3) and (3,), m
    vertices   (V, 3) of a POLYTOPE, m
    planes     (F, 4) its outward unit normals and offsets
    ring       (N,) vertices of its faces in order, one face after the other
    start      (F + 1,) where each face starts in `ring`
    """

    kind: int
    dim: int
    par: np.ndarray
    size: float
    inside: np.ndarray
    R: np.ndarray
    o: np.ndarray
    vertices: np.ndarray
    planes: np.ndarray
    ring: np.ndarray
    start: np.ndarray


def native_shape(shape: Shape) -> NativeShape:
    """The plain numbers of a convex shape; of one that the engine does not know the kind is FOREIGN."""
    R, o, own = np.eye(3), np.zeros(3), shape
    if is_polytope(shape):
        return _polytope(shape)
    while isinstance(own, Moved):
        o = o + R @ _in_space(own.position)
        R = R @ _turned(own.R)
        own = own.shape
    kind, par = _primitive(own)
    inside = np.zeros(3) if kind == FOREIGN else _in_space(own.interior)
    empty = np.zeros(0, np.int32)
    size = shape.size if kind == FOREIGN else own.size
    return NativeShape(
        kind, shape.dim, par, size, inside, R, o, np.zeros((0, 3)), np.zeros((0, 4)), empty, empty
    )


def _primitive(shape: Shape) -> tuple[int, np.ndarray]:
    if isinstance(shape, Halfspace):
        return HALFSPACE, np.append(_in_space(shape.normal), shape.offset)
    if isinstance(shape, Sphere | Disc):
        return SPHERE, _padded([shape.r])
    if isinstance(shape, Ellipsoid | Ellipse):
        return ELLIPSOID, _padded(shape.axes)
    if isinstance(shape, Superellipsoid | Superellipse):
        return SUPERELLIPSOID, np.append(_in_space(shape.axes), shape.p)
    if isinstance(shape, Cylinder):
        return CYLINDER, _padded([shape.radius, shape.length])
    if isinstance(shape, Capsule):
        return CAPSULE, _padded([shape.radius, shape.length])
    if isinstance(shape, Cone):
        return CONE, _padded([shape.radius, shape.height])
    return FOREIGN, np.zeros(4)


def _polytope(shape: Shape) -> NativeShape:
    vertices, planes, faces = _solid(shape)
    flat = np.zeros((len(planes), 4))
    flat[:, : shape.dim], flat[:, 3] = planes[:, :-1], planes[:, -1]
    corners = np.zeros((len(vertices), 3))
    corners[:, : shape.dim] = vertices
    return NativeShape(
        POLYTOPE,
        shape.dim,
        np.zeros(4),
        shape.size,
        _in_space(shape.interior),
        np.eye(3),
        np.zeros(3),
        corners,
        flat,
        np.concatenate(faces).astype(np.int32),
        np.cumsum([0, *(len(face) for face in faces)]).astype(np.int32),
    )


def _padded(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """(4,) with zeros at the end."""
    out = np.zeros(4)
    out[: len(values)] = values
    return out


def _in_space(v: np.ndarray) -> np.ndarray:
    """(3,) with z = 0 of a planar vector."""
    return _padded(v)[:3]


def _turned(R: np.ndarray) -> np.ndarray:
    """(3, 3), about z of a planar rotation."""
    out = np.eye(3)
    out[: len(R), : len(R)] = R
    return out
