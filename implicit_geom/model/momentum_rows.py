"""Momentum of all moving bodies [C07, eq. 4] on arrays: parameters, scales and values of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.equations.momentum import momentum_rows
from implicit_geom.equations.unknowns import flat
from implicit_geom.machine.vectorized import VectorizedFunction
from implicit_geom.model.model import Model, State
from implicit_geom.rotation import tangent_inverse


def spins_of_momentum(J_W: np.ndarray, D: np.ndarray, w: np.ndarray) -> np.ndarray:
    """w' of J_W w' = D^T J_W w, the angular momentum of a stage of RATTLE at a pose; (..., 3)."""
    momentum = np.swapaxes(D, -1, -2) @ (J_W @ w[..., None])
    return np.asarray(np.linalg.solve(J_W, momentum)[..., 0])


def stage_velocities(model: Model, end: State, h: float) -> State:
    """The state with the velocities that carry stage 1's momentum: J_W+ w = D(-h w_half)^T J_W+ w_half.

    `end` has the poses at the end of the step and the velocities of stage 1.
    """
    if model.dim == 2:
        return end
    m, w = model.moving, end.w.copy()
    J_W = end.R[m] @ model.inertia[m] @ np.swapaxes(end.R[m], 1, 2)
    w[m] = spins_of_momentum(J_W, tangent_inverse(-h * w[m]), w[m])
    return replace(end, w=w)


def kicked(model: Model, state: State, impulse: np.ndarray) -> State:
    """The state with the velocities after an impulse on every body, (B, dim + spins), world axes."""
    m, dim = model.moving, model.dim
    v, w = state.v.copy(), state.w.copy()
    v[m] += impulse[m, :dim] / model.mass[m, None]
    J_W = model.inertia[m]
    if dim == 3:
        J_W = state.R[m] @ J_W @ np.swapaxes(state.R[m], 1, 2)
    w[m] += np.linalg.solve(J_W, impulse[m, dim:, None])[..., 0]
    return replace(state, v=v, w=w)


def angular_scaling(J_W: np.ndarray, mass: float | np.ndarray) -> np.ndarray:
    """K = (m J_W)^(-1/2), (..., 3, 3): turns an angular impulse into a velocity of the gyration radius."""
    values, vectors = np.linalg.eigh(J_W)
    scaled = vectors / np.sqrt(np.asarray(mass)[..., None] * values)[..., None, :]
    return np.asarray(scaled @ np.swapaxes(vectors, -1, -2))


class MomentumRows:
    """The momentum rows of all moving bodies [C07, eq. 4], and the scales that a step takes from them.

    speed       (B,) U of each body, m/s; zero for fixed bodies
    pulled      (B,) what the loads add to it, m/s
    weights     (B, 1 + spins^2) 1/(m U) and K/U: turn a wrench into rows; zero for fixed bodies
    J_inverse   (B, spins, spins) inverse inertia in world axes; zero for fixed bodies
    """

    def __init__(self, model: Model, scheme: str) -> None:
        self.model = model
        function, self.at = momentum_rows(model.dim, scheme)
        self.n = model.moving.size
        self.size = self.n * (model.dim + model.spins)
        self.parameters = np.zeros((self.n, sum(s.stop - s.start for s in self.at.values())))
        self._rows = VectorizedFunction(function, self.n)

    def linearise(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and entries of the Jacobian's blocks, body by body."""
        rows, entries = self._rows(z[: self.size].reshape(self.n, -1), self.parameters)
        return rows.ravel(), entries.ravel()

    def prepare(self, state: State, h: float, impulse: np.ndarray) -> None:
        """Set the parameters of a step or stage that starts at `state`; `impulse` is that of the loads."""
        m, dim, p, at = self.model, self.model.dim, self.parameters, self.at
        moving = m.moving
        mass = m.mass[moving]
        self.speed = self._speeds(state, h, impulse)
        p[:, at["U"]] = self.speed[moving, None]
        p[:, at["v_free"]] = state.v[moving] + impulse[moving, :dim] / mass[:, None]
        self.J_inverse = np.zeros((len(m.bodies), m.spins, m.spins))
        self.weights = np.zeros((len(m.bodies), 1 + m.spins**2))
        if dim == 2:
            J = m.inertia[moving, 0, 0]
            p[:, at["w_free"]] = (state.w[moving, 0] + impulse[moving, 2] / J)[:, None]
            p[:, at["gyration"]] = np.sqrt(J / mass)[:, None]
            self.J_inverse[moving, 0, 0] = 1 / J
            K = 1 / np.sqrt(J * mass)
            self.weights[moving] = np.column_stack([1 / mass, K]) / self.speed[moving, None]
            return
        p[:, at["h"]] = h
        R, J = state.R[moving], m.inertia[moving]
        J_W = R @ J @ np.swapaxes(R, 1, 2)
        K = angular_scaling(J_W, mass)
        self.J_inverse[moving] = np.linalg.inv(J_W)
        self.weights[moving] = np.column_stack([1 / mass, flat(K)]) / self.speed[moving, None]
        p[:, at["momentum"]] = (J_W @ state.w[moving][:, :, None])[:, :, 0] + impulse[moving, 3:]
        p[:, at["R"]], p[:, at["J"]], p[:, at["K"]] = flat(R), flat(J), flat(K)

    def _speeds(self, state: State, h: float, impulse: np.ndarray) -> np.ndarray:
        """Speed of a body's fastest point and what its load adds in a step."""
        m = self.model
        size = m.length
        self.pulled = np.linalg.norm(impulse[:, : m.dim], axis=1) / m.mass
        speed = np.linalg.norm(state.v, axis=1) + size * np.linalg.norm(state.w, axis=1) + self.pulled
        # a body at rest without load still needs a scale: a billionth of its size per step
        speed = np.maximum(speed, 1e-9 * size / abs(h))
        return np.where(np.isfinite(m.mass), speed, 0.0)

    def free(self, state: State) -> np.ndarray:
        """Velocities of the moving bodies at the end of the step if nothing touches them; (n, velocities)."""
        return np.column_stack([self.parameters[:, self.at["v_free"]], state.w[self.model.moving]])
