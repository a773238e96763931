"""A mixed linear complementarity problem as a system of equations phi(z) = 0 [MJ14, eqs. 23 to 25].

    f = M z + q;      f_i = 0 for the first rows,    0 <= z_i _|_ f_i >= 0 for the others
    phi_i = -f_i                                     phi_i = sqrt(z_i^2 + f_i^2) - z_i - f_i

Deviation: where z_i = f_i = 0, MJ14 prints a row of the Jacobian that has its diagonal alone, which is in
general no element of the generalised Jacobian. Here it is the derivative along e_i, which is one:
a = 1 / sqrt(1 + M_ii^2), b = M_ii a. Its diagonal is the printed one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MixedLCP:
    """M (N, N), q (N,); the first `equalities` rows are equations with unknowns of either sign."""

    M: np.ndarray
    q: np.ndarray
    equalities: int = 0

    def phi(self, z: np.ndarray) -> np.ndarray:
        """(N,) residuals; zero at a solution."""
        f = self.M @ z + self.q
        k = self.equalities
        out = -f
        out[k:] += np.hypot(z[k:], f[k:]) - z[k:]
        return out

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """(N, N) the derivative of phi, or an element of its generalised Jacobian, row by row."""
        k = self.equalities
        f = (self.M @ z + self.q)[k:]
        length = np.hypot(z[k:], f)
        kink = length == 0
        safe = np.where(kink, 1.0, length)
        own = np.diagonal(self.M)[k:]
        steep = np.sqrt(1 + own**2)
        a = np.where(kink, 1 / steep, z[k:] / safe) - 1
        b = np.where(kink, own / steep, f / safe) - 1
        J = -self.M.copy()
        J[k:] = b[:, None] * self.M[k:]
        rows = np.arange(k, len(z))
        J[rows, rows] += a
        return J
