"""Momentum balance of a free rigid body over one implicit Euler step [C07, eq. 4].

    m (v+ - v) = h F + contact impulses
    R+ J R+^T w+ - R J R^T w = h tau + contact impulse moments,      R+ = exp(h w+) R

Deviation: C07 writes the angular rows with an explicit gyroscopic impulse, which gains energy and
diverges for fast, thin bodies; the balance of world angular momentum above never gains.

Rows are scaled to velocities in the metric of the kinetic energy: linear rows by 1/m, angular rows by
K = (m J_W)^(-1/2), and both by 1/U.
"""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np

from implicit_geom.mapped import Mapped
from implicit_geom.model import Model, State
from implicit_geom.pair import flat
from implicit_geom.rotation import exp_symbolic

# Where each input of the momentum rows sits in the parameter vector.
SPATIAL = {"h": 1, "U": 1, "R": 9, "J": 9, "K": 9, "v_free": 3, "momentum": 3}


@lru_cache
def momentum_rows(dim: int) -> tuple[ca.Function, dict[str, slice]]:
    """Rows and their Jacobian by nu = (v, w) for one body, as a function of (nu, parameters)."""
    sizes = SPATIAL if dim == 3 else {"U": 1, "v_free": 2, "w_free": 1, "gyration": 1}
    at, start = {}, 0
    for name, size in sizes.items():
        at[name] = slice(start, start + size)
        start += size
    p = ca.SX.sym("p", start)
    nu = ca.SX.sym("nu", 6 if dim == 3 else 3)
    U = p[at["U"]]
    linear = (nu[:dim] - p[at["v_free"]]) / U
    if dim == 3:
        R = exp_symbolic(p[at["h"]] * nu[3:]) @ ca.reshape(p[at["R"]], 3, 3)
        J_W = R @ ca.reshape(p[at["J"]], 3, 3) @ R.T
        angular = ca.reshape(p[at["K"]], 3, 3) @ (J_W @ nu[3:] - p[at["momentum"]]) / U
    else:
        angular = p[at["gyration"]] * (nu[2] - p[at["w_free"]]) / U
    rows = ca.vertcat(linear, angular)
    return ca.Function("momentum", [nu, p], [rows, ca.densify(ca.jacobian(rows, nu))]), at


def angular_scaling(J_W: np.ndarray, mass: float) -> np.ndarray:
    """K = (m J_W)^(-1/2): turns an angular impulse into a velocity of the gyration radius."""
    values, vectors = np.linalg.eigh(J_W)
    return np.asarray((vectors / np.sqrt(mass * values)) @ vectors.T)


class BodyRows:
    """The momentum rows of all moving bodies, and the scales that a step takes from them.

    speed       (B,) U of each body, m/s; zero for fixed bodies
    weights     (B, 1 + spins^2) 1/(m U) and K/U: turn a wrench into rows; zero for fixed bodies
    J_inverse   (B, spins, spins) inverse inertia in world axes; zero for fixed bodies
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        function, self.at = momentum_rows(model.dim)
        self.n = model.moving.size
        self.size = self.n * (model.dim + model.spins)
        self.parameters = np.zeros((self.n, sum(s.stop - s.start for s in self.at.values())))
        self._rows = Mapped(function, self.n)

    def linearise(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and entries of the Jacobian's blocks, body by body."""
        rows, entries = self._rows(z[: self.size].reshape(self.n, -1), self.parameters)
        return rows.ravel(), entries.ravel()

    def prepare(self, state: State, h: float, loads: np.ndarray) -> None:
        """Set the parameters of a step that starts at `state` under the given loads (B, dim + spins)."""
        m, dim, p, at = self.model, self.model.dim, self.parameters, self.at
        moving = m.moving
        mass = m.mass[moving]
        self.speed = self._speeds(state, h, loads)
        p[:, at["U"]] = self.speed[moving, None]
        p[:, at["v_free"]] = state.v[moving] + h * loads[moving, :dim] / mass[:, None]
        self.J_inverse = np.zeros((len(m.bodies), m.spins, m.spins))
        self.weights = np.zeros((len(m.bodies), 1 + m.spins**2))
        if dim == 2:
            J = m.inertia[moving, 0, 0]
            p[:, at["w_free"]] = (state.w[moving, 0] + h * loads[moving, 2] / J)[:, None]
            p[:, at["gyration"]] = np.sqrt(J / mass)[:, None]
            self.J_inverse[moving, 0, 0] = 1 / J
            K = 1 / np.sqrt(J * mass)
            self.weights[moving] = np.column_stack([1 / mass, K]) / self.speed[moving, None]
            return
        p[:, at["h"]] = h
        for i, b in enumerate(moving):
            R = state.R[b]
            J_W = R @ m.inertia[b] @ R.T
            K = angular_scaling(J_W, m.mass[b])
            self.J_inverse[b] = np.linalg.inv(J_W)
            self.weights[b] = np.concatenate([[1 / m.mass[b]], flat(K)]) / self.speed[b]
            p[i, at["momentum"]] = J_W @ state.w[b] + h * loads[b, 3:]
            p[i, at["R"]] = flat(R)
            p[i, at["J"]] = flat(m.inertia[b])
            p[i, at["K"]] = flat(K)

    def _speeds(self, state: State, h: float, loads: np.ndarray) -> np.ndarray:
        """Speed of a body's fastest point and what its load adds in a step."""
        m = self.model
        size = np.where(np.isfinite(m.size), m.size, 1.0)
        pulled = h * np.linalg.norm(loads[:, : m.dim], axis=1) / m.mass
        speed = np.linalg.norm(state.v, axis=1) + size * np.linalg.norm(state.w, axis=1) + pulled
        # a body at rest without load still needs a scale: a billionth of its size per step
        speed = np.maximum(speed, 1e-9 * size / h)
        return np.where(np.isfinite(m.mass), speed, 0.0)

    def free(self, state: State) -> np.ndarray:
        """Velocities of the moving bodies at the end of the step if nothing touches them; (n, velocities)."""
        return np.column_stack([self.parameters[:, self.at["v_free"]], state.w[self.model.moving]])
