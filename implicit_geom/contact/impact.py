"""An impact: the jump of the velocities at one pose, by one impulse at every point that is closed there.

    M (nu+ - nu-) = H p,   u = H^T nu,   friction of the whole p_t within mu p_n against the slip u_t+

    newton      0 <= p_n _|_ u_n+ + e u_n- >= 0,  u_n- = min(0, normal velocity before)
    poisson     compression:    0 <= p_c,n _|_ u_n >= 0, from u- to u_c
                decompression:  0 <= p_d,n - e p_c,n _|_ u_n+ >= 0, from u_c to u+;   p = p_c + p_d
    energetic   as poisson with one k for all contacts in place of e, such that the normal work of the
                decompression is sum_i e_i^2 times that of the compression of contact i [Stronge 1990]

In Poisson's two phases each has friction of its own, against the slip at its end (AH02). Newton's law can
gain energy where there is friction (Kane and Levinson 1985), Poisson's where a contact slips back: they are
taken at their word, and the ledger shows it. The energetic law never gains; where friction takes what k would
add, e takes its place, reduced by one factor for all contacts to the largest that gains none.
No such law tells how a row of touching balls parts (Newton's cradle): all of them are solved at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from implicit_geom.contact.contact_rows import ContactRows, mass_and_free_velocity
from implicit_geom.contact.decompression import decompression
from implicit_geom.geometry.patch_points import Patch
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution
from implicit_geom.solvers.contact.solve import solve_contact

TOLERANCE = 1e-13  # of the law, over the speeds at hand
CLOSER = 6  # factorisations for it
ENOUGH = 1e-9  # a residual above which there is no solution
LARGEST = 64.0  # k
GAIN = 1e-13  # of the kinetic energy, that counts as none


@dataclass(frozen=True)
class Impact:
    """What an impact does, contact by contact.

    rows       the contacts
    before     (n_c, d) velocities u-, m/s
    after      (n_c, d) u+
    impulse    (n_c, d) p, N s
    bounce     (n_c,) e u_n-, m/s; of newton alone
    velocity   (n,) of the moving bodies after it
    residual   of the law, over the speeds at hand
    """

    rows: ContactRows
    before: np.ndarray
    after: np.ndarray
    impulse: np.ndarray
    bounce: np.ndarray
    velocity: np.ndarray
    residual: float
    iterations: int
    compression: np.ndarray | None = None  # (n_c, d) of the impulse, where the law has two phases

    @property
    def gain(self) -> float:
        """Kinetic energy gained, J."""
        return float(np.sum(self.impulse * (self.before + self.after))) / 2


def solve_closely(problem: ContactProblem, speed: float, start: np.ndarray | None = None) -> ContactSolution:
    """A solution as close as rounding allows, over the speeds at hand; none where it is not within ENOUGH.

    Sticking contacts of one body have laws that contradict each other by rounding: no search for more.
    """
    if speed == 0 or not problem.contacts:
        return solve_contact(problem, start=start)
    found = solve_contact(problem, tolerance=ENOUGH * speed, start=start)
    if not found.converged or found.error <= TOLERANCE * speed:
        return found
    closer = solve_contact(
        problem, "pssn", tolerance=TOLERANCE * speed, start=found, budget=CLOSER, sweeps=False
    )
    return min(found, closer, key=lambda s: s.error)


class ImpactProblem:
    """The contacts that are closed at a state, with the velocities there before an impact."""

    def __init__(self, model: Model, state: State, found: list[tuple[Pair, Patch]], h: float = 0.0) -> None:
        """`h`: the time for which loads act, s."""
        self.rows = rows = ContactRows(model, state, found)
        M, v = mass_and_free_velocity(model, state, h, model.loads(state.time))
        self.before = rows.velocity()
        self.H, self.M, self.v = rows.directions(), M, v
        each = abs(self.H).T @ np.abs(v)
        self.speed = max(
            float(np.max(each, initial=0.0)), float(np.max(np.abs(self.before), initial=0.0)), 1e-300
        )
        self.scale = float(v @ (M @ v)) / 2
        self.slow = np.zeros(rows.count)  # m/s: a contact that would part at less has no restitution

    def solve(self, law: str, restitution: bool = True) -> Impact | None:
        """The impact by a law; without restitution if asked. None where no solution is found."""
        e = self.rows.restitution if restitution else np.zeros(self.rows.count)
        e = np.where(-e * self.before[:, 0] > self.slow, e, 0.0)
        if not np.any(e):
            return self._newton(np.zeros(self.rows.count))
        if law == "newton":
            return self._newton(e)
        compressed = self._newton(np.zeros(self.rows.count))
        if compressed is None:
            return None
        first = compressed
        if law == "poisson":
            return self._decompressed(first, e)
        return self._energetic(first, e)

    def _newton(self, e: np.ndarray) -> Impact | None:
        bounce = e * np.minimum(self.before[:, 0], 0.0)
        w = np.zeros_like(self.before)
        w[:, 0] = bounce
        problem = ContactProblem(
            M=self.M,
            H=self.H,
            v_free=self.v,
            w=w.ravel(),
            mu=self.rows.mu,
            e=self.rows.axes(),
            dim=self.rows.dim,
        )
        found = solve_closely(problem, self.speed)
        residual = found.error / self.speed
        if residual > ENOUGH:
            return None
        return self._impact(
            found.impulse.reshape(w.shape), found.velocity, bounce, residual, found.iterations
        )

    def _decompressed(self, first: Impact, k: np.ndarray) -> Impact | None:
        """Poisson's second phase after the first."""
        d = self.rows.dim
        W = self.H.T @ np.linalg.solve(self.M.toarray(), self.H.toarray())
        least = k * first.impulse[:, 0]
        p, residual = decompression(W, first.after, least, self.rows.mu, self.rows.axes(), self.speed)
        if residual > ENOUGH:
            return None
        whole = first.impulse + p.reshape(-1, d)
        velocity = self.v + np.linalg.solve(self.M.toarray(), self.H @ whole.ravel())
        impact = self._impact(whole, velocity, np.zeros(self.rows.count), residual, first.iterations)
        return replace(impact, compression=first.impulse)

    def _impact(
        self, p: np.ndarray, velocity: np.ndarray, bounce: np.ndarray, residual: float, iterations: int
    ) -> Impact:
        after = (self.H.T @ velocity).reshape(p.shape) + self._driven()
        return Impact(self.rows, self.before, after, p, bounce, velocity, residual, iterations)

    def _driven(self) -> np.ndarray:
        """What bodies that do not move by impulses add to the contacts' velocities."""
        return self.before - (self.H.T @ self.v).reshape(self.before.shape)

    def _without_gain(self, at: Callable[[float], Impact | None]) -> Impact | None:
        """`at(s)` for the largest s <= 1 that gains no energy."""
        allowed = GAIN * self.scale
        whole = at(1.0)
        if whole is None or whole.gain <= allowed:
            return whole
        found: dict[float, Impact] = {}

        def excess(s: float) -> float:
            impact = at(s)
            if impact is None:
                return np.inf
            if impact.gain <= allowed:
                found[s] = impact
            return impact.gain - allowed / 2

        if excess(0.0) >= 0:
            return found.get(0.0)
        brentq(excess, 0.0, 1.0, xtol=1e-14, rtol=1e-14)
        return found[max(found)]

    def _energetic(self, first: Impact, e: np.ndarray) -> Impact | None:
        """Poisson's phases with the k that returns e^2 of the normal work."""
        absorbed = -first.impulse[:, 0] * (first.before[:, 0] + first.after[:, 0]) / 2
        wanted = float(np.sum(e**2 * absorbed))
        bouncy = (e > 0).astype(float)

        def returned(k: float) -> float:
            impact = self._decompressed(first, k * bouncy)
            if impact is None:
                return np.nan
            p = impact.impulse[:, 0] - first.impulse[:, 0]
            return float(np.sum(p * (first.after[:, 0] + impact.after[:, 0]))) / 2

        if wanted <= returned(0.0):
            return self._decompressed(first, 0.0 * bouncy)
        high = 1.0
        while returned(high) < wanted and high < LARGEST:
            high *= 2
        if not returned(high) >= wanted:
            # (friction takes what k would add)
            return self._without_gain(lambda s: self._decompressed(first, s * e))
        k = float(brentq(lambda k: returned(k) - wanted, 0.0, high, xtol=1e-14, rtol=1e-14))
        return self._without_gain(lambda s: self._decompressed(first, s * k * bouncy))
