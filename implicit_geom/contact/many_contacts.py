"""Methods for a step with many contacts at once, as in a pile, cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from implicit_geom.contact.inexact_friction import solve_with_inexact_friction
from implicit_geom.contact.rounds import (
    RoundOptions,
    from_convex_problem,
    from_last_impulses,
    from_zero_impulses,
    solve_by_rounds,
)
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions, NewtonResult

POINTS = RoundOptions()
SWEEPS = RoundOptions(budget=150, sweeps=True)
MANY = 8  # contacts that make rounds worth while


def from_known_impulses(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> NewtonResult:
    """From z, whose impulses are known for most of the contacts."""
    if problem.friction_tolerance:
        return solve_with_inexact_friction(problem, z, options)
    return solve_by_rounds(problem, z, from_last_impulses, POINTS, options)


def methods(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> Iterator[Callable[[], NewtonResult]]:
    """Methods that start from z; none for problems that they do not suit."""
    few = problem.pattern is None and len(problem.order) < MANY
    if not problem.order or few or problem.model.friction_residual == "fritz-john":
        return
    if problem.friction_tolerance:
        yield partial(solve_with_inexact_friction, problem, z, options)
    yield partial(solve_by_rounds, problem, z, from_convex_problem, POINTS, options)
    if problem.carries_impulse(z) and not problem.friction_tolerance:
        yield partial(from_known_impulses, problem, z, options)
    yield partial(solve_by_rounds, problem, z, from_zero_impulses, POINTS, options)
    yield partial(solve_by_rounds, problem, z, from_zero_impulses, SWEEPS, options)
