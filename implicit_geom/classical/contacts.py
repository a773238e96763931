"""Contacts at a pose as arrays: what every classical stepper reads.

One row is one contact; a pair of bodies may have several. The gap of row i changes with the velocities
nu = (v, w) of the bodies at the rate W_n^T nu, and an impulse p along its normal acts on them as W_n p:

    W_n^T nu = n . (v_2 + w_2 x r_2 - v_1 - w_1 x r_1),     likewise W_t, W_o;  W_r^T nu = n . (w_2 - w_1)

Both bodies feel an impulse at the second one's point, x_2 + r_2. Deviation: where bodies are still apart a
classical stepper uses each body's own point, which does not keep angular momentum; the rate of the gap is
the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom import rotation
from implicit_geom.model.model import Model, State
from implicit_geom.process.lazy import cached_property

SMOOTH, ON_FIRST, ON_SECOND = 0, 1, 2  # which body a contact's vertex is on; neither for smooth surfaces


@dataclass(frozen=True)
class Contacts:
    """n contacts at one pose; lengths in m, world axes."""

    pair: np.ndarray  # (n,) number in `model.pairs`
    feature: np.ndarray  # (n,) which contact of its pair: a vertex; 0 for smooth ones
    first: np.ndarray  # (n,) bodies; the half-space is first
    second: np.ndarray  # (n,)
    r1: np.ndarray  # (n, dim) contact points from the centres of mass: x_2 + r_2 = x_1 + r_1 + gap n
    r2: np.ndarray  # (n, dim)
    normal: np.ndarray  # (n, dim) unit, from first to second
    tangent: np.ndarray  # (n, dim)
    binormal: np.ndarray  # (n, dim) n x t; zero in the plane
    gap: np.ndarray  # (n,)
    mu: np.ndarray  # (n,)
    e: np.ndarray  # (n, 3) e_t, e_o, e_r (m), zero where there is no such friction; (n, 1) e_t in the plane
    side: np.ndarray  # (n,) SMOOTH, or which body the vertex is on; the other one has the plane
    anchor: np.ndarray  # (n, dim) the vertex in its body's axes, from the centre of mass
    plane: np.ndarray  # (n, dim + 1) outward normal and offset in the other body's axes, likewise

    def __len__(self) -> int:
        return len(self.pair)

    def take(self, rows: np.ndarray) -> Contacts:
        """The chosen rows."""
        return Contacts(*[getattr(self, name)[rows] for name in NAMES])

    @property
    def arm1(self) -> np.ndarray:
        """(n, dim) from the first body's centre of mass to the point where impulses act."""
        return self.r1 + self.gap[:, None] * self.normal

    def relative(self, nu: np.ndarray) -> np.ndarray:
        """Velocity of the second body past the first where impulses act; nu (B, dim + spins) -> (n, dim)."""
        dim = self.r1.shape[1]
        one, two = nu[self.first], nu[self.second]
        out = two[:, :dim] - one[:, :dim]
        out += rotation.rotational_velocity(two[:, dim:], self.r2)
        out -= rotation.rotational_velocity(one[:, dim:], self.arm1)
        return out

    @cached_property
    def levers(self) -> tuple[np.ndarray, np.ndarray]:
        """r_1 x n and r_2 x n, (n, spins): what turns the spin of a body into a rate of the gap."""
        return cross(self.r1, self.normal), cross(self.r2, self.normal)

    def normal_velocity(self, nu: np.ndarray) -> np.ndarray:
        """(n,) W_n^T nu, the rate of the gap, m/s [C07, eq. 4]."""
        dim = self.r1.shape[1]
        one, two = nu[self.first], nu[self.second]
        lever1, lever2 = self.levers
        rate = (self.normal * (two[:, :dim] - one[:, :dim])).sum(axis=1)
        rate += (lever2 * two[:, dim:] - lever1 * one[:, dim:]).sum(axis=1)
        return np.asarray(rate)

    def slip(self, nu: np.ndarray) -> np.ndarray:
        """(n, 3) W_t^T nu, W_o^T nu (m/s), W_r^T nu (rad/s) [C07, eq. 5]; (n, 1) in the plane."""
        u = self.relative(nu)
        along = np.sum(self.tangent * u, axis=1)
        if u.shape[1] == 2:
            return along[:, None]
        spin = np.sum(self.normal * (nu[self.second, 3:] - nu[self.first, 3:]), axis=1)
        return np.stack([along, np.sum(self.binormal * u, axis=1), spin], axis=1)

    def wrenches(self) -> tuple[np.ndarray, np.ndarray]:
        """W [C07, eq. 1]: (n, c, dim + spins) on the first and the second body of a unit p_n, p_t (p_o, p_r).

        c = 2 in the plane, 4 in space.
        """
        n, dim = self.r1.shape
        spins = 1 if dim == 2 else 3
        axes = [self.normal, self.tangent] + ([self.binormal] if dim == 3 else [])
        W = np.zeros((2, n, 2 if dim == 2 else 4, dim + spins))
        for k, axis in enumerate(axes):
            W[0, :, k, :dim], W[1, :, k, :dim] = -axis, axis
            W[0, :, k, dim:] = -cross(self.arm1, axis)
            W[1, :, k, dim:] = cross(self.r2, axis)
        if dim == 3:
            W[0, :, 3, 3:], W[1, :, 3, 3:] = -self.normal, self.normal
        return W[0], W[1]


