"""The subproblems of Anitescu and Hart: LCP0, and its successive convex relaxations LCP1 and LCP2.

LCP0   [AH02, eqs. 6, 7], the step itself by Lemke's method: nonconvex, and hard for large piles
LCP1   [AH02, eqs. 15 to 19], Gamma = mu Lambda(nu) by fixed point: converges for small friction
LCP2   one such iteration from Gamma = 0: right where nothing slips; a contact that slides at speed lambda
       separates at mu lambda while it presses, which is its only error

Bodies move with the velocity found, q+ = q (+) h nu. Deviation: there is no projection on the constraints at
the end of a step; the gap at its start enters with its sign, so that an overlap is taken back in the next
one. Discs and half-planes need neither: their true gap is never below the linearised one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from implicit_geom.classical.contacts import Contacts
from implicit_geom.classical.friction_pyramid import PyramidProblem
from implicit_geom.classical.quadratic_program import QuadraticProgram
from implicit_geom.solvers import lcp

MODELS = ("LCP0", "LCP1", "LCP2")


@dataclass(frozen=True)
class Subproblem:
    """One step, linear in the velocities of the m moving bodies: nu = u + B W p.

    D (n, k, components) corners of the friction pyramids, u (m, s), B (m, s, s) symmetric, h (s).
    """

    contacts: Contacts
    D: np.ndarray
    u: np.ndarray
    B: np.ndarray
    moving: np.ndarray  # (m,) bodies
    h: float

    @property
    def delta(self) -> np.ndarray:
        """(n,) gap / h, m/s [AH02, after eq. 7]."""
        return self.contacts.gap / self.h

    def restricted_to(self, rows: np.ndarray) -> Subproblem:
        """The same step with the chosen contacts, in their order."""
        return replace(self, contacts=self.contacts.take(rows), D=self.D[rows])


@dataclass(frozen=True)
class SubproblemOutcome:
    """The end of a subproblem; `error` is that of the linear complementarity problem that was solved last.

    p (n, 1 + components) impulses p_n, p_t (p_o, p_r); slip (n,) is Lambda [AH02, eq. 17];
    separation (n,) the normal velocity error mu lambda - Gamma of contacts that press, zero for others.
    """

    nu: np.ndarray  # (m, s)
    p: np.ndarray
    slip: np.ndarray
    separation: np.ndarray
    error: float
    iterations: int  # pivots of LCP0, quadratic programs of LCP1 and LCP2
    history: list[float]  # changes of Lambda between them, m/s
    reason: str = ""  # why it is no solution


def solve_subproblem(
    problem: Subproblem, model: str = "LCP2", *, limit: int = 10_000, tolerance: float = 1e-5
) -> SubproblemOutcome:
    """LCP0 [AH02, eqs. 6, 7], LCP1 or LCP2 [AH02, eqs. 15 to 19].

    LCP0 in `limit` pivots at most; LCP1 in `limit` rounds, until Lambda changes by `tolerance`, m/s.
    """
    matrices = _Matrices(problem)
    return _direct(matrices, limit) if model == "LCP0" else _relaxed(matrices, model, limit, tolerance)


class _Matrices:
    """The subproblem in y, nu = u + L y with B = L L'; T (n (1 + components), V) are its contacts' axes."""

    def __init__(self, problem: Subproblem) -> None:
        from scipy import sparse

        c, moving = problem.contacts, problem.moving
        self.problem, self.c = problem, c
        n, size = len(c), problem.u.shape[1]
        self.parts = 1 + problem.D.shape[2]
        self.L = np.linalg.cholesky(problem.B)
        place = np.full(max(moving.max(), c.first.max(initial=0), c.second.max(initial=0)) + 1, -1)
        place[moving] = np.arange(moving.size)
        entries, rows, columns = [], [], []
        self.rates = np.zeros((n, self.parts))  # velocities along the axes at nu = u
        for body, W in zip((c.first, c.second), c.wrenches(), strict=True):
            free = np.flatnonzero(place[body] >= 0)
            own, b = W[free, : self.parts], place[body[free]]
            self.rates[free] += (own @ problem.u[b][:, :, None])[:, :, 0]
            entries.append((own @ self.L[b]).ravel())
            row = free[:, None] * self.parts + np.arange(self.parts)
            column = b[:, None] * size + np.arange(size)
            rows.append(np.broadcast_to(row[:, :, None], (free.size, self.parts, size)).ravel())
            columns.append(np.broadcast_to(column[:, None, :], (free.size, self.parts, size)).ravel())
        shape = (n * self.parts, moving.size * size)
        joined = (np.concatenate(rows), np.concatenate(columns))
        self.T = sparse.csr_matrix((np.concatenate(entries), joined), shape=shape)

    def velocities(self, y: np.ndarray) -> np.ndarray:
        u = self.problem.u
        return u + (self.L @ y.reshape(u.shape)[:, :, None])[:, :, 0]

    def along(self, y: np.ndarray) -> np.ndarray:
        """(n, 1 + components) velocities along the contacts' axes."""
        return self.rates + (self.T @ y).reshape(self.rates.shape)

    def slip(self, y: np.ndarray) -> np.ndarray:
        """(n,) Lambda(nu) = max_i d_i' nu, with e_t, e_o, e_r in d_i [AH02, eq. 17]."""
        return (self.problem.D @ self.along(y)[:, 1:, None])[:, :, 0].max(axis=1, initial=0.0)

    def ended(
        self,
        p: np.ndarray,
        gamma: np.ndarray,
        *,
        error: float,
        iterations: int,
        history: list[float],
        reason: str = "",
    ) -> SubproblemOutcome:
        """All that follows from the impulses."""
        y = self.T.T @ p.ravel()
        slip = self.slip(y)
        pressed = p[:, 0] > 1e-9 * p[:, 0].max(initial=0.0)
        separation = np.where(pressed, self.c.mu * slip - gamma, 0.0)
        nu = self.velocities(y)
        return SubproblemOutcome(nu, p, slip, separation, error, iterations, history, reason)


