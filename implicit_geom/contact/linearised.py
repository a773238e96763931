"""A step with its geometry linearised: what is left is friction between given points."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.model.closest_point_problem import shorten
from implicit_geom.solvers.block_elimination import GroupPattern, Pattern, factorised

CLOSED = 1e3  # impulse over the speed scale that shows the rows of a contact as those of a sticking one
POINTS = 8  # Newton steps for closest points
SETTLED = 1e-9  # their rows
FLAT = 1e-9  # diagonal for closest points that are not unique
Impulses = list[np.ndarray]  # by group: (n, 1 + components), over effective mass, m/s


class LinearStep:
    """What friction between given points is: u = u_0 + V dnu, momentum rows f = f_0 + M dnu + W P + T dnu.

    T is what the impulses change by as the contacts turn with the bodies.
    """

    pattern: Pattern
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
    softness: Impulses  # what an impulse does to its own contact's velocity
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
        """Of d f / d nu with P = proj(P_k - u / eps), whose slopes are given."""
        values = [self.momentum]
        for W, V, T, D, a in zip(self.W, self.V, self.T, slopes, self.softness, strict=True):
            values.append(T - (W @ D) @ (V / (eps * a[:, :, None])))
        return factorised(self.pattern.schur(values))

    def project(self, z: Impulses, slopes: bool = False) -> tuple[Impulses, Impulses]:
        """proj of each contact, and its derivative."""
        found = [friction_projection(p, mu, slopes) for p, mu in zip(z, self.mu, strict=True)]
        return [p for p, _ in found], [D for _, D in found]

    def far(self, nu: np.ndarray, P: Impulses) -> float:
        """Largest residual of a contact's law over its scale; NaN where anything is."""
        return float(np.max([r.max(initial=0.0) for r in self.violations(nu, P)], initial=0.0))

    def violations(self, nu: np.ndarray, P: Impulses) -> list[np.ndarray]:
        """Residual of each contact's law over its scale."""
        projected, _ = self.project([p - w for p, w in zip(P, self.u(nu), strict=True)])
        scaled = [np.abs(p - q) / s for p, q, s in zip(P, projected, self.scale, strict=True)]
        return [r.max(axis=1, initial=0.0) for r in scaled]


class Frozen(LinearStep):
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
        self.start, self.softness, self.scale = [], [], []
        self._geometry = []
        inverse = np.linalg.inv(self.momentum.reshape(-1, nv, nv).swapaxes(1, 2))
        for g, pattern, inputs in zip(problem.groups, self.pattern.groups, problem.gather, strict=True):
            at, ends, own = g.kernel.layout.at, pattern.ends, pattern.own
            geometry, law = slice(0, at["P_n"].start), slice(at["P_n"].start, own)
            sparsity, U = g.kernel.sparsity(False), g.get("U")
            shown = z[inputs]
            self.start.append(shown[:, ends + at["P_n"].start :].copy())
            shown[:, ends + at["P_n"].start] = (CLOSED * U * (1 + 1 / np.maximum(g.get("mu"), 1e-3)))[:, 0]
            shown[:, ends + at["P_n"].start + 1 :] = 0.0
            F, entries = g.linear(shown, g.parameters)
            F, A = F.copy(), pattern.blocks(sparsity, entries)
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
            self.mu.append(g.get("mu")[:, 0])
            self.scale.append(U if pairwise else np.full_like(U, self.speed))
            own_block = np.zeros((g.n, own - at["P_n"].start))
            for first in range(0, ends, nv):
                part = slice(first, first + nv)
                body = inverse[pattern.at_ends[:, first] // nv]
                own_block -= np.einsum("nki,nij,njk->nk", self.V[-1][:, :, part], body, self.W[-1][:, part])
            own_block[:, 1:] = own_block[:, 1:].max(axis=1, initial=0.0, keepdims=True)
            self.softness.append(own_block)
            turning = np.zeros((g.n, ends, ends))
            if stiff:
                _, entries = g.linear(z[inputs], g.parameters)
                A = pattern.blocks(sparsity, entries)
                turning = A[:, own:, :ends] - A[:, own:, ends:][:, :, geometry] @ shift[:, :, :ends]
            self.T.append(turning)

    def unknowns(self, nu: np.ndarray, P: Impulses) -> np.ndarray:
        """All unknowns of the step, closest points carried along and then settled."""
        z = self.z.copy()
        z[: nu.size] = nu
        dnu = nu - self.nu
        for g, (at, shift, law), p in zip(self.pattern.groups, self._geometry, P, strict=True):
            z[at] -= (shift[:, :, :-1] @ dnu[g.at_ends][:, :, None])[:, :, 0] + shift[:, :, -1]
            z[law] = p
        settle_points(self.problem, z)
        return z


def settle_points(problem: StepNCP, z: np.ndarray) -> None:
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


def _pattern(problem: StepNCP) -> Pattern:
    if problem.pattern is not None:
        return problem.pattern
    groups = [
        GroupPattern(inputs, g.kernel.layout.size)
        for g, inputs in zip(problem.groups, problem.gather, strict=True)
    ]
    return Pattern(problem.size, problem.model.moving.size, problem.velocities, groups)


def friction_projection(z: np.ndarray, mu: np.ndarray, slopes: bool) -> tuple[np.ndarray, np.ndarray]:
    """P_n to what is not negative, then S to |S| <= mu P_n; contacts z = (P_n, S), (n, k); with slopes."""
    n, k = z.shape
    length = np.sqrt(np.einsum("ni,ni->n", z[:, 1:], z[:, 1:]))
    d = z[:, 1:] / np.maximum(length, 1e-300)[:, None]
    P = z.copy()
    P[:, 0] = np.maximum(z[:, 0], 0.0)
    stick = (length <= mu * P[:, 0]) & (z[:, 0] > 0)
    slip = ~stick & (P[:, 0] > 0)
    P[:, 1:] = np.where(stick[:, None], z[:, 1:], (mu * P[:, 0])[:, None] * d)
    if not slopes:
        return P, P
    D = np.zeros((n, k, k))
    D[:, 0, 0] = stick | slip
    eye = np.eye(k - 1)
    across = (mu * P[:, 0] / np.maximum(length, 1e-300))[:, None, None] * (
        eye - d[:, :, None] * d[:, None, :]
    )
    D[:, 1:, 1:] = np.where(stick[:, None, None], eye, across)
    D[slip, 1:, 0] = mu[slip, None] * d[slip]
    D[~(stick | slip)] = 0.0
    return P, D
