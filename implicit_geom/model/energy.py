"""Kinetic and potential energy of a state, and the energy above the lowest reachable configuration."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.equations.thresholds import ENERGY_ROUNDING, REST
from implicit_geom.model.model import Model, State
from implicit_geom.shapes.ellipsoids import Ellipsoid
from implicit_geom.shapes.planar import Ellipse
from implicit_geom.shapes.shape import Shape

MOST_HEIGHTS = 10_000
DIRECTIONS = 4000  # sampled for the smallest height of a body's centre over a plane


def energy(model: Model, state: State) -> float:
    """Kinetic and potential energy, J."""
    return kinetic(model, state) + potential(model, state)


def kinetic(model: Model, state: State, bodies: np.ndarray | None = None) -> float:
    """Kinetic energy, J; of some moving bodies, (B,) a mask, where given."""
    m = _chosen(model, bodies)
    v, w = state.v[m], state.w[m]
    if model.dim == 3:
        w = np.einsum("bji,bj->bi", state.R[m], w)  # body axes
    linear = np.einsum("b,bi,bi->", model.mass[m], v, v)
    return float(linear + np.einsum("bi,bij,bj->", w, model.inertia[m], w)) / 2


def potential(model: Model, state: State) -> float:
    m = model.moving
    return -float(np.sum(model.mass[m] * (state.x[m] @ model.scene.gravity)))


def _chosen(model: Model, bodies: np.ndarray | None) -> np.ndarray:
    return model.moving if bodies is None else np.flatnonzero(bodies)


def speeds_at_hand(model: Model, v: np.ndarray, w: np.ndarray, h: float | np.ndarray) -> np.ndarray:
    """(..., B) m/s: of a body's fastest point and what gravity adds in a step; zero for fixed bodies.

    What a slip is compared with: it has no scale of its own.
    """
    m, out = model.moving, np.zeros(v.shape[:-1])
    speed = np.linalg.norm(v[..., m, :], axis=-1) + model.length[m] * np.linalg.norm(w[..., m, :], axis=-1)
    out[..., m] = speed + np.linalg.norm(model.scene.gravity) * np.abs(h)
    return out


def pair_sizes(model: Model, pairs: np.ndarray) -> np.ndarray:
    """(C,) m: size of the smaller piece of each pair."""
    size = np.minimum(*(model.pieces.size[piece] for piece in model.pairs.pieces(pairs)))
    return np.where(np.isfinite(size), size, 1.0)


def slides_faster(model: Model, pair: int, slip: np.ndarray, share: float, speed: np.ndarray) -> bool:
    """Whether a slip (v_t, v_o, v_r) is more than a share of the speeds (B,) of the pair's bodies."""
    p = model.pairs[pair]
    size = min(float(model.pieces.size[piece]) for piece in p.pieces)
    spin = slip[2] * (size if np.isfinite(size) else 1.0)
    limit = share * max(speed[p.first], speed[p.second])
    return bool(np.sqrt(slip[0] ** 2 + slip[1] ** 2 + spin**2) > limit)


