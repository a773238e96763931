"""A step with its geometry linearised: frictional contact between given points, velocities u = u_0 + V dnu.

With nu eliminated by the momentum rows, u = u_free - V M^-1 W P: -V M^-1 W is the Delassus matrix, contact
velocities by impulses (H^T M^-1 H, scaled as the unknowns are). It is never formed: Newton's method
factorises its counterpart on the velocities (`FrictionProblem.factors`), and all methods use its diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.contact import coulomb_projection
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.model.closest_point_problem import shorten
from implicit_geom.model.contact_group import ContactGroup
from implicit_geom.solvers.block_elimination import BlockPattern, GroupPattern, factorised

CLOSED = 1e3  # impulse over the speed scale that shows the rows of a contact as those of a sticking one
POINTS = 8  # Newton steps for closest points
SETTLED = 1e-9  # their rows
FLAT = 1e-9  # diagonal for closest points that are not unique
Impulses = list[np.ndarray]  # by group: (n, 1 + components), over effective mass, m/s


class FrictionProblem:
    """Frictional contact between given points: u = u_0 + V dnu, momentum rows f = f_0 + M dnu + W P + T dnu.

    T is the geometric stiffness: what the impulses' wrenches change by as the contacts turn with the bodies.
    """

    pattern: BlockPattern
    nu: np.ndarray  # velocities that it is linearised at
    rows: np.ndarray  # f_0
    momentum: np.ndarray  # M of each body, column-major
    weight: np.ndarray  # makes f the square root of an energy
    speed: float  # of the fastest body
    heaviest: float
    V: list[np.ndarray]
    W: list[np.ndarray]
    T: list[np.ndarray]
    u0: Impulses
    mu: list[np.ndarray]
    start: Impulses  # those at nu
    delassus_diagonal: Impulses  # of -V M^-1 W: what an impulse does to its own contact's velocity
    scale: list[np.ndarray]  # speeds that the laws of the contacts are held against, m/s

    def u(self, nu: np.ndarray) -> Impulses:
        """Contact velocities, m/s."""
        dnu = nu - self.nu
        groups = zip(self.V, self.u0, self.pattern.groups, strict=True)
        return [u0 + (V @ dnu[g.at_ends][:, :, None])[:, :, 0] for V, u0, g in groups]

    def f(self, nu: np.ndarray, P: Impulses) -> np.ndarray:
        """Momentum rows."""
        nv, dnu = self.pattern.velocities, nu - self.nu
        blocks = self.momentum.reshape(-1, nv, nv)  # column-major
        out = self.rows + np.einsum("bji,bj->bi", blocks, dnu.reshape(-1, nv)).ravel()
        for g, W, T, p in zip(self.pattern.groups, self.W, self.T, P, strict=True):
            part = W @ p[:, :, None] + T @ dnu[g.at_ends][:, :, None]
            out += np.bincount(g.at_ends.ravel(), part.ravel(), out.size)
        return out

    def factors(self, slopes: Impulses, eps: float) -> Any:
        """Factors of d f / d nu with P = proj(P_k - u / eps), whose slopes are given: a Schur complement."""
        values = [self.momentum]
        for W, V, T, D, a in zip(self.W, self.V, self.T, slopes, self.delassus_diagonal, strict=True):
            values.append(T - (W @ D) @ (V / (eps * a[:, :, None])))
        return factorised(self.pattern.schur(values))

    def project(self, z: Impulses) -> Impulses:
        """proj of each contact (`coulomb_projection`)."""
        return [coulomb_projection.project(p, mu) for p, mu in zip(z, self.mu, strict=True)]

    def slopes(self, z: Impulses) -> Impulses:
        """Derivative of `project`."""
        return [coulomb_projection.projection_derivative(p, mu) for p, mu in zip(z, self.mu, strict=True)]

    def largest_violation(self, nu: np.ndarray, P: Impulses) -> float:
        """Largest residual of a contact's law over its scale; NaN where anything is."""
        return float(np.max([r.max(initial=0.0) for r in self.violations(nu, P)], initial=0.0))

    def violations(self, nu: np.ndarray, P: Impulses) -> list[np.ndarray]:
        """Residual of each contact's law over its scale."""
        projected = self.project([p - w for p, w in zip(P, self.u(nu), strict=True)])
        scaled = [np.abs(p - q) / s for p, q, s in zip(P, projected, self.scale, strict=True)]
        return [r.max(axis=1, initial=0.0) for r in scaled]


