"""Proximal rounds: a way to solutions of steps with many contacts at once, as in a pile.

With the geometry linearised, contact velocities u (gap over step, scaled slip) are linear in the velocities
nu, and a step is

    m (nu - nu_free) = W P,      P = proj(P - u(nu))

with proj on P_n >= 0 and then on the ball |S| <= mu P_n. Round k solves, by Newton's method with a line
search in nu alone,

    m (nu - nu_free) = W proj(P_k - u(nu) / eps),      P_{k+1} = proj(P_k - u / eps)

which is well behaved for large eps and nearly the step itself for small ones: eps falls while that is
easy and rises where it is not. A fixed point is a solution for any eps: nothing is regularised. Between
rounds the geometry is linearised anew, and the unchanged equations of the step decide when it is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.sparse.linalg import splu

from implicit_geom.condensed import FACTORS, GroupPattern, Pattern
from implicit_geom.newton import NewtonOptions, Solution, solve
from implicit_geom.problem import StepProblem

CLOSED = 1e3  # impulse over the speed scale that shows the rows of a contact as those of a sticking one
FLAT = 1e-9  # diagonal for closest points that are not unique
LINE = 6  # halvings of a step
ARMIJO = 1e-3
Impulses = list[np.ndarray]  # by group: (n, 1 + components), over effective mass, m/s


@dataclass(frozen=True)
class Effort:
    """How the rounds are made."""

    eps: float = 1e-3
    rounds: int = 25
    fall: float = 0.7
    rise: float = 3.0
    smallest: float = 1e-8
    largest: float = 1e3
    easy: int = 4  # Newton steps of a round after which eps falls
    steps: int = 12  # Newton steps of a round


WARM = Effort()
SLOW = Effort(eps=0.1, rounds=80)
AGAIN = Effort(eps=3e-3, rounds=80, fall=0.5)
COLD = (
    Effort(0.3, 250, 0.5),
    Effort(0.3, 250, 0.7),
    Effort(0.3, 400, 0.95, 1.5),
    Effort(0.3, 400, 0.85, 2.0),
)
MANY = 8  # contacts that make rounds worth while
HOPELESS = 1e-5  # residual of the first linearised step, over the speed scale, that is not worth another
RELINEARISED = 8  # times that the geometry is linearised


class Frozen:
    """A step with its geometry linearised at z: u = u_0 + V dnu, momentum rows f = f_0 + M dnu + W P + T dnu.

    T is what the impulses change by as the contacts turn with the bodies.
    """

    def __init__(self, problem: StepProblem, z: np.ndarray, stiff: bool) -> None:
        self.problem, self.z = problem, z
        self.pattern = _pattern(problem)
        nv, moving = self.pattern.velocities, self.pattern.moving
        rows, momentum = problem.bodies.linearise(z)
        self.rows, self.momentum = rows.copy(), momentum.copy()
        self.nu = z[:moving].copy()
        m = problem.model
        root = np.sqrt(m.mass[m.moving]) * problem.bodies.speed[m.moving]
        self.heaviest = float(np.sqrt(m.mass[m.moving].max()))
        self.weight = np.repeat(root, nv)  # makes f the square root of an energy
        self.V, self.u0, self.W, self.T, self.mu = [], [], [], [], []
        self._geometry = []
        self.softness: Impulses = []  # what an impulse does to its own contact's velocity
        inverse = np.linalg.inv(self.momentum.reshape(-1, nv, nv).swapaxes(1, 2))
        self.start: Impulses = []
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

    def unknowns(self, nu: np.ndarray, P: Impulses) -> np.ndarray:
        """All unknowns of the step, closest points carried along."""
        z = self.z.copy()
        z[: nu.size] = nu
        dnu = nu - self.nu
        for g, (at, shift, law), p in zip(self.pattern.groups, self._geometry, P, strict=True):
            z[at] -= (shift[:, :, :-1] @ dnu[g.at_ends][:, :, None])[:, :, 0] + shift[:, :, -1]
            z[law] = p
        return z

    def factors(self, slopes: Impulses, eps: float) -> splu:
        """Of d f / d nu with P = proj(P_k - u / eps), whose slopes are given."""
        values = [self.momentum]
        for W, V, T, D, a in zip(self.W, self.V, self.T, slopes, self.softness, strict=True):
            values.append(T - (W @ D) @ (V / (eps * a[:, :, None])))
        return splu(self.pattern.schur(values), **FACTORS)

    def project(self, z: Impulses, slopes: bool = False) -> tuple[Impulses, Impulses]:
        """proj of each contact, and its derivative."""
        found = [_project(p, mu, slopes) for p, mu in zip(z, self.mu, strict=True)]
        return [p for p, _ in found], [D for _, D in found]

    def residual(self, P: Impulses, u: Impulses) -> float:
        """Largest |P - proj(P - u)|, m/s."""
        projected, _ = self.project([p - w for p, w in zip(P, u, strict=True)])
        return max([0.0, *(float(np.abs(p - q).max()) for p, q in zip(P, projected, strict=True))])


def _pattern(problem: StepProblem) -> Pattern:
    if problem.pattern is not None:
        return problem.pattern
    groups = [
        GroupPattern(inputs, g.kernel.layout.size)
        for g, inputs in zip(problem.groups, problem.gather, strict=True)
    ]
    return Pattern(problem.size, problem.model.moving.size, problem.velocities, groups)


def _project(z: np.ndarray, mu: np.ndarray, slopes: bool) -> tuple[np.ndarray, np.ndarray]:
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


def one_round(
    frozen: Frozen, anchor: Impulses, nu: np.ndarray, eps: float, effort: Effort
) -> tuple[np.ndarray, Impulses, bool, int]:
    """Solve f(nu, proj(anchor - u / eps)) = 0 from nu; velocities, impulses, whether solved, Newton steps."""

    def evaluate(nu: np.ndarray) -> tuple[Impulses, Impulses, np.ndarray, float]:
        z = [p - u / (eps * a) for p, u, a in zip(anchor, frozen.u(nu), frozen.softness, strict=True)]
        P, _ = frozen.project(z)
        f = frozen.f(nu, P)
        return z, P, f, float(np.linalg.norm(f * frozen.weight))

    z, P, f, size = evaluate(nu)
    speed = float(np.linalg.norm(frozen.weight))
    # rounding: of the velocities, and of impulses that are differences of large numbers for small eps
    large = max([0.0, *(float(np.linalg.norm(a - b)) for a, b in zip(anchor, z, strict=True))])
    good = 1e-14 * speed + 1e-16 * large * frozen.heaviest
    fair = max(1e-9 * speed, good)
    for k in range(effort.steps):
        if size <= good:
            return nu, P, True, k
        _, slopes = frozen.project(z, slopes=True)
        dnu = frozen.factors(slopes, eps).solve(-f)
        step = 1.0
        for _ in range(LINE):
            trial = evaluate(nu + step * dnu)
            if trial[3] < (1 - ARMIJO * step) * size or trial[3] <= good:
                break
            step *= 0.5
        else:
            return nu, P, size < fair, k + 1
        nu = nu + step * dnu
        z, P, f, size = trial
    return nu, P, size < fair, effort.steps


def make_rounds(
    frozen: Frozen, P: Impulses, effort: Effort, tolerance: float
) -> tuple[np.ndarray, Impulses, float, int]:
    """Rounds until the linearised step is solved to `tolerance`, m/s; the best found and how many steps."""
    nu, eps, steps = frozen.nu, effort.eps, 0
    best = (nu, P, np.inf)
    for _ in range(effort.rounds):
        try:
            there, found, solved, k = one_round(frozen, P, nu, eps, effort)
        except RuntimeError:  # a singular matrix
            there, found, solved, k = nu, P, False, 1
        steps += k
        if not solved:
            eps = eps * effort.rise
            if eps > effort.largest:
                break
            continue
        P, nu = found, there
        r = frozen.residual(P, frozen.u(nu))
        if r < best[2]:
            best = (nu, P, r)
        if r < tolerance:
            break
        if k <= effort.easy:
            eps = max(eps * effort.fall, effort.smallest)
    return (*best, steps)


def by_rounds(
    problem: StepProblem, z: np.ndarray, effort: Effort, options: NewtonOptions, warm: bool = True
) -> Solution:
    """Rounds with the geometry linearised again and again, each time followed by full Newton steps.

    They start from the impulses in z, or from none where these are not `warm`.
    """
    few = replace(options, full_steps=6)
    speed = float(problem.bodies.speed.max(initial=0.0))
    history: list[float] = []
    steps, last = 0, np.inf
    for k in range(RELINEARISED):
        frozen = Frozen(problem, z, stiff=k > 0)
        start = frozen.start if warm or k else [np.zeros_like(p) for p in frozen.start]
        # (the first linearisation is worth a few digits only)
        nu, P, r, more = make_rounds(frozen, start, effort, (1e-7 if k == 0 else 1e-12) * speed)
        steps += more
        if not r < HOPELESS * speed:
            break
        z = frozen.unknowns(nu, P)
        found = solve(problem, z, few, damped=False)
        history += found.history
        steps += found.iterations
        if found.converged and problem.certified(found.z):
            return Solution(found.z, True, steps, history)
        measure = found.history[0]
        if k > 2 and measure > 0.5 * last:
            break
        last, effort = measure, AGAIN
    return Solution(z, False, steps, history)


def ways(problem: StepProblem, z: np.ndarray, options: NewtonOptions) -> Iterator[Callable[[], Solution]]:
    """Ways to make rounds from z, cheapest first; none for problems that they do not suit."""
    if len(problem.order) < MANY or problem.model.friction_residual == "fritz-john":
        return
    if problem.pressed(z):
        yield partial(by_rounds, problem, z, WARM, options)
        yield partial(by_rounds, problem, z, SLOW, options)
    for effort in COLD:
        yield partial(by_rounds, problem, z, effort, options, warm=False)
