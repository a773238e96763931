"""Whether contact solvers that certify their solutions have found the same motion.

Coulomb's law may have several motions: impulses of redundant contacts are not unique, and where these slide,
each with a friction of its own, neither is the motion. So solvers may differ and all be right. That is
believed on evidence alone. Of solutions that differ by more than `SAME` each is improved by the default
solver, from where it is, to the first of `CERTAIN` if it gets there. Where two of them then certify at it and
differ by more than `SAME`, and by `KEPT` of what was claimed, the problem has several motions: had it one
alone, they would have come together as their residuals fell. Where that shows nothing, solutions from random
impulses are looked at in the same way, then those that certify at the second of `CERTAIN`. If that shows
nothing either, a solver claimed what it had not reached.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from implicit_geom.solvers.contact.law import on_cones
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution
from implicit_geom.solvers.contact.solve import solve_contact

SAME = 1e-6  # m/s, of contact velocities
CERTAIN = (1e-10, 1e-9)  # m/s, of residuals
KEPT = 0.5
STARTS, BUDGET = 12, 200  # random impulses, and factorisations for each before a fallback
SPREAD = 0.1  # m/s: impulses over masses that are added to a solution's
AGREE, SEVERAL, LOOSE = "agree", "several motions", "loose"


def agreement(problem: ContactProblem, found: dict[str, ContactSolution]) -> dict[str, Any]:
    """How far solutions that solvers claim are apart, and why.

    solvers       how many claim one
    difference    the largest of two of them, m/s, and `pair`, whose they are
    certified     that of two improved ones; `certificate`: the larger residual of these two, m/s
    verdict       agree, several motions, loose
    """
    claimed = {name: s for name, s in found.items() if s.converged}
    difference, pair = furthest(claimed)
    row = {"solvers": len(claimed), "difference": difference, "pair": " ".join(pair)}
    if difference <= SAME:
        return {**row, "certified": np.nan, "certificate": np.nan, "verdict": AGREE}
    improved = {name: solve_contact(problem, tolerance=CERTAIN[0], start=s) for name, s in claimed.items()}
    shown = _several(improved, claimed, difference)
    if not shown[1] <= CERTAIN[0]:
        improved |= _from_random_impulses(problem, next(iter(claimed.values())))
        shown = _several(improved, claimed, difference)
    verdict = LOOSE if np.isnan(shown[0]) else SEVERAL
    return {**row, "certified": shown[0], "certificate": shown[1], "verdict": verdict}


def furthest(solutions: dict[str, ContactSolution]) -> tuple[float, tuple[str, ...]]:
    """The largest difference of contact velocities between two solutions, m/s, and whose they are."""
    pairs = [(_apart(solutions, pair), pair) for pair in combinations(solutions, 2)]
    return max(pairs, default=(0.0, ()))


def _several(
    improved: dict[str, ContactSolution], claimed: dict[str, ContactSolution], difference: float
) -> tuple[float, float]:
    """By how much two motions differ, and the larger residual of the two; NaN where none are shown."""
    for certain in CERTAIN:
        sure = {name: s for name, s in improved.items() if s.error <= certain}
        for apart, pair in sorted(((_apart(sure, p), p) for p in combinations(sure, 2)), reverse=True):
            before = _apart(claimed, pair) if set(pair) <= set(claimed) else difference
            if apart > max(SAME, KEPT * before):
                return apart, max(sure[name].error for name in pair)
    return np.nan, np.nan


def _apart(solutions: dict[str, ContactSolution], pair: tuple[str, ...]) -> float:
    one, two = (solutions[name].contact_velocity for name in pair)
    return float(np.max(np.abs(one - two)))


def _from_random_impulses(problem: ContactProblem, known: ContactSolution) -> dict[str, ContactSolution]:
    """Solutions of the default solver from impulses about known ones."""
    rng = np.random.default_rng(0)
    found = {}
    for k in range(STARTS):
        s = problem.ball_impulses(known.impulse).reshape(problem.contacts, -1) * rng.uniform(0, 2)
        s = s + SPREAD * problem.effective_mass[:, None] * rng.normal(size=s.shape)
        start = problem.scaling * on_cones(s, problem.coefficients).ravel()
        found[f"start {k}"] = solve_contact(problem, tolerance=CERTAIN[0], start=start, budget=BUDGET)
    return found
