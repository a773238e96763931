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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from implicit_geom.interior import interior
from implicit_geom.linearised import Frozen, Impulses
from implicit_geom.newton import NewtonOptions, Solution, solve
from implicit_geom.problem import StepProblem

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


INSIDE = Effort(rounds=12)
SLOW = Effort(eps=0.1, rounds=80, inexact=1e-2)
SHORT = Effort(eps=0.1, rounds=120, fall=0.3, most=40, inexact=1e-2)
AGAIN = Effort(eps=0.1, rounds=120, fall=0.3, inexact=1e-2)
COLD = (
    Effort(0.3, 250, 0.5),
    Effort(0.3, 250, 0.7),
    Effort(0.3, 400, 0.95, 1.5),
    Effort(0.3, 400, 0.85, 2.0),
)


@dataclass(frozen=True)
class Pace:
    """How far a step with its geometry linearised is solved before it is linearised anew."""

    linearisations: int
    forcing: float = 0.0  # residual that ends one, over that of its start
    enough: float = 0.0  # the same over a larger tolerance of friction, for the first of them
    inside: float = 0.0  # precision of the interior method over that of the rounds that go on from there
    better: float = 1e-2  # residual of a start by the interior method that is taken, over what is known
    first: Effort | None = None  # rounds that are tried from what is known before the interior method
    again: Effort = AGAIN
    steep: float = np.inf  # residual over the speed scale beyond which the contacts' turning is left out


CAREFUL = Pace(linearisations=8)
# Where friction need not be exact, linearised steps are not worth more digits than their error.
QUICK = Pace(
    12,
    forcing=0.02,
    enough=0.1,
    inside=0.1,
    better=0.1,
    first=SHORT,
    again=replace(AGAIN, most=150),
    steep=5e-3,
)
CLOSER = 0.3  # fall of `enough` from one linearisation to the next
MANY = 8  # contacts that make rounds worth while
HOPELESS = 2e-3  # residual of a linearised step, over the speed scale, that is not worth another
# residual over the speed scale that ends linearised steps: first ones, last
ROUGH, FINE = (1e-4, 1e-6), 1e-12
FAR = 1e-3  # residual over the speed scale from which another start may be better
STUCK = 0.9  # of the residual that is left by a round that got nowhere
JAMMED = 0.1  # fall of eps then


def one_round(
    frozen: Frozen, anchor: Impulses, nu: np.ndarray, eps: float, effort: Effort, precision: float
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
    frozen: Frozen, nu: np.ndarray, P: Impulses, effort: Effort, tolerance: float
) -> tuple[np.ndarray, Impulses, float, int]:
    """Rounds until the linearised step is solved to `tolerance`, m/s; the best found and how many steps."""
    eps, steps = effort.eps, 0
    best = (nu, P, np.inf)
    r, speed = frozen.residual(P, frozen.u(nu)), frozen.speed
    for _ in range(effort.rounds):
        try:
            precision = max(EXACT, effort.inexact * min(r, best[2]) / speed)
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
        r = frozen.residual(P, frozen.u(nu))
        stuck = r > STUCK * best[2]
        if r < best[2]:
            best = (nu, P, r)
        if r < tolerance:
            break
        if k <= effort.easy:
            # (impulses of a jammed loop grow by r / eps in a round, until one of its contacts slips)
            eps = max(eps * (JAMMED if stuck and k <= 1 else effort.fall), effort.smallest)
    return (*best, steps)


# velocities and impulses that rounds start from, known to the precision given where that is a matter of work
Begin = Callable[[Frozen, float], tuple[np.ndarray, Impulses]]


def as_they_are(frozen: Frozen, _precision: float) -> tuple[np.ndarray, Impulses]:
    """From the last step's impulses."""
    return frozen.nu, frozen.start


def from_nothing(frozen: Frozen, _precision: float) -> tuple[np.ndarray, Impulses]:
    """Without impulses."""
    return frozen.nu, [np.zeros_like(p) for p in frozen.start]


