"""The guard of the RATTLE steppers: what energy an island may create or lose, and modes."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from implicit_geom.equations.thresholds import LOSS, SLIDES
from implicit_geom.model.energy import EnergyScale, slides_faster, speeds_at_hand
from implicit_geom.model.model import Model
from implicit_geom.model.records import POSITION, VELOCITY, ContactRecord, Solve
from implicit_geom.steppers.island_energy import IslandEnergies, step_islands


class EnergyGuard:
    """Judges solves, island by island (`steppers.island_energy`).

    `tolerance` is what an island may create in a step, over its energy at hand; it may lose LOSS times that.
    `solved` is the solver's tolerance.
    """

    def __init__(self, model: Model, tolerance: float, solved: float = 0.0) -> None:
        self.model = model
        self.tolerance = tolerance
        self.scale = EnergyScale(model, solved)

    def excess(self, solve: Solve, share: float, rounding: np.ndarray, whole: bool) -> float:
        """Energy, J, by which an island creates more than its share, or loses more than LOSS shares.

        In a whole step an island whose contacts keep their modes may lose no more than its share either: what
        it loses in one phase of a motion it gains in another, and to refuse the gains alone would drain it.
        The loss of an impact is not judged, nor that of Euler's form, the last resort. `rounding` is that of
        each body.
        """
        found = step_islands(self.model, self.scale, solve)
        loss = np.where(found.struck, 0.0, -found.left)
        if solve.form == "euler":
            loss[:] = 0.0
        elif not whole:
            loss /= LOSS
        else:
            for pair in self._changing(solve)[1]:
                at = max(found.label[0, b] for b in self._bodies(pair))
                loss[at] = min(loss[at], max(loss[at] / LOSS, 0.0))
        return self._excess(found, self._made(found, solve), loss, found.at_hand, share, rounding)

    def allows(self, solves: list[Solve], share: float, rounding: np.ndarray) -> bool:
        """Whether solves that make one step together, in which no contact changes its mode, are allowed."""
        each = [step_islands(self.model, self.scale, solve) for solve in solves]
        first, last = each[0], each[-1]
        if any(not np.array_equal(found.label, first.label) for found in each):
            return False
        made = np.sum([self._made(found, solve) for found, solve in zip(each, solves, strict=True)], axis=0)
        loss = -np.sum([found.left for found in each], axis=0) / LOSS
        hand = np.maximum(first.at_hand, last.at_hand)
        return self._excess(first, made, loss, hand, share, rounding) <= 0

    def _made(self, found: IslandEnergies, solve: Solve) -> np.ndarray:
        """Energy that a solve creates, without what lifts bodies out of each other."""
        known = found.label[0] >= 0
        weight = self.scale.strength * self.model.mass[known]
        return found.made - solve.overlap * np.bincount(found.label[0][known], weight, len(found.made))

    def _excess(
        self,
        found: IslandEnergies,
        made: np.ndarray,
        loss: np.ndarray,
        hand: np.ndarray,
        share: float,
        rounding: np.ndarray,
    ) -> float:
        known = found.label[0] >= 0
        allowed = share * hand + np.bincount(found.label[0][known], rounding[known], len(made))
        over = np.maximum(made, loss) - allowed
        return float(np.max(over)) if np.all(np.isfinite(over)) else np.inf

    def modes(self, solve: Solve) -> Hashable | None:
        """Which contacts are closed, and which of them slide; None where that changes within the solve."""
        modes, changing = self._changing(solve)
        return None if changing else modes

    def _changing(self, solve: Solve) -> tuple[Hashable, set[int]]:
        """Modes at the start of a solve, and the pairs that change theirs."""
        found: list[set[tuple[int, bool]]] = []
        speed = speeds_at_hand(self.model, solve.start.v, solve.start.w, solve.h)
        changing = set()
        for stage in (POSITION, VELOCITY):
            modes = set()
            for c in (c for c in solve.contacts if c.stage == stage):
                slides = self._has_friction(c) and slides_faster(self.model, c.pair, c.slip, SLIDES, speed)
                kept = stage != POSITION or slides == c.lagged == c.slid
                if c.impact or c.p_n * solve.h < 0 or not kept:
                    changing.add(c.pair)
                modes.add((c.pair, slides))
            found.append(modes)
        changing |= {pair for pair, _ in found[0] ^ found[1]}
        return frozenset(found[0]), changing

    def _bodies(self, pair: int) -> tuple[int, int]:
        return self.model.pairs[pair].first, self.model.pairs[pair].second

    def _has_friction(self, c: ContactRecord) -> bool:
        return bool(self.model.pairs[c.pair].kernel.kind.components)