def direct_problem(problem: Subproblem) -> tuple[np.ndarray, np.ndarray]:
    """M and q of LCP0 in the unknowns of `PyramidProblem` [AH02, eqs. 6, 7], velocities eliminated."""
    return _direct_problem(_Matrices(problem), PyramidProblem(problem.D, problem.contacts.mu))


def _direct_problem(m: _Matrices, pyramids: PyramidProblem) -> tuple[np.ndarray, np.ndarray]:
    G = m.T.toarray().reshape(len(m.c), m.parts, -1)
    rates = m.rates.copy()
    rates[:, 0] += m.problem.delta
    return pyramids.problem(G, G, rates)


def _direct(m: _Matrices, limit: int) -> SubproblemOutcome:
    pyramids = PyramidProblem(m.problem.D, m.c.mu)
    found = lcp.solve_lcp(*_direct_problem(m, pyramids), limit=limit)
    p = pyramids.impulses(np.maximum(found.z, 0.0))
    reason = "" if found.converged else f"LCP0 is not solved: {found.reason}"
    # (at a solution a contact that presses does not separate: Gamma = mu Lambda)
    gamma = m.c.mu * m.slip(m.T.T @ p.ravel())
    return m.ended(p, gamma, error=found.error, iterations=found.iterations, history=[], reason=reason)


def _relaxed(m: _Matrices, model: str, limit: int, tolerance: float) -> SubproblemOutcome:
    """Gamma = mu Lambda(nu) by fixed point [AH02, eqs. 15, 17, 19; section 4 A, steps 4 to 7]."""
    from scipy import sparse

    n, k = m.problem.D.shape[:2]
    corners = np.concatenate([np.ones((n, k, 1)), m.c.mu[:, None, None] * m.problem.D], axis=2)
    program = QuadraticProgram(sparse.csr_matrix(sparse.block_diag(list(corners)) @ m.T))
    base = (corners @ m.rates[:, :, None])[:, :, 0] + m.problem.delta[:, None]
    gamma, last = np.zeros(n), np.zeros(n)
    history: list[float] = []
    reason = ""
    while True:
        found = program.solve((base + gamma[:, None]).ravel())
        slip = m.slip(found.y)
        history.append(float(abs(slip - last).max(initial=0.0)))
        if not found.converged:
            reason = f"the quadratic program is not solved: error {found.error:.1e}"
        elif model == "LCP1" and history[-1] > tolerance:
            if len(history) < limit:
                gamma, last = m.c.mu * slip, slip
                continue
            reason = (
                f"LCP1 has not converged in {limit} rounds: Lambda still changes by {history[-1]:.1e} m/s"
            )
        break
    p = np.einsum("nk,nkc->nc", found.theta.reshape(n, k), corners)
    return m.ended(p, gamma, error=found.error, iterations=len(history), history=history, reason=reason)
