"""The largest gain of energy of an island of contacts in a step of a run: how much, when and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model, State
from implicit_geom.run.record.solve_log import SolveLog
from implicit_geom.steppers.island_energy import island_energies

BLOCK = 20_000  # bodies times solves that are computed at once: bounds the memory, not the result


@dataclass(frozen=True)
class IslandGain:
    """What an island created in a step, over its energy at hand; the time at which the step began, s."""

    share: float
    time: float
    bodies: tuple[int, ...]


def largest_island_gain(
    model: Model, initial: State, solves: SolveLog, tolerance: float
) -> IslandGain | None:
    """None where nothing was created beyond the solver's tolerance; see `steppers.island_energy`."""
    scale, best = EnergyScale(model, tolerance), None
    step, size = solves.column("table", "step"), max(1, BLOCK // len(model.bodies))
    begin = 0
    while begin < len(solves):
        last = step[min(begin + size, len(solves)) - 1]
        end = int(np.searchsorted(step, last, side="right"))  # (whole steps)
        start = solves.end(begin - 1) if begin else initial
        found = _of_block(model, scale, start, solves, begin, end)
        best = found if best is None or (found is not None and found.share > best.share) else best
        begin = end
    return best


def _of_block(
    model: Model, scale: EnergyScale, start: State, log: SolveLog, begin: int, end: int
) -> IslandGain | None:
    solves = log.part(begin, end)
    found, table = island_energies(model, scale, start, solves), solves.table
    if not len(found.solve):
        return None
    known = found.label >= 0
    first = np.full(len(found.solve), len(model.bodies))
    np.minimum.at(first, found.label[known], np.nonzero(known)[1])
    path = solves.path(start)
    before = State(0.0, path.x[:-1], path.q[:-1], path.v[:-1], path.w[:-1])
    h = np.where(table["h"] == 0.0, np.inf, np.abs(table["h"]))[:, None]
    nothing = np.bincount(found.label[known], scale.rounding(before, h)[known])
    # of the parts of a step together: those of a composed one gain and lose by turns
    key = table["step"][found.solve] * (len(model.bodies) + 1) + first
    _, row, part = np.unique(key, return_index=True, return_inverse=True)
    made, rounding = np.bincount(part, found.made), np.zeros(len(row))
    hand = np.zeros(len(row))
    np.maximum.at(hand, part, found.at_hand)
    np.maximum.at(rounding, part, nothing)
    share = (made - rounding) / np.maximum(hand, np.finfo(float).tiny)
    k = int(np.argmax(share))
    if share[k] <= 0:
        return None
    solve = found.solve[row[k]]
    bodies = np.flatnonzero(found.label[solve] == row[k])
    return IslandGain(float(share[k]), float(table["time"][solve]), tuple(bodies.tolist()))
