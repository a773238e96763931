"""The NCP of a whole step [C07, eqs. 10, 11]: momentum of every moving body, rows of every candidate pair.

The unknown vector is (nu of each moving body, unknowns of each contact). Each kind of pair is
evaluated for all its pairs in one call; the assembly is a scatter with indices made once per set of
candidate pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from implicit_geom.equations.thresholds import GAP_ROUNDING, IMPULSE_SHIFT, POINT_SHIFT
from implicit_geom.model.closest_point_problem import shorten
from implicit_geom.model.contact_group import ContactGroup, WarmStart
from implicit_geom.model.model import Model, State
from implicit_geom.model.momentum_rows import MomentumRows
from implicit_geom.solvers.block_elimination import BlockMatrix, BlockPattern, GroupPattern
from implicit_geom.solvers.newton import Jacobian

CONDENSED = 250  # unknowns above which each contact is eliminated by itself


class StepNCP:
    """The NCP of a step [C07, eqs. 10, 11] for given candidate pairs; a `newton.System` once prepared."""

    scheme = "euler"

    def __init__(self, model: Model, candidates: list[int], condensed: int = CONDENSED) -> None:
        self.model = model
        self.candidates = candidates
        self.condensed = condensed
        self.velocities = model.dim + model.spins
        self.bodies = MomentumRows(model, self.scheme)
        numbers = np.array(candidates, int)
        templates, member, which = (
            np.unique(model.pairs.template_numbers(numbers), return_index=True, return_inverse=True)
            if candidates
            else (np.zeros(0, int),) * 3
        )
        shared = [
            model.pairs.template(int(s), int(numbers[k])) for s, k in zip(templates, member, strict=True)
        ]
        by_kind: dict[int, list[int]] = {}  # kernel: its templates, in the order of the candidates
        for k in np.argsort(member):
            by_kind.setdefault(id(shared[k].kernel), []).append(int(k))
        self.groups: list[ContactGroup] = []
        self.order: list[int] = []  # candidate of each contact, in the order of the unknowns
        for chosen in by_kind.values():
            inside = np.isin(which, chosen)
            kernel = shared[chosen[0]].kernel.scheme(self.scheme)
            each = [shared[k] for k in which[inside]]
            self.groups.append(ContactGroup(model, kernel, numbers[inside], each))
            self.order += numbers[inside].tolist()
        self._index()

    def _index(self) -> None:
        """Where each group's unknowns, rows and Jacobian entries go."""
        nv, nb = self.velocities, self.model.moving.size
        slot = np.full(len(self.model.bodies), -1)
        slot[self.model.moving] = np.arange(nb)
        start = nv * nb
        self.gather: list[np.ndarray] = []  # (n, inputs) positions in z
        self.scatter: list[np.ndarray] = []  # (n, rows) positions in F
        self.contact_slices: list[slice] = []
        for g in self.groups:
            size = g.kernel.layout.size
            own = start + np.arange(g.n * size).reshape(g.n, size)
            bodies = [
                nv * slot[side][:, None] + np.arange(nv)
                for side, move in zip((g.first, g.second), g.kernel.kind.moves, strict=True)
                if move
            ]
            self.contact_slices += [slice(k, k + size) for k in own[:, 0].tolist()]
            start += g.n * size
            self.gather.append(np.concatenate([*bodies, own], axis=1))
            self.scatter.append(np.concatenate([own, *bodies], axis=1))
        self.size = N = start
        body_rows = np.arange(nv * nb).reshape(nb, nv)
        self.flat_rows = np.concatenate([body_rows.ravel(), *[s.ravel() for s in self.scatter]])
        self.pattern: BlockPattern | None = None
        self._flat_entries: dict[bool, np.ndarray] = {}
        if self.condensed < N:
            groups = [
                GroupPattern(inputs, g.kernel.layout.size)
                for g, inputs in zip(self.groups, self.gather, strict=True)
            ]
            self.pattern = BlockPattern(N, nb, nv, groups)
        self.shift = np.zeros(N)
        friction = [np.zeros(0, int)]
        for g, own, _ in self.members():
            at = g.kernel.layout.at
            self.shift[own[:, at["r"]]] = POINT_SHIFT
            self.shift[own[:, at["P_n"].start :]] = IMPULSE_SHIFT
            friction.append(own[:, at["S"]].ravel())
        self.friction = np.concatenate(
            friction
        )  # where the impulses of friction are, and the rows of their law
        self.held: np.ndarray | None = None
        self.islands: Any = None  # of `implicit_geom.contact.islands`, once they are known
        self.friction_tolerance = 0.0

    def _entries(self, smooth: bool) -> np.ndarray:
        """Positions of all Jacobian entries in the row-major dense matrix."""
        if smooth not in self._flat_entries:
            N, nv, nb = self.size, self.velocities, self.model.moving.size
            body_rows = np.arange(nv * nb).reshape(nb, nv)
            # each body's dense block, column-major as CasADi writes it
            entries = [(body_rows[:, None, :] * N + body_rows[:, :, None]).ravel()]
            for g, inputs, rows in zip(self.groups, self.gather, self.scatter, strict=True):
                sparsity = g.kernel.sparsity(smooth)
                i, j = np.array(sparsity.row(), int), np.array(sparsity.get_col(), int)
                entries.append((rows[:, i] * N + inputs[:, j]).ravel())
            self._flat_entries[smooth] = np.concatenate(entries)
        return self._flat_entries[smooth]

    def prepare(
        self,
        state: State,
        h: float,
        impulse: np.ndarray,
        warm: dict[int, WarmStart],
        tolerance: float,
        friction_tolerance: float = 0.0,
    ) -> np.ndarray:
        """Set the parameters of the step from `state` and return the start value of the unknowns.

        `impulse` (B, dim + spins) is what the loads give each body in it. Rows of the friction law may have
        a larger tolerance than the others.
        """
        self.h = h
        self.friction_tolerance = friction_tolerance if friction_tolerance > tolerance else 0.0
        self.bodies.prepare(state, h, impulse)
        z = np.zeros(self.size)
        z[: self.bodies.size] = self._predict(state, warm).ravel()
        self._tolerances(tolerance)
        for g, own, members in self.members():
            z[own] = self._start(g, state, {c: warm[c] for c in members})
            # rows in metres carry the rounding of the lengths they are differences of
            at = g.kernel.layout.at
            lengths = np.linalg.norm(g.get("offset"), axis=1) + g.get("L")[:, 0]
            floor = GAP_ROUNDING * lengths / (abs(h) * g.get("U")[:, 0])
            metres = np.r_[at["l"], at["k"], at["P_n"], at["S"]]
            self.tolerance[own[:, metres]] += floor[:, None]
            self.proximal[own[:, at["P_n"].start :]] = 1 / g.get("U")
        if self.friction_tolerance:
            self.tolerance[self.friction] = np.maximum(self.tolerance[self.friction], self.friction_tolerance)
        return z

    def hold_friction(self, z: np.ndarray | None) -> None:
        """From now on the rows of the friction law say that friction is as in z; None: the law again."""
        self.held = None if z is None else z[self.friction]

    def _start(self, g: ContactGroup, state: State, warm: dict[int, WarmStart]) -> np.ndarray:
        """Set a group's parameters from its pairs' warm starts; returns its unknowns to start from."""
        return g.prepare(state, self.h, self.bodies, list(warm.values()))

    def _tolerances(self, tolerance: float) -> None:
        self.tolerance = np.full(self.size, tolerance)
        self.proximal = np.zeros(self.size)

    def members(self) -> Iterator[tuple[ContactGroup, np.ndarray, list[int]]]:
        """Each group, where its contacts' unknowns sit, (n, unknowns), and its pairs."""
        k = 0
        for g, inputs in zip(self.groups, self.gather, strict=True):
            yield g, inputs[:, inputs.shape[1] - g.kernel.layout.size :], self.order[k : k + g.n]
            k += g.n

    def _predict(self, state: State, warm: dict[int, WarmStart]) -> np.ndarray:
        """Velocities to start from: unchanged where something pressed, ballistic elsewhere."""
        m = self.model
        pressed = np.zeros(len(m.bodies), bool)
        for g, _, members in self.members():
            at = g.kernel.scheme("euler").layout.at["P_n"].start
            push = np.array([warm[c].unknowns[at] for c in members]) > 0
            pressed[g.first[push]] = pressed[g.second[push]] = True
        kept = np.column_stack([state.v[m.moving], state.w[m.moving]])
        return np.where(pressed[m.moving, None], kept, self.bodies.free(state))

    def with_solution(
        self, z0: np.ndarray, other: StepNCP, z: np.ndarray, bodies: np.ndarray | None = None
    ) -> np.ndarray:
        """z0 with the velocities and contacts of a solution z of the same step with other candidates.

        `bodies`: which velocities, where not all.
        """
        out = z0.copy()
        moved = slice(0, self.bodies.size) if bodies is None else bodies
        out[moved] = z[moved]
        own = {c: rows for _, at, members in other.members() for c, rows in zip(members, at, strict=True)}
        for _, at, members in self.members():
            known = [k for k, c in enumerate(members) if c in own]
            if known:
                out[at[known]] = z[np.array([own[members[k]] for k in known])]
        return out

    @property
    def moved_by_contacts(self) -> np.ndarray:
        """Where the velocities of bodies with candidate pairs are."""
        ends = [
            g[:, : g.shape[1] - k.kernel.layout.size] for g, k in zip(self.gather, self.groups, strict=True)
        ]
        return np.unique(np.concatenate([e.ravel() for e in ends]))

    def weigh_multipliers(self, factor: float) -> None:
        """Weigh multipliers against constraints in the natural maps, see `ContactGroup.weigh_multipliers`."""
        for g in self.groups:
            g.weigh_multipliers(factor)

    def carries_impulse(self, z: np.ndarray) -> bool:
        """Whether any contact carries an impulse."""
        return any(bool(np.any(z[own[:, g.kernel.layout.at["P_n"]]] > 0)) for g, own, _ in self.members())

    def with_normal_impulses(self, z: np.ndarray, factor: float) -> np.ndarray:
        """z with every normal impulse at least `factor` times the speed scale (over the effective mass)."""
        z = z.copy()
        for g, own, _ in self.members():
            where = own[:, g.kernel.layout.at["P_n"]]
            z[where] = np.maximum(z[where], factor * g.get("U"))
        return z

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        """All rows of [C07, eqs. 10, 11] at z, complementarity as natural maps."""
        parts = [self.bodies.linearise(z)[0]]
        for g, inputs in zip(self.groups, self.gather, strict=True):
            if eps > 0:
                g.set("eps", eps)
            rows = g.rows if eps == 0 else g.smooth[0]
            parts.append(rows(z[inputs], g.parameters)[0].ravel())
        F = np.bincount(self.flat_rows, np.concatenate(parts), self.size)
        if self.held is not None:
            F[self.friction] = z[self.friction] - self.held
        return F

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, Jacobian]:
        """All rows and their Jacobian at z."""
        rows, momentum = self.bodies.linearise(z)
        parts, jacobians = [rows], []
        for g, inputs in zip(self.groups, self.gather, strict=True):
            if eps > 0:
                g.set("eps", eps)
            linear = g.linear if eps == 0 else g.smooth[1]
            rows, entries = linear(z[inputs], g.parameters)
            parts.append(rows.ravel())
            jacobians.append(entries)
        F = np.bincount(self.flat_rows, np.concatenate(parts), self.size)
        if self.held is not None:
            F[self.friction] = z[self.friction] - self.held
        if self.pattern is not None:
            blocks = [
                p.blocks(g.kernel.sparsity(eps > 0), entries)
                for p, g, entries in zip(self.pattern.groups, self.groups, jacobians, strict=True)
            ]
            if self.held is not None:
                for g, p, block in zip(self.groups, self.pattern.groups, blocks, strict=True):
                    k = np.arange(p.own)[g.kernel.layout.at["S"]]
                    block[:, k] = 0.0
                    block[:, k, p.ends + k] = 1.0
            return F, BlockMatrix(self.pattern, momentum.copy(), blocks)
        values = np.concatenate([momentum, *(entries.ravel() for entries in jacobians)])
        J = np.bincount(self._entries(smooth=eps > 0), values, self.size**2).reshape(self.size, self.size)
        if self.held is not None:
            J[self.friction] = 0.0
            J[self.friction, self.friction] = 1.0
        return F, J

    def ends(self, z: np.ndarray) -> dict[int, tuple[np.ndarray, bool]]:
        """Each candidate's geometry unknowns at the end of the step, in metres, and whether it is closed."""
        found: dict[int, tuple[np.ndarray, bool]] = {}
        for g, own, members in self.members():
            layout = g.kernel.layout
            geometry = z[own[:, : layout.geometry]]
            geometry[:, layout.at["D"]] *= abs(self.h)
            pressed = z[own[:, layout.at["P_n"].start]] > 0
            found.update(zip(members, zip(geometry, pressed.tolist(), strict=True), strict=True))
        return found

    def certified(self, z: np.ndarray) -> bool:
        """Whether every normal points out of its body (multipliers >= 0): excludes the mirrored roots."""
        for g, own, _ in self.members():
            at = g.kernel.layout.at
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
        turn = abs(self.h) * np.linalg.norm(bodies[:, dim:], axis=1, keepdims=True)
        bodies /= np.maximum(turn, 1.0)
        for g, own, _ in self.members():
            points = own[:, g.kernel.layout.at["r"]]
            steps = dz[points]
            shorten(steps)
            dz[points] = steps
        return dz
