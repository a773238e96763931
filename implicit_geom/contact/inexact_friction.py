"""Inexact friction: steps with many contacts whose friction law holds to `friction_tolerance` only.

A linearised step is solved by sweeps over its contacts, and by rounds where those get nowhere. Once the law
of friction holds well enough at a point of the true step, friction's impulses are held and all else, which
is an easy problem without their feedback, is solved by Newton's method to the tolerance of any step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.contact.gauss_seidel import LOST, GaussSeidel
from implicit_geom.contact.linearised import Impulses, LinearisedStep
from implicit_geom.contact.proximal_rounds import AGAIN, proximal_rounds
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.contact.subproblems import LocalSubproblem, subproblem_bodies
from implicit_geom.solvers.newton import NewtonOptions, NewtonResult, solve_by_newton

LINEARISATIONS = 20
FORCING = 0.2  # residual that ends the sweeps of a linearisation, over that of its start
ENOUGH = 0.5  # the same over the tolerance of friction
CLOSER = 0.4  # fall of it each time that friction, held, does not obey its law to the tolerance
STEEP = 0.2  # residual beyond which the contacts' turning is left out
SWEEPS = 200  # before subproblems are made
ALTERNATIONS = 6  # of sweeps and subproblems
PATIENCE = 6  # linearisations after which rounds over all contacts help sweeps that get nowhere
LARGE = 0.2  # part of the bodies in subproblems that calls for more sweeps instead
ROUNDS = replace(AGAIN, most=100)
RELEASES = 4  # solves with friction held, each without that of contacts which have opened
OPEN = 1e-9  # normal impulse over the speed scale
INNER = 0.3  # residual that ends rounds of a subproblem, over that of the whole
BETTER = 0.5  # residual of a subproblem that is worth taking, over that before


def solve_by_sweeps(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> NewtonResult:
    """GaussSeidel with the geometry linearised again and again until friction can be held."""
    few = replace(options, full_steps=6)
    history: list[float] = []
    steps, enough = 0, ENOUGH
    for k in range(LINEARISATIONS):
        linearised = LinearisedStep(problem, z, stiff=k > 0, pairwise=True)
        far = linearised.largest_violation(linearised.nu, linearised.start)
        if not far < LOST:
            break
        if far < problem.friction_tolerance:
            found = with_friction_held(problem, z, few)
            history += found.history
            steps += found.iterations
            if found.converged and problem.certified(found.z):
                return NewtonResult(found.z, True, steps, history)
            enough *= CLOSER
        elif far > STEEP:
            linearised.T = [np.zeros_like(T) for T in linearised.T]
        tolerance = max(FORCING * far, enough * problem.friction_tolerance)
        nu, P, more = solve_linearised(linearised, tolerance)
        steps += more
        if k >= PATIENCE and not linearised.largest_violation(nu, P) < tolerance:
            nu, P, _, more = proximal_rounds(linearised, nu, P, ROUNDS, tolerance)
            steps += more
        z = linearised.unknowns(nu, P)
    return NewtonResult(z, False, steps, history)


def solve_linearised(linearised: LinearisedStep, tolerance: float) -> tuple[np.ndarray, Impulses, int]:
    """Velocities and impulses by sweeps, and by rounds in subproblems; how many Newton steps."""
    solver = GaussSeidel(linearised)
    nu, P, steps = linearised.nu, linearised.start, 0
    for _ in range(ALTERNATIONS):
        swept = solver.sweep(nu, P, tolerance, SWEEPS)
        nu, P = swept.nu, swept.P
        if swept.residual < tolerance or not swept.residual < LOST:
            break
        parts = subproblem_bodies(linearised, P, swept.violations, tolerance)
        if np.sum(parts) > LARGE * parts[0].size:
            continue
        for inside in parts:
            part = LocalSubproblem(linearised, nu, P, inside)
            there, found, far, more = proximal_rounds(part, part.nu, part.start, ROUNDS, INNER * tolerance)
            if far < BETTER * part.largest_violation(part.nu, part.start):
                part.write_back(nu, P, there, found)
            steps += more
    return nu, P, steps


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
