"""Contacts of a state as rows of a contact problem: H, velocities, friction; masses of the bodies."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from implicit_geom.equations.tangent import references
from implicit_geom.geometry.patch_points import Patch
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.scene.scene import Friction


def mass_and_free_velocity(
    model: Model, state: State, h: float, loads: np.ndarray
) -> tuple[sp.csc_matrix, np.ndarray]:
    """M of the moving bodies, world frame, and their velocities after the step if nothing touches."""
    dim, moving = model.dim, model.moving
    size = dim + model.spins
    blocks = np.zeros((moving.size, size, size))
    blocks[:, range(dim), range(dim)] = model.mass[moving, None]
    nu = np.column_stack([state.v, state.w])[moving]
    free = nu.copy()
    free[:, :dim] += h * loads[moving, :dim] / model.mass[moving, None]
    torque = loads[moving, dim:]
    if dim == 2:
        J = model.inertia[moving].reshape(-1, 1, 1)
    else:
        R = state.R[moving]
        J = R @ model.inertia[moving] @ np.swapaxes(R, 1, 2)
        spin = nu[:, 3:]
        torque = torque - np.cross(spin, np.einsum("nij,nj->ni", J, spin))
    blocks[:, dim:, dim:] = J
    free[:, dim:] += h * np.linalg.solve(J, torque[:, :, None])[:, :, 0]
    count = np.arange(moving.size + 1)
    M = sp.bsr_matrix((blocks, count[:-1], count), shape=(free.size, free.size))
    return sp.csc_matrix(M), free.ravel()


class ContactRows:
    """Contacts one by one, in the scene's order of bodies: normal and binormal turned where it is another."""

    def __init__(self, model: Model, state: State, found: list[tuple[Pair, Patch]]) -> None:
        self.model, self.state = model, state
        self.pairs = [pair for pair, patch in found for _ in patch.gap]
        self.laws = [pair.law for pair in self.pairs]
        self.count = len(self.pairs)
        torsion = model.dim == 3 and any(law.mu > 0 and law.e_r > 0 for law in self.laws)
        self.dim = model.dim + int(torsion)
        sign = np.array([-1.0 if pair.swapped else 1.0 for pair in self.pairs]).reshape(-1, 1)
        bodies = np.array([(p.first, p.second) for p in self.pairs], int).reshape(-1, 2)
        self.bodies = np.where(sign < 0, bodies[:, ::-1], bodies)
        self.gap = np.concatenate([np.zeros(0), *(patch.gap for _, patch in found)])
        none = np.zeros((0, model.dim))
        # both bodies feel an impulse at the second one's point, so that angular momentum is kept
        self.point = np.concatenate([none, *(patch.point_b for _, patch in found)])
        n = np.concatenate([none, *(np.tile(patch.normal, (len(patch.gap), 1)) for _, patch in found)])
        t = self._tangents(n)
        self.axes_W = [sign * n, t] + ([sign * np.cross(n, t)] if model.dim == 3 else [])

    def _tangents(self, n: np.ndarray) -> np.ndarray:
        """t along the friction's direction, or along the world axis most across n."""
        if self.model.dim == 2:
            return np.column_stack([n[:, 1], -n[:, 0]])
        along = references(n, np.zeros_like(n))
        for k, law in enumerate(self.laws):
            if law.direction is not None:
                along[k] = self._direction(law)
        t = along - np.sum(along * n, axis=1)[:, None] * n
        return np.asarray(t / np.maximum(np.linalg.norm(t, axis=1), 1e-300)[:, None])

    def _direction(self, law: Friction) -> np.ndarray:
        given = np.array(law.direction)
        if law.frame is None:
            return given
        return np.asarray(self.state.R[self.model.names.index(law.frame)] @ given)

    def _wrenches(self, side: int) -> np.ndarray:
        """(n_c, d, dim + spins) on one body of a unit impulse of each row, as on the second."""
        dim, spins = self.model.dim, self.model.spins
        arm = self.point - self.state.x[self.bodies[:, side]]
        out = np.zeros((self.count, self.dim, dim + spins))
        for k, axis in enumerate(self.axes_W):
            out[:, k, :dim] = axis
            if dim == 3:
                out[:, k, dim:] = np.cross(arm, axis)
            else:
                out[:, k, 2] = arm[:, 0] * axis[:, 1] - arm[:, 1] * axis[:, 0]
        if self.dim == 4:
            out[:, 3, 3:] = self.axes_W[0]
        return out

    def directions(self) -> sp.csc_matrix:
        """H."""
        size = self.model.dim + self.model.spins
        place = np.full(len(self.model.bodies), -1)
        place[self.model.moving] = np.arange(self.model.moving.size)
        H = sp.csc_matrix((size * self.model.moving.size, self.dim * self.count))
        for side, sign in ((0, -1.0), (1, 1.0)):
            body = place[self.bodies[:, side]]
            moves = np.flatnonzero(body >= 0)
            W = sign * self._wrenches(side)[moves]
            row = size * body[moves, None, None] + np.arange(size) + np.zeros((1, self.dim, 1), int)
            column = self.dim * moves[:, None, None] + np.arange(self.dim)[:, None] + np.zeros(size, int)
            H = H + sp.csc_matrix((W.ravel(), (row.ravel(), column.ravel())), shape=H.shape)
        return sp.csc_matrix(H)

    def velocity(self) -> np.ndarray:
        """(n_c, d) relative velocities of the second body at the state, in each contact's rows."""
        nu = np.column_stack([self.state.v, self.state.w])
        one, two = (
            np.einsum("nki,ni->nk", self._wrenches(side), nu[self.bodies[:, side]]) for side in (0, 1)
        )
        return np.asarray(two - one)

    @property
    def sizes(self) -> np.ndarray:
        """(n_c,) of the smaller body of each contact, m."""
        size = self.model.pieces.size
        return np.array([min(size[i] for i in pair.pieces) for pair in self.pairs])

    @property
    def restitution(self) -> np.ndarray:
        """(n_c,)"""
        return np.array([law.restitution for law in self.laws], float)

    @property
    def mu(self) -> np.ndarray:
        """(n_c,)"""
        return np.array([law.mu for law in self.laws], float)

    def axes(self) -> np.ndarray:
        """(n_c, d - 1) the friction ellipsoid's axes; ones where there is no friction at all."""
        names = ("e_t", "e_o", "e_r")[: self.dim - 1]
        e = np.array([[getattr(law, name) for name in names] for law in self.laws])
        e = e.reshape(self.count, self.dim - 1)
        return np.where(np.array([law.mu for law in self.laws]).reshape(-1, 1) > 0, e, 1.0)

    def places(self) -> np.ndarray:
        """Structured array, one row a contact, as `run.contacts` has them."""
        names = np.array(self.model.names)
        vectors = [(name, "f8", (self.model.dim,)) for name in ("point", "normal", "tangent", "binormal")]
        out = np.zeros(self.count, [("first", names.dtype), ("second", names.dtype), *vectors, ("gap", "f8")])
        out["first"], out["second"] = names[self.bodies[:, 0]], names[self.bodies[:, 1]]
        out["point"], out["gap"] = self.point, self.gap
        for name, axis in zip(("normal", "tangent", "binormal"), self.axes_W, strict=False):
            out[name] = axis
        return out
