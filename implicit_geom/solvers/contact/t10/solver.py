"""The solver `t10` of contact problems: Todorov's implicit complementarity."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solver
from implicit_geom.solvers.contact.t10.maps import System
from implicit_geom.solvers.contact.t10.options import options_from
from implicit_geom.solvers.contact.t10.recovery import solve


def system_of(problem: ContactProblem) -> System:
    """A = W, v0 = q but for the normal rows of w, which are -b: u_N >= 0 is v_N >= b."""
    if problem.mu_r is not None:
        raise SceneError("t10 knows one friction disc a contact: no rolling friction")
    n, d = problem.contacts, problem.dim
    b = -problem.w_ball.reshape(n, d)[:, 0]
    v0 = problem.q.reshape(n, d).copy()
    v0[:, 0] += b
    return System(problem.W.toarray(), v0, b, problem.mu)


@solver("t10")
def t10(
    problem: ContactProblem, *, tolerance: float, start: np.ndarray | None = None, **options: Any
) -> ContactSolution:
    """Todorov's non-smooth Gauss-Newton method [T10]; options are those of `T10Options`.

    Dense: made for up to some hundred contacts.
    """
    chosen = options_from(options)
    system = system_of(problem)
    f = None if start is None else start.reshape(system.v0.shape)
    # |r| sums over contacts, the residuals of a solution are maxima: half of it leaves room for rounding
    out = solve(system, 0.5 * tolerance, chosen, f=f)
    return solution_of(
        problem,
        out.f.ravel(),
        iterations=out.iterations,
        factorisations=out.factorisations,
        history=out.history,
        info={"status": out.status, "newton": out.newton, "steps": out.steps, "restarts": out.restarts},
    )
