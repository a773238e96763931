"""The points at which pairs touch, or may touch next, at a state: their gaps and normal velocities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.contact.rattle_ncp import point_velocity
from implicit_geom.equations.thresholds import IMPACT_SPEED, SLOWEST_BLOW, SOLVED, TOUCH
from implicit_geom.geometry.patch_points import Patch, patch_points
from implicit_geom.model.model import Model, Pair, State


@dataclass(frozen=True)
class TouchingPoints:
    """The points of one pair at a state: one, or the extreme points of a patch.

    patch      points, normal and gaps
    velocity   (k,) normal velocity at each, m/s
    speed      of the two bodies against each other, m/s
    blow       approach from which on a closed point strikes, m/s
    size       of the smaller one, m
    material   (k, dim) the points in the second body's axes, from its centre of mass, m
    """

    number: int
    pair: Pair
    patch: Patch
    velocity: np.ndarray
    speed: float
    blow: float
    size: float
    material: np.ndarray

    @property
    def closed(self) -> np.ndarray:
        """(k,) whether a point touches."""
        return np.asarray(self.patch.gap <= TOUCH * self.size)

    @property
    def resting(self) -> np.ndarray:
        """(k,) touches and does not part."""
        return self.closed & (self.velocity <= self.blow)

    @property
    def striking(self) -> np.ndarray:
        """(k,) touches and approaches."""
        return self.closed & (self.velocity < -self.blow)

    def chosen(self, which: np.ndarray) -> tuple[Pair, Patch]:
        """Some of the points."""
        p = self.patch
        return self.pair, Patch(p.normal, p.point_a[which], p.point_b[which], p.gap[which])

    def near(self, material: np.ndarray, distance: float) -> np.ndarray:
        """(k,) whether a point is one of the given ones of the second body, (m, dim)."""
        apart = np.linalg.norm(self.material[:, None] - material[None], axis=2)
        return np.asarray(np.min(apart, axis=1, initial=np.inf) <= distance)


def touching_points(model: Model, state: State, number: int, pulled: np.ndarray) -> TouchingPoints:
    """The points of a pair; `pulled` (B,) is what loads add to the bodies' speeds in the step, m/s."""
    pair = model.pairs[number]
    a, b = (model.placed(state, piece) for piece in pair.pieces)
    patch = patch_points(a, b, np.inf)
    one, two = pair.first, pair.second
    relative = point_velocity(state, two, patch.point_b - state.x[two])
    relative = relative - point_velocity(state, one, patch.point_b - state.x[one])
    size = min(model.pieces.size[piece] for piece in pair.pieces)
    turning = np.linalg.norm(state.w[one]) + np.linalg.norm(state.w[two])
    speed = float(np.max(np.linalg.norm(relative, axis=1), initial=0.0) + size * turning)
    added = float(pulled[one] + pulled[two])
    speed += added
    own = float(np.linalg.norm(state.v[one]) + np.linalg.norm(state.v[two]))
    blow = max(IMPACT_SPEED * speed, SLOWEST_BLOW * added, SOLVED * own)
    material = (patch.point_b - state.x[two]) @ state.R[two]
    return TouchingPoints(number, pair, patch, relative @ patch.normal, speed, blow, size, material)
