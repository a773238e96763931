"""The tables of shapes that the tests run over."""

from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.rotation import unit

SPATIAL = [
    shapes.sphere(0.7),
    shapes.ellipsoid(0.5, 0.4, 0.3),
    shapes.superellipsoid(0.5, 1.0, 0.8, 4),
    shapes.superellipsoid(0.5, 1.0, 0.8, 2.5),
    shapes.cylinder(0.4, 1.5),
    shapes.capsule(0.3, 1.2),
    shapes.cone(0.6, 1.1),
    shapes.box(0.3, 0.5, 0.9),
    shapes.polyhedron([(0, 0, 0), (1, 0, 0), (0, 2, 0), (0.2, 0.3, 1.5), (1, 1, 0.7)]),
]
PLANAR = [
    shapes.disc(0.7),
    shapes.ellipse(0.5, 1.3),
    shapes.superellipse(0.5, 1.0, 5),
    shapes.polygon([(0, 0), (2, 0), (2.5, 1), (1, 2), (-0.5, 0.8)]),
    shapes.regular_polygon(7, 0.8),
    shapes.rectangle(0.3, 0.9),
]
QUATERNION = tuple(unit((0.8, 0.3, -0.4, 0.1)).tolist())
MOVED = [
    shapes.cone(0.6, 1.1).moved((0.4, -0.2, 0.1), QUATERNION),
    shapes.ellipse(0.5, 1.3).moved((0.4, -0.2), 0.7),
]
CUT = [
    shapes.intersection(shapes.ellipsoid(0.5, 0.4, 0.3), shapes.halfspace((0, 0, 1))),
    shapes.intersection(shapes.cylinder(0.4, 1), shapes.sphere(0.5), shapes.halfspace((1, 2, 3), 0.2)),
    shapes.intersection(shapes.disc(1), shapes.halfplane((1, 1), 0.3)),
    shapes.surface("(x/a)**2 + (y/b)**4 + z**2 - 1", a=1, b=2),
    shapes.surface("cosh(x) + y**4 - 2", dim=2),
]
CLOSED_FORM = SPATIAL + PLANAR + MOVED
BOUNDED = CLOSED_FORM + CUT
UNBOUNDED = [
    shapes.halfspace((0, 1, 2), 0.3),
    shapes.halfplane((1, 2), 0.3),
    shapes.intersection(shapes.halfspace((0, 0, 1)), shapes.halfspace((1, 0, 1), 0.2)),
    shapes.surface("x**2 + y**2 - z"),
]


def name(shape: Any) -> str:
    return f"{shape.kind}{shape.dim}"


def directions(dim: Any, n: int = 200, seed: int = 0) -> np.ndarray:
    """Random unit vectors, (n, dim)."""
    v = np.random.default_rng(seed).normal(size=(n, dim))
    return v / np.linalg.norm(v, axis=1, keepdims=True)