class LinearisedStep(FrictionProblem):
    """A step with its geometry linearised at z; laws are held against pairs' speeds or the fastest."""

    def __init__(self, problem: StepNCP, z: np.ndarray, stiff: bool, pairwise: bool = False) -> None:
        self.problem, self.z = problem, z
        self.pattern = _pattern(problem)
        nv, moving = self.pattern.velocities, self.pattern.moving
        rows, momentum = problem.bodies.linearise(z)
        self.rows, self.momentum = rows.copy(), momentum.copy()
        self.nu = z[:moving].copy()
        m = problem.model
        self.speed = float(problem.bodies.speed.max(initial=0.0))
        root = np.sqrt(m.mass[m.moving]) * problem.bodies.speed[m.moving]
        self.heaviest = float(np.sqrt(m.mass[m.moving].max()))
        self.weight = np.repeat(root, nv)
        self.V, self.u0, self.W, self.T, self.mu = [], [], [], [], []
        self.start, self.delassus_diagonal, self.scale = [], [], []
        self._geometry: list[tuple[np.ndarray, ...]] = []
        inverse = np.linalg.inv(self.momentum.reshape(-1, nv, nv).swapaxes(1, 2))
        for g, pattern, inputs in zip(problem.groups, self.pattern.groups, problem.gather, strict=True):
            U = g.get("U")
            self.mu.append(g.get("mu")[:, 0])
            self.scale.append(U if pairwise else np.full_like(U, self.speed))
            shift = self._eliminate_geometry(g, pattern, z[inputs])
            self.delassus_diagonal.append(self._own_delassus(pattern, inverse))
            if stiff:
                self.T.append(_geometric_stiffness(g, pattern, z[inputs], shift))
            else:
                self.T.append(np.zeros((g.n, pattern.ends, pattern.ends)))

    def _eliminate_geometry(self, g: ContactGroup, pattern: GroupPattern, shown: np.ndarray) -> np.ndarray:
        """u_0, V and W of a group, its closest points eliminated; how these move with the velocities.

        A closed, sticking contact is shown to the contact's rows: those of its law are then u itself.
        """
        at, ends, own, U = g.kernel.layout.at, pattern.ends, pattern.own, g.get("U")
        geometry, law = slice(0, at["P_n"].start), slice(at["P_n"].start, own)
        self.start.append(shown[:, ends + at["P_n"].start :].copy())
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
        self.V.append(U[:, :, None] * (A[:, law, :ends] - bent[:, :, :ends]))
        self.u0.append(U * (F[:, law] - bent[:, :, ends]))
        self.W.append(A[:, own:, ends:][:, :, law].copy())
        return shift

    def _own_delassus(self, pattern: GroupPattern, inverse: np.ndarray) -> np.ndarray:
        """The diagonal of the Delassus matrix -V M^-1 W at the last group's contacts, (n, 1 + components).

        Components of friction share the largest of theirs: the ball stays a ball.
        """
        V, W, nv = self.V[-1], self.W[-1], self.pattern.velocities
        own = np.zeros(V.shape[:2])
        for first in range(0, pattern.ends, nv):
            part = slice(first, first + nv)
            body = inverse[pattern.at_ends[:, first] // nv]
            own -= np.einsum("nki,nij,njk->nk", V[:, :, part], body, W[:, part])
        own[:, 1:] = own[:, 1:].max(axis=1, initial=0.0, keepdims=True)
        return own

    def unknowns(self, nu: np.ndarray, P: Impulses) -> np.ndarray:
        """All unknowns of the step, closest points carried along and then solved for."""
        z = self.z.copy()
        z[: nu.size] = nu
        dnu = nu - self.nu
        for g, (at, shift, law), p in zip(self.pattern.groups, self._geometry, P, strict=True):
            z[at] -= (shift[:, :, :-1] @ dnu[g.at_ends][:, :, None])[:, :, 0] + shift[:, :, -1]
            z[law] = p
        update_closest_points(self.problem, z)
        return z


def _geometric_stiffness(
    g: ContactGroup, pattern: GroupPattern, inputs: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """T of a group's contacts with the impulses at hand."""
    own, ends, geometry = pattern.own, pattern.ends, slice(0, g.kernel.layout.at["P_n"].start)
    _, entries = g.linear(inputs, g.parameters)
    A = pattern.blocks(g.kernel.sparsity(False), entries)
    return np.asarray(A[:, own:, :ends] - A[:, own:, ends:][:, :, geometry] @ shift[:, :, :ends])


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
