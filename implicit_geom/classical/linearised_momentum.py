"""Momentum of all moving bodies over a step [C07, eq. 4], linearised: nu = u + B W p.

    m (v+ - v) = h F + W_v p
    R+ J R+^T w+ - R J R^T w = h tau + W_w p,     R+ = exp(h w+) R

as in `implicit-euler` [C07, eq. 4]. In space the angular rows are not linear in w+; about w they are

    A (w+ - w) = R J R^T w_l + h tau - L(w) + W_w p,    L(w) = J_W w,  J_W = exp(h w) R J R^T exp(-h w)
    A = J_W + h ([w]x-commuted: -[L]x + J_W [w]x) D(h w)^-1

with D the inverse of the exponential map's tangent. So  nu = u + B W p  with B = diag(1/m, A^-1).
"""

from __future__ import annotations

import numpy as np

from implicit_geom import rotation
from implicit_geom.model.model import Model, State


class LinearisedMomentum:
    """The balance of one step [C07, eq. 4]; `moving` bodies only, in their order."""

    def __init__(self, model: Model) -> None:
        self.model = model
        m = model.moving
        self.mass, self.inertia = model.mass[m], model.inertia[m]
        dim, size = model.dim, model.dim + model.spins
        self.dim = dim
        self.B = np.zeros((m.size, size, size))
        self.B[:, range(dim), range(dim)] = 1 / self.mass[:, None]
        if dim == 2:
            self.B[:, 2, 2] = 1 / self.inertia[:, 0, 0]
        self.diagonal = np.diagonal(self.B, axis1=1, axis2=2).ravel()  # of B, in the plane
        self.linear = dim == 2  # whether u and B do not depend on the velocities

    def prepare(self, state: State, h: float, impulse: np.ndarray) -> None:
        """The start of a step; `impulse` (B, dim + spins) is that of the loads."""
        m, dim = self.model.moving, self.dim
        self.h = h
        self.free = state.v[m] + impulse[m, :dim] / self.mass[:, None]
        if dim == 2:
            spin = state.w[m, 0] + impulse[m, 2] / self.inertia[:, 0, 0]
            self.u = np.concatenate([self.free, spin[:, None]], axis=1)
            return
        R = state.R[m]
        self.J_W = R @ self.inertia @ np.swapaxes(R, 1, 2)
        self.target = (self.J_W @ state.w[m][:, :, None])[:, :, 0] + impulse[m, 3:]

    def about(self, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """u (m, size) and B (m, size, size) of nu = u + B W p [C07, eq. 4], linearised at nu (m, size)."""
        if self.dim == 2:
            return self.u, self.B
        w = nu[:, 3:]
        E = rotation.matrix(rotation.exp(self.h * w))
        J = E @ self.J_W @ np.swapaxes(E, 1, 2)
        L = (J @ w[:, :, None])[:, :, 0]
        turned = np.linalg.inv(rotation.tangent_inverse(self.h * w))
        A = J + self.h * (J @ rotation.skew(w) - rotation.skew(L)) @ turned
        inverse = np.linalg.inv(A)
        B = self.B.copy()
        B[:, 3:, 3:] = inverse
        spin = w + (inverse @ (self.target - L)[:, :, None])[:, :, 0]
        return np.concatenate([self.free, spin], axis=1), B
