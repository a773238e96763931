"""A small solver for the tests of contact problems: projected steps, contact after contact."""

from __future__ import annotations

import numpy as np

from implicit_geom.solvers.contact.law import alart_curnier
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of


def fixed_point(
    problem: ContactProblem, *, tolerance: float, start: np.ndarray | None = None, sweeps: int = 20_000
) -> ContactSolution:
    """s_k = P(s_k - u_k / |W_kk|) for one contact k after the other, until nothing changes."""
    d, W, q = problem.dim, problem.W.toarray(), problem.q
    s = np.zeros(len(q)) if start is None else start.copy()
    discs = problem.coefficients
    for sweep in range(sweeps):  # noqa: B007
        change = 0.0
        for k in range(problem.contacts):
            own = slice(d * k, d * k + d)
            weight = np.linalg.norm(W[own, own], 2)
            z = s[own] - (W[own] @ s + q[own]) / weight
            new = alart_curnier(z[None], [(rows, mu[k : k + 1]) for rows, mu in discs])[0]
            change = max(change, weight * float(np.max(np.abs(new - s[own]))))
            s[own] = new
        if change < 0.01 * tolerance:
            break
    return solution_of(problem, s, iterations=sweep + 1)
