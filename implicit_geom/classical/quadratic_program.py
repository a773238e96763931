"""The quadratic program of Anitescu and Hart: the convex relaxation of a step, on the velocities.

    min_nu  1/2 (nu - u)' M (nu - u)   subject to   (n + mu d_i)' nu >= -(Gamma + Delta),  all contacts and i

[AH02, eq. 15], Delta = gap / h. With M^-1 = L L', y = L^-1 (nu - u) and unit rows A of (n + mu d_i)' L the
multipliers theta are the solution of a linear complementarity problem with a positive semidefinite matrix,

    y = A' theta,    0 <= theta _|_ A y + b >= 0,       b = (n + mu d_i)' u + Gamma + Delta

and its certificate is that of `solvers.lcp`. Of the solvers in CasADi's wheel on heaps of 21 to 210
discs, OSQP with its polish meets 1e-12 in 0.1 s; proxqp 1e-11 in 0.5 s; ipqp 1e-9; highs and qrqp failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.solvers import lcp

NEWTON_STEPS = 20
SMALL = 24  # rows up to which Lemke's method is quicker than setting up a quadratic program
SOLVERS: dict[str, dict[str, Any]] = {
    "osqp": {
        "error_on_fail": False,
        "osqp": {"verbose": False, "eps_abs": 1e-10, "eps_rel": 1e-10, "max_iter": 20000, "polish": True},
    },
    "proxqp": {"error_on_fail": False, "proxqp": {"eps_abs": 1e-11, "eps_rel": 0.0, "backend": "sparse"}},
}


@dataclass(frozen=True)
class QuadraticSolution:
    """The solution of one subproblem, in impulses of the rows as they were given."""

    theta: np.ndarray  # (m,) N s
    y: np.ndarray  # (V,)
    error: float  # the largest violation, scaled as in `implicit_geom.solvers.lcp`
    solver: str  # that found it

    @property
    def converged(self) -> bool:
        return self.error <= lcp.TOLERANCE


class QuadraticProgram:
    """[AH02, eq. 15]: min |y|^2 / 2 subject to A y + b >= 0, for one sparse A (m, V) and many b (m,).

    solvers     CasADi's, by name with their options, in the order in which they are tried
    """

    def __init__(self, A: Any, solvers: dict[str, dict[str, Any]] = SOLVERS) -> None:
        self.solvers = solvers
        self.scale = 1 / np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
        self.A = A.multiply(self.scale[:, None]).tocsc()
        self._programs: dict[str, Any] = {}

    def solve(self, b: np.ndarray) -> QuadraticSolution:
        """By the solvers in their order until one meets the tolerance; the best answer: see `converged`.

        Small problems by Lemke's method first; where the programs' answers are not sharp enough, Newton's
        method from the best of them, and Lemke's at last.
        """
        b = b * self.scale
        size = float(abs(b).max(initial=0.0)) or 1.0
        best = self._found(np.zeros(b.size), b, size, "none")
        solvers = (["lemke"] if b.size <= SMALL else []) + [*self.solvers, "semismooth", "lemke"]
        for name in solvers:
            if best.converged:
                break
            if name in self.solvers:
                theta = self._program(name, b / size)
            else:
                theta = self._complementarity(name, b / size, best.theta / (self.scale * size))
            found = self._found(theta * size, b, size, name)
            best = found if found.error < best.error else best
        return best

    def _found(self, theta: np.ndarray, b: np.ndarray, size: float, name: str) -> QuadraticSolution:
        """theta, cleared of negative parts, with its velocities and its error."""
        theta = np.maximum(theta, 0.0)
        y = self.A.T @ theta
        w = self.A @ y + b
        most = max(size, float(theta.max(initial=0.0)))
        error = max(-float(w.min(initial=0.0)) / size, float(abs(w) @ theta) / (size * most))
        return QuadraticSolution(theta * self.scale, y, error, name)

    def _complementarity(self, name: str, b: np.ndarray, theta: np.ndarray) -> np.ndarray:
        M = (self.A @ self.A.T).toarray()
        limit = NEWTON_STEPS if name == "semismooth" else None
        return lcp.solve_lcp(M, b, z0=theta, solver=name, limit=limit).z

    def _program(self, name: str, b: np.ndarray) -> np.ndarray:
        import casadi as ca

        m, V = self.A.shape
        if name not in self._programs:
            rows = ca.Sparsity(m, V, self.A.indptr.tolist(), self.A.indices.tolist())
            program = ca.conic("program", name, {"h": ca.Sparsity.diag(V), "a": rows}, self.solvers[name])
            self._programs[name] = program, ca.DM(rows, self.A.data), ca.DM(ca.Sparsity.diag(V), np.ones(V))
        program, A, H = self._programs[name]
        theta = -np.asarray(program(h=H, g=np.zeros(V), a=A, lba=-b, uba=np.inf)["lam_a"]).ravel()
        return np.where(np.isfinite(theta), theta, 0.0)
