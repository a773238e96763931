"""Velocities of contacts and bilateral rows from their impulses [MJ14, eqs. 20, 21, 29, 30].

Unlike `ContactProblem.W`, which has the bilateral rows eliminated, their impulses p_b stay unknowns here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from implicit_geom.solvers.contact.problem import ContactProblem


@dataclass(frozen=True)
class OperationalSpace:
    """(G^T v + b, u) = A y + r, bilateral rows first; dense.

    A           (N, N), N = n_b + d n_c: [G H]^T M^-1 [G H] with its columns times `unit`
    r           (N,) without impulses, m/s
    unit        (N,) impulses over unknowns, the same for all rows of a contact
    bilateral   n_b
    """

    A: np.ndarray
    r: np.ndarray
    unit: np.ndarray
    bilateral: int

    def bilateral_start(self, y: np.ndarray) -> np.ndarray:
        """y (N,) with impulses of the bilateral rows that hold them for the other impulses of y."""
        n_b = self.bilateral
        if not n_b:
            return y
        left = self.r[:n_b] + self.A[:n_b, n_b:] @ y[n_b:]
        return np.concatenate([-np.linalg.lstsq(self.A[:n_b, :n_b], left, rcond=1e-12)[0], y[n_b:]])


def operational_space(problem: ContactProblem, *, scaled: bool) -> OperationalSpace:
    """That of a problem, in its scaled rows; `scaled`: unknowns are impulses over effective masses, m/s.

    MJ14 adds impulses to velocities as they are (unit 1), which leaves the path of a solver to the units.
    """
    both = sp.csc_matrix(sp.hstack([problem.G, problem.H_ball]))
    A = (both.T @ (problem.M_inverse @ both)).toarray()
    r = np.concatenate([problem.G.T @ problem.v_free + problem.b, problem.H_ball.T @ problem.v_free])
    n_b = problem.G.shape[1]
    r[n_b:] += problem.w_ball
    unit = np.ones(len(r))
    if scaled:
        diagonal = np.diagonal(A)
        unit[:n_b] = 1 / np.where(diagonal[:n_b] > 0, diagonal[:n_b], 1.0)
        unit[n_b:] = np.repeat(1 / np.maximum(diagonal[n_b :: problem.dim], 1e-300), problem.dim)
    return OperationalSpace(A * unit, r, unit, n_b)
