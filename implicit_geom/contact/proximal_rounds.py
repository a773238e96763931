"""Proximal rounds (a proximal point method) for steps with many contacts at once, as in a pile.

With the geometry linearised, contact velocities u (gap over step, scaled slip) are linear in the velocities
nu, and a step is

    m (nu - nu_free) = W P,      P = proj(P - u(nu))

with proj on P_n >= 0 and then on the ball |S| <= mu P_n. Round k solves, by Newton's method with a line
search in nu alone,

    m (nu - nu_free) = W proj(P_k - u(nu) / eps),      P_{k+1} = proj(P_k - u / eps)

which is well behaved for large eps and nearly the step itself for small ones: eps falls while that is
easy and rises where it is not. A fixed point is a solution for any eps: nothing is regularised. Between
rounds the geometry is linearised anew, and the unchanged equations of the step decide when it is solved.
`interior_point` gives initial guesses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from implicit_geom.contact.interior_point import solve_by_interior_point
from implicit_geom.contact.linearised import FrictionProblem, Impulses, LinearisedStep
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions, NewtonResult, solve_by_newton

LINE = 6  # halvings of a step
ARMIJO = 1e-3
EXACT = 1e-14  # residual of the momentum over the speed scale that is left by a round


@dataclass(frozen=True)
class ProximalOptions:
    """Limits of the rounds, and how the proximal parameter eps falls and rises."""

    eps: float = 1e-3
    rounds: int = 25
    fall: float = 0.7
    rise: float = 3.0
    smallest: float = 1e-12
    largest: float = 1e3
    easy: int = 4  # Newton steps of a round after which eps falls
    steps: int = 12  # Newton steps of a round
    most: int = 10_000  # Newton steps of all rounds
    inexact: float = 0.0  # momentum that a round may leave, over the residual of the contact laws before it


AGAIN = ProximalOptions(eps=0.1, rounds=120, fall=0.3, inexact=1e-2)
LINEARISATIONS = 8  # of a step
HOPELESS = 2e-3  # residual of a linearised step, over the speed scale, that is not worth another
# residual over the speed scale that ends linearised steps: first ones, last
ROUGH, FINE = (1e-4, 1e-6), 1e-12
FAR = 1e-3  # residual over the speed scale from which another start may be better
BETTER = 1e-2  # part of it that the other start must leave at most
STUCK = 0.9  # of the residual that is left by a round that got nowhere
JAMMED = 0.1  # fall of eps then


def proximal_round(
    linearised: FrictionProblem,
    anchor: Impulses,
    nu: np.ndarray,
    eps: float,
    proximal: ProximalOptions,
    precision: float,
) -> tuple[np.ndarray, Impulses, bool, int]:
    """Solve f(nu, proj(anchor - u / eps)) = 0 from nu; velocities, impulses, whether solved, Newton steps."""

    def evaluate(nu: np.ndarray) -> tuple[Impulses, Impulses, np.ndarray, float]:
        z = [
            p - u / (eps * a)
            for p, u, a in zip(anchor, linearised.u(nu), linearised.delassus_diagonal, strict=True)
        ]
        P = linearised.project(z)
        f = linearised.f(nu, P)
        return z, P, f, float(np.linalg.norm(f * linearised.weight))

    z, P, f, size = evaluate(nu)
    speed = float(np.linalg.norm(linearised.weight))
    # rounding: of the velocities, and of impulses that are differences of large numbers for small eps
    large = max([0.0, *(float(np.linalg.norm(a - b)) for a, b in zip(anchor, z, strict=True))])
    good = precision * speed + 1e-16 * large * linearised.heaviest
    fair = max(1e-9 * speed, good)
    for k in range(proximal.steps):
        if size <= good:
            return nu, P, True, k
        dnu = linearised.factors(linearised.slopes(z), eps).solve(-f)
        step = 1.0
        for _ in range(LINE):
            trial = evaluate(nu + step * dnu)
            if trial[3] < (1 - ARMIJO * step) * size or trial[3] <= good:
                break
            step *= 0.5
        else:
            return nu, P, size < fair, k + 1
        nu = nu + step * dnu
        z, P, f, size = trial
    return nu, P, size < fair, proximal.steps


def proximal_rounds(
    linearised: FrictionProblem, nu: np.ndarray, P: Impulses, proximal: ProximalOptions, tolerance: float
) -> tuple[np.ndarray, Impulses, float, int]:
    """Rounds until the linearised step is solved to `tolerance`; the best found, how far, Newton steps."""
    eps, steps = proximal.eps, 0
    best = (nu, P, np.inf)
    r = linearised.largest_violation(nu, P)
    for _ in range(proximal.rounds):
        try:
            precision = max(EXACT, proximal.inexact * min(r, best[2]))
            there, found, solved, k = proximal_round(linearised, P, nu, eps, proximal, precision)
        except RuntimeError:  # a singular matrix
            there, found, solved, k = nu, P, False, 1
        steps += k
        if steps > proximal.most:
            break
        if not solved:
            eps = eps * proximal.rise
            if eps > proximal.largest:
                break
            continue
        P, nu = found, there
        r = linearised.largest_violation(nu, P)
        stuck = r > STUCK * best[2]
        if r < best[2]:
            best = (nu, P, r)
        if r < tolerance:
            break
        if k <= proximal.easy:
            # (impulses of a jammed loop grow by r / eps in a round, until one of its contacts slips)
            eps = max(eps * (JAMMED if stuck and k <= 1 else proximal.fall), proximal.smallest)
    return (*best, steps)


# velocities and impulses that rounds start from
InitialGuess = Callable[[LinearisedStep], tuple[np.ndarray, Impulses]]


def from_last_impulses(linearised: LinearisedStep) -> tuple[np.ndarray, Impulses]:
    """From the last step's impulses."""
    return linearised.nu, linearised.start


