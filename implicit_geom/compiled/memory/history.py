"""The last solutions of a lane, from which the next one is extrapolated, see `loops.extrapolation`."""

from __future__ import annotations

import numpy as np

from implicit_geom.compiled.loops import extrapolation
from implicit_geom.compiled.memory.arrays import LaneArrays
from implicit_geom.compiled.memory.contacts import CandidateGroup
from implicit_geom.compiled.single.functions import SingleContactFunctions
from implicit_geom.compiled.tables import MarchSlot
from implicit_geom.equations.thresholds import COMPOSITION

LastSolutions = tuple[float, np.ndarray]  # how many of them are of use, (PAST, unknowns)


class History:
    """Solutions, or rates of one body in one contact; weights by substep; kinds of the unknowns."""

    def __init__(self, solutions: np.ndarray, weights: np.ndarray, kinds: np.ndarray, single: bool) -> None:
        self.solutions, self.weights, self.kinds, self.single = solutions, weights, kinds, single

    def entries(self) -> dict[MarchSlot, np.ndarray]:
        return {
            MarchSlot.HISTORY: self.solutions,
            MarchSlot.WEIGHTS: self.weights,
            MarchSlot.KINDS: self.kinds,
        }

    def put(self, lane: int, last: LastSolutions | None) -> float:
        """Set a lane's history; how many solutions of it are of use."""
        fits = last is not None and last[1].shape == self.solutions.shape[:-1]
        if self.single and not fits:
            self.solutions[-1, :, lane] = np.inf  # see `SingleSolves.convergence_constant`
        if last is None or not fits:
            return 0.0
        self.solutions[..., lane] = last[1]
        return last[0]


def of_solutions(
    arrays: LaneArrays,
    lengths: tuple[float, ...],
    unknowns: int,
    velocities: int,
    groups: list[CandidateGroup],
    scheme: str,
) -> History:
    """Of a system of equations; `velocities`: how many of its unknowns, the first, are velocities."""
    solutions = arrays.numbers(extrapolation.PAST, unknowns)
    weights = arrays.numbers(len(COMPOSITION), extrapolation.KINDS, extrapolation.PAST)
    weights[: len(lengths)] = extrapolation.weights(lengths)[..., None]
    layouts = [(g.layout(scheme), g.kind.patches) for g in groups for _ in g.members]
    return History(solutions, weights, arrays.integers(extrapolation.kinds(velocities, layouts)), False)


def of_rates(arrays: LaneArrays, lengths: tuple[float, ...], single: SingleContactFunctions) -> History:
    """Of one body in one contact."""
    rates = arrays.numbers(extrapolation.RATES + 1, 2 * single.unknowns)
    weights = arrays.numbers(len(COMPOSITION), extrapolation.RATES, 2)
    weights[: len(lengths)] = extrapolation.rate_weights(lengths, single.rattle)[..., None]
    return History(rates, weights, arrays.integers([]), True)
