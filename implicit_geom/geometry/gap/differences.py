"""The set of differences M = {a - b} of two bodies' points, by its support points.

The separation along n is minus M's support function: phi(n) = -h(n), h(n) = max n . m over M.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.model.closest_point_problem import ClosestPoints
from implicit_geom.model.placed_shape import PlacedShape

NEAR = np.array([1e-3, 1e-5, 1e-7])  # rad round a normal, to reach the corners of faces and curved surfaces
ROUNDS = 20  # in which points of a face are looked for
REACHED = 1e-14  # what may be left of their way, over the extent of M
TURNS = 73  # directions round an axis
PARTS = (1.0, 1 / 30, 1e-3, 3e-5)  # of half a turn either way, one after the other
ON_FACE = 1e-9  # below a face, over the extent of M, that counts as on it


@dataclass
class Differences:
    """Support points of two bodies along directions n of the first and -n of the second, relative to their x.

    n          (N, dim) unit directions
    on_a, on_b (N, dim) world axes, m, from the body's x
    """

    a: PlacedShape
    b: PlacedShape
    n: np.ndarray
    on_a: np.ndarray
    on_b: np.ndarray
    exact: bool = False  # support points along other directions are exact, whatever that takes

    @classmethod
    def along(cls, a: PlacedShape, b: PlacedShape, n: np.ndarray, exact: bool = False) -> Differences:
        return cls(a, b, n, a.from_centre(n, exact), b.from_centre(-n, exact), exact)

    @property
    def offset(self) -> np.ndarray:
        """From a.x to b.x."""
        return self.b.x - self.a.x

    @property
    def points(self) -> np.ndarray:
        """Of M."""
        return self.on_a - self.on_b - self.offset

    @property
    def height(self) -> np.ndarray:
        """h(n), minus the separation."""
        return np.einsum("ij,ij->i", self.points, self.n)

    def more(self, n: np.ndarray) -> Differences:
        """The support points along other directions."""
        return Differences.along(self.a, self.b, n, self.exact)

    def joined(self, other: Differences) -> Differences:
        n = np.vstack([self.n, other.n])
        on_a, on_b = np.vstack([self.on_a, other.on_a]), np.vstack([self.on_b, other.on_b])
        return Differences(self.a, self.b, n, on_a, on_b, self.exact)

    def some(self, chosen: np.ndarray) -> Differences:
        parts = (self.n[chosen], self.on_a[chosen], self.on_b[chosen])
        return Differences(self.a, self.b, *parts, self.exact)

    def spaced(self, spacing: float) -> Differences:
        """Without points that are nearly another, over the extent of all."""
        points = self.points
        if spacing > 0:
            points = np.round(points / (spacing * max(float(np.max(np.ptp(points, axis=0))), 1e-300)))
        return self.some(np.unique(points, axis=0, return_index=True)[1])

    def weighed(self, weights: np.ndarray, n: np.ndarray, gap: float) -> ClosestPoints:
        """Closest points as means of support points."""
        return ClosestPoints(gap, self.a.x + weights @ self.on_a, self.b.x + weights @ self.on_b, n)


def best_across(
    a: PlacedShape, b: PlacedShape, normals: list[np.ndarray], turned: bool = True
) -> ClosestPoints:
    """Points across the best of some normals, and of that turned about the bodies' axes."""
    n = np.array([n / np.linalg.norm(n) for n in normals if np.linalg.norm(n) > 0])
    seen = Differences.along(a, b, n)
    if turned and n.shape[1] == 3:
        for part in PARTS:
            best = seen.n[int(np.argmin(seen.height))]
            seen = seen.joined(seen.more(_turned(best, np.hstack([a.R, b.R]).T, part)))
    return across_gap(seen, seen.n[int(np.argmin(seen.height))])


def across_gap(seen: Differences, n: np.ndarray) -> ClosestPoints:
    """Closest points of overlapping bodies across the normal n, as means of support points near it."""
    basis = np.linalg.svd(n[None])[2][1:]
    ring = np.vstack([basis, -basis, (basis[:1] + basis[-1:]) / 2, (basis[:1] - basis[-1:]) / 2])
    around = n + np.kron(NEAR[:, None], ring)
    near = seen.more(np.vstack([n, around / np.linalg.norm(around, axis=1, keepdims=True)]))
    gap = -float(near.height[0])
    extent = float(np.max(np.abs(seen.points)))
    near = near.joined(seen.some(seen.points @ n >= -gap - ON_FACE * extent))
    for _ in range(ROUNDS):
        weights = shortest_weights(near.points + gap * n)
        missing = -(weights @ near.points + gap * n)
        if np.linalg.norm(missing) <= REACHED * extent:
            break
        # the rim of a round face has more points than were met
        towards = n + NEAR[:, None] * missing / np.linalg.norm(missing)
        near = near.some(weights > 0)
        near = near.joined(near.more(towards / np.linalg.norm(towards, axis=1, keepdims=True)))
        weights = np.append(weights[weights > 0], np.zeros(len(NEAR)))
    return near.weighed(weights, n, gap)


def _turned(n: np.ndarray, axes: np.ndarray, part: float) -> np.ndarray:
    """A direction turned about each of some axes, by angles up to a part of half a turn either way."""
    angle = part * np.pi * np.linspace(-1, 1, TURNS)[:, None]
    rows = [
        np.cos(angle) * n + np.sin(angle) * np.cross(axis, n) + (1 - np.cos(angle)) * (axis @ n) * axis
        for axis in axes
    ]
    out = np.vstack(rows)
    return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True))


def shortest_weights(points: np.ndarray) -> np.ndarray:
    """The weights, at least 0 and of sum 1, that make the mean of points the shortest."""
    from scipy.optimize import nnls

    scale = max(float(np.max(np.abs(points))), 1e-300)
    A = np.vstack([points.T / scale, np.ones(len(points))])
    weights = nnls(A, np.append(np.zeros(points.shape[1]), 1.0))[0]
    return np.asarray(weights / weights.sum())
