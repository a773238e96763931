"""Rounds for steps with many contacts at once, as in a pile: contact problems with frozen frames.

A round freezes the contact frames at z (`LinearisedStep`), solves the contact problem that is left by the
default solver of `solvers.contact`, and takes its velocities and impulses, with their closest points, for the
next z. Newton's method on the unchanged equations of the step decides when it is solved, and
nothing is linearised in an accepted solution. Where contacts stick in loops its matrix is singular, and the
rounds themselves arrive: each of them leaves a twentieth or less of what was left before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from implicit_geom.contact.linearised import LinearisedStep
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions, NewtonResult, solve_by_newton

# impulses that rounds start from, N s; None: none
InitialGuess = Callable[[LinearisedStep], np.ndarray | None]
PRECISION = (1e-4, 1e-6, 1e-8)  # of the first contact problems, over the speed of the fastest body
FINE = 1e-12  # of all others, over that of the slowest pair
CONVEX = 1e-6  # of the convex problem, over the speed of the fastest body
NEWTON = 6  # full steps after a round
# over the tolerance: what a solution may leave; more of a gap would jam sticking contacts in the next step
SHARP = 1e-2
SHARPER = 0.3  # of what was left that is worth another round


@dataclass(frozen=True)
class RoundOptions:
    """Limits of rounds."""

    rounds: int = 12
    budget: int = 1500  # factorisations of a contact problem; of one with sweeps, before its fallbacks
    sweeps: bool = False  # see `solvers.contact.pssn`
    hopeless: float = 2e-3  # error of a contact problem, over the speed of the fastest body, that ends them
    unsolved: int = 1  # contact problems without a solution that are borne
    patience: int = 3  # rounds without a better point that are borne


def from_last_impulses(step: LinearisedStep) -> np.ndarray | None:
    """From the impulses at hand."""
    return step.start


def from_zero_impulses(step: LinearisedStep) -> np.ndarray | None:  # noqa: ARG001
    """Without impulses."""
    return None


def from_convex_problem(step: LinearisedStep) -> np.ndarray | None:
    """From the problem in which friction lifts what slides: it is convex, and right where nothing slips."""
    from implicit_geom.solvers.contact.solve import solve_contact

    return solve_contact(step.contacts, "cadoux-acary", tolerance=CONVEX * step.fastest, outer=1).impulse


def solve_by_rounds(
    problem: StepNCP, z: np.ndarray, begin: InitialGuess, limits: RoundOptions, options: NewtonOptions
) -> NewtonResult:
    """Rounds from z, each followed by full Newton steps."""
    from implicit_geom.solvers.contact.solve import solve_contact

    few = replace(options, full_steps=NEWTON)
    kept: NewtonResult | None = None
    history: list[float] = []
    steps, unsolved, least, since = 0, 0, np.inf, 0
    for k in range(limits.rounds):
        step = LinearisedStep(problem, z)
        if not step.symmetric:
            break
        start = begin(step) if k == 0 else step.start
        tolerance = PRECISION[k] * step.fastest if k < len(PRECISION) else FINE * step.slowest
        solution = solve_contact(
            step.contacts, tolerance=tolerance, start=start, budget=limits.budget, sweeps=limits.sweeps
        )
        z = step.unknowns(solution)
        found = solve_by_newton(problem, z, few, damped=False)
        history += found.history
        steps += solution.factorisations + found.iterations
        if found.converged and problem.certified(found.z):
            left = found.history[-1]
            worth = kept is None or left < SHARPER * kept.history[-1]
            if kept is None or left < kept.history[-1]:
                kept = found
            if left > SHARP and worth:
                continue
        if kept is not None:
            break
        unsolved += not solution.converged
        since = 0 if found.history[0] < least else since + 1
        least = min(least, found.history[0])
        lost = not solution.error < limits.hopeless * step.fastest
        if lost or unsolved > limits.unsolved or since > limits.patience:
            break
    return NewtonResult(z if kept is None else kept.z, kept is not None, steps, history)
