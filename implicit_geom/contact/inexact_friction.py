"""Steps with many contacts whose friction law need not hold to all digits (`friction_tolerance`).

A linearised step is solved by sweeps over its contacts, and by rounds where those get nowhere. Once the law
of friction holds well enough at a point of the true step, friction's impulses are held and all else, which
is an easy problem without their feedback, is solved by Newton's method to the tolerance of any step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.contact.gauss_seidel import LOST, Sweeps
from implicit_geom.contact.linearised import Frozen, Impulses
from implicit_geom.contact.proximal_rounds import AGAIN, make_rounds
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.contact.subproblems import Spot, bodies_of_spots
from implicit_geom.solvers.newton import NewtonOptions, Solution, solve

LINEARISATIONS = 20
FORCING = 0.2  # residual that ends the sweeps of a linearisation, over that of its start
ENOUGH = 0.5  # the same over the tolerance of friction
CLOSER = 0.4  # fall of it each time that friction, held, does not obey its law to the tolerance
STEEP = 0.2  # residual beyond which the contacts' turning is left out
SWEEPS = 200  # before spots are looked at
TURNS = 6  # of sweeps and spots
PATIENCE = 6  # linearisations after which rounds over all contacts help sweeps that get nowhere
LARGE = 0.2  # part of the bodies in spots that calls for more sweeps instead
ROUNDS = replace(AGAIN, most=100)
RELEASES = 4  # solves with friction held, each without that of contacts which have opened
OPEN = 1e-9  # normal impulse over the speed scale
INNER = 0.3  # residual that ends rounds at a spot, over that of the whole
BETTER = 0.5  # residual of a spot that is worth taking, over that before


def by_sweeps(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> Solution:
    """Sweeps with the geometry linearised again and again until friction can be held."""
    few = replace(options, full_steps=6)
    history: list[float] = []
    steps, enough = 0, ENOUGH
    for k in range(LINEARISATIONS):
        frozen = Frozen(problem, z, stiff=k > 0, pairwise=True)
        far = frozen.far(frozen.nu, frozen.start)
        if not far < LOST:
            break
        if far < problem.loose_friction:
            found = with_friction_held(problem, z, few)
            history += found.history
            steps += found.iterations
            if found.converged and problem.certified(found.z):
                return Solution(found.z, True, steps, history)
            enough *= CLOSER
        elif far > STEEP:
            frozen.T = [np.zeros_like(T) for T in frozen.T]
        tolerance = max(FORCING * far, enough * problem.loose_friction)
        nu, P, more = solve_linearised(frozen, tolerance)
        steps += more
        if k >= PATIENCE and not frozen.far(nu, P) < tolerance:
            nu, P, _, more = make_rounds(frozen, nu, P, ROUNDS, tolerance)
            steps += more
        z = frozen.unknowns(nu, P)
    return Solution(z, False, steps, history)


def solve_linearised(frozen: Frozen, tolerance: float) -> tuple[np.ndarray, Impulses, int]:
    """Velocities and impulses by sweeps and by rounds at the hard spots, and how many Newton steps."""
    sweeps = Sweeps(frozen)
    nu, P, steps = frozen.nu, frozen.start, 0
    for _ in range(TURNS):
        swept = sweeps.go(nu, P, tolerance, SWEEPS)
        nu, P = swept.nu, swept.P
        if swept.far < tolerance or not swept.far < LOST:
            break
        spots = bodies_of_spots(frozen, P, swept.violations, tolerance)
        if np.sum(spots) > LARGE * spots[0].size:
            continue
        for inside in spots:
            spot = Spot(frozen, nu, P, inside)
            there, found, far, more = make_rounds(spot, spot.nu, spot.start, ROUNDS, INNER * tolerance)
            if far < BETTER * spot.far(spot.nu, spot.start):
                spot.put(nu, P, there, found)
            steps += more
    return nu, P, steps


def with_friction_held(problem: StepNCP, z: np.ndarray, options: NewtonOptions) -> Solution:
    """The step with the impulses of friction in z: converged where their law holds well enough, too."""
    steps, held = 0, z
    for _ in range(RELEASES):
        problem.hold(held)
        found = solve(problem, held, options, damped=False)
        problem.hold(None)
        steps += found.iterations
        if not found.converged:
            break
        held = _released(problem, found.z)
        if np.array_equal(held, found.z):
            far = float(np.max(np.abs(problem.residual(held, 0.0)) / problem.tolerance))
            return Solution(held, far <= 1, steps, [*found.history, far])
    return Solution(z, False, steps, found.history)


def _released(problem: StepNCP, z: np.ndarray) -> np.ndarray:
    """z without friction in contacts that are open."""
    z = z.copy()
    if problem.model.friction_residual == "projection":
        for g, own, _ in problem.members():
            at = g.kernel.layout.at
            is_open = z[own[:, at["P_n"].start]] <= OPEN * g.get("U")[:, 0]
            z[own[is_open][:, at["S"]]] = 0.0
    return z
