"""Friction pyramids and the linear complementarity problem of Stewart and Trinkle [C07, section I; MJ14].

With directions d_j on the friction ellipsoid, in a contact's own axes (t, o, r),

    p_f = sum_j beta_j d_j,   beta >= 0
    0 <= p_n    _|_  a_n = rate of the gap                    >= 0
    0 <= beta_j _|_  d_j . slip + sigma                       >= 0
    0 <= sigma  _|_  mu p_n - sum_j beta_j                    >= 0

[AH02, eqs. 4, 6]. In the plane there are two directions and the pyramid is the ellipsoid. Rates are linear in
the impulses by the Delassus matrix G B W^T, which `PyramidProblem.problem` forms.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.classical.contacts import Contacts
from implicit_geom.solvers import lcp


def directions(c: Contacts, count: int, aligned: bool, nu: np.ndarray) -> np.ndarray:
    """(n, k, components) corners of the contacts' pyramids at mu p_n = 1; nu are the velocities at the start.

    In space `count` of them lie on the ellipse of t and o, the first one along t, or `aligned`: along the
    slip at the start, as the ellipsoid's own friction would be; two more are for spinning where e_r > 0.
    """
    if c.e.shape[1] == 1:
        return c.e[:, None, :] * np.array([[[1.0], [-1.0]]])
    phase = np.zeros(len(c))
    if aligned:
        slip = c.e * c.slip(nu)
        phase = np.arctan2(slip[:, 1], slip[:, 0])
    angle = phase[:, None] + 2 * np.pi * np.arange(count) / count
    out = np.zeros((len(c), count + 2, 3))
    out[:, :count, 0], out[:, :count, 1] = np.cos(angle), np.sin(angle)
    out[:, count, 2], out[:, count + 1, 2] = 1.0, -1.0
    out *= c.e[:, None, :]
    return out if np.any(c.e[:, 2]) else out[:, :count]


class PyramidProblem:
    """The problem of n contacts, of which those with friction have k directions each.

    Unknowns in order: p_n (n), beta (f, k), sigma (f).
    """

    def __init__(self, D: np.ndarray, mu: np.ndarray) -> None:
        self.n, self.k = len(mu), D.shape[1]
        self.with_friction = np.flatnonzero((mu > 0) & np.any(D, axis=(1, 2)))
        self.D, self.mu = D[self.with_friction], mu[self.with_friction]
        self.f = self.with_friction.size
        self.size = self.n + self.f * (self.k + 1)
        self.beta = slice(self.n, self.n + self.f * self.k)
        self.sigma = slice(self.n + self.f * self.k, self.size)

    def rows(self, G: np.ndarray) -> np.ndarray:
        """Rows (n, 1 + components, V) of the contacts' axes -> (n + f k, V) of the unknowns'."""
        turned = self.D @ G[self.with_friction, 1:]
        return np.concatenate([G[:, 0], turned.reshape(-1, G.shape[2])])

    def problem(self, G: np.ndarray, BW: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M and q of the LCP [AH02, eqs. 6, 7], velocities eliminated.

        From G, B W^T of the same shape, and the rates (n, 1 + components) without impulses. M begins with the
        Delassus matrix along n and the directions.
        """
        n, f, k = self.n, self.f, self.k
        M, q = np.zeros((self.size, self.size)), np.zeros(self.size)
        inner = n + f * k
        M[:inner, :inner] = self.rows(G) @ self.rows(BW).T
        own = np.arange(f)
        each = n + own[:, None] * k + np.arange(k)
        M[each, (inner + own)[:, None]] = 1.0
        M[(inner + own)[:, None], each] = -1.0
        M[inner + own, self.with_friction] = self.mu
        q[:n] = rates[:, 0]
        q[n:inner] = (self.D @ rates[self.with_friction, 1:, None]).ravel()
        return M, q

    def impulses(self, z: np.ndarray) -> np.ndarray:
        """(n, 1 + components) p_n, p_t, p_o, p_r."""
        out = np.zeros((self.n, 1 + self.D.shape[2]))
        out[:, 0] = z[: self.n]
        beta = z[self.beta].reshape(self.f, self.k)
        out[self.with_friction, 1:] = np.einsum("fk,fkc->fc", beta, self.D)
        return out

    def start(self, p: np.ndarray, slip: np.ndarray) -> np.ndarray:
        """Unknowns near impulses and slips that are known: the impulse goes to the nearest direction."""
        z = np.zeros(self.size)
        z[: self.n] = p[:, 0]
        if self.f:
            own = p[self.with_friction, 1:]
            along = np.einsum("fkc,fc->fk", self.D, own)
            best = np.argmax(along, axis=1)
            rows = np.arange(self.f)
            square = np.sum(self.D[rows, best] ** 2, axis=1)
            z[self.n + rows * self.k + best] = along[rows, best] / np.where(square > 0, square, 1.0)
            speeds = np.einsum("fkc,fc->fk", self.D, slip[self.with_friction])
            z[self.sigma] = np.maximum(np.max(-speeds, axis=1), 0.0)
        return z


def single_contact(A: np.ndarray, rates: np.ndarray, mu: float, e: float) -> tuple[float, float] | None:
    """p_n and p_t of one contact in the plane, in closed form; None where no case is clearly the one.

    A (2, 2) gives the rates of an impulse: open, stick, or slide towards either side.
    """
    (a, b), (c, d) = A.tolist()
    r_n, r_t = rates.tolist()
    if r_n >= 0:
        return 0.0, 0.0
    limit = mu * e
    if limit > 0:
        det = a * d - b * c
        if det > 0:
            p_n, p_t = (b * r_t - d * r_n) / det, (c * r_n - a * r_t) / det
            if abs(p_t) <= limit * p_n:
                return p_n, p_t
    for side in (1.0, -1.0) if r_t >= 0 else (-1.0, 1.0):  # of the slip
        share = -side * limit
        across = a + b * share
        if across > 0:
            p_n = -r_n / across
            if side * (r_t + (c + d * share) * p_n) >= 0 or limit == 0:
                return p_n, share * p_n
    return None


def solve_pyramids(
    pyramids: PyramidProblem,
    G: np.ndarray,
    BW: np.ndarray,
    rates: np.ndarray,
    p: np.ndarray,
    slip: np.ndarray,
) -> tuple[np.ndarray | None, int, float, str]:
    """Impulses (n, 1 + components) or None, the solver's iterations, its error, and why there are none.

    Lemke's method from the guess (p, slip); where it fails, the semi-smooth one.
    """
    M, q = pyramids.problem(G, BW, rates)
    iterations = 0
    z0 = pyramids.start(p, slip)
    for solver in ("lemke", "semismooth"):
        found = lcp.solve_lcp(M, q, z0=z0, solver=solver)
        iterations += found.iterations
        if found.converged:
            return pyramids.impulses(np.maximum(found.z, 0.0)), iterations, found.error, ""
    return None, iterations, found.error, f"the complementarity problem is not solved ({found.reason})"
