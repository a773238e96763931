"""The candidate pairs of a step: those that its motion may bring together, found together with the motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, cast

import numpy as np

from implicit_geom.model.model import State
from implicit_geom.model.records import Failure
from implicit_geom.solvers.newton import NewtonResult, solve_by_newton
from implicit_geom.steppers.seams import passed_over
from implicit_geom.steppers.search import P, SolutionSearch


@dataclass
class StepSolution(Generic[P]):
    """A solution with every pair that matters among its candidates."""

    problem: P
    solution: NewtonResult
    status: str
    nu: np.ndarray  # (B, dim + spins)


def solve_step(
    search: SolutionSearch,
    kind: type[P],
    state: State,
    h: float,
    impulse: np.ndarray,
    thorough: bool = True,
    pairs: list[int] | None = None,
) -> StepSolution[P] | Failure:
    """Solve for the motion over h with all pairs that it may bring together, or with the given ones alone."""
    if pairs is not None:
        return _with_pairs(search, kind, state, h, impulse, pairs)
    broad, options = search.memory.broad, search.options
    loads = impulse / h
    candidates = search.candidates(state, h, loads)
    if len(candidates) > options.crowd:
        # what is unlikely to touch comes after, with the others' motion known
        search.fill(state, candidates)
        candidates = broad.likely(state, abs(h), loads, candidates)
    last: tuple[P, np.ndarray] | None = None
    iterations = 0
    for _ in range(options.candidate_rounds):
        problem = search.equations(kind, candidates)
        search.fill(state, candidates)
        found, status, histories = search.solve(problem, state, h, impulse, thorough, last)
        if search.model.pairs.have_seams:
            over = passed_over(search, problem, found, state, h, impulse)
            if over is not None:
                problem, found, status = cast(P, over[0]), over[1], "continued"
        if found is None:
            return "Newton's method found no solution", histories
        iterations += found.iterations
        nu = search.velocities(problem, found.z)
        missed = search.missed(state, nu, h, candidates)
        if not missed:
            break
        last = (problem, found.z)
        candidates = sorted({*candidates, *missed})
    else:
        return "the set of candidate pairs did not settle", histories
    found.iterations = iterations
    crossing = search.crossing(problem, found.z, state, h)
    return (crossing, histories) if crossing else StepSolution(problem, found, status, nu)


def _with_pairs(
    search: SolutionSearch, kind: type[P], state: State, h: float, impulse: np.ndarray, pairs: list[int]
) -> StepSolution[P] | Failure:
    problem = search.equations(kind, pairs)
    search.memory.add(state, pairs)
    z0 = problem.prepare(state, h, impulse, search.memory.warm, search.tolerance)
    for damped in (False, True):
        found = solve_by_newton(problem, z0, search.options.newton, damped=damped)
        if found.converged and problem.certified(found.z):
            return StepSolution(problem, found, "converged", search.velocities(problem, found.z))
    return "Newton's method found no solution", [found.history]
