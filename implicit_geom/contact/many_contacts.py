"""Methods for a step with many contacts at once, as in a pile, cheapest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from implicit_geom.contact.inexact_friction import by_sweeps
from implicit_geom.contact.interior_point import interior
from implicit_geom.contact.proximal_rounds import Effort, as_they_are, by_rounds, from_nothing
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions, Solution

INSIDE = Effort(rounds=12)
SLOW = Effort(eps=0.1, rounds=80, inexact=1e-2)
COLD = (
    Effort(0.3, 250, 0.5),
    Effort(0.3, 250, 0.7),
    Effort(0.3, 400, 0.95, 1.5),
    Effort(0.3, 400, 0.85, 2.0),
)
MANY = 8  # contacts that make rounds worth while


def from_known_impulses(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> Solution:
    """From z, whose impulses are known for most of the contacts."""
    if problem.loose_friction:
        return by_sweeps(problem, z, options)
    return by_rounds(problem, z, as_they_are, SLOW, options)


def methods(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> Iterator[Callable[[], Solution]]:
    """Methods that start from z; none for problems that they do not suit."""
    few = problem.pattern is None and len(problem.order) < MANY
    if few or problem.model.friction_residual == "fritz-john":
        return
    if problem.loose_friction:
        yield partial(by_sweeps, problem, z, options)
    yield partial(by_rounds, problem, z, partial(interior, lifted=False), INSIDE, options)
    yield partial(by_rounds, problem, z, partial(interior, lifted=True), INSIDE, options)
    if problem.carries_impulse(z) and not problem.loose_friction:
        yield partial(from_known_impulses, problem, z, options)
    for effort in COLD:
        yield partial(by_rounds, problem, z, from_nothing, effort, options)
