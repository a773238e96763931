"""Poses and velocities of every solve as arrays, for the certificate: no rotation of the solver's is used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.model.model import Model, State
from implicit_geom.model.solve_arrays import SolveArrays

START, END = 0, 1  # poses of a solve
BEFORE, DURING, AFTER = 0, 1, 2  # velocities of a solve; DURING are those that moved the bodies
# Gauss's quadrature over (-1, 1): of exp(s [theta]x), 0 <= s <= 1, exact to rounding up to a full turn
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True)
class MotionArrays:
    """Every solve's length (S,), poses (2, S, B, ...) and velocities (3, S, B, dim + spins)."""

    model: Model
    time: np.ndarray
    h: np.ndarray
    form: np.ndarray  # (S,)
    moved: np.ndarray  # (S, B) which bodies a solve moves; the others stay as they are
    x: np.ndarray
    R: np.ndarray
    nu: np.ndarray

    @staticmethod
    def of(model: Model, initial: State, solves: SolveArrays) -> MotionArrays:
        path, table = solves.path(initial), solves.table
        R = matrix(path.q) if model.dim == 3 else planar(path.q)
        nu = np.concatenate([path.v, path.w], axis=-1)
        # nothing is moved in an impact: its one kick is from BEFORE to AFTER
        travels = (solves.bodies & (table["form"] != "impact")[:, None])[..., None]
        return MotionArrays(
            model,
            table["time"],
            table["h"],
            table["form"],
            solves.bodies,
            np.stack([path.x[:-1], path.x[1:]]),
            np.stack([R[:-1], R[1:]]),
            np.stack([nu[:-1], np.where(travels, solves.half, nu[1:]), nu[1:]]),
        )

    @property
    def impact(self) -> np.ndarray:
        """(S,) solves that are impacts: of no length, at one pose."""
        return np.asarray(self.form == "impact")

    @property
    def rattle(self) -> np.ndarray:
        """(S,) solves with a kick at either end; the others have one, at the end."""
        return np.asarray(self.form == "rattle")

    @property
    def lengths(self) -> np.ndarray:
        """(S,) |h|, 1 for impacts: what distances are divided by."""
        return np.where(self.impact, 1.0, np.abs(self.h))


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sum(a * b, axis=-1)


def apply(M: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.sum(M * v[..., None, :], axis=-1)


def transposed(M: np.ndarray) -> np.ndarray:
    return np.swapaxes(M, -1, -2)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b, (..., 3), or (..., 1) in the plane."""
    if a.shape[-1] == 2:
        return (a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])[..., None]
    return np.cross(a, b)


def rotational_velocity(w: np.ndarray, r: np.ndarray) -> np.ndarray:
    """w x r, (..., dim)."""
    return np.cross(w, r) if r.shape[-1] == 3 else w * np.stack([-r[..., 1], r[..., 0]], axis=-1)


def momentum(R: np.ndarray, J: np.ndarray, w: np.ndarray) -> np.ndarray:
    """R J R^T w."""
    return apply(R, apply(J, apply(transposed(R), w)))


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrices of quaternions, times their squared norms: (w^2 - v.v) I + 2 v v^T + 2 w [v]x."""
    w, v = q[..., 0], q[..., 1:]
    R = 2 * v[..., :, None] * v[..., None, :]
    square, twice = w**2 - dot(v, v), 2 * w[..., None] * v
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        R[..., i, i] += square
        R[..., k, j] += twice[..., i]
        R[..., j, k] -= twice[..., i]
    return R


def planar(angle: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)


def exponential(theta: np.ndarray) -> np.ndarray:
    """The rotation matrices of rotation vectors."""
    from scipy.spatial.transform import Rotation  # (here: it takes long to import)

    return np.asarray(Rotation.from_rotvec(theta.reshape(-1, 3)).as_matrix()).reshape(*theta.shape, 3)


def tangent(theta: np.ndarray) -> np.ndarray:
    """T, the integral of exp(s [theta]x) over 0 <= s <= 1: the inverse of the solver's D; T(-theta) = T^T."""
    s, share = (NODES + 1) / 2, WEIGHTS / 2
    each = exponential(s.reshape(-1, *(1,) * theta.ndim) * theta)
    return np.sum(share.reshape(-1, *(1,) * (theta.ndim + 1)) * each, axis=0)
