"""Inexact friction: steps with many contacts whose friction law holds to `friction_tolerance` only.

Rounds as in `rounds` solve their contact problems to a few digits, which sweeps over the contacts do quickly.
Once the law of friction holds well enough at a point of the true step, friction's impulses are held and all
else, an easy problem without their feedback, is solved by Newton's method to the tolerance of any step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.contact.linearised import LinearisedStep
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions, NewtonResult, solve_by_newton

ROUNDS = 20
FORCING = 0.2  # precision of a contact problem over what is left of the laws before it
ENOUGH = 0.5  # the same over the tolerance of friction, at least
CLOSER = 0.4  # fall of it each time that friction, held, does not obey its law to the tolerance
LOST = 1e6  # what is left of the laws that is not worth more
BUDGET = 60  # factorisations of a contact problem before a fallback
RELEASES = 4  # solves with friction held, each without that of contacts which have opened
OPEN = 1e-9  # normal impulse over the speed scale


def solve_with_inexact_friction(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> NewtonResult:
    """Rounds from z until friction can be held."""
    from implicit_geom.solvers.contact.solve import solve_contact

    few = replace(options, full_steps=6)
    history: list[float] = []
    steps, enough = 0, ENOUGH
    for _ in range(ROUNDS):
        far = _left_of_laws(problem, z)
        if not far < LOST:
            break
        if far < problem.friction_tolerance:
            found = with_friction_held(problem, z, few)
            history += found.history
            steps += found.iterations
            if found.converged and problem.certified(found.z):
                return NewtonResult(found.z, True, steps, history)
            enough *= CLOSER
        step = LinearisedStep(problem, z)
        if not step.symmetric:
            break
        tolerance = max(FORCING * far, enough * problem.friction_tolerance) * step.slowest
        solution = solve_contact(step.contacts, tolerance=tolerance, start=step.start, budget=BUDGET)
        steps += solution.factorisations
        z = step.unknowns(solution)
    return NewtonResult(z, False, steps, history)


def _left_of_laws(problem: StepNCP, z: np.ndarray) -> float:
    """The largest residual of a contact's law over its speed scale; NaN where anything is."""
    F = np.abs(problem.residual(z, 0.0))
    return float(
        np.max([F[own[:, g.kernel.layout.at["P_n"].start :]].max() for g, own, _ in problem.members()])
    )


def with_friction_held(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> NewtonResult:
    """The step with the impulses of friction in z: converged where their law holds well enough, too."""
    steps, held = 0, z
    for _ in range(RELEASES):
        problem.hold_friction(held)
        found = solve_by_newton(problem, held, options, damped=False)
        problem.hold_friction(None)
        steps += found.iterations
        if not found.converged:
            break
        held = _released(problem, found.z)
        if np.array_equal(held, found.z):
            far = float(np.max(np.abs(problem.residual(held, 0.0)) / problem.tolerance))
            return NewtonResult(held, far <= 1, steps, [*found.history, far])
    return NewtonResult(z, False, steps, found.history)


def _released(problem: StepNCP, z: np.ndarray) -> np.ndarray:
    """z without friction in contacts that are open."""
    z = z.copy()
    if problem.model.friction_residual == "projection":
        for g, own, _ in problem.members():
            at = g.kernel.layout.at
            is_open = z[own[:, at["P_n"].start]] <= OPEN * g.get("U")[:, 0]
            z[own[is_open][:, at["S"]]] = 0.0
    return z
