"""What a stepper remembers between steps: warm starts of the candidate pairs, and their last normals."""

from __future__ import annotations

import numpy as np

from implicit_geom.equations.tangent import references
from implicit_geom.geometry.broad_phase import BroadPhase
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.many_closest_points import group_closest_points, single_surfaces
from implicit_geom.geometry.over_planes import MovingBody, OverPlanes, only_over_planes
from implicit_geom.model.contact_group import ContactGroup, WarmStart
from implicit_geom.model.model import Model, State
from implicit_geom.scene.scene import Friction

Snapshot = tuple[dict[int, WarmStart], dict[int, np.ndarray]]


class StepperMemory:
    """Warm starts by pair; pairs that are new get their closest points at the start of the step.

    warm      of each candidate pair: its unknowns at the end of the last step
    broad     the broad phase, which keeps the last normals of pairs
    begun     a step was taken, or is remembered from an earlier run
    history   last solutions, kept by `implicit_geom.compiled` to predict the next
    """

    def __init__(self, model: Model, batch: int = 8) -> None:
        self.model = model
        self.batch = batch
        self.broad = BroadPhase(model)
        self.warm: dict[int, WarmStart] = {}
        self.begun = False
        self.history: tuple[float, np.ndarray] | None = None

    def snapshot(self) -> Snapshot:
        """What a solve may change, as it is now."""
        return dict(self.warm), dict(self.broad.normals)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to a snapshot: the next solve starts from the same state again."""
        warm, normals = snapshot
        self.warm, self.broad.normals = dict(warm), dict(normals)

    def widen(self, state: State, h: float) -> None:
        """Keep warm starts for pairs that may matter within a few steps, too."""
        if only_over_planes(self.model):
            self._widen_over_planes(state, abs(h))
            return
        self.add(state, self.broad.pairs_ahead(state, abs(h), self.model.loads(state.time)))

    def _widen_over_planes(self, state: State, h: float) -> None:
        m = self.model
        seen = OverPlanes.of(m, state, MovingBody.of(m, state, m.loads(state.time)))
        for c in np.flatnonzero(seen.ahead(h)[0]).tolist():
            if c not in self.warm:
                self.broad.normals[c] = seen.n[c]
                self.warm[c] = seen.warm_start(m, c)

    def fill(self, state: State, candidates: list[int]) -> None:
        """Have warm starts for the given pairs and no others."""
        self.add(state, candidates)
        for c in self.warm.keys() - set(candidates):
            del self.warm[c]

    def add(self, state: State, candidates: list[int]) -> None:
        """Have warm starts for the given pairs."""
        new = [c for c in candidates if c not in self.warm]
        if len(new) > self.batch:
            self._add_many(state, new)
        for c in new:
            if c not in self.warm:
                self.warm[c] = self.fresh(state, c)

    def _add_many(self, state: State, new: list[int]) -> None:
        """Warm starts of pairs whose closest points are found all at once."""
        pairs = self.model.pairs
        numbers = np.array(new, int)
        templates = pairs.template_numbers(numbers)
        for s in np.unique(templates):
            chosen = numbers[templates == s]
            template = pairs.template(int(s), int(chosen[0]))
            if not single_surfaces(template.kernel):
                continue
            g = ContactGroup(self.model, template.kernel, chosen, [template] * len(chosen))
            guess = state.x[g.second] - state.x[g.first]
            guess /= np.maximum(np.linalg.norm(guess, axis=1), 1e-300)[:, None]
            for k, c in enumerate(chosen.tolist()):
                guess[k] = self.broad.normals.get(c, guess[k])
            u, n, converged = group_closest_points(self.model, g, state, guess)
            unknowns = np.zeros((g.n, g.kernel.layout.size))
            unknowns[:, : u.shape[1]] = u
            for k in np.flatnonzero(converged).tolist():
                c = int(chosen[k])
                self.broad.normals[c] = n[k]
                self.warm[c] = WarmStart(unknowns[k], _reference(template.law, n[k]), 1.0, 1.0)

    def fresh(self, state: State, c: int) -> WarmStart:
        """Closest points of a pair at the start of the step, no impulse."""
        pair = self.model.pairs[c]
        a, b = (self.model.placed(state, piece) for piece in pair.pieces)
        found = find_closest_points(a, b, self.broad.normals.get(c))
        layout = pair.kernel.layout
        u = np.zeros(layout.size)
        u[: layout.geometry] = found.unknowns
        self.broad.normals[c] = found.points.normal
        return WarmStart(u, _reference(pair.law, found.points.normal), 1.0, 1.0)


def _reference(law: Friction, n: np.ndarray) -> np.ndarray:
    """The tangent's reference of a new pair: given, or a world axis across the normal."""
    if law.direction is not None:
        return np.array(law.direction)
    return references(n[None], np.zeros((1, n.size)))[0]
