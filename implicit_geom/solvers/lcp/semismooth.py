"""A semi-smooth Newton method for linear complementarity problems, on the project's own core.

    F_i = z_i + w_i - sqrt(z_i^2 + w_i^2 + 2 eps^2) = 0        Fischer and Burmeister, smoothed for eps > 0

Full steps from the guess, damped ones where they stall, then the smoothing path. The last digits come
from the basis {z > w}: one linear system, taken where it is the better answer.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.solvers import newton
from implicit_geom.solvers.lcp.solution import LCP, LCPSolution, certified, sharpened

SHIFT = 1e-12  # on the scaled rows: friction leaves the split of an impulse open, and rows singular
OPTIONS = newton.NewtonOptions(full_steps=12, damped_steps=30)


class FischerBurmeister:
    """The scaled problem over its size as a system for `newton.solve_by_newton`."""

    def __init__(self, problem: LCP) -> None:
        n = problem.n
        self.M, self.q = problem.M, problem.q / (problem.size or 1.0)
        self.shift = np.full(n, SHIFT)
        self.proximal = np.ones(n)
        self.tolerance = np.full(n, 0.1 * problem.tolerance)

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        w = self.M @ z + self.q
        return z + w - np.sqrt(z * z + w * w + 2 * eps * eps)

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        w = self.M @ z + self.q
        root = np.sqrt(z * z + w * w + 2 * eps * eps)
        safe = np.maximum(root, 1e-300)
        # (at z = w = 0 this is the element of the generalised Jacobian with a = b = 1)
        a, b = 1.0 - z / safe, 1.0 - w / safe
        J = b[:, None] * self.M
        J.flat[:: z.size + 1] += a
        return z + w - root, J

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        return dz

    def certified(self, z: np.ndarray) -> bool:
        return bool(np.isfinite(z).all())


def solve_by_fischer_burmeister(problem: LCP, z0: np.ndarray | None, limit: int | None = None) -> LCPSolution:
    """From z0, or from zero; `limit` bounds the full steps, and nothing else is then tried."""
    n, size = problem.n, problem.size or 1.0
    if n == 0:
        return certified(problem, np.zeros(0), 0, "")
    system = FischerBurmeister(problem)
    start = np.zeros(n) if z0 is None else np.maximum(z0, 0.0) / size
    options = OPTIONS if limit is None else newton.NewtonOptions(full_steps=limit, damped_steps=0)
    ended = newton.solve_by_newton(system, start, options)
    found = _finish(problem, ended.z, ended.iterations)
    if found.converged or limit is not None:
        return found
    path = newton.follow_path(system, start, options)
    return _finish(problem, path.z, ended.iterations + path.iterations)


def _finish(problem: LCP, z: np.ndarray, iterations: int) -> LCPSolution:
    z = z * (problem.size or 1.0)
    return sharpened(problem, np.maximum(z, 0.0), z > problem.w(z), iterations, "Newton's method stalled")
