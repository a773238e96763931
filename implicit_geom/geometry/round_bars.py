"""Closest points of balls and capsules (discs in the plane): those of their axes, less the radii."""

from __future__ import annotations

import numpy as np

from implicit_geom.model.closest_point_problem import ClosestPoints
from implicit_geom.model.placed_shape import PlacedShape
from implicit_geom.shapes.planar import Disc
from implicit_geom.shapes.spatial import Capsule, Sphere

PARALLEL = 1e-12  # sine squared between axes below which any common perpendicular will do


def is_round(body: PlacedShape) -> bool:
    """Whether all points of a body are within a radius of a point or a line."""
    return isinstance(body.shape, Sphere | Disc | Capsule)


def round_closest(a: PlacedShape, b: PlacedShape) -> ClosestPoints | None:
    """Closest points of two round bodies; None where their axes meet."""
    (p, along_a), (q, along_b) = _axis(a), _axis(b)
    s, t = _parameters(p, along_a, q, along_b)
    between = (q + t * along_b) - (p + s * along_a)
    apart = float(np.linalg.norm(between))
    radius_a, radius_b = float(a.shape.values[0]), float(b.shape.values[0])
    if apart <= 1e-9 * min(radius_a, radius_b):
        return None
    n = between / apart
    one, two = p + s * along_a + radius_a * n, q + t * along_b - radius_b * n
    return ClosestPoints(apart - radius_a - radius_b, one, two, n)


def _axis(body: PlacedShape) -> tuple[np.ndarray, np.ndarray]:
    """The middle of a body's axis, and half of it; world axes."""
    half = body.shape.length / 2 if isinstance(body.shape, Capsule) else 0.0
    return body.x - body.R @ body.com, half * body.R[:, -1]


def _parameters(p: np.ndarray, u: np.ndarray, q: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """s and t in [-1, 1] of the closest points p + s u and q + t w."""
    r = p - q
    uu, ww, uw, ur, wr = float(u @ u), float(w @ w), float(u @ w), float(u @ r), float(w @ r)
    if uu == 0:
        return 0.0, (float(np.clip(wr / ww, -1, 1)) if ww > 0 else 0.0)
    if ww == 0:
        return float(np.clip(-ur / uu, -1, 1)), 0.0
    determinant = uu * ww - uw * uw
    starts = [0.0, -1.0, 1.0]  # nearly parallel axes are nearest at an end
    if determinant > PARALLEL * uu * ww:
        starts = [float(np.clip((uw * wr - ww * ur) / determinant, -1, 1))]
    tried = []
    for s in starts:
        # the best t for s, then the best s for that t: the point is on one of the ends where s was cut
        t = float(np.clip((uw * s + wr) / ww, -1, 1))
        s = float(np.clip((uw * t - ur) / uu, -1, 1))
        tried.append((float(np.linalg.norm(r + s * u - t * w)), s, t))
    _, s, t = min(tried, key=lambda each: each[0])
    return s, t
