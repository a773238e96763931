"""A step with its contact frames frozen at a point z: a contact problem, and the way back from its solution.

    M (nu - nu_free) = H p,      u = H^T nu + w

M is the mass matrix at the start of the step and H the wrenches of unit impulses at z. nu_free and w are such
that momentum rows and contact velocities (gap over step, slip) are those of the step at z: where z is its own
solution it solves the step. Left out are the curvature of the bodies and the turning of wrenches and inertia.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.model.closest_point_problem import shorten
from implicit_geom.model.contact_group import ContactGroup
from implicit_geom.solvers.block_elimination import BlockPattern, GroupPattern

if TYPE_CHECKING:
    from implicit_geom.solvers.contact.problem import ContactProblem
    from implicit_geom.solvers.contact.solution import ContactSolution

CLOSED = 1e3  # impulse over the speed scale that shows the rows of a contact as those of a sticking one
POINTS = 8  # Newton steps for closest points
SETTLED = 1e-9  # their rows
FLAT = 1e-9  # diagonal for closest points that are not unique


class LinearisedStep:
    """A step at z.

    contacts    the contact problem; impulses of friction are over E, and so in balls
    start       (d n_c,) its impulses in z, N s
    fastest     speed scale of the fastest body, m/s
    slowest     that of the slowest pair
    symmetric   whether contact velocities belong to the impulses; in steps that run backwards they may not
    """

    def __init__(self, problem: StepNCP, z: np.ndarray) -> None:
        from implicit_geom.solvers.contact.problem import ContactProblem

        self.problem, self.z = problem, z
        self.pattern = _pattern(problem)
        self.nu = z[: self.pattern.moving].copy()
        self.fastest = float(problem.bodies.speed.max(initial=0.0))
        self.slowest = min(float(g.get("U").min()) for g in problem.groups)
        self.symmetric = True
        self.dim = max(2, *(1 + len(g.kernel.kind.components) for g in problem.groups))
        self._mass, self._unscaled = _masses(problem)
        self._geometry: list[tuple[np.ndarray, ...]] = []
        H, w, start, self._effective = [], [], [], []
        for g, pattern, inputs in zip(problem.groups, self.pattern.groups, problem.gather, strict=True):
            self._effective.append(np.abs(g.get("m_c")[:, 0]))
            wrenches, u, impulses = self._frozen(g, pattern, z[inputs])
            H.append(wrenches)
            w.append(u - np.einsum("nik,ni->nk", wrenches, self.nu[pattern.at_ends]))
            start.append(impulses)
        rows = problem.bodies.linearise(z)[0].reshape(-1, self.pattern.velocities, 1)
        free = self.nu - np.linalg.solve(self._mass, self._unscaled @ rows).ravel()
        M, H_all = self._sparse(H)
        mu = np.concatenate([g.get("mu")[:, 0] for g in problem.groups])
        self.contacts: ContactProblem = ContactProblem(
            M=M, H=H_all, v_free=free, w=self._joined(w), mu=mu, dim=self.dim
        )
        self.start = self._joined(start)

    def _frozen(
        self, g: ContactGroup, pattern: GroupPattern, shown: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Wrenches (n, ends, k), contact velocities at z and impulses there (n, k) of a group.

        A closed, sticking contact is shown to the contact's rows: those of its law are then u itself. Closest
        points that are not settled are, to first order.
        """
        at, ends, own, U = g.kernel.layout.at, pattern.ends, pattern.own, g.get("U")
        geometry, law = slice(0, at["P_n"].start), slice(at["P_n"].start, at["S"].stop)
        impulses = shown[:, ends:][:, law] * self._effective[-1][:, None]
        impulses *= impulses[:, :1] > 0
        shown[:, ends + at["P_n"].start] = (CLOSED * U * (1 + 1 / np.maximum(g.get("mu"), 1e-3)))[:, 0]
        shown[:, ends + at["P_n"].start + 1 :] = 0.0
        F, entries = g.linear(shown, g.parameters)
        F, A = F.copy(), pattern.blocks(g.kernel.sparsity(False), entries)
        k = np.arange(at["P_n"].start)
        A[:, k, ends + k] += FLAT * (at["r"].stop > 0)
        shift = np.linalg.solve(
            A[:, geometry, ends:][:, :, geometry],
            np.concatenate([A[:, geometry, :ends], F[:, geometry, None]], axis=2),
        )
        self._geometry.append((pattern.at_own[:, geometry], shift, pattern.at_own[:, law]))
        bent = A[:, law, ends:][:, :, geometry] @ shift
        u = U * (F[:, law] - bent[:, :, ends])
        W = A[:, own:, ends:][:, :, law]
        nv = self.pattern.velocities
        bodies = self.pattern.bodies(pattern)
        parts = [self._unscaled[b] @ W[:, nv * j : nv * (j + 1)] for j, b in enumerate(bodies.T)]
        H = -np.concatenate(parts, axis=1) / self._effective[-1][:, None, None]
        V = A[:, law, :ends] - bent[:, :, :ends]
        self.symmetric &= bool(np.all(np.einsum("nki,nik->nk", V, H) > 0))
        return H, u, impulses

    def _sparse(self, H: list[np.ndarray]) -> tuple[object, object]:
        """M and H."""
        from scipy.sparse import block_diag, csc_matrix  # (here: it takes long to import)

        rows, columns, first = [], [], 0
        for pattern, part in zip(self.pattern.groups, H, strict=True):
            rows.append(np.broadcast_to(pattern.at_ends[:, :, None], part.shape).ravel())
            own = self.dim * (first + np.arange(pattern.n))[:, None, None] + np.arange(part.shape[2])
            columns.append(np.broadcast_to(own, part.shape).ravel())
            first += pattern.n
        places = (np.concatenate(rows), np.concatenate(columns))
        values = np.concatenate([part.ravel() for part in H])
        shape = (self.nu.size, self.dim * first)
        return block_diag(list(self._mass), format="csc"), csc_matrix((values, places), shape=shape)

    def _joined(self, values: list[np.ndarray]) -> np.ndarray:
        """All groups as one vector, zero where a contact has fewer components of friction."""
        return np.concatenate([np.pad(v, ((0, 0), (0, self.dim - v.shape[1]))) for v in values]).ravel()

    def unknowns(self, solution: ContactSolution) -> np.ndarray:
        """All unknowns of the step at a solution, closest points carried along and then solved for."""
        z = self.z.copy()
        z[: self.nu.size] = solution.velocity
        dnu = solution.velocity - self.nu
        impulses = solution.impulse.reshape(-1, self.dim)
        first = 0
        for g, (at, shift, law), m_c in zip(
            self.pattern.groups, self._geometry, self._effective, strict=True
        ):
            z[at] -= (shift[:, :, :-1] @ dnu[g.at_ends][:, :, None])[:, :, 0] + shift[:, :, -1]
            z[law] = impulses[first : first + g.n, : law.shape[1]] / m_c[:, None]
            first += g.n
        update_closest_points(self.problem, z)
        return z


