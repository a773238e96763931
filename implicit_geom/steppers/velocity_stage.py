"""The velocity stage: impulses at given poses that leave no closed contact approaching, with restitution.

    M (nu+ - nu) = impulse of loads + W p
    0 <= p_n _|_ W_n^T nu+ + e u_n >= 0,     friction of p against W_t^T nu+

Newton's law takes u_n = min(0, normal velocity at the instant of impact) for contacts that were open at
the start of the step, 0 for those that were closed. Deviation: with friction it can gain energy (Kane
and Levinson 1985); in an impact that would, all e u_n are reduced by one factor until nothing is gained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from implicit_geom.contact.many_contacts import methods
from implicit_geom.contact.rattle_ncp import (
    EndContact,
    StartContact,
    VelocityNCP,
    impact_velocity,
    point_velocity,
    with_velocities,
)
from implicit_geom.equations.thresholds import IMPACT_SPEED
from implicit_geom.model.energy import kinetic, speeds_at_hand
from implicit_geom.model.ledger import step_ledger
from implicit_geom.model.model import State
from implicit_geom.model.records import VELOCITY, ContactRecord, Failure, Solve
from implicit_geom.solvers.newton import NewtonResult, follow_path, solve_by_newton
from implicit_geom.steppers.closed_contacts import contact_records
from implicit_geom.steppers.search import SolutionSearch


@dataclass
class VelocitySolution:
    """The outcome of a velocity stage."""

    state: State
    records: list[ContactRecord]
    iterations: int
    residual: float


REDUCTIONS = 10  # bisections for the restitution that gains no energy


class VelocityStage:
    """Impulses at the end of a step, for a stepper that has a search for solutions."""

    def __init__(self, search: SolutionSearch) -> None:
        self.search = search
        self.model = search.model

    def needed(self, ends: dict[int, EndContact]) -> bool:
        """Whether any of these contacts has restitution."""
        pairs = self.model.pairs
        bouncy = any(law.restitution > 0 for law in pairs.laws)
        return bouncy and any(pairs[c].law.restitution > 0 for c in ends)

    def bounce(
        self,
        c: int,
        end: EndContact,
        start: StartContact,
        state: State,
        impulse: np.ndarray,
        h: float,
        lag: float = 0.0,
    ) -> float:
        """Restitution times the normal velocity at the instant of impact, <= 0; `impulse` is a whole step's.

        Flight in steps x+ = x + h v+ is exact with velocities that belong to half a step earlier: `lag`.
        """
        pair = self.model.pairs[c]
        e = pair.law.restitution
        if e == 0 or h < 0:
            return 0.0
        if start.touching:
            speed = speeds_at_hand(self.model, state.v, state.w, h)
            faster = max(speed[pair.first], speed[pair.second])
            fast = start.normal_velocity < -IMPACT_SPEED * faster
            return e * start.normal_velocity if fast else 0.0
        dim = self.model.dim
        free = np.column_stack([state.v, state.w])
        free[:, :dim] += impulse[:, :dim] / self.model.mass[:, None]
        flying = with_velocities(state, free)
        relative = point_velocity(flying, pair.second, end.r2) - point_velocity(flying, pair.first, end.r1)
        before, without = start.normal_velocity, float(end.n @ relative)
        drift = end.drift = lag * (without - before) / h
        return min(e * impact_velocity(start.gap, before + drift, without + drift, h) + drift, 0.0)

    def finished(
        self,
        before: State,
        h: float,
        impulse: np.ndarray,
        ends: dict[int, EndContact],
        finish: Callable[[VelocitySolution], Solve],
    ) -> Solve | Failure:
        """The velocity stage, with restitution reduced where the step it finishes would gain energy."""
        wanted = {c: contact.bounce for c, contact in ends.items()}

        def attempt(factor: float) -> tuple[Solve | Failure, bool]:
            for c, contact in ends.items():
                contact.bounce = factor * wanted[c]
            stage = self.solve(before, h, impulse, ends)
            if not isinstance(stage, VelocitySolution):
                return stage, False
            solve = finish(stage)
            if factor == 0.0 or not any(wanted.values()):
                return solve, True
            entry = step_ledger(self.model, solve)
            return solve, entry.change - entry.work <= self._timing(solve, ends)

        outcome, lawful = attempt(1.0)
        if lawful or not any(wanted.values()):
            return outcome
        outcome, _ = attempt(0.0)
        low, high = 0.0, 1.0
        for _ in range(REDUCTIONS):
            middle = (low + high) / 2
            trial, lawful = attempt(middle)
            if lawful:
                outcome, low = trial, middle
            else:
                high = middle
        return outcome

    def _timing(self, solve: Solve, ends: dict[int, EndContact]) -> float:
        """What a step with an impact may gain, J: rounding, and p_n drift in Euler's form.

        (Its velocities belong to half a step earlier, before the impact and after it.)
        """
        scale = kinetic(self.model, solve.start) + kinetic(self.model, solve.end)
        lagged = sum(c.p_n * abs(ends[c.pair].drift) for c in solve.contacts if c.pair in ends)
        return 1.01 * lagged + 1e-9 * scale

    def solve(
        self, before: State, h: float, impulse: np.ndarray, ends: dict[int, EndContact]
    ) -> VelocitySolution | Failure:
        """Impulses at the poses of `before` that leave no closed contact approaching."""
        problem = self.search.equations(VelocityNCP, sorted(ends))
        z0 = problem.prepare_contacts(before, h, impulse, ends, self.search.tolerance)
        histories: list[list[float]] = []
        iterations = 0
        for attempt in self._guesses(problem, z0):
            found = attempt()
            histories.append(found.history)
            iterations += found.iterations
            if found.converged and problem.certified(found.z):
                break
        else:
            return "Newton's method found no impulses at the end of the step", histories
        state = with_velocities(before, self.search.velocities(problem, found.z))
        records = []
        for (g, _, members), inputs in zip(problem.members(), problem.gather, strict=True):
            seen = g.seen(found.z[inputs])
            gaps = np.array([ends[c].gap for c in members])
            own = contact_records(self.model, g, seen, np.arange(g.n), state, gaps, VELOCITY)
            for record in own:
                end = ends[record.pair]
                record.bounce, record.impact, record.slid = end.bounce, end.impact, end.slid
            records += own
        residual = float(np.max(np.abs(problem.residual(found.z, 0.0)), initial=0.0))
        return VelocitySolution(state, records, iterations, residual)

    def _guesses(self, problem: VelocityNCP, z0: np.ndarray) -> Iterator[Callable[[], NewtonResult]]:
        yield lambda: solve_by_newton(problem, z0, self.search.options.newton, damped=False)
        yield lambda: solve_by_newton(
            problem, problem.with_normal_impulses(z0, 1.0), self.search.options.newton
        )
        still = z0.copy()
        still[problem.bodies.size :] = 0.0
        yield lambda: solve_by_newton(problem, still, self.search.options.newton)
        if problem.size <= self.search.options.dense:
            yield lambda: follow_path(problem, z0, self.search.options.newton)
        yield from methods(problem, z0, self.search.options.newton)
