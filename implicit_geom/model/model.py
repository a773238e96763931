"""A scene as arrays: masses, shapes, pairs and loads, and the state of all bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from implicit_geom import rotation
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.pairs import Pair, Pairs
from implicit_geom.model.pieces import Pieces
from implicit_geom.model.placed_shape import PlacedShape
from implicit_geom.process.lazy import cached_property
from implicit_geom.scene.scene import Scene
from implicit_geom.shapes.shape import Shape

__all__ = ["Model", "Pair", "Pairs", "State"]


@dataclass(frozen=True)
class State:
    """Pose and velocity of every body, fixed ones included; one row a body."""

    time: float
    x: np.ndarray  # (B, dim) m
    q: np.ndarray  # (B, 4) quaternions; (B,) angles in the plane
    v: np.ndarray  # (B, dim) m/s
    w: np.ndarray  # (B, 3) world-frame angular velocity, rad/s; (B, 1) in the plane

    @cached_property
    def R(self) -> np.ndarray:
        """Rotation matrices, body to world; (B, dim, dim)."""
        if self.q.ndim == 2:
            return rotation.matrix(self.q)
        out = np.empty((*self.q.shape, 2, 2))
        out[..., 0, 0] = out[..., 1, 1] = np.cos(self.q)
        out[..., 1, 0] = np.sin(self.q)
        out[..., 0, 1] = -out[..., 1, 0]
        return out

    def advanced(self, nu: np.ndarray, h: float) -> State:
        """The state after moving with the velocities nu (B, dim + spins) for the time h [C07, eqs. 2, 4]."""
        dim = self.x.shape[1]
        v, w = nu[:, :dim], nu[:, dim:]
        q = rotation.advance(self.q, w, h) if dim == 3 else self.q + h * w[:, 0]
        return State(self.time + h, self.x + h * v, q, v.copy(), w.copy())

    def at_time(self, time: float) -> State:
        return replace(self, time=time)


class Model:
    """Masses, shapes and pairs of a scene."""

    def __init__(self, scene: Scene, friction_residual: str = "projection") -> None:
        if not scene.bodies:
            raise SceneError("the scene has no bodies; add one with scene.add(...)")
        self.scene = scene
        self.dim = scene.dim
        self.spins = 3 if scene.dim == 3 else 1
        self.names = list(scene.bodies)
        self.bodies = list(scene.bodies.values())
        self.moving = np.array([i for i, b in enumerate(self.bodies) if not b.fixed], int)
        if self.moving.size == 0:
            raise SceneError("no body can move: give at least one a mass instead of fixed = true")
        self.mass = np.array([b.mass for b in self.bodies])
        self.inertia = np.array([b.inertia for b in self.bodies])
        self.com = np.array([b.com for b in self.bodies])
        self.size = np.array([b.shape.size for b in self.bodies])
        self.length = _lengths(self)
        self.reach = np.array([reach_of(b.shape, b.com) for b in self.bodies])
        self.friction_residual = friction_residual
        self.pieces = Pieces(self.bodies)
        self.pairs = Pairs(scene, self.pieces, friction_residual)

    def initial_state(self) -> State:
        """The state the scene describes, at time zero."""
        return State(
            0.0,
            np.array([b.position for b in self.bodies]),
            np.array([b.orientation for b in self.bodies]),
            np.array([b.velocity for b in self.bodies]),
            np.array([np.atleast_1d(b.angular_velocity) for b in self.bodies]),
        )

    def placed(self, state: State, piece: int) -> PlacedShape:
        """A convex piece (a convex body is its own) at its body's pose in the given state."""
        body = self.pieces.owner[piece]
        return PlacedShape(self.pieces.shapes[piece], state.x[body], state.R[body], self.com[body])

    def loads(self, time: float) -> np.ndarray:
        """Force and torque on every body, gravity included; (B, dim + spins)."""
        out = np.zeros((len(self.bodies), self.dim + self.spins))
        for i in self.moving:
            force, torque = self.scene.load(self.names[i], time)
            out[i, : self.dim] = force + self.mass[i] * self.scene.gravity
            out[i, self.dim :] = torque
        return out

    def loads_at(self, times: np.ndarray) -> np.ndarray:
        """`loads` at many times, each distinct one asked once, constant loads once in all; (..., B, ...)."""
        times = np.asarray(times, float)
        if self.scene.constant_loads:
            constant = self.loads(0.0)
            return np.broadcast_to(constant, (*times.shape, *constant.shape))
        distinct, row = np.unique(times, return_inverse=True)
        return np.array([self.loads(t) for t in distinct.tolist()])[row.reshape(times.shape)]


def _lengths(model: Model) -> np.ndarray:
    """(B,) m: half of the bounding box's longest edge; of unbounded bodies that move the radius of gyration.

    (Of an unbounded body that is fixed 1, which is never used.)
    """
    out = np.where(np.isfinite(model.size), model.size, 1.0)
    for i in model.moving[~np.isfinite(model.size[model.moving])]:
        out[i] = np.sqrt(np.trace(np.atleast_2d(model.inertia[i])) / model.mass[i])
    return out


def reach_of(shape: Shape, com: np.ndarray) -> float:
    """Radius of a ball about the centre of mass that holds the shape."""
    if not shape.bounded:
        return np.inf
    lower, upper = shape.bounds
    corner = np.maximum(np.abs(lower - com), np.abs(upper - com))
    return float(np.linalg.norm(corner))
