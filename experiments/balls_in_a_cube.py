"""T10's simulator: balls of different radii in a cube, under gravity [T10, section IV].

Semi-implicit Euler steps; contacts are pairs and walls with a gap of at most zero; b = 0, so that no gap is
corrected. What T10 leaves open: every ball has 1 kg and 2/5 m r^2, radii are uniform in 0.1 to 0.2 m, places
uniform in the cube without overlap, the components of the first velocities normal with 1 m/s, no spin. Where
the balls drawn do not fit, all are drawn anew, so that radii in a narrow cube tend to be smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.solvers.contact.t10.maps import System

GRAVITY = 9.81
RADII = (0.1, 0.2)  # m
SPEED = 1.0  # m/s
TRIES = 500  # places drawn for a ball before all are drawn anew


@dataclass
class Balls:
    """State: places x (n, 3), velocities v, spins w (n, 3) in the world, radii (n,), the cube [0, side]^3."""

    x: np.ndarray
    v: np.ndarray
    w: np.ndarray
    radius: np.ndarray
    side: float

    @property
    def mass(self) -> np.ndarray:
        """(n, 6) diagonal of the mass matrix, 1 kg a ball."""
        inertia = 0.4 * self.radius**2
        return np.concatenate([np.ones((len(inertia), 3)), np.repeat(inertia[:, None], 3, axis=1)], axis=1)


@dataclass(frozen=True)
class Contacts:
    """K (3 m, 6 n), the normal first in a contact's rows; which balls: (m, 2), a wall is -6 to -1."""

    K: np.ndarray
    pair: np.ndarray


def random_balls(rng: np.random.Generator, count: int, side: float) -> Balls:
    """Balls at random places without overlap, with random velocities."""
    radius = rng.uniform(*RADII, count)
    while True:
        x = np.zeros((0, 3))
        for k in range(count):
            r = radius[k]
            for _ in range(TRIES):
                place = rng.uniform(r, side - r, 3)
                if np.all(np.linalg.norm(x - place, axis=1) > radius[:k] + r):
                    x = np.vstack([x, place])
                    break
            else:
                break
        if len(x) == count:
            break
        radius = rng.uniform(*RADII, count)
    return Balls(x, rng.normal(0.0, SPEED, (count, 3)), np.zeros((count, 3)), radius, side)


def contacts_of(balls: Balls, within: float = 0.0) -> Contacts:
    """All contacts with a gap of at most `within`, m."""
    x, r = balls.x, balls.radius
    n = len(r)
    low, axis_low = np.nonzero(x - r[:, None] <= within)
    high, axis_high = np.nonzero(x + r[:, None] >= balls.side - within)
    i, j = np.triu_indices(n, 1)
    apart = x[j] - x[i]
    distance = np.linalg.norm(apart, axis=1)
    touch = distance <= r[i] + r[j] + within
    i, j = i[touch], j[touch]
    normal = np.concatenate(
        [np.eye(3)[axis_low], -np.eye(3)[axis_high], apart[touch] / distance[touch][:, None]]
    )
    first = np.concatenate([-6 + axis_low, -3 + axis_high, i])
    second = np.concatenate([low, high, j])
    return Contacts(_jacobian(normal, first, second, r), np.stack([first, second], axis=1))


def _jacobian(normal: np.ndarray, first: np.ndarray, second: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Velocity of the second ball at the contact less that of the first, in the frame (normal, t1, t2)."""
    m, n = len(normal), len(r)
    other = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    t_1 = np.cross(normal, other)
    t_1 /= np.linalg.norm(t_1, axis=1)[:, None]
    frame = np.stack([normal, t_1, np.cross(normal, t_1)], axis=1)  # (m, 3 rows, 3)
    turn = np.cross(normal[:, None, :], frame)  # a . (w x n) = w . (n x a)
    K = np.zeros((m, 3, n, 6))
    rows = np.arange(m)
    K[rows, :, second, :3] = frame
    K[rows, :, second, 3:] = -r[second][:, None, None] * turn
    two = np.flatnonzero(first >= 0)
    K[two, :, first[two], :3] = -frame[two]
    K[two, :, first[two], 3:] = -r[first[two]][:, None, None] * turn[two]
    return K.reshape(3 * m, 6 * n)


def problem_of(balls: Balls, contacts: Contacts, mu: float, step: float) -> tuple[System, np.ndarray]:
    """A f + v0 = v of a step, and the velocities (n, 6) without contact."""
    free = np.concatenate([balls.v, balls.w], axis=1)
    free[:, 2] -= step * GRAVITY
    K = contacts.K
    m = len(K) // 3
    A = (K / balls.mass.ravel()) @ K.T
    return System(A, (K @ free.ravel()).reshape(m, 3), np.zeros(m), np.full(m, mu)), free


def advance(balls: Balls, contacts: Contacts, free: np.ndarray, f: np.ndarray, step: float) -> Balls:
    """The balls after a step with the contact impulses f (m, 3)."""
    after = free + (contacts.K.T @ f.ravel()).reshape(free.shape) / balls.mass
    v, w = after[:, :3], after[:, 3:]
    return Balls(balls.x + step * v, v, w, balls.radius, balls.side)
