"""The signed gap of two convex sets from their support functions alone, with a proof: an expanding hull.

The differences M = {a - b} have the origin inside where the bodies overlap; minus its depth is the gap. The
hull P of support points of M is inside M: the depth in P is at most that in M, and M's support plane over
any face of P is at least as far as the depth. The bounds meet as points over the nearest faces join P.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import ConvexHull, QhullError

Difference = Callable[[np.ndarray], np.ndarray]  # directions (N, dim) -> points of M farthest along them


def depth_bounds(
    support: Difference, start: np.ndarray, tolerance: float, rounds: int = 60, most: int = 3000
):
    """Lower and upper bound on the depth of the origin within M, and the direction of the upper bound.

    start   (N, dim) unit directions to begin with

    (-inf, upper, direction) where the origin is not within the hull of the points met, or M is flat: then the
    upper bound, the least of M's support function, is minus the largest separation that was seen.
    """
    points = support(start)
    height = np.sum(points * start, axis=1)
    k = int(np.argmin(height))
    upper, best, lower = float(height[k]), start[k], -np.inf
    for _ in range(rounds):
        try:
            hull = ConvexHull(points)
        except QhullError:
            return -np.inf, upper, best
        faces = np.unique(hull.equations, axis=0)
        inner = -faces[:, -1]
        lower = float(inner.min())
        if lower >= upper - tolerance:
            return lower, upper, best
        near = faces[inner < upper - tolerance, :-1]
        near = near[np.argsort(inner[inner < upper - tolerance])][:most]
        more = support(near)
        height = np.sum(more * near, axis=1)
        k = int(np.argmin(height))
        if height[k] < upper:
            upper, best = float(height[k]), near[k]
        points = np.unique(np.vstack([points[hull.vertices], more]), axis=0)
    return lower, upper, best
