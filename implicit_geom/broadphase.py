"""Which pairs a step must consider, and whether a step's motion crossed something.

Prevention, not detection: a pair is left out only while a separating plane proves that its bodies
cannot meet within the step. The bound before the solve uses the velocities at the start; after the
solve it is checked again with the velocities found, and a pair that could have met after all is
added and the step solved again.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.closest_points import halfspace_plane
from implicit_geom.contact_geometry import is_halfspace
from implicit_geom.distance import Closest, closest, separation, track
from implicit_geom.model import Model, State
from shapes.shape import Shape

MARGIN = 1.5  # the first guess at a step's motion is taken this much larger
AHEAD = 20.0  # steps for which a wider set of candidates should last
CROSSING = 1e-3  # overlap on the way, relative to the smaller body, that counts as crossing
MAX_QUERIES = 400


class BroadPhase:
    """Candidate pairs of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.first = np.array([p.first for p in model.pairs], int)
        self.second = np.array([p.second for p in model.pairs], int)
        self.plane = np.array([is_halfspace(model.bodies[p.first].shape) for p in model.pairs], bool)
        self.normals: dict[int, np.ndarray] = {}  # last known separating direction of a pair
        self.thickness = np.array([_thickness(b.shape) for b in model.bodies])
        self.support_error = np.array([b.shape.support_error for b in model.bodies])
        reach = np.where(np.isfinite(model.reach), model.reach, 0.0)
        self.reach = reach

    def motion(self, v: np.ndarray, w: np.ndarray, h: float) -> np.ndarray:
        """A bound on how far any point of one body of a pair moves relative to the other in h; (pairs,)."""
        a, b = self.first, self.second
        spin = np.linalg.norm(w, axis=1) * self.reach
        # an unbounded body that turns sweeps everything
        far = ~np.isfinite(self.model.reach) & (np.linalg.norm(w, axis=1) > 0)
        bound = h * (np.linalg.norm(v[b] - v[a], axis=1) + spin[a] + spin[b])
        return np.where(far[a] | far[b], np.inf, bound)

    def candidates(self, state: State, h: float, loads: np.ndarray) -> list[int]:
        """Pairs that the motion expected from the state at the start might bring together."""
        m = self.model
        pulled = h * h * np.linalg.norm(loads[:, : m.dim], axis=1) / m.mass
        slack = 1e-3 * np.minimum(self.reach[self.first], self.reach[self.second])
        expected = MARGIN * (self.motion(state.v, state.w, h) + pulled[self.first] + pulled[self.second])
        return self.within(state, expected + slack)

    def around(self, state: State, h: float, loads: np.ndarray) -> list[int]:
        """Pairs that bounding spheres and planes do not keep apart for the next few steps."""
        m = self.model
        pulled = h * h * np.linalg.norm(loads[:, : m.dim], axis=1) / m.mass
        ahead = AHEAD * (self.motion(state.v, state.w, h) + pulled[self.first] + pulled[self.second])
        near = []
        for i in self._touching_spheres(state, ahead).tolist():
            if self.plane[i]:
                b = self.second[i]
                n, offset = halfspace_plane(m.placed(state, int(self.first[i])))
                if n @ state.x[b] - offset - m.reach[b] > ahead[i]:
                    continue
            near.append(i)
        return near

    def missed(self, start: State, nu: np.ndarray, h: float, chosen: list[int]) -> list[int]:
        """Pairs outside `chosen` that the motion found could have brought together."""
        dim = self.model.dim
        bound = self.motion(nu[:, :dim], nu[:, dim:], h)
        return [i for i in self.within(start, bound) if i not in set(chosen)]

    def within(self, state: State, bound: np.ndarray) -> list[int]:
        """Pairs not proved to be farther apart than `bound`."""
        near = self._touching_spheres(state, bound)
        return [int(i) for i in near if not self._separated(int(i), state, float(bound[i]))]

    def _touching_spheres(self, state: State, bound: np.ndarray) -> np.ndarray:
        """Pairs whose bounding spheres are no farther apart than `bound`, and all pairs with half-spaces."""
        offset = state.x[self.second] - state.x[self.first]
        apart = np.linalg.norm(offset, axis=1) - self.model.reach[self.first] - self.model.reach[self.second]
        return np.flatnonzero(self.plane | ~(apart > bound))

    def _separated(self, i: int, state: State, bound: float) -> bool:
        """Whether the pair's last separating direction still proves a gap above `bound`."""
        a, b = int(self.first[i]), int(self.second[i])
        if self.plane[i]:
            n, offset = halfspace_plane(self.model.placed(state, a))
            if n @ state.x[b] - offset - self.model.reach[b] > bound:
                return True
        elif i in self.normals:
            n = self.normals[i]
        else:
            n = state.x[b] - state.x[a]
            norm = np.linalg.norm(n)
            if norm == 0:
                return False
            n = n / norm
        if (
            not (self.model.bodies[a].shape.bounded or self.plane[i])
            or not self.model.bodies[b].shape.bounded
        ):
            return False
        gap = separation(self.model.placed(state, a), self.model.placed(state, b), n[None])[0]
        return bool(gap - self.support_error[a] - self.support_error[b] > bound)

    def crossed(
        self, start: State, nu: np.ndarray, h: float, ends: dict[int, tuple[np.ndarray, bool]]
    ) -> int | None:
        """A pair whose bodies pass through each other on the way, though the end may be free of contact.

        `ends` gives each candidate's closest points at the end of the step (geometry unknowns)
        and whether it is closed. A half-space cannot be passed.
        """
        dim = self.model.dim
        motion = self.motion(nu[:, :dim], nu[:, dim:], abs(h))
        for i, (end, closed) in ends.items():
            if not self.plane[i] and self._crosses(i, start, nu, h, float(motion[i]), end, closed):
                return i
        return None

    def _crosses(
        self, i: int, start: State, nu: np.ndarray, h: float, motion: float, end: np.ndarray, closed: bool
    ) -> bool:
        a, b = int(self.first[i]), int(self.second[i])
        thin = min(self.thickness[a], self.thickness[b])
        if closed and motion <= thin / 2:
            return False

        def at(s: float, guess: np.ndarray) -> Closest:
            there = start.advanced(nu, s * h)
            return track(self.model.placed(there, a), self.model.placed(there, b), guess)

        last = at(1.0, end)
        first = closest(self.model.placed(start, a), self.model.placed(start, b), self.normals.get(i))
        # Bodies that touch at one end of the step, on the same side throughout, roll or slide on
        # each other: a little overlap on the way is the step's own error, not a crossing.
        small = CROSSING * min(self.model.size[a], self.model.size[b])
        apart = min(first.points.gap, last.points.gap) > small and not closed
        same_side = float(first.points.normal @ last.points.normal) > 0
        allowed = max(thin / 8, small) if same_side and not apart else small
        intervals = [(0.0, first, 1.0, last)]
        for _ in range(MAX_QUERIES):
            if not intervals:
                return False
            s0, c0, s1, c1 = intervals.pop()
            # the gap changes by at most `motion` per unit of s
            if (c0.points.gap + c1.points.gap - motion * (s1 - s0)) / 2 >= -allowed:
                continue
            middle = (s0 + s1) / 2
            c = at(middle, c0.unknowns if middle - s0 < 0.5 else c1.unknowns)
            if c.points.gap < -allowed:
                return True
            intervals += [(s0, c0, middle, c), (middle, c, s1, c1)]
        return True


def _thickness(shape: Shape) -> float:
    """Half of the bounding box's shortest edge."""
    if not shape.bounded:
        return np.inf
    lower, upper = shape.bounds
    return float(np.min(upper - lower) / 2)
