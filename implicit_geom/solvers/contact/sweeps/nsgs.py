"""`nsgs`: nonsmooth Gauss-Seidel with exact local solves [Jourdan, Alart, Jean 1998]."""

from __future__ import annotations

import time

import numpy as np

from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solver
from implicit_geom.solvers.contact.sweeps.sweep import Sweeps

LOOK, LONGEST = 10, 500  # sweeps before the first look at the error; each look waits half as long again


@solver("nsgs")
def nsgs(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    sweeps: int = 100_000,
    seconds: float = 10.0,
) -> ContactSolution:
    """Sweeps over the contacts, each solving its own law with the impulses of all others as they are.

    sweeps, seconds   at most

    It needs no matrix beyond each contact's own and starts well; loops of contacts that stick, and large
    mass ratios, slow it down without bound. The best impulses seen are returned.
    """
    done, wait, history = 0, LOOK, []
    s = np.zeros(problem.contacts * problem.dim) if start is None else start
    if not problem.contacts:
        return solution_of(problem, s)
    gauss_seidel = Sweeps(problem)
    s = gauss_seidel.to_axes(s)
    best, least = s, np.inf
    until = time.perf_counter() + seconds
    while True:
        error, v = gauss_seidel.certify(s)
        history.append(error)
        if error < least:
            best, least = s, error
        if least <= 0.99 * tolerance or done >= sweeps or time.perf_counter() > until:
            found = gauss_seidel.from_axes(best)
            return solution_of(problem, found, iterations=done, history=history)
        count = min(wait, sweeps - done)
        s = gauss_seidel.run(s, v, count)
        done, wait = done + count, min(LONGEST, wait + wait // 2)
