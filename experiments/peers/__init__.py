"""Other simulators behind one face: an ellipsoid on the plane z = 0.

A peer is a module with

    settings() -> {name: setting}                    what this version of the peer can run
    variants() -> {name: setting}                    among which to seek the best for an error
    simulate(body, *, duration, step, setting, record=True) -> PeerRun
    stepping(body, step, setting) -> Stepping        for times alone

It is imported when it is asked for; one that is not installed is simply not among `installed()`. A peer
that is no Python package (Siconos) says by itself whether it is here, `present()`, and which `release()`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType

import numpy as np

from implicit_geom import Scene, rotation

MODULES = {
    "mujoco": "implicit_geom.experiments.peers.mujoco_peer",
    "drake": "implicit_geom.experiments.peers.drake_peer",
    "siconos": "implicit_geom.experiments.peers.siconos_peer",
}
PACKAGES = {"mujoco": "mujoco", "drake": "pydrake"}  # peer: the Python package it needs
SOURCES = {  # where a peer comes from
    **dict.fromkeys(PACKAGES, "extra `peers`"),
    "siconos": "Debian's package `siconos` and a C++ compiler",
}

# numbers of steps of consecutive pieces of a motion, from its start -> seconds of each piece
Stepping = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class RollingBody:
    """One ellipsoid on the plane z = 0 and its start: all that a peer is told.

    position and velocity are those of the centre of mass, velocities in the world frame; com, inertia
    (about the centre of mass) and semi-axes in the shape's frame; gravity is its size, downwards.
    """

    axes: np.ndarray  # (3,) m
    mass: float
    com: np.ndarray  # (3,) m
    inertia: np.ndarray  # (3, 3) kg m^2
    position: np.ndarray  # (3,) m
    orientation: np.ndarray  # (4,) w, x, y, z
    velocity: np.ndarray  # (3,) m/s
    angular_velocity: np.ndarray  # (3,) rad/s
    mu: float
    gravity: float

    @classmethod
    def of(cls, scene: Scene, name: str = "body", plane: str = "plane") -> RollingBody:
        """The numbers of a scene, so that every simulator starts from the same ones."""
        b = scene.bodies[name]
        return cls(
            axes=b.shape.axes,
            mass=b.mass,
            com=b.com,
            inertia=b.inertia,
            position=b.position,
            orientation=b.orientation,
            velocity=b.velocity,
            angular_velocity=b.angular_velocity,
            mu=scene.pair_friction(plane, name).mu,
            gravity=float(-scene.gravity[2]),
        )

    @property
    def origin(self) -> np.ndarray:
        """The centre of the ellipsoid at the start, m."""
        return self.position - rotation.matrix(self.orientation) @ self.com

    @property
    def origin_velocity(self) -> np.ndarray:
        """The velocity of the ellipsoid's centre at the start, m/s."""
        arm = rotation.matrix(self.orientation) @ self.com
        return self.velocity - np.cross(self.angular_velocity, arm)

    @property
    def least_potential(self) -> float:
        """Potential energy of the body lying on its flattest side, centre of mass down, J."""
        flat = int(np.argmin(self.axes))
        return self.mass * self.gravity * float(self.axes[flat] - abs(self.com[flat]))


@dataclass(frozen=True)
class PeerRun:
    """A motion as a peer computed it, and the time of its stepping loop alone.

    States of the centre of mass, one row a step and the start (start and end only if not recorded);
    wall_time in s, without set-up, conversion and recording.
    """

    time: np.ndarray  # (T+1,)
    position: np.ndarray  # (T+1, 3)
    orientation: np.ndarray  # (T+1, 4)
    velocity: np.ndarray  # (T+1, 3)
    angular_velocity: np.ndarray  # (T+1, 3), world
    wall_time: float
    steps: int


def of_the_origin(
    body: RollingBody,
    time: np.ndarray,
    origin: np.ndarray,
    orientation: np.ndarray,
    velocity: np.ndarray,
    angular_velocity: np.ndarray,
    **cost: float,
) -> PeerRun:
    """A run from the states of the ellipsoid's centre; angular velocity in the world frame."""
    arm = rotation.matrix(orientation) @ body.com
    return PeerRun(
        time,
        origin + arm,
        orientation,
        velocity + np.cross(angular_velocity, arm),
        angular_velocity,
        **cost,
    )


def energy(body: RollingBody, run: PeerRun) -> np.ndarray:
    """(T+1,) kinetic and potential energy, J; the potential is zero on the plane.

    m v^2 / 2 + w^T J w / 2 + m g z, w and J in the body's axes; the same formula for every simulator.
    """
    w = np.einsum("tji,tj->ti", rotation.matrix(run.orientation), run.angular_velocity)
    kinetic = (
        body.mass * np.sum(run.velocity**2, axis=1) / 2 + np.einsum("ti,ij,tj->t", w, body.inertia, w) / 2
    )
    return kinetic + body.mass * body.gravity * run.position[:, 2]


def count_steps(duration: float, step: float) -> int:
    """The number of steps; a duration that is no multiple of the step is refused."""
    count = round(duration / step)
    if count < 1 or abs(count * step - duration) > 1e-9 * duration:
        raise ValueError(f"duration = {duration:g} s is no multiple of step = {step:g} s")
    return count


def installed() -> list[str]:
    """The peers that can be run here."""
    return [name for name in MODULES if _here(name)]


def _here(name: str) -> bool:
    return find_spec(PACKAGES[name]) is not None if name in PACKAGES else bool(peer(name).present())


def version_of(name: str) -> str:
    """The version of an installed peer."""
    return version(name) if name in PACKAGES else str(peer(name).release())


def peer(name: str) -> ModuleType:
    """The module of an installed peer."""
    return import_module(MODULES[name])
