"""The points by which two bodies touch along a line or a face: the extreme points of the patch.

One point carries no moment. The flat part of each body that faces the other (`supporting_features`) is taken;
the face that is the more nearly across the closest points' normal is the plane, and the other body's part,
clipped to the prism over it (`flats`), gives the points, each with its own gap. Two parallel lines have the
two ends of what they share. Elsewhere bodies touch in one point, the closest ones.

A half-space is a face without end: every vertex of a polytope within reach counts there, tilted or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.flats import Flat, opposite
from implicit_geom.geometry.gap.refined_points import OPTIONS
from implicit_geom.geometry.polytopes import is_polytope
from implicit_geom.geometry.round_bars import is_round, round_closest
from implicit_geom.geometry.supporting_features import (
    RIM,
    has_rim,
    planes_of,
    supporting_feature,
    vertices_of,
)
from implicit_geom.model.closest_point_problem import ClosestPoints, ClosestPointSystem
from implicit_geom.model.placed_shape import PlacedShape, halfspace_plane
from implicit_geom.solvers.newton import solve_by_newton

UNALIGNED = 1e-2  # rad between a face and the closest points' normal: edges that cross are steeper
PARALLEL = np.sin(1e-2)  # between two lines that touch along a line
TOUCHING = (
    1e-9  # overlap, over the smaller body's size: a local maximum of the separation is then the largest
)
SAME_ANGLE = 1e-13  # rad, difference that is none
NEARLY = 1e-3  # distance of points, over the extent of a patch, that is little
ON_SIDE = 1e-10  # distance of a point from a side, over the smaller body's size, that is none
EXACT = 1e-11  # by which the least gap of a patch may exceed the closest points', over the same
SAME = 1e-7  # distance of points, and difference of gaps, over the smaller body's size, that is none


@dataclass(frozen=True)
class Patch:
    """k contacts of two bodies with one normal, world axes.

    normal             (dim,) unit, from a to b
    point_a, point_b   (k, dim) on each body, m: point_b = point_a + gap normal
    gap                (k,) m, negative where the bodies overlap
    """

    normal: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray
    gap: np.ndarray

    def joined(self, found: ClosestPoints, least: float) -> Patch:
        """With the closest points, where they are nearer than the rest by `least`, m, for any beside them."""
        gap = float((found.point_b - found.point_a) @ self.normal)
        if gap >= self.gap.min() - least:
            return self
        away = np.linalg.norm(self.point_b - found.point_b, axis=1)
        rest = away > NEARLY * np.max(away, initial=0.0)
        one = found.point_b - gap * self.normal
        points = (np.vstack([self.point_a[rest], one]), np.vstack([self.point_b[rest], found.point_b]))
        return Patch(self.normal, *points, np.append(self.gap[rest], gap))

    def within(self, reach: float) -> Patch:
        """The contacts with a gap of at most `reach`."""
        near = self.gap <= reach
        return Patch(self.normal, self.point_a[near], self.point_b[near], self.gap[near])


def patch_points(a: PlacedShape, b: PlacedShape, reach: float) -> Patch:
    """All points at which two convex bodies are no farther apart than `reach`, m; a half-space comes first.

    They are the extreme points of the patch where the bodies touch, or would after a small motion: 4 of a
    box on a plane, 2 of a lying cylinder, `RIM` of a standing one (and the lowest, where it leans), 1 of
    smooth bodies.
    """
    if is_halfspace(a.shape):
        return _on_plane(a, b).within(reach)
    size = min(a.shape.size, b.shape.size)
    quick = _polytopes(a, b, size)
    if quick is not None:
        return quick.within(reach)
    found = _nearest(a, b)
    if found.gap > reach:
        return _one(found).within(reach)
    on_a, on_b = _feature(a, found.normal), _feature(b, -found.normal)
    patch = _face(on_a, on_b, size) or _lines(a, b, on_a.points, on_b.points, found.normal, size)
    if patch is None or patch.gap.size == 0 or patch.gap.min() > found.gap + SAME * size:
        # (also edges that cross near a face: the closest points are none of its own)
        return _one(found)
    return patch.joined(found, EXACT * size).within(reach)


def _polytopes(a: PlacedShape, b: PlacedShape, size: float) -> Patch | None:
    """The patch of two polytopes that a face keeps apart; None where none does, or they are none.

    The face with the largest separation, and a point of the other body over it at that distance, prove that
    these are closest points.
    """
    if not (is_polytope(a.shape) and is_polytope(b.shape)):
        return None
    best, normal = -TOUCHING * size, None
    for own, other, sign in ((a, b, 1.0), (b, a, -1.0)):
        m, offset = _planes(own)
        apart = (m @ _world(other, vertices_of(other.shape)).T).min(axis=1) - offset
        k = int(np.argmax(apart))
        if apart[k] > best:
            best, normal = float(apart[k]), sign * m[k]
    if normal is None:
        return None
    patch = _face(_feature(a, normal), _feature(b, -normal), size)
    return patch if patch is not None and patch.gap.min(initial=np.inf) <= best + SAME * size else None


def _planes(body: PlacedShape) -> tuple[np.ndarray, np.ndarray]:
    """Outward normals and offsets of a polytope's faces, world axes."""
    planes = planes_of(body.shape)
    m = planes[:, :-1] @ body.R.T
    return m, planes[:, -1] - planes[:, :-1] @ body.com + m @ body.x


