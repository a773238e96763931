"""Broad phase: which pairs a step must consider, and whether bodies cross on the way (tunnelling).

Prevention, not detection: a pair is left out only while a separating plane proves that its bodies
cannot meet within the step. The bound before the solve uses the velocities at the start; after the
solve it is checked again with the velocities found, and a pair that could have met after all is
added and the step solved again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.equations.thresholds import CROSSING
from implicit_geom.geometry.distance import ClosestSolution, find_closest_points, track_closest_points
from implicit_geom.geometry.supports import Supports, overlapping_spheres
from implicit_geom.model.model import Model, State

MARGIN = 1.5  # the first guess at a step's motion is taken this much larger
AHEAD = 20.0  # steps for which a wider set of candidates should last
ROLLING = 1 / 8  # the same over their thickness for bodies that touch at one end and stay on their sides
MAX_QUERIES = 400
ALONE = 8  # candidates that are quicker looked at one by one
PARTS = (4, 16)  # of a step, in which bodies that pass each other are looked at together
NEAR = 0.1  # of a pair's motion in the step: those that may come this close are likely to touch
FEW = 2000  # pairs that are quicker looked at one and all than found in a tree


class BroadPhase:
    """Candidate pairs of a model; of no more than `few` pairs all are looked at, of more those in a tree."""

    def __init__(self, model: Model, few: int = FEW) -> None:
        self.model = model
        self.few = few
        self.normals: dict[int, np.ndarray] = {}  # last known separating direction of a pair
        self.support_error = np.array([shape.support_error for shape in model.pieces.shapes])
        self.reach = np.where(np.isfinite(model.reach), model.reach, 0.0)
        self.supports = Supports(model)
        self._bounded = np.isfinite(model.reach)  # (B,) bodies
        self._alone = 0 if model.pairs.have_seams else ALONE  # (closest points of corners take long)
        self._all: np.ndarray | None = None

    def motion(self, v: np.ndarray, w: np.ndarray, h: float, pairs: np.ndarray) -> np.ndarray:
        """A bound on how far any point of one body of a pair moves relative to the other in h; (pairs,)."""
        a, b = self.model.pairs.sides(pairs)
        spin = np.linalg.norm(w, axis=1) * self.reach
        # an unbounded body that turns sweeps everything
        far = ~np.isfinite(self.model.reach) & (np.linalg.norm(w, axis=1) > 0)
        bound = h * (np.linalg.norm(v[b] - v[a], axis=1) + spin[a] + spin[b])
        return np.where(far[a] | far[b], np.inf, bound)

    def _travel(self, v: np.ndarray, w: np.ndarray, h: float) -> np.ndarray:
        """(B,) The motion of a pair is at most the sum of these of its bodies, but for unbounded ones."""
        moving = self.model.moving
        spread = v - (v[moving].mean(axis=0) if moving.size == len(v) else 0.0)
        return np.asarray(h * (np.linalg.norm(spread, axis=1) + np.linalg.norm(w, axis=1) * self.reach))

    def candidates(self, state: State, h: float, loads: np.ndarray) -> list[int]:
        """Pairs that the motion expected from the state at the start might bring together."""
        m = self.model
        pulled = h * h * np.linalg.norm(loads[:, : m.dim], axis=1) / m.mass
        travel = MARGIN * (self._travel(state.v, state.w, h) + pulled) + 1e-3 * self.reach
        near = self._near(state, travel)
        return self._within(state, near, self.expected(state, h, loads, near)).tolist()

    def expected(self, state: State, h: float, loads: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        """(pairs,) How far the bodies of pairs may come towards each other in h, with a margin; m."""
        m = self.model
        a, b = m.pairs.sides(pairs)
        pulled = h * h * np.linalg.norm(loads[:, : m.dim], axis=1) / m.mass
        slack = 1e-3 * np.minimum(self.reach[a], self.reach[b])
        return np.asarray(MARGIN * (self.motion(state.v, state.w, h, pairs) + pulled[a] + pulled[b]) + slack)

    def within(self, state: State, reach: float) -> list[int]:
        """Pairs not proved to be farther apart than `reach`, m."""
        near = self._near(state, np.full(len(state.x), reach))
        return self._within(state, near, np.full(len(near), reach)).tolist()

    def likely(self, state: State, h: float, loads: np.ndarray, candidates: list[int]) -> list[int]:
        """Those of the candidates that would come close if nothing touched.

        The rest is found by `missed` where the motion does not rule it out.
        """
        m, dim = self.model, self.model.dim
        numbers = np.array(candidates, int)
        nu = np.column_stack([state.v, state.w])
        nu[:, :dim] += h * loads[:, :dim] / m.mass[:, None]
        end = state.advanced(nu, h)
        a, b = m.pairs.sides(numbers)
        i, j = m.pairs.pieces(numbers)
        known = m.pieces.bounded[i] & m.pieces.bounded[j]
        pulled = h * h * np.linalg.norm(loads[:, :dim], axis=1) / m.mass
        close = NEAR * self.motion(state.v, state.w, h, numbers) + pulled[a] + pulled[b]
        between = end.x[b] - end.x[a]
        normals = [self.normals.get(c, n) for c, n in zip(candidates, between, strict=True)]
        apart = np.full(len(numbers), -np.inf)
        for direction in (between, np.array(normals).reshape(between.shape)):
            n = direction[known] / np.maximum(np.linalg.norm(direction[known], axis=1), 1e-300)[:, None]
            extent = self.supports(end, j[known], -n) + self.supports(end, i[known], n)
            apart[known] = np.maximum(apart[known], -extent)
        return numbers[~(apart > close)].tolist()

    def pairs_ahead(self, state: State, h: float, loads: np.ndarray) -> list[int]:
        """Pairs that bounding spheres and planes do not keep apart for the next few steps."""
        m = self.model
        pulled = h * h * np.linalg.norm(loads[:, : m.dim], axis=1) / m.mass
        near = self._near(state, AHEAD * (self._travel(state.v, state.w, h) + pulled))
        a, b = m.pairs.sides(near)
        ahead = AHEAD * (self.motion(state.v, state.w, h, near) + pulled[a] + pulled[b])
        return near[self._touching(state, near, ahead)].tolist()

    def missed(self, start: State, nu: np.ndarray, h: float, chosen: list[int]) -> list[int]:
        """Pairs outside `chosen` that the motion found could have brought together."""
        dim = self.model.dim
        v, w = nu[:, :dim], nu[:, dim:]
        near = np.setdiff1d(self._near(start, self._travel(v, w, h)), chosen)
        return self._within(start, near, self.motion(v, w, h, near)).tolist()

    def overlapping(self, state: State, allowed: float) -> list[int]:
        """Pairs not proved to overlap by no more than that part of the smaller body."""
        near = self._near(state, np.zeros(len(state.x)))
        i, j = self.model.pairs.pieces(near)
        bound = -allowed * np.minimum(self.model.pieces.size[i], self.model.pieces.size[j])
        return self._within(state, near, bound).tolist()

    def _near(self, state: State, travel: np.ndarray) -> np.ndarray:
        """Pairs of bodies whose bounding spheres, larger by `travel`, meet, or that are unbounded; sorted."""
        pairs, pieces = self.model.pairs, self.model.pieces
        if len(pairs) <= self.few:
            if self._all is None:
                self._all = np.arange(len(pairs))
            return self._all
        # (rounding of the tree's distances must not lose a pair)
        radius = (1 + 1e-9) * (np.where(self._bounded, self.model.reach, 0.0) + travel)
        i, j = overlapping_spheres(state.x, radius, np.flatnonzero(self._bounded))
        unbounded = np.flatnonzero(~self._bounded)
        for k, u in enumerate(unbounded):
            rest = np.setdiff1d(np.arange(len(state.x)), unbounded[: k + 1])
            i, j = np.append(i, np.minimum(rest, u)), np.append(j, np.maximum(rest, u))
        fixed = np.ones(len(state.x), bool)
        fixed[self.model.moving] = False
        kept = ~(fixed[i] & fixed[j])
        return np.sort(pairs.number(*pieces.of_pairs(i[kept], j[kept])))

    def _touching(self, state: State, near: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """Whether spheres, or a sphere and a half-space, are no farther apart than `bound`."""
        m = self.model
        a, b = m.pairs.sides(near)
        apart = np.linalg.norm(state.x[b] - state.x[a], axis=1) - m.reach[a] - m.reach[b]
        plane = m.pairs.against_halfspaces(near)
        if np.any(plane):
            n, offset = self.supports.planes(state, m.pairs.pieces(near[plane])[0])
            apart[plane] = np.einsum("ki,ki->k", n, state.x[b[plane]]) - offset - m.reach[b[plane]]
        return np.asarray(~(apart > bound))

    def _within(self, state: State, near: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """Of the pairs `near`, those not proved to be farther apart than `bound`.

        The proof is the pair's last separating direction, or the line of centres.
        """
        touching = self._touching(state, near, bound)
        near, bound = near[touching], bound[touching]
        a, b = self.model.pairs.sides(near)
        plane = self.model.pairs.against_halfspaces(near)
        n = state.x[b] - state.x[a]
        norm = np.linalg.norm(n, axis=1)
        n /= np.where(norm > 0, norm, 1.0)[:, None]
        offset = np.zeros(len(near))
        i, j = self.model.pairs.pieces(near)
        if np.any(plane):
            n[plane], offset[plane] = self.supports.planes(state, i[plane])
        for k, c in enumerate(near.tolist()):
            if c in self.normals and not plane[k]:
                n[k] = self.normals[c]
                norm[k] = 1.0
        bounded = self.model.pieces.bounded
        known = (bounded[i] | plane) & bounded[j] & ((norm > 0) | plane)
        gap = np.full(len(near), -np.inf)
        gap[known] = -self.supports(state, j[known], -n[known]) - offset[known]
        both = known & ~plane
        gap[both] -= self.supports(state, i[both], n[both])
        return near[~(gap - self.support_error[i] - self.support_error[j] > bound)]

    def crossed(
        self, start: State, nu: np.ndarray, h: float, ends: dict[int, tuple[np.ndarray, bool]]
    ) -> int | None:
        """A pair whose bodies pass through each other on the way, though the end may be free of contact.

        `ends` gives each candidate's closest points at the end of the step (geometry unknowns)
        and whether it is closed. A half-space cannot be passed.
        """
        dim = self.model.dim
        numbers = np.array(list(ends), int)
        motion = self.motion(nu[:, :dim], nu[:, dim:], abs(h), numbers)
        i, j = self.model.pairs.pieces(numbers)
        thickness = self.model.pieces.thickness
        # a closed pair that moves by less than half its thickness cannot have passed
        closed = np.array([pressed for _, pressed in ends.values()], bool)
        safe = closed & (motion <= np.minimum(thickness[i], thickness[j]) / 2)
        safe |= self.model.pairs.against_halfspaces(numbers)
        if len(numbers) > self._alone:
            doubtful = np.flatnonzero(~safe)
            last = [ends[c][0] for c in numbers[doubtful].tolist()]
            safe[doubtful] = self._kept_apart(start, nu, h, numbers[doubtful], closed[doubtful], last)
        for k in np.flatnonzero(~safe).tolist():
            c = int(numbers[k])
            if self._crosses(c, start, nu, h, float(motion[k]), *ends[c]):
                return c
        return None

    def _kept_apart(
        self,
        start: State,
        nu: np.ndarray,
        h: float,
        pairs: np.ndarray,
        closed: np.ndarray,
        ends: list[np.ndarray],
    ) -> np.ndarray:
        """Whether a direction separates the bodies of a pair, but for what is no crossing, all step long.

        What is none, `_crosses` says. Along a fixed direction the separation is at least the smaller of those
        at both ends of a time, less what the bodies' turning by angles theta in it adds to their extent in
        between, reach (1 - cos(theta / 2)). Tried are the last normal and the line of centres for the whole
        step; then, for each of more and more parts of it, a direction between the normals of its ends.
        """
        end = start.advanced(nu, h)
        pieces = self.model.pieces
        i, j = self.model.pairs.pieces(pairs)
        known = pieces.bounded[i] & pieces.bounded[j]
        i, j = i[known], j[known]
        a, b = pieces.owner[i], pieces.owner[j]
        mean = (start.x[b] - start.x[a] + end.x[b] - end.x[a]) / 2
        first, last = mean.copy(), mean.copy()
        for k, at in enumerate(np.flatnonzero(known).tolist()):
            c = int(pairs[at])
            first[k] = self.normals.get(c, mean[k])
            last[k] = ends[at][self.model.pairs[c].kernel.layout.at["n"]]
        theta = np.minimum(abs(h) * np.linalg.norm(nu[:, self.model.dim :], axis=1), np.pi)
        small = CROSSING * np.minimum(pieces.size[i], pieces.size[j])
        rolling = np.maximum(np.minimum(pieces.thickness[i], pieces.thickness[j]) * ROLLING, small)
        allowed = np.where(closed[known], rolling, small)

        def separated(m: np.ndarray, direction: np.ndarray, early: State, late: State, share: float) -> Any:
            """Of the pairs m, those that `direction` keeps apart between two states."""
            turned = (self.reach * (1 - np.cos(share * theta / 2)))[pieces.owner] + self.support_error
            unit = direction / np.maximum(np.linalg.norm(direction, axis=1), 1e-300)[:, None]
            gap = np.full(m.size, np.inf)
            for state in (early, late):
                extent = self.supports(state, j[m], -unit) + self.supports(state, i[m], unit)
                gap = np.minimum(gap, -extent)
            return gap >= turned[i[m]] + turned[j[m]] - allowed[m]

        apart = np.zeros(len(a), bool)
        for direction in (first, mean):
            m = np.flatnonzero(~apart)
            apart[m] = separated(m, direction[m], start, end, 1.0)
        for parts in PARTS:
            m = np.flatnonzero(~apart)
            early = start
            for k in range(parts):
                late = start.advanced(nu, h * (k + 1) / parts)
                s = (k + 0.5) / parts
                m = m[separated(m, (1 - s) * first[m] + s * last[m], early, late, 1 / parts)]
                early = late
            apart[m] = True
        proved = np.zeros(len(pairs), bool)
        proved[known] = apart
        return proved

    def _crosses(
        self, c: int, start: State, nu: np.ndarray, h: float, motion: float, end: np.ndarray, closed: bool
    ) -> bool:
        i, j = self.model.pairs[c].pieces
        pieces = self.model.pieces
        at_seam = self.model.pairs.at_seam(c)
        thin = min(pieces.thickness[i], pieces.thickness[j])

        def at(s: float, guess: np.ndarray) -> ClosestSolution:
            there = start.advanced(nu, s * h)
            return track_closest_points(self.model.placed(there, i), self.model.placed(there, j), guess)

        last = at(1.0, end)
        first = find_closest_points(
            self.model.placed(start, i), self.model.placed(start, j), self.normals.get(c)
        )
        # Bodies that touch at one end of the step, on the same side throughout, roll or slide on
        # each other: a little overlap on the way is the step's own error, not a crossing.
        small = CROSSING * min(pieces.size[i], pieces.size[j])
        apart = min(first.points.gap, last.points.gap) > small and not closed
        same_side = float(first.points.normal @ last.points.normal) > 0
        allowed = max(ROLLING * thin, small) if same_side and not apart else small
        intervals = [(0.0, first, 1.0, last)]
        for _ in range(MAX_QUERIES):
            if not intervals:
                return False
            s0, c0, s1, c1 = intervals.pop()
            # the gap changes by at most `motion` per unit of s
            if (c0.points.gap + c1.points.gap - motion * (s1 - s0)) / 2 >= -allowed:
                continue
            middle = (s0 + s1) / 2
            found = at(middle, c0.unknowns if middle - s0 < 0.5 else c1.unknowns)
            if found.points.gap < -allowed and at_seam:
                # corners that pass each other flush: the branch it came from is not the nearest any more
                there = start.advanced(nu, middle * h)
                found = find_closest_points(self.model.placed(there, i), self.model.placed(there, j))
            if found.points.gap < -allowed:
                return True
            intervals += [(s0, c0, middle, found), (middle, found, s1, c1)]
        return True
