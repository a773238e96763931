"""The guard of steps with impacts as events: what energy an island of contacts may gain in a step."""

from __future__ import annotations

import numpy as np

from implicit_geom.equations.thresholds import LOSS
from implicit_geom.model.ledger import step_ledger
from implicit_geom.model.model import State
from implicit_geom.model.records import Solve
from implicit_geom.steppers.guard import EnergyGuard


class IslandGuard(EnergyGuard):
    """Judges the solves of an island; `tolerance` is what one may create, over the island's energy."""

    def gain(self, solve: Solve) -> float:
        """Energy, J, that a solve creates: what the ledger leaves, without what lifts bodies apart."""
        remainder = step_ledger(self.model, solve).remainder
        return remainder - self.scale.weight(solve.bodies) * solve.overlap

    def allowed(self, start: State, end: State, share: float, bodies: np.ndarray | None = None) -> float:
        """That share of the energy above the lowest configuration, J."""
        return share * max(self.scale.above_lowest(start, bodies), self.scale.above_lowest(end, bodies))

    def excess(self, solve: Solve, share: float, rounding: float, whole: bool) -> float:
        """Energy, J, by which a solve creates more than its share, or loses more than LOSS of them.

        A whole step in which no contact changes its mode may lose no more than its share either: what it
        loses in one phase of a motion it gains in another, and to refuse the gains alone would drain it.
        """
        gain = self.gain(solve)
        loss = -step_ledger(self.model, solve).remainder
        steady = whole and self.modes(solve) is not None
        most = max(gain, loss if steady else loss / LOSS)
        return most - self.allowed(solve.start, solve.end, share, solve.bodies) - rounding
