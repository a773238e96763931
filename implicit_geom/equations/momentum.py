"""Momentum balance of a free rigid body over one implicit Euler step [C07, eq. 4], or a stage of RATTLE.

With J_W = R J R^T at the start of the step (J_W+ at its end), world axes:

    euler      m (v+ - v) = h F + contact impulses
               J_W+ w+ - J_W w = h tau + contact impulse moments,      R+ = exp(h w+) R
    position   m (v_half - v) = h/2 F + ...
               D(h w_half)^T J_W w_half - J_W w = h/2 tau + ...,       R+ = exp(h w_half) R
    velocity   m (v+ - v_half) = h/2 F+ + ...
               J_W+ w+ - D(-h w_half)^T J_W+ w_half = h/2 tau+ + ...

with D the inverse of the exponential map's tangent (`rotation.tangent_inverse`): it holds the gyroscopic
term, and with it the two stages are a variational integrator.

Deviation: C07 writes the angular rows with an explicit gyroscopic impulse, which gains energy and
diverges for fast, thin bodies; the balance of world angular momentum above never gains.

Rows are scaled to velocities in the metric of the kinetic energy: linear rows by 1/m, angular rows by
K = (m J_W)^(-1/2), and both by 1/U.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from implicit_geom.equations.unknowns import flat
from implicit_geom.machine.columns import Mapped
from implicit_geom.model.model import Model, State
from implicit_geom.process.building import built_once
from implicit_geom.rotation import exp_symbolic, tangent_inverse, tangent_inverse_symbolic

# Where each input of the momentum rows sits in the parameter vector.
SPATIAL = {"h": 1, "U": 1, "R": 9, "J": 9, "K": 9, "v_free": 3, "momentum": 3}
PLANAR = {"U": 1, "v_free": 2, "w_free": 1, "gyration": 1}


@built_once
def momentum_rows(dim: int, scheme: str) -> tuple[ca.Function, dict[str, slice]]:
    """Rows and their Jacobian by nu = (v, w) for one body, as a function of (nu, parameters)."""
    at, start = {}, 0
    for name, size in (SPATIAL if dim == 3 else PLANAR).items():
        at[name] = slice(start, start + size)
        start += size
    p = ca.SX.sym("p", start)
    nu = ca.SX.sym("nu", 6 if dim == 3 else 3)
    U = p[at["U"]]
    linear = (nu[:dim] - p[at["v_free"]]) / U
    if dim == 3:
        h, w = p[at["h"]], nu[3:]
        R, J = ca.reshape(p[at["R"]], 3, 3), ca.reshape(p[at["J"]], 3, 3)
        if scheme == "euler":
            R = exp_symbolic(h * w) @ R
        momentum = R @ J @ R.T @ w
        if scheme == "position":
            momentum = tangent_inverse_symbolic(h * w).T @ momentum
        angular = ca.reshape(p[at["K"]], 3, 3) @ (momentum - p[at["momentum"]]) / U
    else:
        angular = p[at["gyration"]] * (nu[2] - p[at["w_free"]]) / U
    rows = ca.vertcat(linear, angular)
    return ca.Function("momentum", [nu, p], [rows, ca.densify(ca.jacobian(rows, nu))]), at


def drifted(model: Model, end: State, h: float) -> State:
    """The state with the velocities that carry stage 1's momentum: J_W+ w = D(-h w_half)^T J_W+ w_half.

    `end` has the poses at the end of the step and the velocities of stage 1.
    """
    if model.dim == 2:
        return end
    w = end.w.copy()
    for b in model.moving:
        J_W = end.R[b] @ model.inertia[b] @ end.R[b].T
        w[b] = np.linalg.solve(J_W, tangent_inverse(-h * end.w[b]).T @ (J_W @ end.w[b]))
    return replace(end, w=w)


def angular_scaling(J_W: np.ndarray, mass: float | np.ndarray) -> np.ndarray:
    """K = (m J_W)^(-1/2), (..., 3, 3): turns an angular impulse into a velocity of the gyration radius."""
    values, vectors = np.linalg.eigh(J_W)
    scaled = vectors / np.sqrt(np.asarray(mass)[..., None] * values)[..., None, :]
    return np.asarray(scaled @ np.swapaxes(vectors, -1, -2))


class BodyRows:
    """The momentum rows of all moving bodies, and the scales that a step takes from them.

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
        self._rows = Mapped(function, self.n)

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
        size = np.where(np.isfinite(m.size), m.size, 1.0)
        self.pulled = np.linalg.norm(impulse[:, : m.dim], axis=1) / m.mass
        speed = np.linalg.norm(state.v, axis=1) + size * np.linalg.norm(state.w, axis=1) + self.pulled
        # a body at rest without load still needs a scale: a billionth of its size per step
        speed = np.maximum(speed, 1e-9 * size / abs(h))
        return np.where(np.isfinite(m.mass), speed, 0.0)

    def free(self, state: State) -> np.ndarray:
        """Velocities of the moving bodies at the end of the step if nothing touches them; (n, velocities)."""
        return np.column_stack([self.parameters[:, self.at["v_free"]], state.w[self.model.moving]])
