"""The candidate pairs of a step: those that its motion may bring together, found together with the motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, cast

import numpy as np

from implicit_geom.model.model import State
from implicit_geom.model.records import Failure
from implicit_geom.solvers.newton import NewtonResult
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
) -> StepSolution[P] | Failure:
    """Solve for the motion over h with all pairs that it may bring together."""
    memory, broad, options = search.memory, search.memory.broad, search.options
    loads = impulse / h
    candidates = broad.candidates(state, abs(h), loads)
    if len(candidates) > options.crowd:
        # what is unlikely to touch comes after, with the others' motion known
        memory.fill(state, candidates)
        candidates = broad.likely(state, abs(h), loads, candidates)
    last: tuple[P, np.ndarray] | None = None
    iterations = 0
    for _ in range(options.candidate_rounds):
        problem = search.equations(kind, candidates)
        memory.fill(state, candidates)
        found, status, histories = search.solve(problem, state, h, impulse, thorough, last)
        if search.model.pairs.have_seams:
            over = passed_over(search, problem, found, state, h, impulse)
            if over is not None:
                problem, found, status = cast(P, over[0]), over[1], "continued"
        if found is None:
            return "Newton's method found no solution", histories
        iterations += found.iterations
        nu = search.velocities(problem, found.z)
        missed = broad.missed(state, nu, abs(h), candidates)
        if not missed:
            break
        last = (problem, found.z)
        candidates = sorted({*candidates, *missed})
    else:
        return "the set of candidate pairs did not settle", histories
    found.iterations = iterations
    crossing = search.crossing(problem, found.z, state, h)
    return (crossing, histories) if crossing else StepSolution(problem, found, status, nu)