def from_zero_impulses(linearised: LinearisedStep) -> tuple[np.ndarray, Impulses]:
    """Without impulses."""
    return linearised.nu, [np.zeros_like(p) for p in linearised.start]


def solve_by_rounds(
    problem: StepNCP, z: np.ndarray, begin: InitialGuess, proximal: ProximalOptions, options: NewtonOptions
) -> NewtonResult:
    """Rounds with the geometry linearised again and again, each time followed by full Newton steps."""
    few = replace(options, full_steps=6)
    history: list[float] = []
    steps, last = 0, np.inf
    for k in range(LINEARISATIONS):
        linearised = LinearisedStep(problem, z, stiff=k > 0)
        # (the first linearisations are worth a few digits only)
        tolerance = ROUGH[k] if k < len(ROUGH) else FINE
        if k == 0:
            nu, P, r, more = proximal_rounds(linearised, *begin(linearised), proximal, tolerance)
        else:
            nu, P, r, more = proximal_rounds(linearised, *_known_or_better(linearised), AGAIN, tolerance)
        steps += more
        if not r < HOPELESS:
            break
        z = linearised.unknowns(nu, P)
        found = solve_by_newton(problem, z, few, damped=False)
        history += found.history
        steps += found.iterations
        if found.converged and problem.certified(found.z):
            return NewtonResult(found.z, True, steps, history)
        measure = found.history[0]
        if k > 2 and measure > 0.5 * last:
            break
        last = measure
    return NewtonResult(z, False, steps, history)


def _known_or_better(linearised: LinearisedStep) -> tuple[np.ndarray, Impulses]:
    """The last linearisation's solution, or what the interior-point method finds where that is better."""
    far = linearised.largest_violation(linearised.nu, linearised.start)
    if far >= FAR:
        found = solve_by_interior_point(linearised, convex=False)
        if linearised.largest_violation(*found) < BETTER * far:
            return found
    return from_last_impulses(linearised)
