"""`nguyen-trinkle`: a vertex against a whole convex shape as one contact [NT12, eqs. 9 to 11].

With psi_i the distances of a vertex from the n facets of a shape at the end of the step, linearised at its
start, and the auxiliary variables c, d, the paper keeps the vertex out of the shape, not out of every
half-space, and lets only the facet press on which it ends:

    0 <= c_j _|_ psi_1 + c_2 + ... + c_j - psi_j >= 0      so that   psi_1 + c_2 + ... + c_n = max psi
    0 <= d_i _|_ d_i + psi_i >= 0                                    d_i = -min(psi_i, 0)
    0 <= lambda_i _|_ d_i + max psi >= 0,     max psi >= 0                                     [NT12, eq. 11]

(as corrected: the last rows all carry psi_1). Friction acts at each facet as in Stewart and Trinkle's scheme.

Deviation: the paper hands (11) to PATH. In it nothing drives a negative maximum to zero (there d_i >= -max
psi, so that lambda_i = 0 is as good as any), and complementary pivoting has nothing to go by. A solution is
a choice of one facet a contact: with it (11) is the linear complementarity problem 0 <= lambda _|_ psi >= 0
of those facets alone, and holds where every facet that presses has the largest psi. So facets are chosen,
first those that the velocities at the start lead to; a contact whose vertex ends outside another facet is
given that one, until none is left; and what is found is held against (11).

`conjunction` is the model that the paper compares with: every facet near a vertex is a contact of its own,

    0 <= lambda_i _|_ psi_i >= 0                                                               [NT12, eq. 12]
"""

from __future__ import annotations

from itertools import islice, product

import numpy as np

from implicit_geom.classical.contacts import Contacts
from implicit_geom.classical.step import ClassicalStep, Key, StepOutcome
from implicit_geom.classical.vertex_finder import FacetRows, VertexFinder
from implicit_geom.model.model import Model
from implicit_geom.scene.switches import Stepper

CHANGES = 50  # times that facets are chosen anew
COMBINATIONS = 500  # of facets that are tried where that goes round in circles
NOTHING = 1e-13  # impulse over the lighter body's mass, over the speeds at hand, that counts as none
SLACK = 1e-9  # over the speeds at hand: rate of a gap that counts as zero


class NguyenTrinkleStep(ClassicalStep):
    """Steps of a planar model, by whole shapes or by the conjunction of their facets."""

    finder: VertexFinder

    def __init__(self, model: Model, stepper: Stepper, tolerance: float) -> None:
        super().__init__(model, stepper, tolerance)
        self.finder = VertexFinder(model, stepper.facets)
        self.conjunction = stepper.scheme == "conjunction"

    def _converge(self, travel: np.ndarray, warm: dict[Key, np.ndarray]) -> StepOutcome | str:
        rows = self.finder.rows(self.state, travel)
        if self.conjunction:
            found = self._solved(rows, np.flatnonzero(rows.close), warm)
            return found if isinstance(found, str) else self._outcome(rows, *found)
        tried: dict[tuple[int, ...], None] = {}
        chosen = rows.largest(self._psi(rows.facets, self.before))
        why = ""
        for _ in range(CHANGES):
            key = tuple(chosen.tolist())
            if key in tried:
                break
            tried[key] = None
            found = self._solved(rows, chosen, warm)
            if isinstance(found, str):
                why = found
                break
            psi, pressing = self._psi(rows.facets, found[0]), found[2][:, 0] > 0
            best = rows.largest(psi)
            wrong = pressing & (psi[best] > SLACK * self.speed)
            if not wrong.any():
                return self._outcome(rows, *found)
            chosen = np.where(wrong, best, chosen)
        return self._enumerate(rows, list(tried), warm, why)

    def _enumerate(
        self, rows: FacetRows, tried: list[tuple[int, ...]], warm: dict[Key, np.ndarray], why: str
    ) -> StepOutcome | str:
        """All combinations of the facets that contacts were given, and of those their vertices are on now."""
        now = rows.largest(rows.facets.gap)
        options = [sorted({*facets, int(k)}) for facets, k in zip(zip(*tried, strict=True), now, strict=True)]
        for combination in islice(product(*options), COMBINATIONS):
            if combination in tried:
                continue
            found = self._solved(rows, np.array(combination, int), warm)
            if isinstance(found, str):
                why = found
                continue
            psi = self._psi(rows.facets, found[0])
            if not np.any((found[2][:, 0] > 0) & (psi[rows.largest(psi)] > SLACK * self.speed)):
                return self._outcome(rows, *found)
        return why or "no choice of facets solves the contacts"

    def _psi(self, facets: Contacts, nu: np.ndarray) -> np.ndarray:
        """(n,) psi over h at the end of the step, linearised: gap / h + W_n^T nu, m/s [NT12, eqs. 1, 11]."""
        return np.asarray(facets.gap / self.h + facets.normal_velocity(nu))

    def _solved(
        self, rows: FacetRows, chosen: np.ndarray, warm: dict[Key, np.ndarray]
    ) -> tuple[np.ndarray, Contacts, np.ndarray, float] | str:
        """Velocities (B, size), contacts, impulses (n, c) with 0 <= lambda _|_ psi >= 0 at the chosen rows.

        [NT12, eq. 12], which is [NT12, eq. 11] where each contact has the facet of its largest psi.
        """
        m = self.model.moving
        u, B = self.momentum.about(self.before[m])
        nu = np.zeros_like(self.before)
        sub = rows.facets.take(chosen)
        if not chosen.size:
            nu[m] = u
            return nu, sub, np.zeros((0, 2)), 0.0
        guess = [warm.get(key) for key in zip(sub.pair.tolist(), sub.feature.tolist(), strict=True)]
        found = self._impulses(sub, sub, sub.gap / self.h, u, B, guess)
        if isinstance(found, str):
            return found
        p, nu[m], error = found
        # an impulse that is rounding does not press
        lighter = np.minimum(self.model.mass[sub.first], self.model.mass[sub.second])
        return nu, sub, np.where((p[:, :1] > NOTHING * self.speed * lighter[:, None]), p, 0.0), error

    def _outcome(
        self, rows: FacetRows, nu: np.ndarray, sub: Contacts, p: np.ndarray, error: float
    ) -> StepOutcome:
        """With the facets from which vertices are farthest out at the end: those tell of overlaps."""
        end = self.finder.at_pose(rows.facets, self.state.advanced(nu, self.h))
        every = rows.facets.take(rows.largest(end.gap))
        if not self.conjunction:
            error = max(error, disjunction_residual(rows, self._psi(rows.facets, nu), sub, p) / self.speed)
        return StepOutcome(nu, sub, sub, every, p, 1, error)


def disjunction_residual(rows: FacetRows, psi: np.ndarray, sub: Contacts, p: np.ndarray) -> float:
    """How far the rows of [NT12, eq. 11] are from holding, m/s; sub and p have one row a contact.

    c and d hold by their definitions; what is left is max psi >= 0, and d_i + max psi = 0 where lambda_i > 0.
    """
    if not len(psi):
        return 0.0
    top = np.maximum.reduceat(psi, rows.first)
    below = float(np.max(-top, initial=0.0))
    keys = {key: k for k, key in enumerate(zip(rows.facets.pair, rows.facets.feature, strict=True))}
    own = np.array([keys[key] for key in zip(sub.pair, sub.feature, strict=True)], int)
    d = np.maximum(-psi[own], 0.0)
    pressed = p[:, 0] > 0
    return max(below, float(np.max(np.abs(d + top[rows.contact[own]])[pressed], initial=0.0)))
