"""One classical step by successive linearisation: sixteen schemes that differ in four switches.

    M (nu - nu_l) = h F + W p,    q+ = q (+) h nu,    0 <= p_n _|_ gap >= 0,    friction    [C07, eqs. 3 to 5]

    gap     linearised   gap_l + h W_n(q)^T nu
            end          gap(q+), about the last guess: gap(q_k+) + h W_n(q_k+)^T (nu - nu_k)
    wrench  start, end   W at q, or at q_k+

Each round is a problem that is linear but for the complementarity of its contacts; rounds go on until the
velocities stay. With the gap linearised and the wrench at the start one round is a step in the plane: the
linear complementarity problem of Stewart and Trinkle. (In space the angular momentum takes a few.)

Of many vertices few press: a problem starts with those that did so last, and any that its solution
violates is added, until none is. What is left out has p_n = 0 and a gap >= 0, so nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from implicit_geom.classical.contact_finder import ContactFinder
from implicit_geom.classical.contacts import Contacts
from implicit_geom.classical.friction_ellipsoid import OPTIONS, EllipsoidProblem
from implicit_geom.classical.friction_pyramid import (
    PyramidProblem,
    directions,
    single_contact,
    solve_pyramids,
)
from implicit_geom.classical.linearised_momentum import LinearisedMomentum
from implicit_geom.model.model import Model, State
from implicit_geom.scene.switches import Stepper
from implicit_geom.solvers.newton import solve_by_newton

MARGIN = 1.5  # contacts are looked for within this much more than a step's expected motion
SLACK = 1e-6  # and within this part of the body's size
ROUNDS = 60  # linearisations of one step
RELAXED = 20  # rounds after which the velocities go only half of the way
GROWTH = 200  # times that violated contacts are added in a round
VIOLATED = 1e-12  # rate of a gap below zero, over the speeds at hand, that counts as violated
ROUNDING = 8 * np.finfo(float).eps  # of a position, over the body's size
WIDER = 5  # times that contacts are looked for farther away
# How the friction ellipsoid is looked for: from the impulses of a pyramid of so many directions (none: from
# the last ones), with a slip weighed so much. Vertices that wedge a body slip by next to nothing, and only
# a large weight tells those that do from those that stick.
ATTEMPTS = ((0, 1.0), (8, 1.0), (8, 1e4), (8, 1e6), (32, 1e3), (32, 1e4), (32, 1e6))

Key = tuple[int, int]  # pair, feature


@dataclass
class StepOutcome:
    """What a step found: velocities (B, size), contacts as gaps and wrenches see them, impulses (n, c)."""

    nu: np.ndarray
    gaps: Contacts
    wrenches: Contacts
    all: Contacts  # every contact that was looked at, of `gaps`
    p: np.ndarray
    rounds: int
    error: float  # of the complementarity problems and of the last change of the velocities, dimensionless
    history: list[float] = field(default_factory=list)


class ClassicalStep:
    """Solves steps of a model."""

    def __init__(self, model: Model, stepper: Stepper, tolerance: float) -> None:
        self.model, self.stepper, self.tolerance = model, stepper, tolerance
        self.finder = ContactFinder(model, stepper.facets if stepper.surface == "faceted" else None)
        self.momentum = LinearisedMomentum(model)
        self.place = np.full(len(model.bodies), -1)
        self.place[model.moving] = np.arange(model.moving.size)
        self.reach = np.where(np.isfinite(model.reach), model.reach, 1.0)
        self.pyramids = model.dim == 2 or stepper.friction == "pyramid"
        self.at_start = stepper.gap == "linearised" and stepper.wrench == "start"
        self.trace: list[float] = []  # of a step: changes of the velocities, and the error of what failed
        self.once = self.at_start and self.momentum.linear

    def solve(
        self, state: State, h: float, impulse: np.ndarray, warm: dict[Key, np.ndarray]
    ) -> StepOutcome | str:
        """The motion over h [C07, eqs. 3 to 5]; a reason where there is none. `warm`: last impulses."""
        self.momentum.prepare(state, h, impulse)
        self.state, self.h = state, h
        self.trace = []
        self.before = np.concatenate([state.v, state.w], axis=1)
        pulled = np.sqrt((impulse[:, : self.model.dim] ** 2).sum(axis=1)) / self.model.mass
        fastest = self.fastest(self.before) + pulled
        self.speed = float(np.maximum(fastest, 1e-9 * self.reach / h)[self.model.moving].max())
        travel = self._travel(fastest)
        for _ in range(WIDER):
            found = self._converge(travel, dict(warm))
            if isinstance(found, str):
                return found
            needed = h * self.fastest(found.nu)
            if (needed <= travel).all():
                return found
            travel = np.maximum(travel, MARGIN * needed)
        return "the set of contacts did not settle"

    def fastest(self, nu: np.ndarray) -> np.ndarray:
        """(B,) Speed of the fastest point of each body, m/s."""
        dim = self.model.dim
        square = nu * nu
        return np.asarray(
            np.sqrt(square[:, :dim].sum(axis=1)) + self.reach * np.sqrt(square[:, dim:].sum(axis=1))
        )

    def _travel(self, fastest: np.ndarray) -> np.ndarray:
        """(B,) How far points of bodies may move in the step, m."""
        return np.where(self.place >= 0, MARGIN * self.h * fastest + SLACK * self.reach, 0.0)

    # ---- rounds

    def _converge(self, travel: np.ndarray, warm: dict[Key, np.ndarray]) -> StepOutcome | str:
        state, finder = self.state, self.finder
        here = finder.contacts(state, travel)
        nu, history = self.before, self.trace
        # (at rest the rounding of positions is all there is)
        rounding = ROUNDING * float(np.max(self.reach)) / self.h
        bound = max(0.1 * self.tolerance * self.speed, rounding)
        for k in range(ROUNDS):
            there = None if self.at_start else state.advanced(nu, self.h)
            gaps = here
            if self.stepper.gap == "end" and there is not None:
                gaps = finder.contacts(there, travel)
            found = self._round(gaps, nu, there, warm)
            if isinstance(found, str):
                return found
            if self.once:
                return found
            step = found.nu - nu
            change = float(
                np.max(np.abs(step[:, : self.model.dim]), initial=0.0)
                + np.max(self.reach[:, None] * np.abs(step[:, self.model.dim :]), initial=0.0)
            )
            history.append(change / self.speed)
            if change <= bound and k > 0:
                found.rounds, found.history = k + 1, history
                found.error = max(found.error, change / self.speed)
                return found
            nu = nu + (0.5 if k >= RELAXED else 1.0) * step
            warm = _impulses(found)
        return f"the linearisations did not settle: the last one changed the velocities by {history[-1]:.2g}"

    def _round(
        self, gaps: Contacts, nu: np.ndarray, there: State | None, warm: dict[Key, np.ndarray]
    ) -> StepOutcome | str:
        """One linearisation about nu, with all contacts that matter."""
        m = self.model.moving
        u, B = self.momentum.about(nu[m])
        base = gaps.gap / self.h
        if self.stepper.gap == "end":
            base = base - gaps.normal_velocity(nu)
        slack = VIOLATED * self.speed
        keys = list(zip(gaps.pair.tolist(), gaps.feature.tolist(), strict=True))
        chosen = np.array([i for i, key in enumerate(keys) if key in warm], int)
        error = 0.0
        full = np.zeros_like(self.before)
        for _ in range(GROWTH):
            sub = gaps.take(chosen)
            wrenches, p = sub, np.zeros((0, 2 if self.model.dim == 2 else 4))
            found = u
            if chosen.size:
                wrenches = self._wrenches(sub, there)
                guess = [warm.get(keys[i]) for i in chosen.tolist()]
                solved = self._impulses(sub, wrenches, base[chosen], u, B, guess)
                if isinstance(solved, str):
                    return solved
                p, found, worst = solved
                error = max(error, worst)
            full[m] = found
            rate = base + gaps.normal_velocity(full)
            rate[chosen] = 0.0
            bad = np.flatnonzero(rate < -slack)
            if not bad.size:
                return StepOutcome(full, sub, wrenches, gaps, p, 1, error)
            chosen = np.sort(np.concatenate([chosen, _worst(gaps.pair, rate, bad)]))
        return "the set of pressing contacts did not settle"

    def _wrenches(self, sub: Contacts, there: State | None) -> Contacts:
        """The contacts where impulses act and slip is measured."""
        if self.stepper.wrench == "start":
            return sub if self.stepper.gap == "linearised" else self.finder.at_pose(sub, self.state)
        assert there is not None
        return sub if self.stepper.gap == "end" else self.finder.at_pose(sub, there)

    # ---- one problem

    def _rows(self, c: Contacts) -> np.ndarray:
        """W^T of all moving bodies: (n, components, V)."""
        one, two = c.wrenches()
        m, size = self.model.moving.size, one.shape[2]
        if m == 1 and (self.place[c.second] == 0).all():
            return two
        full = np.zeros((len(c), one.shape[1], m, size))
        for body, W in ((self.place[c.first], one), (self.place[c.second], two)):
            rows = np.flatnonzero(body >= 0)
            full[rows, :, body[rows]] += W[rows]
        return full.reshape(len(c), one.shape[1], m * size)

    def _impulses(
        self,
        sub: Contacts,
        wrenches: Contacts,
        base: np.ndarray,
        u: np.ndarray,
        B: np.ndarray,
        guess: list[np.ndarray | None],
    ) -> tuple[np.ndarray, np.ndarray, float] | str:
        """Impulses (n, c), velocities (m, size) and the solver's error."""
        W = self._rows(wrenches)
        G = W
        if sub is not wrenches:
            G = W.copy()
            G[:, 0] = self._rows(sub)[:, 0]
        n, c, _ = W.shape
        if self.momentum.linear:
            BW = W * self.momentum.diagonal
        else:
            BW = np.einsum("mij,ncmj->ncmi", B, W.reshape(n, c, *u.shape)).reshape(W.shape)
        rates = G @ u.ravel()
        rates[:, 0] += base
        if n == 1 and c == 2:
            alone = single_contact(G[0] @ BW[0].T, rates[0], float(sub.mu[0]), float(wrenches.e[0, 0]))
            if alone is not None:
                return np.array([alone]), u + (np.array(alone) @ BW[0]).reshape(u.shape), 0.0
        start = np.array([np.zeros(c) if p is None else p for p in guess])
        if self.pyramids:
            D = directions(wrenches, self.stepper.directions, self.stepper.aligned, self.before)
            slip = (G @ (u.ravel() + np.tensordot(start, BW, 2)))[:, 1:]
            p, _, error, why = solve_pyramids(PyramidProblem(D, sub.mu), G, BW, rates, start, slip)
            if p is None:
                self.trace.append(error)
                return why
        else:
            found = self._ellipsoids(wrenches, G, BW, rates, start)
            if isinstance(found, str):
                return found
            p, error = found
        return p, u + np.tensordot(p, BW, 2).reshape(u.shape), error

    def _ellipsoids(
        self, c: Contacts, G: np.ndarray, BW: np.ndarray, rates: np.ndarray, start: np.ndarray
    ) -> tuple[np.ndarray, float] | str:
        """Impulses with the friction ellipsoid: from the last ones, then from a pyramid's."""
        # (at rest the rounding of positions is all there is)
        rounding = ROUNDING * float(np.max(self.reach)) / self.h
        bound = max(0.1 * self.tolerance * self.speed, rounding)
        system = EllipsoidProblem(G, BW, rates, c.mu, c.e, bound)
        least, z, sides = np.inf, system.unknowns(start), 0
        for count, rho in ATTEMPTS:
            if count != sides:
                D = directions(c, count, False, self.before)
                none = np.zeros((len(c), c.e.shape[1]))
                facets, *_ = solve_pyramids(PyramidProblem(D, c.mu), G, BW, rates, start, none)
                z, sides = z if facets is None else system.unknowns(facets), count
            system.rho = rho
            found = solve_by_newton(system, z, OPTIONS).z
            system.rho = 1.0
            left = float(np.abs(system.residual(found, 0.0)).max())
            if left <= bound:
                return system.impulses(found), left / self.speed
            least = min(least, left / bound)
        self.trace.append(least)
        return f"the friction of the contacts is not solved: {least:.2g} times the tolerance is left"


def _impulses(found: StepOutcome) -> dict[Key, np.ndarray]:
    """The impulses by contact."""
    keys = zip(found.gaps.pair.tolist(), found.gaps.feature.tolist(), strict=True)
    return {key: p for key, p in zip(keys, found.p, strict=True) if p[0] > 0}


def _worst(pair: np.ndarray, rate: np.ndarray, bad: np.ndarray) -> np.ndarray:
    """Of the rows `bad` the one of every pair with the smallest rate."""
    if bad.size == 1:
        return bad
    order = bad[np.lexsort((rate[bad], pair[bad]))]
    return order[np.append(True, np.diff(pair[order]) > 0)]
