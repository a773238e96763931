"""Pairs that are no candidates: bounds on their distance are checked after every solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.compiled.memory.arrays import LaneArrays
from implicit_geom.compiled.tables import MarchSlot
from implicit_geom.model.model import Model
from implicit_geom.model.placed_shape import halfspace_plane


class OtherPairs:
    """Their bodies, and the planes of those that involve a half-space."""

    def __init__(self, model: Model, candidates: list[int], arrays: LaneArrays) -> None:
        chosen = set(candidates)
        self.numbers = [i for i in range(len(model.pairs)) if i not in chosen]
        self.planes = arrays.numbers(max(len(self.numbers), 1), 2 + model.dim)
        self.first = arrays.integers([model.pairs[i].first for i in self.numbers])
        self.second = arrays.integers([model.pairs[i].second for i in self.numbers])

    def entries(self) -> dict[MarchSlot, Any]:
        return {
            MarchSlot.OTHERS_COUNT: len(self.numbers),
            MarchSlot.OTHERS_FIRST: self.first,
            MarchSlot.OTHERS_SECOND: self.second,
            MarchSlot.OTHERS_PLANE: self.planes,
        }

    def spread(self) -> None:
        """Give all lanes the scene of the first one."""
        self.planes[..., 1:] = self.planes[..., :1]

    def load(self, lane: int, model: Model) -> None:
        """What no step changes."""
        state = model.initial_state()
        for k, i in enumerate(self.numbers):
            if model.pairs.against_halfspaces(np.array([i]))[0]:
                n, offset = halfspace_plane(model.placed(state, model.pairs[i].pieces[0]))
                self.planes[k, :, lane] = [1.0, *n, offset]