class EnergyScale:
    """Energy above the lowest configuration that a scene can reach.

    Over a fixed horizontal half-space that is the one in which every body lies on its flattest side;
    elsewhere, and for shapes whose support is sampled, the body's own size is the depth it could fall.
    """

    def __init__(self, model: Model, tolerance: float = 0.0) -> None:
        self.model = model
        self.exact = ENERGY_ROUNDING + tolerance  # of the energies at hand: what a solve may leave of them
        gravity = model.scene.gravity
        self.strength = float(np.linalg.norm(gravity))
        self.depth = model.length
        self.lowest = np.full(len(model.bodies), np.nan)  # height of the centre, where it is known
        self.floor = np.nan  # height of the highest floor
        if self.strength == 0:
            return
        self.up = -gravity / self.strength
        floors = [
            float(piece.values[-1] + b.position @ self.up)
            for b in model.bodies
            for piece in b.shape.pieces
            if b.fixed and is_halfspace(piece) and _is_level(b, piece, self.up, model.dim)
        ]
        if floors:
            self.floor = max(floors)
            for i in model.moving:
                shape = model.bodies[i].shape
                if shape.bounded and shape.support_exact:
                    self.lowest[i] = self.floor + smallest_height(shape, model.com[i])

    def weight(self, bodies: np.ndarray | None = None) -> float:
        """Of all bodies, or of some, N."""
        return self.strength * float(np.sum(self.model.mass[_chosen(self.model, bodies)]))

    def above_lowest(self, state: State, bodies: np.ndarray | None = None) -> float:
        """Kinetic energy and potential energy above the lowest configuration, J; of some bodies, if given."""
        return kinetic(self.model, state, bodies) + self._potential(state, bodies)

    def rounding(self, state: State, h: float | np.ndarray) -> np.ndarray:
        """(..., B) J: what rounding and the solver's tolerance may make of a body's energy in a step.

        `exact` of the kinetic energy and of what lifts the body by its own size; and the energy of moving by
        a billionth of that size in the step, which counts as rest. Of stacked states, where given.
        """
        m, out = self.model.moving, np.zeros(state.x.shape[:-1])
        mass, depth = self.model.mass[m], self.depth[m]
        kinetic = mass / 2 * np.sum(state.v[..., m, :] ** 2, axis=-1) + self._turning(state)
        out[..., m] = self.exact * (kinetic + mass * self.strength * depth)
        out[..., m] += mass * (REST * depth / h) ** 2
        return out

    def _turning(self, state: State) -> np.ndarray:
        """(..., moving) J."""
        m = self.model.moving
        w = state.w[..., m, :]
        if self.model.dim == 3:
            R = rotation.matrix(state.q[..., m, :])
            w = (np.swapaxes(R, -1, -2) @ w[..., None])[..., 0]  # body axes
        return np.asarray(np.sum(w * (self.model.inertia[m] @ w[..., None])[..., 0], axis=-1) / 2)

    def own(self, state: State) -> np.ndarray:
        """(..., B) J: a body's energy of turning, and what it can fall by, at most its own size.

        Nothing on which a body stands lets it fall by more than that before it strikes; what it gains on the
        way is kinetic energy by then. Of stacked states, where given.
        """
        m, out = self.model.moving, np.zeros(state.x.shape[:-1])
        out[..., m] = self._turning(state)
        if self.strength > 0:
            height = state.x[..., m, :] @ self.up - self.lowest[m]
            fall = np.where(np.isnan(height), self.depth[m], np.clip(height, 0.0, self.depth[m]))
            out[..., m] += self.model.mass[m] * self.strength * fall
        return out

    def _potential(self, state: State, bodies: np.ndarray | None) -> float:
        if self.strength == 0:
            return 0.0
        m = _chosen(self.model, bodies)
        height = state.x[m] @ self.up - self.lowest[m]
        fall = np.where(np.isnan(height), self.depth[m], np.maximum(height, 0.0))
        return float(np.sum(self.model.mass[m] * self.strength * fall))


def _is_level(body: Any, plane: Shape, up: np.ndarray, dim: int) -> bool:
    R = rotation.matrix(body.orientation) if dim == 3 else rotation.planar(float(body.orientation))
    return bool(R @ plane.values[:-1] @ up > 1 - 1e-12)


_HEIGHTS: dict[tuple[Hashable, bytes, bytes], float] = {}  # of the bodies that were asked about last


def smallest_height(shape: Shape, com: np.ndarray) -> float:
    """The least distance of a body's centre of mass from a plane that touches it, over all directions."""
    if isinstance(shape, Ellipsoid | Ellipse) and not np.any(com):
        return float(np.min(shape.axes))
    key = (shape.structure, shape.values.tobytes(), com.tobytes())
    found = _HEIGHTS.get(key)
    if found is None:
        if len(_HEIGHTS) >= MOST_HEIGHTS:
            _HEIGHTS.clear()
        n = _directions(shape.dim)
        found = _HEIGHTS[key] = float(np.min(shape.support_value(n) - n @ com))
    return found


@cache
def _directions(dim: int) -> np.ndarray:
    """(N, dim) unit vectors all around."""
    if dim == 2:
        angle = np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False)
        return np.column_stack([np.cos(angle), np.sin(angle)])
    k = np.arange(DIRECTIONS) + 0.5
    z, turn = 1 - 2 * k / DIRECTIONS, np.pi * (1 + 5**0.5) * k  # a spiral over the sphere
    r = np.sqrt(1 - z**2)
    return np.vstack([np.column_stack([r * np.cos(turn), r * np.sin(turn), z]), np.eye(3), -np.eye(3)])
