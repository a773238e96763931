"""Kinetic and potential energy of a state, and the energy above the lowest reachable configuration."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.equations.thresholds import ENERGY_ROUNDING
from implicit_geom.model.model import Model, State
from implicit_geom.shapes.shape import Shape

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


class EnergyScale:
    """Energy above the lowest configuration that a scene can reach.

    Over a fixed horizontal half-space that is the one in which every body lies on its flattest side;
    elsewhere, and for shapes whose support is sampled, the body's own size is the depth it could fall.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        gravity = model.scene.gravity
        self.strength = float(np.linalg.norm(gravity))
        self.depth = np.where(np.isfinite(model.size), model.size, 1.0)
        self.lowest = np.full(len(model.bodies), np.nan)  # height of the centre, where it is known
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
            for i in model.moving:
                shape = model.bodies[i].shape
                if shape.bounded and shape.support_exact:
                    self.lowest[i] = max(floors) + _smallest_height(model, int(i))

    def weight(self, bodies: np.ndarray | None = None) -> float:
        """Of all bodies, or of some, N."""
        return self.strength * float(np.sum(self.model.mass[_chosen(self.model, bodies)]))

    def above_lowest(self, state: State, bodies: np.ndarray | None = None) -> float:
        """Kinetic energy and potential energy above the lowest configuration, J; of some bodies, if given."""
        return kinetic(self.model, state, bodies) + self._potential(state, bodies)

    def rounding(self, state: State, h: float, bodies: np.ndarray | None = None) -> float:
        """What rounding may make of the energy in a step, J.

        ENERGY_ROUNDING of the kinetic energy and of what lifts every body by its own size; and the energy of
        moving by a billionth of that size in the step, which counts as rest.
        """
        m = _chosen(self.model, bodies)
        mass, depth = self.model.mass[m], self.depth[m]
        size = kinetic(self.model, state, bodies) + float(np.sum(mass * self.strength * depth))
        return ENERGY_ROUNDING * size + float(np.sum(mass * (1e-9 * depth / h) ** 2))

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


def _smallest_height(model: Model, i: int) -> float:
    """The least distance of a body's centre of mass from a plane that touches it, over all directions."""
    shape, com = model.bodies[i].shape, model.com[i]
    if model.dim == 2:
        angle = np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False)
        n = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        k = np.arange(DIRECTIONS) + 0.5
        z, turn = 1 - 2 * k / DIRECTIONS, np.pi * (1 + 5**0.5) * k  # a spiral over the sphere
        r = np.sqrt(1 - z**2)
        n = np.vstack([np.column_stack([r * np.cos(turn), r * np.sin(turn), z]), np.eye(3), -np.eye(3)])
    return float(np.min(shape.support_value(n) - n @ com))
