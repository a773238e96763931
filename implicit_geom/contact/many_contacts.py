"""Methods for a step with many contacts at once, as in a pile, cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from implicit_geom.contact.inexact_friction import solve_by_sweeps
from implicit_geom.contact.interior_point import solve_by_interior_point
from implicit_geom.contact.proximal_rounds import (
    ProximalOptions,
    from_last_impulses,
    from_zero_impulses,
    solve_by_rounds,
)
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions, NewtonResult

INSIDE = ProximalOptions(rounds=12)
SLOW = ProximalOptions(eps=0.1, rounds=80, inexact=1e-2)
COLD = (
    ProximalOptions(0.3, 250, 0.5),
    ProximalOptions(0.3, 250, 0.7),
    ProximalOptions(0.3, 400, 0.95, 1.5),
    ProximalOptions(0.3, 400, 0.85, 2.0),
)
MANY = 8  # contacts that make rounds worth while


def from_known_impulses(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> NewtonResult:
    """From z, whose impulses are known for most of the contacts."""
    if problem.friction_tolerance:
        return solve_by_sweeps(problem, z, options)
    return solve_by_rounds(problem, z, from_last_impulses, SLOW, options)


def methods(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> Iterator[Callable[[], NewtonResult]]:
    """Methods that start from z; none for problems that they do not suit."""
    few = problem.pattern is None and len(problem.order) < MANY
    if few or problem.model.friction_residual == "fritz-john":
        return
    if problem.friction_tolerance:
        yield partial(solve_by_sweeps, problem, z, options)
    yield partial(
        solve_by_rounds, problem, z, partial(solve_by_interior_point, convex=False), INSIDE, options
    )
    yield partial(solve_by_rounds, problem, z, partial(solve_by_interior_point, convex=True), INSIDE, options)
    if problem.carries_impulse(z) and not problem.friction_tolerance:
        yield partial(from_known_impulses, problem, z, options)
    for proximal in COLD:
        yield partial(solve_by_rounds, problem, z, from_zero_impulses, proximal, options)
