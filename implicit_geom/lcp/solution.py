"""What a linear complementarity problem is, and what its solution says of itself.

    w = M z + q,   0 <= z _|_ w >= 0

Impulses, slip speeds and gaps stand side by side in z, in different units, so that solvers and tolerances
work on the scaled problem  S M S,  S q  with z = S z_s and w = w_s / S, in which diagonals are one: it has
the same solutions, and w.z = w_s.z_s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.errors import SceneError

TOLERANCE = 1e-10


class Problem:
    """The scaled problem: M (n, n), q (n,), and the diagonal `scale` of S."""

    __slots__ = ("M", "n", "q", "scale", "size")

    def __init__(self, M: np.ndarray, q: np.ndarray) -> None:
        if M.ndim != 2 or M.shape != (q.size, q.size) or q.ndim != 1:
            raise SceneError(f"lcp: M {M.shape} and q {q.shape} must be (n, n) and (n,)")
        self.n = q.size
        scale = scaling(M)
        self.M = M * scale * scale[:, None]
        self.q = q * scale
        self.scale = scale
        self.size = abs(self.q).max() if self.n else 0.0
        if not self.size < np.inf:
            raise SceneError("lcp: M and q must be finite")

    def w(self, z: np.ndarray) -> np.ndarray:
        return self.M @ z + self.q


def scaling(M: np.ndarray) -> np.ndarray:
    """S with S M S of unit diagonal; rows without diagonal get a largest entry of one."""
    diagonal = M.diagonal()
    plain = diagonal > 0
    if plain.all():
        return 1.0 / np.sqrt(diagonal)
    scale = np.ones(diagonal.size)
    scale[plain] = 1.0 / np.sqrt(diagonal[plain])
    rest = ~plain
    largest = (abs(M[rest]) * scale).max(axis=1)
    scale[rest] = 1.0 / np.where(largest > 0, largest, 1.0)
    return scale


@dataclass(slots=True)
class Solution:
    """Where a solver ended. `converged` is what the three numbers below say, not what the solver thinks.

    smallest_z, smallest_w   of the scaled problem, over its size max(|q|, |z|)
    complementarity          sum |w_i z_i| over the square of that size
    """

    z: np.ndarray
    w: np.ndarray
    converged: bool
    iterations: int
    reason: str
    smallest_z: float
    smallest_w: float
    complementarity: float


def certified(problem: Problem, z: np.ndarray, iterations: int, tolerance: float, reason: str) -> Solution:
    """The solution at the scaled z, with its certificate. `reason` is kept where it is none."""
    n = problem.n
    if n == 0:
        return Solution(z, z.copy(), True, 0, "solved", 0.0, 0.0, 0.0)
    w = problem.M @ z + problem.q
    size = max(problem.size, abs(z).max()) or 1.0
    smallest_z, smallest_w = z.min() / size, w.min() / size
    complementarity = abs(w) @ abs(z) / size**2
    converged = bool(smallest_z >= -tolerance and smallest_w >= -tolerance and complementarity <= tolerance)
    return Solution(
        z * problem.scale,
        w / problem.scale,
        converged,
        iterations,
        "solved" if converged else reason,
        float(smallest_z),
        float(smallest_w),
        float(complementarity),
    )


def on_basis(problem: Problem, basic: np.ndarray) -> np.ndarray | None:
    """z with w = 0 on the basic rows and z = 0 elsewhere, refined once; None where they are singular."""
    z = np.zeros(problem.n)
    rows = np.flatnonzero(basic)
    if rows.size == 0:
        return z
    block = problem.M[rows[:, None], rows]
    try:
        part = np.linalg.solve(block, -problem.q[rows])
        part -= np.linalg.solve(block, block @ part + problem.q[rows])
    except np.linalg.LinAlgError:
        return None
    z[rows] = part
    return z
