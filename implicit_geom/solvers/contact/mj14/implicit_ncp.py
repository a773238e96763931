"""Contact with the exact cone in unknowns z = v - F that satisfy its law by themselves [MJ14, eqs. 26 to 35].

    F_n = max(0, -z_n),   F_t = -s z_t,   s = min(1, mu F_n / |z_t|),   v = F + z
    Phi_b = (A F)_b + r_b,      Phi_u = (A F)_u + r_u - v                     F with p_b in front

The form is Todorov's [T10, eqs. 10 to 15]. Errata of (35): the derivative of F_t with respect to z_t is -I
where it sticks (printed 0 for one entry), that of F_n is -1 for z_n < 0, else 0, and m_f = mu F_n / |z_t|.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.solvers.contact.mj14.operational_space import operational_space
from implicit_geom.solvers.contact.problem import ContactProblem


class ImplicitNCP:
    """Phi and its Jacobian in x = (p_b, z), of size n_b + d n_c."""

    def __init__(self, problem: ContactProblem, *, scaled: bool = False) -> None:
        self.problem = problem
        self.space = operational_space(problem, scaled=scaled)

    def _contacts(self, x: np.ndarray) -> np.ndarray:
        return x[self.space.bilateral :].reshape(self.problem.contacts, self.problem.dim)

    def forces(self, x: np.ndarray) -> np.ndarray:
        """(n_c, d) F of the unknowns, the normal first [MJ14, eq. 26]."""
        z = self._contacts(x)
        F = np.zeros_like(z)
        F[:, 0] = np.maximum(-z[:, 0], 0.0)
        for rows, mu in self.problem.coefficients:
            F[:, rows] = -self._share(z[:, rows], mu * F[:, 0])[:, None] * z[:, rows]
        return F

    @staticmethod
    def _share(z_t: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """s = min(1, mu F_n / |z_t|)."""
        length = np.linalg.norm(z_t, axis=1)
        return np.where(length > limit, limit / np.where(length > 0, length, 1.0), 1.0)

    def phi(self, x: np.ndarray) -> np.ndarray:
        """(n_b + d n_c,) residuals [MJ14, eq. 32]."""
        n_b = self.space.bilateral
        F = self.forces(x).ravel()
        out = self.space.A @ np.concatenate([x[:n_b], F]) + self.space.r
        out[n_b:] -= F + x[n_b:]
        return np.asarray(out)

    def force_jacobian(self, x: np.ndarray) -> np.ndarray:
        """(n_c, d, d) dF/dz of each contact [MJ14, eq. 35]."""
        z = self._contacts(x)
        n_c, d = z.shape
        out = np.zeros((n_c, d, d))
        closed = z[:, 0] < 0
        out[closed, 0, 0] = -1.0
        F_n = np.maximum(-z[:, 0], 0.0)
        for rows, mu in self.problem.coefficients:
            z_t = z[:, rows]
            s = self._share(z_t, mu * F_n)
            length = np.linalg.norm(z_t, axis=1)
            e = z_t / np.where(length > 0, length, 1.0)[:, None]
            slips = length > mu * F_n
            along = np.where(slips, s, 0.0)[:, None, None] * (e[:, :, None] * e[:, None, :])
            out[:, rows, rows] = along - s[:, None, None] * np.eye(z_t.shape[1])
            out[:, rows, 0] = np.where(slips & closed, mu, 0.0)[:, None] * e
        return out

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """(N, N) the derivative of Phi, one-sided at kinks [MJ14, eq. 34]."""
        n_b, d = self.space.bilateral, self.problem.dim
        dF = self.force_jacobian(x)
        columns = self.space.A[:, n_b:].reshape(len(x), len(dF), d)
        J = self.space.A.copy()
        J[:, n_b:] = np.einsum("ncd,cde->nce", columns, dF).reshape(len(x), len(x) - n_b)
        blocks = J[n_b:, n_b:].reshape(len(dF), d, len(dF), d)
        own = np.arange(len(dF))
        blocks[own, :, own, :] -= dF + np.eye(d)
        J[n_b:, n_b:] = blocks.reshape(len(x) - n_b, len(x) - n_b)
        return J

    def impulses(self, x: np.ndarray) -> np.ndarray:
        """(d n_c,) scaled impulses s."""
        return self.forces(x).ravel() * self.space.unit[self.space.bilateral :]

    def start(self, s: np.ndarray | None) -> np.ndarray:
        """x from impulses by z = v - F; without any, from the velocities that there would be."""
        space = self.space
        y = np.zeros(len(space.r))
        if s is not None:
            y[space.bilateral :] = s / space.unit[space.bilateral :]
        y = space.bilateral_start(y)
        u = space.A @ y + space.r
        return np.concatenate([y[: space.bilateral], (u - y)[space.bilateral :]])