NAMES = tuple(Contacts.__dataclass_fields__)


def cross(r: np.ndarray, f: np.ndarray) -> np.ndarray:
    """r x f; (n, 3), (n, 1) in the plane."""
    if r.shape[1] == 3:
        return rotation.cross(r, f)
    return (r[:, 0] * f[:, 1] - r[:, 1] * f[:, 0])[:, None]


def stack_contacts(parts: list[Contacts]) -> Contacts:
    """All rows of several sets of contacts, one after the other."""
    return Contacts(*(np.concatenate([getattr(p, name) for p in parts]) for name in NAMES))


def join_contacts(parts: list[Contacts], dim: int) -> Contacts:
    """All contacts, in the order of their pairs and features."""
    parts = [p for p in parts if len(p)]
    if len(parts) < 2:
        return parts[0] if parts else no_contacts(dim)
    c = stack_contacts(parts)
    return c.take(np.lexsort((c.feature, c.pair)))


def no_contacts(dim: int) -> Contacts:
    """No contacts."""
    whole, number, vector = np.zeros(0, int), np.zeros(0), np.zeros((0, dim))
    e, planes = np.zeros((0, 1 if dim == 2 else 3)), np.zeros((0, dim + 1))
    frame = (vector, vector, vector)  # normal, tangent, binormal
    return Contacts(
        whole, whole, whole, whole, vector, vector, *frame, number, number, e, whole, vector, planes
    )


class PairLaws:
    """Bodies and friction of pairs by their numbers, as arrays."""

    FEW = 4096  # pairs of a scene that are all listed at once

    def __init__(self, model: Model) -> None:
        self.model, self.pairs = model, model.pairs
        laws = self.pairs.laws
        self.spatial = model.dim == 3
        self.mu = np.array([law.mu for law in laws])
        e = np.array([(law.e_t, law.e_o, law.e_r) for law in laws])
        self.e = (e if self.spatial else e[:, :1]) * (self.mu > 0)[:, None]
        self.given = np.array([law.direction is not None for law in laws])
        self.direction = np.array([law.direction or (0.0,) * model.dim for law in laws])
        names = {name: i for i, name in enumerate(model.names)}
        self.frame = np.array([-1 if law.frame is None else names[law.frame] for law in laws])
        self._all = None
        if len(self.pairs) <= self.FEW:
            self._all = self._look_up(np.arange(len(self.pairs)))

    def _look_up(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return (*self.pairs.sides(numbers), self.pairs.law_numbers(numbers))

    def of(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """First and second bodies, and the numbers of the laws, of pairs."""
        if self._all is None:
            return self._look_up(numbers)
        first, second, law = self._all
        return first[numbers], second[numbers], law[numbers]

    def tangents(
        self, state: State, law: np.ndarray, n: np.ndarray, reference: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """t along the friction's direction, or along `reference` where none is given; o = n x t; (n, dim).

        In the plane t is the normal turned by -90 degrees.
        """
        if not self.spatial:
            return np.stack([n[:, 1], -n[:, 0]], axis=1), np.zeros_like(n)
        along = np.eye(3)[np.argmin(np.abs(n), axis=1)] if reference is None else reference
        if np.any(self.given[law]):
            given, frame = self.direction[law], self.frame[law]
            attached = np.einsum("nij,nj->ni", state.R[frame], given)
            given = np.where((frame >= 0)[:, None], attached, given)
            along = np.where(self.given[law][:, None], given, along)
        t = along - np.sum(along * n, axis=1)[:, None] * n
        t /= np.maximum(np.linalg.norm(t, axis=1), 1e-300)[:, None]
        return t, rotation.cross(n, t)
