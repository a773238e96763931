"""The signed gap of two convex bodies from their support points alone, between bounds that meet.

Support points of M = {a - b} (`geometry.gap.differences`) span a polytope P within M.

overlapping   The origin is within M, and the least h(n) is its depth. The nearest face of P is no farther
              than M's surface, h over any face no nearer: support points over the faces that are nearer
              than the least h met are added until the two meet (the expanding polytope algorithm, van den
              Bergen 2001). That is the largest separation of all directions, not merely a local one.
apart         The separation has one maximum, the distance. The shortest vector of P is at least that, and
              the separation along it at most: support points are added along it (Wolfe's method; Gilbert,
              Johnson and Keerthi's).

Both need no derivatives: parallel faces, edges, rims and thin bodies do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.geometry.gap.differences import Differences, across_gap, shortest_weights
from implicit_geom.model.closest_point_problem import ClosestPoints

FACES = 8  # nearest faces over which support points are added at once
ROUNDS = 40  # about 10 are needed, many more where the depth is the same all round (concentric round bodies)
STALLED = 4  # rounds in which rounding keeps the bounds apart
STEPS = 200  # of the shortest vector
SPACINGS = (0.0, 1e-7)  # tried in turn: rounding spoils the hull of points that are very near one another
WIDE_FACES = "Qt Q12"  # Qhull's: faces of points that are nearly in one plane are made one
ROUNDING = 16 * np.finfo(float).eps  # of support points, over the extent of M and the bodies' offset


@dataclass(frozen=True)
class HullGap:
    """The signed gap between two bounds, and points of the bodies across it.

    least, most   the gap is between these, m
    points        gap, closest points and normal, as precise as the bounds are
    normals       (k, dim) of the faces of P over which the gap may be, those with the largest first
    """

    least: float
    most: float
    points: ClosestPoints
    normals: np.ndarray


def hull_gap(seen: Differences, tolerance: float, slack: float = 0.0) -> HullGap:
    """The signed gap to `tolerance`, m, from support points along directions on all sides.

    slack   m by which support points may fall short: as much of `normals` is wanted
    """
    lengths = (np.abs(part).max() for part in (seen.on_a, seen.on_b, seen.offset))
    rounding = ROUNDING * float(sum(lengths))
    tolerance = max(tolerance, rounding)
    if seen.height.min() < -tolerance:
        return _apart(seen, tolerance)
    return _overlapping(seen, tolerance, slack)


def _overlapping(seen: Differences, tolerance: float, slack: float) -> HullGap:
    from scipy.spatial import QhullError  # (here: it takes long to import)

    for spacing in SPACINGS:
        try:
            found = _expanded(seen, tolerance, slack, spacing)
        except QhullError:
            continue
        # (a hull that lost a face to rounding is no hull)
        if found.least <= found.most + tolerance:
            return found
    return _flat(seen)


def _expanded(seen: Differences, tolerance: float, slack: float, spacing: float) -> HullGap:
    """The faces of P that are nearest to the origin, once they are on the surface of M.

    spacing   of the points, over the extent of M, that are told apart
    """
    from scipy.spatial import ConvexHull

    seen = seen.spaced(spacing)
    hull = ConvexHull(seen.points, incremental=True, qhull_options=WIDE_FACES)
    height = seen.height
    upper, best, stalled = float(height.min()), seen.n[int(np.argmin(height))], 0
    before = np.inf
    for _ in range(ROUNDS):
        faces, simplices = hull.equations, hull.simplices
        # M's nearest point is seen from the origin through a triangle of P, and is no nearer than that
        below = np.flatnonzero(-faces[:, -1] < upper - tolerance)
        reach = _distances(seen.points[simplices[below]], faces[below])
        # (unless the origin is beyond the face, outside P as yet)
        reach = np.where(faces[below, -1] > 0, -faces[below, -1], reach)
        open_ = reach < upper - tolerance
        below, reach = below[open_], reach[open_]
        stalled = stalled + 1 if below.size and upper - reach.min() >= before else 0
        if below.size == 0 or stalled == STALLED:
            break
        before = upper - float(reach.min())
        near = below[np.argsort(reach, kind="stable")][:FACES]
        new = seen.more(faces[near, :-1])
        height = new.height
        if height.min() < upper:
            upper, best = float(height.min()), new.n[int(np.argmin(height))]
        seen = seen.joined(new)
        if upper < -tolerance:
            hull.close()
            return _apart(seen, tolerance)
        hull.add_points(new.points)
    faces = hull.equations
    hull.close()
    inner = -faces[:, -1]
    depth = float(inner.min())
    if upper - depth > tolerance:
        best = _lowest(seen, best)
    order = np.argsort(inner, kind="stable")
    order = order[inner[order] <= upper + slack]
    found = across_gap(seen, best)
    return HullGap(min(found.gap, -upper), -depth, found, np.vstack([best, faces[order, :-1]]))


def _distances(triangles: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """(k,) distance of the origin from triangles (segments in the plane) with known planes."""
    count = triangles.shape[1]
    foot = -faces[:, -1:] * faces[:, :-1]
    start, end = triangles, np.roll(triangles, -1, axis=1)
    edge = end - start
    length = np.maximum(np.einsum("kij,kij->ki", edge, edge), 1e-300)
    t = np.clip(-np.einsum("kij,kij->ki", start, edge) / length, 0.0, 1.0)
    to_edge = np.linalg.norm(start + t[:, :, None] * edge, axis=2).min(axis=1)
    if count == 2:
        return np.asarray(to_edge)
    side = np.einsum("kij,kj->ki", np.cross(edge, foot[:, None] - start), faces[:, :-1])
    inside = np.all(side >= 0, axis=1) | np.all(side <= 0, axis=1)
    return np.where(inside, np.abs(faces[:, -1]), to_edge)


def _lowest(seen: Differences, n: np.ndarray) -> np.ndarray:
    """The direction near n with the least h, where that varies but little (concentric round bodies)."""
    from scipy.optimize import minimize

    basis = np.linalg.svd(n[None])[2][1:]

    def height(t: np.ndarray) -> tuple[float, np.ndarray]:
        v = n + t @ basis
        length = float(np.linalg.norm(v))
        v = v / length
        m = seen.more(v[None]).points[0]
        h = float(m @ v)
        return h, basis @ (m - h * v) / length

    t = minimize(height, np.zeros(n.size - 1), jac=True, method="BFGS", options={"gtol": 1e-15}).x
    v = n + t @ basis
    both = np.array([n, v / np.linalg.norm(v)])
    return np.asarray(both[int(np.argmin(seen.more(both).height))])


def _flat(seen: Differences) -> HullGap:
    """Two bodies in one plane, without thickness, or whose hull rounding spoils: the best that was met."""
    points = seen.points
    n = np.linalg.svd(points - points.mean(axis=0), full_matrices=True)[2][-1]
    seen = seen.joined(seen.more(np.array([n, -n])))
    best = seen.n[int(np.argmin(seen.height))]
    found = across_gap(seen, best)
    return HullGap(found.gap, max(found.gap, 0.0), found, best[None])


def _apart(seen: Differences, tolerance: float) -> HullGap:
    best = seen.some(np.argsort(seen.height, kind="stable")[: 2 * seen.n.shape[1]])
    n, least, weights = best.n[0], -np.inf, np.zeros(0)
    for _ in range(STEPS):
        points = best.points
        weights = shortest_weights(points)
        used = weights > 0
        shortest = weights @ points
        most = float(np.linalg.norm(shortest))
        if most <= tolerance:
            break
        n = _across(points[used], -shortest / most)
        new = best.more(n[None])
        least = max(least, -float(new.height[0]))
        if most - least <= tolerance or np.any(np.all(points == new.points, axis=1)):
            break
        best = best.some(used).joined(new)
        weights = np.append(weights[used], 0.0)
    gap = float(-(weights @ best.points) @ n)
    return HullGap(least, gap, best.weighed(weights, n, gap), n[None])


def _across(points: np.ndarray, n: np.ndarray) -> np.ndarray:
    """n made exactly perpendicular to a face or an edge: a short vector is a poor direction."""
    if len(points) > 1:
        edges = points[1:] - points[0]
        along = np.linalg.svd(edges, full_matrices=False)
        kept = along[2][along[1] > 1e-12 * along[1][0]] if along[1][0] > 0 else along[2][:0]
        if len(kept) < n.size:
            n = n - kept.T @ (kept @ n)
    return np.asarray(n / np.linalg.norm(n))