def _masses(problem: StepNCP) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrices of the moving bodies at the start, and what takes the scales off their momentum rows."""
    m, nv, dim = problem.model, problem.velocities, problem.model.dim
    moving, bodies = m.moving, problem.bodies
    mass, unscaled = np.zeros((2, moving.size, nv, nv))
    k = np.arange(dim)
    mass[:, k, k] = m.mass[moving, None]
    mass[:, dim:, dim:] = np.linalg.inv(bodies.J_inverse[moving])
    unscaled[:, k, k] = 1 / bodies.weights[moving, :1]
    angular = bodies.weights[moving, 1:].reshape(-1, nv - dim, nv - dim)  # (symmetric)
    unscaled[:, dim:, dim:] = np.linalg.inv(angular)
    return mass, unscaled


def update_closest_points(problem: StepNCP, z: np.ndarray) -> None:
    """Closest points at the poses that the velocities in z lead to, by Newton's method, in place.

    A contact that runs far along its bodies in the step is not where the linearisation puts it.
    """
    for g, pattern, inputs in zip(problem.groups, _pattern(problem).groups, problem.gather, strict=True):
        at, ends = g.kernel.layout.at, pattern.ends
        k = np.arange(at["P_n"].start)
        own = pattern.at_own[:, k]
        before = z[own]
        start = np.full(g.n, np.inf)
        for step in range(POINTS + 1):
            F, entries = g.linear(z[inputs], g.parameters)
            F = F[:, k]
            worst = np.abs(F).max(axis=1, initial=0.0)
            start = worst if step == 0 else start
            if step == POINTS or not np.any(worst > SETTLED):
                break
            J = pattern.blocks(g.kernel.sparsity(False), entries)[:, k[:, None], ends + k]
            J[:, k, k] += FLAT * (at["r"].stop > 0)
            try:
                move = -np.linalg.solve(J, F[:, :, None])[:, :, 0]
            except np.linalg.LinAlgError:
                break
            shorten(move[:, at["r"]])
            z[own] += move
        lost = ~(worst <= start)
        z[own[lost]] = before[lost]


def _pattern(problem: StepNCP) -> BlockPattern:
    if problem.pattern is not None:
        return problem.pattern
    groups = [
        GroupPattern(inputs, g.kernel.layout.size)
        for g, inputs in zip(problem.groups, problem.gather, strict=True)
    ]
    return BlockPattern(problem.size, problem.model.moving.size, problem.velocities, groups)
