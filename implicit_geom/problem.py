"""One time step as one system of equations: momentum of every moving body, rows of every candidate pair.

The unknown vector is (nu of each moving body, unknowns of each contact). Each kind of pair is
evaluated for all its pairs in one call; the assembly is a scatter with indices made once per set of
candidate pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.body import angular_scaling, momentum_rows
from implicit_geom.closest_points import POINT_SHIFT, shorten
from implicit_geom.mapped import Mapped
from implicit_geom.model import Model, Pair, State
from implicit_geom.pair import PairKernel, flat

# Diagonal added to the Newton matrix (never to the residual): closest points of flat patches are
# not unique while nothing presses, impulses of sticking contacts are not unique in a pile.
IMPULSE_SHIFT = 1e-9
# Rounding of a gap in units of the last place of the lengths it is computed from.
GAP_ROUNDING = 32 * np.finfo(float).eps


@dataclass
class WarmStart:
    """What a pair remembers from the last step: its unknowns, tangent reference and scales."""

    unknowns: np.ndarray  # r over L, D, n, l, k, P_n, S, sigma
    direction: np.ndarray
    m_c: float
    h: float


class Group:
    """All candidate pairs of one kind."""

    def __init__(self, kernel: PairKernel, pairs: list[Pair]) -> None:
        self.kernel = kernel
        self.pairs = pairs
        self.n = len(pairs)
        self.first = np.array([p.first for p in pairs])
        self.second = np.array([p.second for p in pairs])
        self.parameters = np.zeros((self.n, kernel.symbols.parameters.numel()))
        self.rows = Mapped(kernel.exact[0], self.n)
        self.linear = Mapped(kernel.exact[1], self.n)
        self.report = Mapped(kernel.report, self.n)
        self._smooth: tuple[Mapped, Mapped] | None = None

    @property
    def smooth(self) -> tuple[Mapped, Mapped]:
        if self._smooth is None:
            rows, linear = self.kernel.smooth
            self._smooth = Mapped(rows, self.n), Mapped(linear, self.n)
        return self._smooth

    def set(self, name: str, value: Any) -> None:
        self.parameters[:, self.kernel.symbols.at[name]] = value

    def get(self, name: str) -> np.ndarray:
        return self.parameters[:, self.kernel.symbols.at[name]]


class StepProblem:
    """The equations of a step for a fixed set of candidate pairs; a `newton.System` once prepared."""

    def __init__(self, model: Model, candidates: list[int]) -> None:
        self.model = model
        self.candidates = candidates
        self.velocities = model.dim + model.spins
        nb = model.moving.size
        self.slot = {int(b): i for i, b in enumerate(model.moving)}
        function, self.body_at = momentum_rows(model.dim)
        self.momentum = Mapped(function, nb)
        self.body_parameters = np.zeros((nb, sum(s.stop - s.start for s in self.body_at.values())))
        by_kind: dict[int, list[int]] = {}
        for c in candidates:
            by_kind.setdefault(id(model.pairs[c].kernel), []).append(c)
        self.groups: list[Group] = []
        self.order: list[int] = []  # candidate of each contact, in the order of the unknowns
        for members in by_kind.values():
            self.groups.append(Group(model.pairs[members[0]].kernel, [model.pairs[c] for c in members]))
            self.order += members
        self._index()

    def _index(self) -> None:
        """Where each group's unknowns, rows and Jacobian entries go."""
        nv, nb = self.velocities, self.model.moving.size
        start = nv * nb
        self.gather: list[np.ndarray] = []  # (n, inputs) positions in z
        self.scatter: list[np.ndarray] = []  # (n, rows) positions in F
        self.contact_slices: list[slice] = []
        for g in self.groups:
            size = g.kernel.layout.size
            inputs, rows = [], []
            for pair in g.pairs:
                own = np.arange(start, start + size)
                bodies = [
                    nv * self.slot[b] + np.arange(nv)
                    for b, move in zip((pair.first, pair.second), g.kernel.kind.moves, strict=True)
                    if move
                ]
                inputs.append(np.concatenate([*bodies, own]))
                rows.append(np.concatenate([own, *bodies]))
                self.contact_slices.append(slice(start, start + size))
                start += size
            self.gather.append(np.array(inputs))
            self.scatter.append(np.array(rows))
        self.size = N = start
        body_rows = np.arange(nv * nb).reshape(nb, nv)
        self.flat_rows = np.concatenate([body_rows.ravel(), *[s.ravel() for s in self.scatter]])
        self.flat_entries = self._entries(smooth=False)
        self._flat_entries_smooth: np.ndarray | None = None
        self.shift = np.zeros(N)
        for g, gather in zip(self.groups, self.gather, strict=True):
            at, own = g.kernel.layout.at, gather[:, -g.kernel.layout.size :]
            self.shift[own[:, at["r"]]] = POINT_SHIFT
            self.shift[own[:, at["P_n"].start :]] = IMPULSE_SHIFT

    def _entries(self, smooth: bool) -> np.ndarray:
        """Positions of all Jacobian entries in the row-major dense matrix."""
        N, nv, nb = self.size, self.velocities, self.model.moving.size
        body_rows = np.arange(nv * nb).reshape(nb, nv)
        # each body's dense block, column-major as CasADi writes it
        entries = [(body_rows[:, None, :] * N + body_rows[:, :, None]).ravel()]
        for g, inputs, rows in zip(self.groups, self.gather, self.scatter, strict=True):
            function = g.kernel.smooth[1] if smooth else g.kernel.exact[1]
            sparsity = function.sparsity_out(1)
            i, j = np.array(sparsity.row(), int), np.array(sparsity.get_col(), int)
            entries.append((rows[:, i] * N + inputs[:, j]).ravel())
        return np.concatenate(entries)

    def prepare(
        self, state: State, h: float, loads: np.ndarray, warm: dict[int, WarmStart], tolerance: float
    ) -> np.ndarray:
        """Set the parameters of the step from `state` and return the start value of the unknowns."""
        self.state, self.h = state, h
        speed = self._prepare_bodies(state, h, loads)
        z = np.zeros(self.size)
        z[: self.velocities * self.model.moving.size] = self._predict(state, warm).ravel()
        self.tolerance = np.full(self.size, tolerance)
        k = 0
        for g, inputs in zip(self.groups, self.gather, strict=True):
            members = self.order[k : k + g.n]
            starts = [warm[c] for c in members]
            self._prepare_group(g, starts, speed)
            own = inputs[:, -g.kernel.layout.size :]
            z[own] = self._start(g, starts, h)
            # rows in metres carry the rounding of the lengths they are differences of
            at = g.kernel.layout.at
            lengths = np.linalg.norm(g.get("offset"), axis=1) + g.get("L")[:, 0]
            floor = GAP_ROUNDING * lengths / (h * g.get("U")[:, 0])
            metres = np.r_[at["l"], at["k"], at["P_n"], at["S"]]
            self.tolerance[own[:, metres]] += floor[:, None]
            k += g.n
        return z

    def _prepare_bodies(self, state: State, h: float, loads: np.ndarray) -> np.ndarray:
        """Momentum parameters; returns each body's speed scale U (m/s), zero for fixed bodies."""
        m, dim, p, at = self.model, self.model.dim, self.body_parameters, self.body_at
        self.R = state.R
        moving = m.moving
        mass = m.mass[moving]
        v_free = state.v[moving] + h * loads[moving, :dim] / mass[:, None]
        speed = np.zeros(len(m.bodies))
        size = np.where(np.isfinite(m.size), m.size, 1.0)
        spin = np.linalg.norm(state.w, axis=1)
        accelerated = np.linalg.norm(loads[:, :dim], axis=1) / m.mass * h
        speed[moving] = (np.linalg.norm(state.v, axis=1) + size * spin + accelerated)[moving]
        # a body at rest without load still needs a scale: a billionth of its size per step
        speed[moving] = np.maximum(speed[moving], 1e-9 * size[moving] / h)
        p[:, at["U"]] = speed[moving, None]
        p[:, at["v_free"]] = v_free
        self.K = np.zeros((len(m.bodies), m.spins, m.spins))
        if dim == 2:
            J = m.inertia[moving, 0, 0]
            p[:, at["w_free"]] = (state.w[moving, 0] + h * loads[moving, 2] / J)[:, None]
            p[:, at["gyration"]] = np.sqrt(J / mass)[:, None]
            self.K[moving, 0, 0] = 1 / np.sqrt(J * mass)
            self.J_inverse = np.zeros((len(m.bodies), 1, 1))
            self.J_inverse[moving, 0, 0] = 1 / J
            return speed
        self.J_inverse = np.zeros((len(m.bodies), 3, 3))
        for i, b in enumerate(moving):
            J_W = self.R[b] @ m.inertia[b] @ self.R[b].T
            self.K[b] = angular_scaling(J_W, m.mass[b])
            self.J_inverse[b] = np.linalg.inv(J_W)
            p[i, at["momentum"]] = J_W @ state.w[b] + h * loads[b, 3:]
            p[i, at["R"]] = flat(self.R[b])
            p[i, at["J"]] = flat(m.inertia[b])
            p[i, at["K"]] = flat(self.K[b])
        p[:, at["h"]] = h
        return speed

    def _predict(self, state: State, warm: dict[int, WarmStart]) -> np.ndarray:
        """Velocities to start from: unchanged where something pressed, ballistic elsewhere."""
        m = self.model
        pressed = np.zeros(len(m.bodies), bool)
        for c in self.candidates:
            pair = m.pairs[c]
            if warm[c].unknowns[pair.kernel.layout.at["P_n"]][0] > 0:
                pressed[[pair.first, pair.second]] = True
        free = np.column_stack([self.body_parameters[:, self.body_at["v_free"]], state.w[m.moving]])
        kept = np.column_stack([state.v[m.moving], state.w[m.moving]])
        return np.where(pressed[m.moving, None], kept, free)

    def _prepare_group(self, g: Group, starts: list[WarmStart], speed: np.ndarray) -> None:
        m, a, b = self.model, g.first, g.second
        g.set("h", self.h)
        size = np.minimum(m.size[a], m.size[b])
        L = np.where(np.isfinite(size), size, 1.0)
        U = np.maximum(speed[a], speed[b])
        g.set("L", L[:, None])
        g.set("c", L[:, None])
        g.set("U", U[:, None])
        g.set("mu", np.array([[p.law.mu] for p in g.pairs]))
        kept = g.kernel.kind.components
        if kept:
            g.set("e", np.array([[getattr(p.law, f"e_{c}") for c in kept] for p in g.pairs]))
        g.set("direction", np.array([w.direction for w in starts]))
        g.set("offset", self.state.x[b] - self.state.x[a])
        for i, body in ((1, a), (2, b)):
            g.set(f"R{i}", np.array([flat(self.R[k]) for k in body]))
            g.set(f"com{i}", m.com[body])
            weights = [
                [1 / (m.mass[k] * speed[k]), *(flat(self.K[k]) / speed[k])] if speed[k] > 0 else 0
                for k in body
            ]
            rotations = m.spins**2
            rows = np.array([w if isinstance(w, list) else [0.0] * (1 + rotations) for w in weights])
            g.set(f"weight{i}", rows)
            g.set(f"theta{i}", np.array([m.bodies[k].shape.values for k in body]))
        g.set("m_c", self._effective_mass(g, starts)[:, None])

    def _effective_mass(self, g: Group, starts: list[WarmStart]) -> np.ndarray:
        """1 / largest eigenvalue of the contact's own block of W^T M^-1 W at the start of the step."""
        m, dim = self.model, self.model.dim
        at = g.kernel.layout.at
        L = g.get("L")[:, 0]
        r_own = np.array([w.unknowns[at["r"]] for w in starts]) * L[:, None]
        offset = g.get("offset")
        known = g.kernel.layout.known_normal
        r2 = r_own if known else r_own - offset
        r1 = r_own + offset if known else r_own
        block = np.zeros((g.n, dim, dim))
        for body, r in ((g.first, r1), (g.second, r2)):
            inverse_mass = np.where(np.isfinite(m.mass[body]), 1 / m.mass[body], 0.0)
            lever = _lever(r)
            block += inverse_mass[:, None, None] * np.eye(dim)
            block += np.einsum("nki,nkl,nlj->nij", lever, self.J_inverse[body], lever)
        return 1 / np.linalg.eigvalsh(block)[:, -1]

    def _start(self, g: Group, starts: list[WarmStart], h: float) -> np.ndarray:
        """Last step's unknowns, with impulses rescaled to this step's length and effective mass."""
        at = g.kernel.layout.at
        u = np.array([w.unknowns for w in starts])
        m_c = g.get("m_c")[:, 0]
        factor = np.array([w.m_c * h / w.h for w in starts]) / m_c
        u[:, at["P_n"].start : at["S"].stop] *= factor[:, None]
        return u

    def weigh(self, factor: float) -> None:
        """Weigh multipliers against constraints by factor * L in the natural maps (see `surface_rows`)."""
        for g in self.groups:
            g.set("c", factor * g.get("L"))

    def struck(self, z: np.ndarray, factor: float) -> np.ndarray:
        """z with every normal impulse at least `factor` times the speed scale (over the effective mass)."""
        z = z.copy()
        for g, inputs in zip(self.groups, self.gather, strict=True):
            where = inputs[:, -g.kernel.layout.size :][:, g.kernel.layout.at["P_n"]]
            z[where] = np.maximum(z[where], factor * g.get("U"))
        return z

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        """All rows at z."""
        nv, nb = self.velocities, self.model.moving.size
        parts = [self.momentum(z[: nv * nb].reshape(nb, nv), self.body_parameters)[0].ravel()]
        for g, inputs in zip(self.groups, self.gather, strict=True):
            if eps > 0:
                g.set("eps", eps)
            rows = g.rows if eps == 0 else g.smooth[0]
            parts.append(rows(z[inputs], g.parameters)[0].ravel())
        return np.bincount(self.flat_rows, np.concatenate(parts), self.size)

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        """All rows and their Jacobian at z."""
        nv, nb = self.velocities, self.model.moving.size
        rows, entries = self.momentum(z[: nv * nb].reshape(nb, nv), self.body_parameters)
        parts, jacobians = [rows.ravel()], [entries.ravel()]
        for g, inputs in zip(self.groups, self.gather, strict=True):
            if eps > 0:
                g.set("eps", eps)
            linear = g.linear if eps == 0 else g.smooth[1]
            rows, entries = linear(z[inputs], g.parameters)
            parts.append(rows.ravel())
            jacobians.append(entries.ravel())
        where = self.flat_entries
        if eps > 0:
            if self._flat_entries_smooth is None:
                self._flat_entries_smooth = self._entries(smooth=True)
            where = self._flat_entries_smooth
        F = np.bincount(self.flat_rows, np.concatenate(parts), self.size)
        J = np.bincount(where, np.concatenate(jacobians), self.size**2)
        return F, J.reshape(self.size, self.size)

    def ends(self, z: np.ndarray) -> dict[int, tuple[np.ndarray, bool]]:
        """Each candidate's geometry unknowns at the end of the step, in metres, and whether it is closed."""
        found = {}
        for c, where in zip(self.order, self.contact_slices, strict=True):
            layout = self.model.pairs[c].kernel.layout
            u = z[where]
            geometry = u[: layout.geometry].copy()
            geometry[layout.at["D"]] *= self.h
            pressed = u[layout.at["P_n"]][0] > 0
            found[c] = (geometry, bool(pressed))
        return found

    def certified(self, z: np.ndarray) -> bool:
        """Whether every normal points out of its body (multipliers >= 0): excludes the mirrored roots."""
        for g, inputs in zip(self.groups, self.gather, strict=True):
            at, own = g.kernel.layout.at, inputs[:, -g.kernel.layout.size :]
            signs = g.kernel.signs
            worst = min(
                (z[own[:, at["l"]]] * signs[0]).min(initial=0.0),
                (z[own[:, at["k"]]] * signs[1]).min(initial=0.0),
            )
            if worst < -1e-9:
                return False
        return True

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        """At most a radian of turn for a body, and one body size for a contact point, in an iteration."""
        nv, nb, dim = self.velocities, self.model.moving.size, self.model.dim
        dz = dz.copy()
        bodies = dz[: nv * nb].reshape(nb, nv)
        turn = self.h * np.linalg.norm(bodies[:, dim:], axis=1, keepdims=True)
        bodies /= np.maximum(turn, 1.0)
        for g, inputs in zip(self.groups, self.gather, strict=True):
            points = inputs[:, -g.kernel.layout.size :][:, g.kernel.layout.at["r"]]
            steps = dz[points]
            shorten(steps)
            dz[points] = steps
        return dz


def _lever(r: np.ndarray) -> np.ndarray:
    """The matrices X with X f = r x f; (n, dim) -> (n, spins, dim)."""
    if r.shape[1] == 2:
        return np.stack([-r[:, 1], r[:, 0]], axis=1)[:, None, :]
    zero = np.zeros(len(r))
    x, y, z = r.T
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)
