"""Proximal rounds: a way to solutions of steps with many contacts at once, as in a pile.

With the geometry linearised, contact velocities u (gap over step, scaled slip) are linear in the velocities
nu, and a step is

    m (nu - nu_free) = W P,      P = proj(P - u(nu))

with proj on P_n >= 0 and then on the ball |S| <= mu P_n. Round k solves, by Newton's method with a line
search in nu alone,

    m (nu - nu_free) = W proj(P_k - u(nu) / eps),      P_{k+1} = proj(P_k - u / eps)

which is well behaved for large eps and nearly the step itself for small ones: eps falls while that is
easy and rises where it is not. A fixed point is a solution for any eps: nothing is regularised. Between
rounds the geometry is linearised anew, and the unchanged equations of the step decide when it is solved.
`interior` gives the starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from implicit_geom.contact.interior_point import interior
from implicit_geom.contact.linearised import Frozen, Impulses, LinearStep
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions, Solution, solve

LINE = 6  # halvings of a step
ARMIJO = 1e-3
EXACT = 1e-14  # residual of the momentum over the speed scale that is left by a round


@dataclass(frozen=True)
class Effort:
    """How the rounds are made."""

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


AGAIN = Effort(eps=0.1, rounds=120, fall=0.3, inexact=1e-2)
LINEARISATIONS = 8  # of a step
HOPELESS = 2e-3  # residual of a linearised step, over the speed scale, that is not worth another
# residual over the speed scale that ends linearised steps: first ones, last
ROUGH, FINE = (1e-4, 1e-6), 1e-12
FAR = 1e-3  # residual over the speed scale from which another start may be better
BETTER = 1e-2  # part of it that the other start must leave at most
STUCK = 0.9  # of the residual that is left by a round that got nowhere
JAMMED = 0.1  # fall of eps then


def one_round(
    frozen: LinearStep, anchor: Impulses, nu: np.ndarray, eps: float, effort: Effort, precision: float
) -> tuple[np.ndarray, Impulses, bool, int]:
    """Solve f(nu, proj(anchor - u / eps)) = 0 from nu; velocities, impulses, whether solved, Newton steps."""

    def evaluate(nu: np.ndarray) -> tuple[Impulses, Impulses, np.ndarray, float]:
        z = [p - u / (eps * a) for p, u, a in zip(anchor, frozen.u(nu), frozen.softness, strict=True)]
        P, _ = frozen.project(z)
        f = frozen.f(nu, P)
        return z, P, f, float(np.linalg.norm(f * frozen.weight))

    z, P, f, size = evaluate(nu)
    speed = float(np.linalg.norm(frozen.weight))
    # rounding: of the velocities, and of impulses that are differences of large numbers for small eps
    large = max([0.0, *(float(np.linalg.norm(a - b)) for a, b in zip(anchor, z, strict=True))])
    good = precision * speed + 1e-16 * large * frozen.heaviest
    fair = max(1e-9 * speed, good)
    for k in range(effort.steps):
        if size <= good:
            return nu, P, True, k
        _, slopes = frozen.project(z, slopes=True)
        dnu = frozen.factors(slopes, eps).solve(-f)
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
    return nu, P, size < fair, effort.steps


def make_rounds(
    frozen: LinearStep, nu: np.ndarray, P: Impulses, effort: Effort, tolerance: float
) -> tuple[np.ndarray, Impulses, float, int]:
    """Rounds until the linearised step is solved to `tolerance`; the best found, how far, Newton steps."""
    eps, steps = effort.eps, 0
    best = (nu, P, np.inf)
    r = frozen.far(nu, P)
    for _ in range(effort.rounds):
        try:
            precision = max(EXACT, effort.inexact * min(r, best[2]))
            there, found, solved, k = one_round(frozen, P, nu, eps, effort, precision)
        except RuntimeError:  # a singular matrix
            there, found, solved, k = nu, P, False, 1
        steps += k
        if steps > effort.most:
            break
        if not solved:
            eps = eps * effort.rise
            if eps > effort.largest:
                break
            continue
        P, nu = found, there
        r = frozen.far(nu, P)
        stuck = r > STUCK * best[2]
        if r < best[2]:
            best = (nu, P, r)
        if r < tolerance:
            break
        if k <= effort.easy:
            # (impulses of a jammed loop grow by r / eps in a round, until one of its contacts slips)
            eps = max(eps * (JAMMED if stuck and k <= 1 else effort.fall), effort.smallest)
    return (*best, steps)


Begin = Callable[[Frozen], tuple[np.ndarray, Impulses]]  # velocities and impulses that rounds start from


def as_they_are(frozen: Frozen) -> tuple[np.ndarray, Impulses]:
    """From the last step's impulses."""
    return frozen.nu, frozen.start


def from_nothing(frozen: Frozen) -> tuple[np.ndarray, Impulses]:
    """Without impulses."""
    return frozen.nu, [np.zeros_like(p) for p in frozen.start]


def by_rounds(
    problem: StepNCP, z: np.ndarray, begin: Begin, effort: Effort, options: NewtonOptions
) -> Solution:
    """Rounds with the geometry linearised again and again, each time followed by full Newton steps."""
    few = replace(options, full_steps=6)
    history: list[float] = []
    steps, last = 0, np.inf
    for k in range(LINEARISATIONS):
        frozen = Frozen(problem, z, stiff=k > 0)
        # (the first linearisations are worth a few digits only)
        tolerance = ROUGH[k] if k < len(ROUGH) else FINE
        if k == 0:
            nu, P, r, more = make_rounds(frozen, *begin(frozen), effort, tolerance)
        else:
            nu, P, r, more = make_rounds(frozen, *_known_or_better(frozen), AGAIN, tolerance)
        steps += more
        if not r < HOPELESS:
            break
        z = frozen.unknowns(nu, P)
        found = solve(problem, z, few, damped=False)
        history += found.history
        steps += found.iterations
        if found.converged and problem.certified(found.z):
            return Solution(found.z, True, steps, history)
        measure = found.history[0]
        if k > 2 and measure > 0.5 * last:
            break
        last = measure
    return Solution(z, False, steps, history)


def _known_or_better(frozen: Frozen) -> tuple[np.ndarray, Impulses]:
    """The last linearisation's solution, or what the interior method finds where that is far better."""
    far = frozen.far(frozen.nu, frozen.start)
    if far >= FAR:
        found = interior(frozen, lifted=False)
        if frozen.far(*found) < BETTER * far:
            return found
    return as_they_are(frozen)
