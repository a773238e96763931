"""A linear complementarity problem, scaled, and its solution with residuals.

    w = M z + q,   0 <= z _|_ w >= 0

Impulses, slip speeds and gaps stand side by side in z, in different units, so that solvers and tolerances
work on the scaled problem  S M S,  S q  with z = S z_s and w = w_s / S, in which diagonals are one: it has
the same solutions, and w.z = w_s.z_s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.interface.errors import SceneError

TOLERANCE = 1e-10
EPS = float(np.finfo(float).eps)
ROUNDING = 1e-11  # of q, z and w, over the largest of them: smaller rows are not known to exist


class LCP:
    """The scaled problem: M (n, n), q (n,), the diagonal `scale` of S, and the size of q."""

    __slots__ = ("M", "n", "q", "scale", "size", "size_M", "tolerance")

    def __init__(self, M: np.ndarray, q: np.ndarray, tolerance: float = TOLERANCE) -> None:
        if M.ndim != 2 or M.shape != (q.size, q.size) or q.ndim != 1:
            raise SceneError(f"lcp: M {M.shape} and q {q.shape} must be (n, n) and (n,)")
        self.n, self.tolerance = q.size, tolerance
        scale = scaling(M)
        self.M = M * scale * scale[:, None]
        self.size_M = abs(self.M)
        self.q = q * scale
        self.scale = scale
        self.size = float(abs(self.q).max()) if self.n else 0.0
        if not (self.size < np.inf and abs(self.M.sum()) < np.inf):
            raise SceneError("lcp: M and q must be finite")

    def w(self, z: np.ndarray) -> np.ndarray:
        return self.M @ z + self.q


def scaling(M: np.ndarray) -> np.ndarray:
    """S with S M S of unit diagonal; rows without a positive diagonal get a largest entry of one."""
    diagonal = M.diagonal()
    plain = diagonal > 0
    if plain.all():
        return 1.0 / np.sqrt(diagonal)
    scale = 1.0 / np.sqrt(np.where(plain, diagonal, 1.0))
    rest = ~plain
    # (two such rows share what couples them)
    size = abs(M[rest])
    largest = np.where(plain, size * scale, np.sqrt(size)).max(axis=1)
    scale[rest] = 1.0 / np.where(largest > 0, largest, 1.0)
    return scale


@dataclass(slots=True)
class LCPSolution:
    """Where a solver ended. `converged` is what the three numbers below say, not what the solver thinks.

    smallest_z        of the scaled problem, over max(|q|, |z|)
    smallest_w        over |q|: a z that grows without bound makes nothing smaller
    complementarity   sum |w_i z_i| over the product of the two
    natural           the largest |min(z_i, w_i)| over |q_i| + sum_j |M_ij z_j|, what w_i is made of, with the
                      rounding of the whole taken off: one large row does not hide a small one; at least the
                      rounding of w over |q|: a w that is the difference of large numbers is not known
    reason            "solved", or why not
    """

    z: np.ndarray
    w: np.ndarray
    converged: bool
    iterations: int
    reason: str
    smallest_z: float
    smallest_w: float
    complementarity: float
    natural: float

    @property
    def error(self) -> float:
        """The largest violation."""
        return max(-self.smallest_z, -self.smallest_w, self.complementarity, self.natural)


def certified(problem: LCP, z: np.ndarray, iterations: int, reason: str) -> LCPSolution:
    """The solution at the scaled z, with its certificate; `reason` is what is said where it is none."""
    if problem.n == 0:
        return LCPSolution(z, z.copy(), True, 0, "solved", 0.0, 0.0, 0.0, 0.0)
    w = problem.M @ z + problem.q
    size = problem.size or 1.0
    most_z = max(size, float(abs(z).max()))
    smallest_z, smallest_w = float(z.min()) / most_z, float(w.min()) / size
    complementarity = float(abs(w) @ abs(z)) / (size * most_z)
    terms = problem.size_M @ abs(z)
    rows = abs(problem.q) + terms
    off = abs(np.minimum(z, w)) - ROUNDING * max(size, float(terms.max()))
    natural = float((off / np.maximum(rows, 1e-300)).max(initial=0.0, where=off > 0))
    natural = max(natural, EPS * float(terms.max()) / size)
    bound = problem.tolerance
    converged = smallest_z >= -bound and smallest_w >= -bound
    converged = converged and complementarity <= bound and natural <= bound
    said = "solved" if converged else reason
    scale = problem.scale
    return LCPSolution(
        z * scale, w / scale, converged, iterations, said, smallest_z, smallest_w, complementarity, natural
    )


def sharpened(
    problem: LCP, plain: np.ndarray, basic: np.ndarray, iterations: int, reason: str
) -> LCPSolution:
    """The solution on a solver's basis where that is one, otherwise its z as it stands."""
    for refine in (False, True):
        z = on_basis(problem, basic, refine)
        if z is None:
            break
        sharp = certified(problem, z, iterations, reason)
        if sharp.converged:
            return sharp
    return certified(problem, plain, iterations, reason)


def on_basis(problem: LCP, basic: np.ndarray, refine: bool = False) -> np.ndarray | None:
    """z with w = 0 on the basic rows and z = 0 elsewhere; None where these equations are singular."""
    z = np.zeros(problem.n)
    rows = basic.nonzero()[0]
    if rows.size == 0:
        return z
    block = problem.M[rows[:, None], rows]
    try:
        part = np.linalg.solve(block, -problem.q[rows])
        if refine:
            part -= np.linalg.solve(block, block @ part + problem.q[rows])
    except np.linalg.LinAlgError:
        return None
    z[rows] = part
    return z
