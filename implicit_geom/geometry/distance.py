"""The public distance query: signed gap, closest points and normal of two convex shapes, or unions of them.

The gap is the largest separation over all directions n (from the first body to the second),

    gap = max_n phi(n),   phi(n) = min_{b in B} n.b - max_{a in A} n.a,

positive when the bodies are apart and minus the least penetration when they overlap. Apart, phi has one
maximum: the best of sampled directions leads there by the closest-point equations [C07, eq. 22], and
`d >= 0` together with multipliers >= 0 proves separation, n being a separating plane. Overlapping bodies, and
those for which that fails, have their gap enclosed by a hull of support points first (`gap.expanding_hull`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.geometry.gap.differences import Differences
from implicit_geom.geometry.gap.expanding_hull import HullGap, hull_gap
from implicit_geom.geometry.gap.refined_points import (
    CLOSE,
    OPTIONS,
    ClosestSolution,
    from_samples,
    refined,
    separated,
)
from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import number, vector
from implicit_geom.interface.errors import CallError, SceneError, SimulationError
from implicit_geom.interface.words import shown
from implicit_geom.model.closest_point_problem import ClosestPoints, ClosestPointSystem
from implicit_geom.model.placed_shape import PlacedShape, halfspace_plane, outward_normals
from implicit_geom.scene.limits import check_place
from implicit_geom.shapes.shape import Shape
from implicit_geom.solvers.newton import follow_path, solve_by_newton

THINNED = 5  # one of so many directions starts a hull
AXES = 4  # sets of axes at the end of the directions


@checked_call(CallError, "distance")
def distance(shape_a: Shape, pose_a: Any, shape_b: Shape, pose_b: Any) -> ClosestPoints:
    """Signed distance of two shapes, with closest points and normal.

    shape_a, shape_b   of `shapes`, of one dimension, at least one of them bounded
    pose_a, pose_b     (position, orientation) of the shape's own frame in the world: m, and a quaternion
                       w, x, y, z, of any length but zero (an angle in rad in the plane)

    gap, m, is negative where they overlap: the least that they have to be moved apart. point_a and point_b,
    m, and the unit normal from a to b are in the world frame. Of unions it is the smallest over all pairs of
    their pieces: where several overlap, the deepest. SceneError for bad input, SimulationError where no
    closest points are found.

    >>> upright = (1, 0, 0, 0)
    >>> c = distance(shapes.sphere(1), ((0, 0, 0), upright), shapes.box(1, 1, 1), ((3, 0, 0), upright))
    >>> round(c.gap, 9), c.point_a.round(9), c.normal.round(9)
    (1.0, array([1., 0., 0.]), array([1., 0., 0.]))
    """
    for label, shape in (("first", shape_a), ("second", shape_b)):
        if not isinstance(shape, Shape):
            raise SceneError(
                f"distance: the {label} shape is {shown(shape)}; give one such as shapes.sphere(1)"
            )
    if shape_a.dim != shape_b.dim:
        raise SceneError(f"distance: a {shape_a.dim}-D and a {shape_b.dim}-D shape cannot be compared")
    a, b = place_shape(shape_a, pose_a), place_shape(shape_b, pose_b)
    if not shape_a.bounded and not shape_b.bounded:
        raise SceneError(
            f"distance: {shape_a.kind} and {shape_b.kind} are both unbounded; give one bounded shape"
        )
    pairs = product(shape_a.pieces, shape_b.pieces)
    return min(
        (_pieces_distance(replace(a, shape=one), replace(b, shape=two)) for one, two in pairs), key=_gap
    )


def _pieces_distance(a: PlacedShape, b: PlacedShape) -> ClosestPoints:
    if is_halfspace(b.shape):
        c = find_closest_points(b, a).points
        return ClosestPoints(c.gap, c.point_b, c.point_a, -c.normal)
    return find_closest_points(a, b).points


def _gap(c: ClosestPoints) -> float:
    return c.gap


def place_shape(shape: Shape, pose: Any) -> PlacedShape:
    """A shape at a pose (position, orientation), both checked."""
    if not isinstance(pose, list | tuple | np.ndarray) or len(pose) != 2:
        kind = "a quaternion w, x, y, z" if shape.dim == 3 else "an angle"
        raise SceneError(f"pose = {shown(pose)} must be a pair ({shape.dim} numbers, {kind})")
    x = vector("pose: position", pose[0], shape.dim)
    check_place("pose: position", x, shape.size)
    if shape.dim == 2:
        return PlacedShape(shape, x, rotation.planar(number("pose: orientation", pose[1])), np.zeros(2))
    turn = vector("pose: orientation", pose[1], 4)
    norm = np.linalg.norm(turn)
    if norm == 0:
        raise SceneError("pose: orientation: the quaternion w, x, y, z must not be zero")
    # (any length: poses often come from other programs, and are not kept)
    return PlacedShape(shape, x, rotation.matrix(turn / norm), np.zeros(3))


def find_closest_points(a: PlacedShape, b: PlacedShape, start: np.ndarray | None = None) -> ClosestSolution:
    """Closest points of two placed shapes; a half-space must come first. `start`: a normal to try first."""
    system = ClosestPointSystem(a, b)
    if start is not None:
        z = separated(system, start)
        if z is not None:
            return ClosestSolution(system.points(z), z)
    if is_halfspace(a.shape) and b.shape.bounded:
        return _closest_to_plane(system)
    if not a.shape.bounded or not b.shape.bounded:
        return _closest_unbounded(system)
    seen = Differences.along(a, b, _directions(a, b))
    z = separated(system, seen.n[int(np.argmin(seen.height))])
    if z is not None:
        return ClosestSolution(system.points(z), z)
    short = a.shape.support_error + b.shape.support_error
    thinned = _thinned(seen)
    if short > 0:
        z = from_samples(system, hull_gap(thinned, max(CLOSE * system.length, 0.1 * short), short), short)
        if z is not None:
            return ClosestSolution(system.points(z), z)
        thinned = replace(thinned, exact=True)
    return refined(system, hull_gap(thinned, CLOSE * system.length))


def _thinned(seen: Differences) -> Differences:
    """Fewer of the support points, the best of them included, for a hull that is quick to expand."""
    rest = np.arange(THINNED, len(seen.n), THINNED)
    best = np.argsort(seen.height, kind="stable")[:THINNED]
    return seen.some(np.unique([*best, *rest, *range(len(seen.n) - AXES * seen.a.shape.dim, len(seen.n))]))


def _closest_to_plane(system: ClosestPointSystem) -> ClosestSolution:
    """Closest points of a half-space and a bounded body: the support point against its normal."""
    n, offset = halfspace_plane(system.a)
    point = system.b.support(-n[None])[0]
    short = system.b.shape.support_error
    for exact in (False, True) if short > 0 else (False,):
        if exact:
            point = system.b.x + system.b.from_centre(-n[None], exact)[0]
        gap = float(n @ point - offset)
        hull = HullGap(gap, gap, ClosestPoints(gap, point - gap * n, point, n), n[None])
        z = from_samples(system, hull, short) if short > 0 and not exact else None
        if z is not None:
            return ClosestSolution(system.points(z), z)
    return refined(system, hull)


def _closest_unbounded(system: ClosestPointSystem) -> ClosestSolution:
    """Closest points where one shape is unbounded: from its constraints' normals at the other's centre."""
    a, b = system.a, system.b
    normals = outward_normals(a, b.centre) if b.shape.bounded else -outward_normals(b, a.centre)
    found = []
    for n in normals:
        for z0 in system.starts(n):
            for attempt in (solve_by_newton, follow_path):
                s = attempt(system, z0, OPTIONS)
                if s.converged and system.certified(s.z):
                    found.append((system.gap(s.z), s.z))
                    break
        if found and found[-1][0] >= 0:
            break
    if not found:
        raise SimulationError(f"closest points of {a.shape.kind} and {b.shape.kind} not found")
    z = max(found, key=lambda item: item[0])[1]
    return ClosestSolution(system.points(z), z)


def track_closest_points(a: PlacedShape, b: PlacedShape, guess: np.ndarray) -> ClosestSolution:
    """Closest points near those of a neighbouring pose; keeps to the branch where bodies overlap slightly."""
    system = ClosestPointSystem(a, b)
    s = solve_by_newton(system, guess, OPTIONS, damped=False)
    if s.converged and system.certified(s.z):
        return ClosestSolution(system.points(s.z), s.z)
    return find_closest_points(a, b)


def _directions(a: PlacedShape, b: PlacedShape) -> np.ndarray:
    """Directions on all sides, that of the centres first, and the axes of the bodies."""
    centre = b.centre - a.centre
    norm = np.linalg.norm(centre)
    rows = [_sphere(a.shape.dim), a.R.T, -a.R.T, b.R.T, -b.R.T]
    return np.vstack([centre[None] / norm, *rows] if norm > 0 else rows)


@lru_cache
def _sphere(dim: int, count: int = 600) -> np.ndarray:
    """Directions spread evenly over the circle or the sphere (Fibonacci lattice)."""
    i = np.arange(count) + 0.5
    if dim == 2:
        angle = 2 * np.pi * i / count
        return np.column_stack([np.cos(angle), np.sin(angle)])
    z = 1 - 2 * i / count
    azimuth = np.pi * (1 + 5**0.5) * i
    rho = np.sqrt(1 - z * z)
    return np.column_stack([rho * np.cos(azimuth), rho * np.sin(azimuth), z])
