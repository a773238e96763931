"""Separation and overlap of polytopes, whatever contacts a step has looked at.

Contacts of polytopes are vertices and faces, so that bodies which cross like a plus sign have none. After
every step the separation of all polytopes that are near each other is computed anew,

    max over unit n of  min n . (x_2 - x_1),    x_1 in the first, x_2 in the second

negative where they overlap: in the plane over the normals of their sides, in space by coal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from implicit_geom.classical.contact_finder import ContactFinder
from implicit_geom.model.model import Model, State

PASSED = 1 / 4  # overlap over the thinner body's thickness, half its least extent: no contact any more
MET = 1e-6  # the same over the smaller body's size at the end of a step whose gap is that of the end
SAMPLES = 32  # poses within a step that are looked at


@dataclass(frozen=True)
class Overlap:
    """The separation of a pair of polytopes at a pose."""

    pair: int
    first: int  # bodies
    second: int
    gap: float  # m
    normal: np.ndarray  # from first to second
    point: np.ndarray  # of the second one, world


class Overlaps:
    """Looks at the polytopes of a model."""

    def __init__(self, model: Model, finder: ContactFinder) -> None:
        self.model, self.finder = model, finder
        self.cornered = np.array([len(finder.corners(p)[0]) > 0 for p in range(len(model.pieces.shapes))])
        self.any = int(self.cornered.sum()) > 1

    def pairs(self, state: State, travel: np.ndarray) -> np.ndarray:
        """Numbers of the pairs of polytopes that are within `travel` (B,) of each other."""
        near = self.finder.near(state, travel)
        i, j = self.model.pairs.pieces(near)
        return np.asarray(near[self.cornered[i] & self.cornered[j]])

    def at(self, state: State, pairs: np.ndarray) -> list[Overlap]:
        """Each pair's separation."""
        find = self._planar if self.model.dim == 2 else self._spatial
        i, j = self.model.pairs.pieces(pairs)
        return [find(state, *row) for row in zip(pairs.tolist(), i.tolist(), j.tolist(), strict=True)]

    def _planar(self, state: State, pair: int, i: int, j: int) -> Overlap:
        owner = self.model.pieces.owner
        best = (-np.inf, np.zeros(2), np.zeros(2))
        for one, two, sign in ((i, j, 1.0), (j, i, -1.0)):
            a, b = int(owner[one]), int(owner[two])
            V, planes = self.finder.corners(two)[0], self.finder.corners(one)[1]
            points = V @ state.R[b].T + state.x[b]
            n = planes[:, :-1] @ state.R[a].T
            above = (points - state.x[a]) @ n.T - planes[:, -1]
            face = int(np.argmax(above.min(axis=0)))
            lowest = int(np.argmin(above[:, face]))
            gap = float(above[lowest, face])
            if gap > best[0]:
                foot = points[lowest] if sign > 0 else points[lowest] - gap * n[face]
                best = (gap, sign * n[face], foot)
        return Overlap(pair, int(owner[i]), int(owner[j]), *best)

    def _spatial(self, state: State, pair: int, i: int, j: int) -> Overlap:
        from implicit_geom.classical.polyhedron_contacts import closest_polyhedra

        gap, n, _, point = closest_polyhedra(self.finder.surfaces, state, i, j)  # (of a single piece each)
        return Overlap(pair, i, j, gap, n, point)

    def passed(self, start: State, nu: np.ndarray, h: float, fastest: np.ndarray, exact: bool) -> str:
        """Why a step is none: bodies are inside each other, on the way or, for `exact` gaps, at the end."""
        if not self.any:
            return ""
        pairs = self.pairs(start, h * fastest)
        if not pairs.size:
            return ""
        i, j = self.model.pairs.pieces(pairs)
        thickness, owner = self.model.pieces.thickness, self.model.pieces.owner
        thin = np.minimum(thickness[i], thickness[j])
        size = np.minimum(self.model.size[owner[i]], self.model.size[owner[j]])
        motion = h * (fastest[owner[i]] + fastest[owner[j]])
        count = min(SAMPLES, max(1, math.ceil(float(np.max(2 * motion / thin)))))
        for k in range(1, count + 1):
            there = start.advanced(nu, k / count * h)
            allowed = np.minimum(MET * size, PASSED * thin) if exact and k == count else PASSED * thin
            for found, depth in zip(self.at(there, pairs), allowed, strict=True):
                if found.gap < -depth:
                    names = [repr(self.model.names[b]) for b in (found.first, found.second)]
                    return (
                        f"tunnelling: {' and '.join(names)} are {-found.gap:.3g} m inside each other "
                        f"{'at the end of' if k == count else 'within'} the step; take a shorter one"
                    )
        return ""