def _nearest(a: PlacedShape, b: PlacedShape) -> ClosestPoints:
    """Closest points; those of bodies that touch at once from the line of centres, where that leads there."""
    found = round_closest(a, b) if is_round(a) and is_round(b) else None
    if found is not None:
        return found
    between = b.centre - a.centre
    length = float(np.linalg.norm(between))
    if a.shape.bounded and b.shape.bounded and length > 0:
        system = ClosestPointSystem(a, b)
        s = solve_by_newton(system, next(system.starts(between / length)), OPTIONS, damped=False)
        if s.converged and system.certified(s.z) and system.gap(s.z) >= -TOUCHING * system.length:
            return system.points(s.z)
    return find_closest_points(a, b).points


def _on_plane(a: PlacedShape, b: PlacedShape) -> Patch:
    n, offset = halfspace_plane(a)
    points = _world(b, vertices_of(b.shape)) if is_polytope(b.shape) else _feature(b, -n).points
    if not b.shape.support_exact:
        # (its support points are samples: the closest point is exact)
        points = np.vstack(
            [find_closest_points(a, b).points.point_b, points if len(points) > 1 else points[1:]]
        )
    gap = points @ n - offset
    return Patch(n, points - gap[:, None] * n, points, gap)


def _one(found: ClosestPoints) -> Patch:
    return Patch(found.normal, found.point_a[None], found.point_b[None], np.array([found.gap]))


def _world(body: PlacedShape, points: np.ndarray) -> np.ndarray:
    return np.asarray((points - body.com) @ body.R.T + body.x)


def _feature(body: PlacedShape, d: np.ndarray) -> Flat:
    """The part of a body that faces d, world axes; one point where it is unbounded."""
    if not body.shape.bounded:
        return Flat(np.zeros((1, d.size)), d, False)
    points = supporting_feature(body.shape, body.R.T @ d)
    return Flat(_world(body, points), d, len(points) >= RIM and has_rim(body.shape))


def _face(on_a: Flat, on_b: Flat, size: float) -> Patch | None:
    """The patch of a face and what the other body has over it; None where no face is across the normal."""
    dim = on_a.n.size
    best, plane = UNALIGNED, None
    for own, other, sign in ((on_a, on_b, 1.0), (on_b, on_a, -1.0)):
        if len(own.points) >= dim and len(other.points) >= 2:
            angle = float(np.linalg.norm(own.normal - own.n))
            # (of two that are as good: the one that is no circle, whichever body comes first)
            better = angle < best - SAME_ANGLE
            if better or (plane is not None and plane[0].round and angle < best + SAME_ANGLE):
                best, plane = angle, (own, other, sign)
    if plane is None:
        return None
    own, other, sign = plane
    m = own.normal
    points = _distinct(opposite(own, other, ON_SIDE * size), SAME * size)
    gap = (points - own.points[0]) @ m
    feet = points - gap[:, None] * m
    point_a, point_b = (feet, points) if sign > 0 else (points, feet)
    return Patch(sign * m, point_a, point_b, gap)


def _distinct(points: np.ndarray, same: float) -> np.ndarray:
    """The points without those that are nearly an earlier one."""
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.asarray(points[~np.tril(apart <= same, -1).any(axis=1)])


def _lines(
    a: PlacedShape, b: PlacedShape, on_a: np.ndarray, on_b: np.ndarray, n: np.ndarray, size: float
) -> Patch | None:
    """The patch of two parallel lines in space; None where they are none, or share no more than a point."""
    if len(on_a) != 2 or len(on_b) != 2 or n.size == 2:
        return None
    along, other = on_a[1] - on_a[0], on_b[1] - on_b[0]
    length = float(np.linalg.norm(along))
    along /= length
    if np.linalg.norm(np.cross(along, other)) > PARALLEL * np.linalg.norm(other):
        return None
    s = (on_b - on_a[0]) @ along
    ends = np.clip(s, 0.0, length)
    if abs(ends[1] - ends[0]) <= SAME * size:
        return None
    point_b = on_b[0] + ((ends - s[0]) / (s[1] - s[0]))[:, None] * other
    point_a = on_a[0] + ends[:, None] * along
    gap = (point_b - point_a) @ n
    # Lines that miss each other by w: bodies with radii r_a and r_b across them are w^2 / (2 (r_a + r_b))
    # farther apart, between them; w^2 / (2 r_a) is what the one line is outside the other body.
    out_a = np.maximum([a.violation(p) for p in point_b - gap[:, None] * n], 0.0)
    out_b = np.maximum([b.violation(p) for p in point_a + gap[:, None] * n], 0.0)
    share = out_b / np.maximum(out_a + out_b, 1e-300)
    point_a = (
        point_a + share[:, None] * (point_b - gap[:, None] * n - point_a) - (out_a * share**2)[:, None] * n
    )
    gap = gap + out_a * share
    return Patch(n, point_a, point_a + gap[:, None] * n, gap)