def by_rounds(
    problem: StepProblem, z: np.ndarray, begin: Begin, effort: Effort, options: NewtonOptions
) -> Solution:
    """Rounds with the geometry linearised again and again, each time followed by full Newton steps."""
    few = replace(options, full_steps=6)
    history: list[float] = []
    steps, last = 0, np.inf
    pace = QUICK if problem.rough_friction else CAREFUL
    for k in range(pace.linearisations):
        frozen = Frozen(problem, z, stiff=k > 0)
        # (the first linearisations are worth a few digits only)
        far = frozen.residual(frozen.start, frozen.u(frozen.nu)) / frozen.speed
        tolerance = ROUGH[k] if k < len(ROUGH) else FINE
        tolerance = max(tolerance, pace.forcing * far, pace.enough * CLOSER**k * problem.rough_friction)
        if k > 0 and far > pace.steep:
            frozen.T = [np.zeros_like(T) for T in frozen.T]
        if k == 0 and (far >= FAR or pace is CAREFUL):
            start = begin(frozen, pace.inside * tolerance)
            nu, P, r, more = make_rounds(frozen, *start, effort, tolerance * frozen.speed)
        else:
            nu, P, r, more = _from_what_is_known(frozen, far, tolerance, pace)
        steps += more
        if not r < max(HOPELESS, tolerance) * frozen.speed:
            break
        z = frozen.unknowns(nu, P)
        if problem.rough_friction:
            found = _with_friction_held(problem, z, few)
        else:
            found = solve(problem, z, few, damped=False)
        history += found.history
        steps += found.iterations
        if found.converged and problem.certified(found.z):
            return Solution(found.z, True, steps, history)
        measure = found.history[0]
        if k > 2 and measure > 0.5 * last and not problem.rough_friction:
            break
        last = measure
    return Solution(z, False, steps, history)


def _from_what_is_known(
    frozen: Frozen, far: float, tolerance: float, pace: Pace
) -> tuple[np.ndarray, Impulses, float, int]:
    """Rounds from the last linearisation's solution, which is `far` off, or from a better start."""
    known = as_they_are(frozen, 0.0)
    enough = tolerance * frozen.speed
    if far < FAR:
        return make_rounds(frozen, *known, pace.again, enough)
    steps = 0
    if pace.first is not None:
        found = make_rounds(frozen, *known, pace.first, enough)
        if found[2] < enough:
            return found
        steps = found[3]
    nu, P = interior(frozen, pace.inside * tolerance, lifted=False)
    inside = frozen.residual(P, frozen.u(nu)) < pace.better * far * frozen.speed
    again = make_rounds(frozen, *((nu, P) if inside else known), pace.again, enough)
    return (*again[:3], steps + again[3])


def _with_friction_held(problem: StepProblem, z: np.ndarray, options: NewtonOptions) -> Solution:
    """The step with the impulses of friction in z: converged where their law holds well enough, too."""
    problem.hold(z)
    found = solve(problem, z, options, damped=False)
    problem.hold(None)
    if not found.converged:
        return replace(found, z=z)
    far = float(np.max(np.abs(problem.residual(found.z, 0.0)) / problem.tolerance))
    return Solution(found.z, far <= 1, found.iterations, [*found.history, far])


def go_on(problem: StepProblem, z: np.ndarray, options: NewtonOptions) -> Solution:
    """Rounds from z, whose impulses are known for most of the contacts."""
    return by_rounds(problem, z, as_they_are, SLOW, options)


def ways(problem: StepProblem, z: np.ndarray, options: NewtonOptions) -> Iterator[Callable[[], Solution]]:
    """Ways to make rounds from z, cheapest first; none for problems that they do not suit."""
    few = problem.pattern is None and len(problem.order) < MANY
    if few or problem.model.friction_residual == "fritz-john":
        return
    yield partial(by_rounds, problem, z, partial(interior, lifted=False), INSIDE, options)
    yield partial(by_rounds, problem, z, partial(interior, lifted=True), INSIDE, options)
    if problem.pressed(z):
        yield partial(go_on, problem, z, options)
    for effort in COLD:
        yield partial(by_rounds, problem, z, from_nothing, effort, options)
