"""Bodies that slide over a seam of a union.

Where two corners pass each other flush, the closest-point equations have two solutions at the end of the
step: the corners strike, with the normal along the surface, or one body is over the other and nothing
strikes. Newton's method finds either. A pair with corners on both sides, one of them of a union, that did
not press before is therefore left out once: where it does not overlap at the end of the motion without it,
the step is solved again from there. Deviation: C07 leaves open which of several solutions is meant.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.model.contact_group import ContactGroup
from implicit_geom.model.model import State
from implicit_geom.rotation import rotational_velocity
from implicit_geom.solvers.newton import NewtonResult, solve_by_newton
from implicit_geom.steppers.search import SolutionSearch

FLUSH = 1e-9  # overlap, over the smaller piece, that counts as none
STRIKE = 0.1  # approach along the normal at the start, over the speed scale, that counts as a blow


def passed_over(
    search: SolutionSearch,
    problem: StepNCP,
    found: NewtonResult | None,
    state: State,
    h: float,
    impulse: np.ndarray,
) -> tuple[StepNCP, NewtonResult] | None:
    """The solution in which corners pass each other, and its equations; None where none strike or can pass.

    `found` is the solution at hand, if there is one.
    """
    doubtful = _striking(search, problem, found, state)
    while doubtful:
        rest = [c for c in problem.candidates if c not in doubtful]
        reduced = search.equations(type(problem), rest)
        without, _, _ = search.solve(reduced, state, h, impulse, thorough=False, last=None)
        if without is None:
            return None
        there = state.advanced(search.velocities(reduced, without.z), h)
        over = {c: u for c in doubtful if (u := _flush(search, c, there)) is not None}
        if len(over) == len(doubtful):
            return _solved(search, problem, reduced, without, over, state, h, impulse)
        doubtful = list(over)
    return None


def _striking(
    search: SolutionSearch, problem: StepNCP, found: NewtonResult | None, state: State
) -> list[int]:
    """Pairs at seams that did not press before, and that strike in the solution at hand."""
    pairs, warm = search.model.pairs, search.memory.warm
    out = []
    for (g, own, members), inputs in zip(problem.members(), problem.gather, strict=True):
        at = g.kernel.scheme("euler").layout.at["P_n"].start
        doubtful = np.array([pairs.at_seam(c) and warm[c].unknowns[at] <= 0 for c in members])
        if found is not None and np.any(doubtful):
            doubtful &= found.z[own[:, g.kernel.layout.at["P_n"].start]] > 0
            seen = g.seen(found.z[inputs])
            # stage 1 of RATTLE pushes along the normal at the start
            frames = ("",) if problem.scheme == "euler" else ("", "end_")
            approach = np.min([_rate(g, seen, frame, state) for frame in frames], axis=0)
            doubtful &= approach < -STRIKE * g.get("U")[:, 0]
        out += [c for c, doubt in zip(members, doubtful, strict=True) if doubt]
    return sorted(out)


def _rate(g: ContactGroup, seen: dict[str, np.ndarray], frame: str, state: State) -> np.ndarray:
    """(n,) rate of the gap of a group's contacts for the velocities at the start, m/s."""
    one, two = (
        state.v[b] + rotational_velocity(state.w[b], seen[f"{frame}r{k}"])
        for k, b in ((1, g.first), (2, g.second))
    )
    return np.asarray(np.einsum("ni,ni->n", seen[f"{frame}n"], two - one))


def _flush(search: SolutionSearch, c: int, there: State) -> np.ndarray | None:
    """Geometry unknowns of a pair at the poses of a state; None where it overlaps."""
    i, j = search.model.pairs[c].pieces
    size = float(np.min(search.model.pieces.size[[i, j]]))
    at = find_closest_points(search.model.placed(there, i), search.model.placed(there, j))
    return at.unknowns if at.points.gap >= -FLUSH * size else None


def _solved(
    search: SolutionSearch,
    problem: StepNCP,
    reduced: StepNCP,
    without: NewtonResult,
    over: dict[int, np.ndarray],
    state: State,
    h: float,
    impulse: np.ndarray,
) -> tuple[StepNCP, NewtonResult] | None:
    """The whole step, started from the motion without the pairs `over`."""
    whole = type(problem)(search.model, problem.candidates, search.options.condensed)
    z = whole.prepare(state, h, impulse, search.memory.warm, search.tolerance)
    z[: whole.bodies.size] = without.z[: reduced.bodies.size]
    known = dict(zip(reduced.order, reduced.contact_slices, strict=True))
    for c, where in zip(whole.order, whole.contact_slices, strict=True):
        if c in over:
            layout = search.model.pairs[c].kernel.scheme(whole.scheme).layout
            u = np.zeros(layout.size)
            u[: layout.geometry] = over[c]
            u[layout.at["D"]] /= abs(h)
            z[where] = u
        else:
            z[where] = without.z[known[c]]
    found = solve_by_newton(whole, z, search.options.newton, damped=False)
    if not (found.converged and whole.certified(found.z)):
        return None
    nu = search.velocities(whole, found.z)
    if search.memory.broad.missed(state, nu, abs(h), whole.candidates) or search.crossing(
        whole, found.z, state, h
    ):
        return None
    found.iterations += without.iterations
    return whole, found
