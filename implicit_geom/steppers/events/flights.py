"""Flights: steps of RATTLE between impacts, of order two, or composed to order four.

The equations are those of `steppers.rattle`. A flight may be restricted to the pairs that rest on each other
at its start, at the points where they do: others are about to strike, and the impact is not a part of it.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from implicit_geom.contact.rattle_ncp import EndPointNCP, PositionNCP
from implicit_geom.engine.native_scene import NativeScene, why_not_native
from implicit_geom.equations.thresholds import COMPOSITION, MAX_TURN
from implicit_geom.model.model import Model, State
from implicit_geom.model.momentum_rows import kicked, stage_velocities
from implicit_geom.model.records import POSITION, ContactRecord, Failure, Solve
from implicit_geom.process.lazy import cached_property
from implicit_geom.solvers.newton import solve_by_newton
from implicit_geom.steppers.candidates import StepSolution, solve_step
from implicit_geom.steppers.closed_contacts import accept
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.events.impacts import ImpactSearch, Old, resting_velocities
from implicit_geom.steppers.events.islands import of_island
from implicit_geom.steppers.guard import EnergyGuard
from implicit_geom.steppers.memory import StepperMemory
from implicit_geom.steppers.search import SearchOptions, SolutionSearch
from implicit_geom.steppers.substeps import attempted
from implicit_geom.steppers.velocity_stage import VelocitySolution, VelocityStage


class Flights:
    """The steps of RATTLE that event-driven steppers take; `guard` is the share of energy one may create."""

    def __init__(
        self,
        model: Model,
        tolerance: float = 1e-10,
        options: SearchOptions | None = None,
        guard: float = 1e-3,
        friction_tolerance: float = 0.0,
        impact_law: str = "newton",
        max_impacts: int = 100,
        fourth: bool = False,
    ) -> None:
        self.model, self.tolerance, self.allowed = model, tolerance, guard
        self.fourth = fourth  # compose steps of order four where contacts keep their modes
        self.max_impacts, self.impact_law = max_impacts, impact_law
        self._options, self._friction_tolerance = options, friction_tolerance
        self.struck = False  # the next step is likely to hold an impact: none without is tried

    # (made when first asked for: most runs need few of them)

    @cached_property
    def impacts(self) -> ImpactSearch:
        return ImpactSearch(self.model, self.flight, self.impact_law)

    @cached_property
    def search(self) -> SolutionSearch:
        return SolutionSearch(self.model, self.tolerance, self._options, self._friction_tolerance)

    @cached_property
    def velocity_stage(self) -> VelocityStage:
        return VelocityStage(self.search)

    @cached_property
    def guard(self) -> EnergyGuard:
        return EnergyGuard(self.model, self.allowed, self.tolerance)

    @cached_property
    def euler(self) -> EulerStepper:
        return EulerStepper(self.model, search=self.search)

    @cached_property
    def native(self) -> NativeScene | None:
        """The engine that takes its steps, where there is one."""
        if self.impact_law != "newton" or why_not_native(self.model):
            return None
        return NativeScene(self.model, self.allowed, self.max_impacts, self.tolerance, self.fourth)

    @property
    def pressed(self) -> np.ndarray:
        """(n, 8) what the engine knows of the last step's impulses; none where it has not been asked for."""
        made = self.__dict__.get("native")
        return np.zeros((0, 8)) if made is None else made.pressed

    @property
    def memory(self) -> StepperMemory:
        """What is remembered between steps."""
        return self.search.memory

    def flight(self, state: State, h: float, old: Old) -> list[Solve] | Failure:
        """A step in which no contacts close: with the pairs that rest on each other at these points alone."""
        saved = self.memory.snapshot()
        found = self._composed_flight(state, h, old) if self.fourth else None
        if found is None:
            self.memory.restore(saved)
            solve = attempted(self.solve, state, h, list(old), old)
            self.memory.restore(saved)
            if isinstance(solve, Solve):
                return [solve]
            return self.impacts.by_rounds(state, h, old)
        self.memory.restore(saved)
        return found

    def _composed_flight(self, state: State, h: float, old: Old) -> list[Solve] | None:
        """A flight of order four; None where one of its parts fails."""
        solves: list[Solve] = []
        for k, part in enumerate(COMPOSITION):
            last = old if k == len(COMPOSITION) - 1 else None
            outcome = attempted(self.solve, state, part * h, list(old), last)
            if not isinstance(outcome, Solve):
                again = self.impacts.by_rounds(state, part * h, old) if part > 0 else outcome
                if isinstance(again, tuple):
                    return None
                outcome = again[0]
            solves.append(outcome)
            state = outcome.end.at_time(state.time + part * h)
        return solves

    def solve(
        self, state: State, h: float, pairs: list[int] | None = None, old: Old | None = None
    ) -> Solve | Failure:
        """One step of two stages; with some pairs alone, and in stage 2 at the points `old`, where given."""
        own = slice(None) if self.search.island is None else self.search.island
        if abs(h) * float(np.max(np.linalg.norm(state.w[own], axis=1))) > MAX_TURN:
            return "a body turns too far in the step", []
        before = h / 2 * self.model.loads(state.time)
        after = h / 2 * self.model.loads(state.time + h)
        # stage 1: positions
        found = self._position_stage(state, h, before, pairs)
        if not isinstance(found, StepSolution):
            return found
        problem, solution, nu = found.problem, found.solution, found.nu
        moved = state.advanced(nu, h)
        records, ends = accept(
            self.search, problem, solution.z, state, moved, h, POSITION, problem.starts, events=True
        )
        residual = float(np.max(np.abs(problem.residual(solution.z, 0.0)), initial=0.0))
        overlap = max([0.0, *(-start.gap for start in problem.starts.values())])
        # stage 2: velocities
        if old is not None:
            return self._resting(state, moved, h, after, old, found, records, residual)

        def finish(stage: VelocitySolution) -> Solve:
            contacts = [*records, *stage.records]
            iterations = solution.iterations + stage.iterations
            worst = max(residual, stage.residual)
            return Solve(
                state, stage.state, h, nu, "rattle", contacts, iterations, found.status, worst, overlap
            )

        return self.velocity_stage.finished(stage_velocities(self.model, moved, h), h, after, ends, finish)

    def _resting(
        self,
        state: State,
        moved: State,
        h: float,
        impulse: np.ndarray,
        old: Old,
        found: StepSolution[PositionNCP],
        records: list[ContactRecord],
        residual: float,
    ) -> Solve | Failure:
        """Stage 2 at the points on which pairs rested at the start: others are about to strike."""
        before = kicked(self.model, stage_velocities(self.model, moved, h), impulse)
        stage = resting_velocities(self.model, state, before, h, old)
        if stage is None:
            return "no impulses were found at the end of a flight", []
        end, more, worst = stage
        n, status = found.solution.iterations, found.status
        return Solve(state, end, h, found.nu, "rattle", [*records, *more], n, status, max(residual, worst))

    def _position_stage(
        self, state: State, h: float, impulse: np.ndarray, pairs: list[int] | None = None
    ) -> StepSolution[PositionNCP] | Failure:
        """Stage 1; where a contact would slip backwards, again with friction against the mean slip."""
        # the path is worth its price where the rows are singular and at the very start, where bodies may lie
        # on each other by impulses that nobody knows (not at a first contact later on: which pairs have
        # warm starts by then depends on who took the steps before, and a shorter step finds the impact)
        first = state.time == 0.0 or not self.memory.begun
        thorough = self.model.friction_residual == "fritz-john" or first
        found: StepSolution[PositionNCP] | Failure
        found = solve_step(self.search, PositionNCP, state, h, impulse, thorough, pairs)
        if not isinstance(found, StepSolution) and self.model.pairs.may_have_patches and pairs is None:
            found = solve_step(self.search, EndPointNCP, state, h, impulse, thorough)
        if not isinstance(found, StepSolution) or not found.problem.release_reversed_slip(found.solution.z):
            return found
        # some contacts no longer oppose the slip of the start: solved again with the mean slip there
        problem = found.problem
        again = solve_by_newton(problem, found.solution.z, self.search.options.newton)
        if not (again.converged and problem.certified(again.z)):
            return "Newton's method found no solution where sliding ends", [again.history]
        nu = self.search.velocities(problem, again.z)
        if pairs is None and self.search.missed(state, nu, h, problem.candidates):
            return "another pair comes into reach where sliding ends", [again.history]
        crossing = "" if pairs is not None else self.search.crossing(problem, again.z, state, h)
        if crossing:
            return crossing, [again.history]
        again.iterations += found.solution.iterations
        return StepSolution(problem, again, found.status, nu)

    def composed(self, state: State, h: float, share: float) -> list[Solve] | None:
        """Five steps composed to one of order four, see `rattle4`.

        None where one fails, a contact changes its mode, or an island creates more than its share.
        """
        solves: list[Solve] = []
        rounding = self.guard.scale.rounding(state, h)
        modes: Hashable = None
        for part in COMPOSITION:
            outcome = attempted(self.solve, state, part * h)
            if not isinstance(outcome, Solve) or outcome.status != "converged":
                return None
            outcome = of_island(outcome, self.search.island)
            found = self.guard.modes(outcome)
            if found is None or (solves and found != modes):
                return None
            modes = found
            solves.append(outcome)
            state = outcome.end.at_time(state.time + part * h)
        return solves if self.guard.allows(solves, share, rounding) else None
