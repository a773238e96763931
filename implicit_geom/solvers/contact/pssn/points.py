"""Proximal points alone, without sweeps: slow growth of c, and weights by each contact's own Delassus block.

In piles of pressed bodies, whose contacts stick in loops, sweeps undo what the proximal points have found.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.pssn.newton import Newton

EASY = 4  # Newton steps after which c grows
GROWTH, SHRINK = 1.5, 1 / 3  # of c
JAMMED = 10.0  # growth of c where nothing moves: impulses of a loop grow by c until one of its contacts slips
STUCK = 0.9  # of the error that is left then
SMALLEST, LARGEST = 1e-3, 1e12  # c
POINTS = 250
ROUNDING = 3e-14  # tolerance of momentum over c times the speed: P(v) amplifies the rounding of v by c
PATIENCE = 40  # points without a better one


class Seen(Protocol):
    """What a search knows: see `pssn.solver.Search`."""

    problem: ContactProblem
    tolerance: float
    history: list[float]
    error: float
    outer: int
    v: np.ndarray

    @property
    def speed(self) -> float: ...

    @property
    def newton(self) -> Newton: ...

    def seen(self, s: np.ndarray) -> bool: ...


def own_weights(problem: ContactProblem) -> np.ndarray:
    """(d n_c,) 1 / W_nn, and for friction one over the largest diagonal entry of its rows."""
    own = np.einsum("nii->ni", problem.W_blocks).copy()
    own[:, 1:] = own[:, 1:].max(axis=1, keepdims=True)
    return np.asarray(1 / np.where(own > 0, own, own[:, :1])).ravel()


def proximal_points(search: Seen, pb: np.ndarray, c: float, budget: int) -> bool:
    """Points from pb, which was seen last; whether one is a solution before the budget is spent."""
    weights = own_weights(search.problem)
    since = 0
    for _ in range(POINTS):
        if budget <= 0 or c < SMALLEST or since > PATIENCE:
            break
        search.outer += 1
        enough = max(search.tolerance, ROUNDING * c * search.speed)
        found = search.newton(search.v, pb, c * weights, enough, c)
        budget -= max(found.steps, 1)
        if not found.solved:
            c *= SHRINK
            continue
        pb, before = found.P, search.error
        if search.seen(pb):
            return True
        since = 0 if search.error < before else since + 1
        if found.steps <= EASY:
            jammed = found.steps <= 1 and search.history[-1] > STUCK * before
            c = min(c * (JAMMED if jammed else GROWTH), LARGEST)
    return False
