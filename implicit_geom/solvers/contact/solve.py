"""`solve_contact`: a contact problem solved by one of many solvers, by name."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import choice, positive
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.words import hint, shown
from implicit_geom.solvers.contact.checked_input import vector
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution

Solver = Callable[..., ContactSolution]  # (problem, tolerance=, start=scaled impulses or None, **options)
SOLVERS: dict[str, Solver] = {}
KINDS: dict[str, tuple[Any, str]] = {  # of options, by annotation
    "int": (Integral, "a whole number, not below zero"),
    "float": (Real, "a number, not below zero"),
    "bool": (bool | np.bool_, "True or False"),
}


def solver(name: str) -> Callable[[Solver], Solver]:
    """A decorator that enters a solver by its name."""

    def enter(function: Solver) -> Solver:
        SOLVERS[name] = function
        return function

    return enter


@checked_call(CallError)
def solve_contact(
    problem: ContactProblem,
    solver: str = "default",
    *,
    tolerance: float = 1e-8,
    start: Any = None,
    **options: Any,
) -> ContactSolution:
    """Solve a contact problem.

    solver      a name of `solve_contact.solvers`
    tolerance   of every residual, m/s
    start       impulses (d n_c,) to start from, N s; or an earlier solution
    options     of the solver

    A solution says whether it is one: `converged`, `residuals`. SceneError for bad input.

    >>> problem = ContactProblem(M=2 * np.eye(2), H=np.eye(2)[::-1], v_free=(1.0, -0.0981), mu=[0.5])
    >>> s = solve_contact(problem)
    >>> s.converged, s.velocity.round(6), s.impulse.round(6)
    (True, array([0.95095, 0.     ]), array([ 0.1962, -0.0981]))
    """
    choice("solver", solver, tuple(SOLVERS))
    if not isinstance(problem, ContactProblem):
        raise SceneError(f"problem = {type(problem).__name__} must be a ContactProblem")
    if isinstance(start, ContactSolution):
        start = start.impulse
    if start is not None:
        start = problem.ball_impulses(vector("start", start, problem.H.shape[1]))
    tolerance = positive("tolerance", tolerance)
    _check_options(solver, options)
    begun = time.perf_counter()
    with np.errstate(all="ignore"):  # impulses of problems without a solution grow beyond all bounds
        found = SOLVERS[solver](problem, tolerance=tolerance, start=start, **options)
    found.wall_time = time.perf_counter() - begun
    found.solver, found.tolerance = solver, tolerance
    return found


def _check_options(name: str, options: dict[str, Any]) -> None:
    """Refuse options that the solver does not have, and values of another kind than its own."""
    given = inspect.signature(SOLVERS[name]).parameters.values()
    kinds = {p.name: p.annotation for p in given}
    for key, value in options.items():
        kind, wanted = KINDS.get(kinds.get(key, ""), (object, ""))
        right = isinstance(value, kind) and isinstance(value, bool | np.bool_) <= (kinds.get(key) == "bool")
        if wanted and not (right and value >= 0):
            raise SceneError(f"{key} = {shown(value)} must be {wanted}")
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in given):
        return
    known = [p.name for p in given if p.name not in ("problem", "tolerance", "start")]
    for key, value in options.items():
        if key not in known:
            wrong = f"{key} = {shown(value)}: the solver {name} has no such option{hint(key, known)}"
            raise CallError(f"solve_contact: {wrong}")


solve_contact.solvers = SOLVERS  # type: ignore[attr-defined]
