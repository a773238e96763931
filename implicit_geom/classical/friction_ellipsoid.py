"""The contact problem with the friction ellipsoid [C07, eq. 5] at given wrenches, by semi-smooth Newton.

Unknowns P_n = p_n / m_c and S = E^-1 p_f / m_c of every contact, in m/s, with w = rates + G B W^T p:

    min(P_n, w_n) = 0
    S = Proj(S - E w_f)     on the ball of radius mu max(P_n, 0)           [C07, eq. 5]

G B W^T is the Delassus matrix, contact velocities by impulses; m_c is the inverse of the largest eigenvalue
of the contact's own block of it, so that a step of the projection has the right size.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.solvers.newton import NewtonOptions

# Sticking contacts may share their friction in many ways: a diagonal makes each step the shortest such one;
# smaller ones leave it to rounding.
SHIFT = 1e-8
OPTIONS = NewtonOptions(full_steps=20, damped_steps=40)


class EllipsoidProblem:
    """n contacts with [C07, eqs. 3, 5] as a system for `implicit_geom.solvers.newton`."""

    def __init__(
        self,
        G: np.ndarray,
        BW: np.ndarray,
        rates: np.ndarray,
        mu: np.ndarray,
        e: np.ndarray,
        tolerance: float,
    ) -> None:
        n, c, _ = G.shape
        self.n, self.c, self.mu = n, c, mu
        kept = (e > 0) & (mu > 0)[:, None]
        self.E = np.concatenate([np.ones((n, 1)), np.where(kept, e, 0.0)], axis=1)
        flat = (n * c, -1)
        scaled = self.E.ravel()
        A = scaled[:, None] * (G.reshape(flat) @ BW.reshape(flat).T) * scaled
        own = np.array([A[i * c : i * c + c, i * c : i * c + c] for i in range(n)])
        largest = np.linalg.eigvalsh((own + np.swapaxes(own, 1, 2)) / 2)[:, -1]
        self.m_c = 1 / largest
        self.A = A * np.repeat(self.m_c, c)  # Delassus matrix, scaled: velocities from P and S
        self.q = scaled * rates.ravel()
        self.rho = 1.0  # what a slip counts for against an impulse; the solutions are the same for any
        size = n * c
        self.shift = np.full(size, SHIFT)
        self.proximal = np.ones(size)
        self.tolerance = np.full(size, tolerance)

    def _parts(self, z: np.ndarray) -> tuple[np.ndarray, ...]:
        w = (self.A @ z + self.q).reshape(self.n, self.c)
        x = z.reshape(self.n, self.c)
        y = x[:, 1:] - self.rho * w[:, 1:]
        radius = self.mu * np.maximum(x[:, 0], 0.0)
        norm = np.sqrt(np.maximum(np.sum(y * y, axis=1), 1e-300))
        return x, w, y, radius, norm

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:  # noqa: ARG002 (nothing is smoothed)
        x, w, y, radius, norm = self._parts(z)
        out = np.empty_like(x)
        out[:, 0] = np.minimum(x[:, 0], w[:, 0])
        out[:, 1:] = x[:, 1:] - y * np.minimum(1.0, radius / norm)[:, None]
        return out.ravel()

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        x, w, y, radius, norm = self._parts(z)
        n, c = self.n, self.c
        J = np.zeros((n, c, n * c))
        A = self.A.reshape(n, c, n * c)
        own = np.arange(n)
        open_ = x[:, 0] <= w[:, 0]
        J[:, 0] = np.where(open_[:, None], 0.0, A[:, 0])
        J[own[open_], 0, own[open_] * c] = 1.0
        unit = np.zeros((n, c - 1, n * c))
        for k in range(c - 1):
            unit[own, k, own * c + 1 + k] = 1.0
        dy = unit - self.rho * A[:, 1:]
        inside = norm <= radius
        u = y / norm[:, None]
        # derivative of radius u: u d(radius) + radius / norm (I - u u^T) dy
        across = dy - u[:, :, None] * np.einsum("nk,nkj->nj", u, dy)[:, None, :]
        slid = (radius / norm)[:, None, None] * across
        slid[own[:, None], np.arange(c - 1), (own * c)[:, None]] += (self.mu * (x[:, 0] > 0))[:, None] * u
        J[:, 1:] = unit - np.where(inside[:, None, None], dy, slid)
        return self.residual(z, eps), J.reshape(n * c, n * c)

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        return dz

    def certified(self, z: np.ndarray) -> bool:
        return bool(np.isfinite(z).all())

    def unknowns(self, p: np.ndarray) -> np.ndarray:
        """From impulses (n, c)."""
        safe = np.where(self.E > 0, self.E, 1.0)
        return (np.where(self.E > 0, p / safe, 0.0) / self.m_c[:, None]).ravel()

    def impulses(self, z: np.ndarray) -> np.ndarray:
        """(n, c) p_n and p_f."""
        x = z.reshape(self.n, self.c)
        closed = x[:, 0] > (self.A @ z + self.q).reshape(self.n, self.c)[:, 0]
        return np.where(closed[:, None], self.m_c[:, None] * self.E * x, 0.0)
