"""The guard of the RATTLE steppers: what energy a step may gain, and whether contacts keep their modes."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from implicit_geom.equations.thresholds import SLIDES, SLOW_SHARE, SLOW_TURN
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.ledger import step_ledger
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import POSITION, VELOCITY, ContactRecord, Solve


class EnergyGuard:
    """Judges solves; `tolerance` is the gain in a step, over the energy above the lowest configuration."""

    def __init__(self, model: Model, tolerance: float) -> None:
        self.model = model
        self.tolerance = tolerance
        self.scale = EnergyScale(model)

    def share(self, state: State, h: float) -> float:
        """The share of energy that a step may gain: a tenth of the tolerance where no body turns far."""
        turn = abs(h) * float(np.max(np.linalg.norm(state.w, axis=1)))
        return self.tolerance * (SLOW_SHARE if turn < SLOW_TURN else 1.0)

    def gain(self, solve: Solve) -> float:
        """Gain of energy, J, without the work of applied forces and what lifts bodies out of each other."""
        entry = step_ledger(self.model, solve)
        return entry.change - entry.work - self.scale.weight() * solve.overlap

    def allowed(self, start: State, end: State, share: float) -> float:
        """That share of the energy above the lowest configuration, J."""
        return share * max(self.scale.above_lowest(start), self.scale.above_lowest(end))

    def excess(self, solve: Solve, share: float, rounding: float, whole: bool) -> float:
        """Energy, J, by which a solve gains more than its share.

        A whole step in which no contact changes its mode may not lose more either: what it loses in one
        phase of a motion it gains in another, and to refuse the gains alone would drain the motion.
        """
        gain = self.gain(solve)
        if whole and self.modes(solve) is not None:
            gain = max(gain, abs(step_ledger(self.model, solve).remainder))
        return gain - self.allowed(solve.start, solve.end, share) - rounding

    def modes(self, solve: Solve) -> Hashable | None:
        """Which contacts are closed, and which of them slide; None where that changes within the solve."""
        found: list[set[tuple[int, bool]]] = []
        speed = max(1.0, float(np.max(np.abs(solve.half))))
        for stage in (POSITION, VELOCITY):
            modes = set()
            for c in (c for c in solve.contacts if c.stage == stage):
                if c.impact or c.p_n * solve.h < 0:
                    return None
                slides = self._has_friction(c) and float(np.linalg.norm(c.slip)) > SLIDES * speed
                if stage == POSITION and not slides == c.lagged == c.slid:
                    return None
                modes.add((c.pair, slides))
            found.append(modes)
        return frozenset(found[0]) if found[0] == found[1] else None

    def _has_friction(self, c: ContactRecord) -> bool:
        return bool(self.model.pairs[c.pair].kernel.kind.components)
