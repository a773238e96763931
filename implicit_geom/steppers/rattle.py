"""`implicit-rattle`: C07's geometry and friction inside a symmetric step of two stages, second order.

    stage 1   m (v_half - v) = h/2 F(q) + W_v(q) p_a
              D(h w_half)^T J_W w_half - J_W w = h/2 tau(q) + W_w(q) p_a
              x+ = x + h v_half,   R+ = exp(h w_half) R
              0 <= p_a,n _|_ d(q+) >= 0,   friction of p_a against the slip of the stage, or of the start
    stage 2   m (v+ - v_half) = h/2 F(q+) + W_v(q+) p_b
              J_W+ w+ - D(-h w_half)^T J_W+ w_half = h/2 tau(q+) + W_w(q+) p_b
              0 <= p_b,n _|_ W_n(q+)^T nu+ + e u_n >= 0,   friction of p_b against W_t(q+)^T nu+

Friction of p_a opposes the slip at the start while a contact slides: with p_b against the slip at the
end the step is then symmetric, and second order where the direction of sliding turns. Near the end of
sliding, and for contacts that were open, it opposes the mean slip of the stage.

F and tau are the loads at the times t and t + h, W_v and W_w the forces and moments of the contact impulses,
J_W = R J R^T the inertia in world axes, D the inverse tangent of the exponential map (`equations.momentum`).

A step is guarded (`guard`): one that has no solution, turns too far, or in which an island of contacts
creates or loses more energy than allowed is composed of five (see `rattle4`) where no contact changes its
mode; otherwise it is halved. Parts halved SUBSTEPS times or more may be taken by `implicit-euler`, which
pushes at the end-of-step point, under the same guard. Where stage 1 has no solution along a face, the
end-of-step point is tried there, too (`EndPointNCP`).
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from implicit_geom.contact.rattle_ncp import EndPointNCP, PositionNCP
from implicit_geom.equations.thresholds import COMPOSITION, MAX_TURN
from implicit_geom.model.model import Model, State
from implicit_geom.model.momentum_rows import stage_velocities
from implicit_geom.model.records import POSITION, Attempt, Failure, Solve
from implicit_geom.solvers.newton import solve_by_newton
from implicit_geom.steppers.candidates import StepSolution, solve_step
from implicit_geom.steppers.closed_contacts import accept
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.guard import EnergyGuard
from implicit_geom.steppers.memory import StepperMemory
from implicit_geom.steppers.search import SearchOptions, SolutionSearch
from implicit_geom.steppers.substeps import attempted, in_parts
from implicit_geom.steppers.velocity_stage import VelocitySolution, VelocityStage

SUBSTEPS = 3  # halvings before a part is taken by implicit-euler


class RattleStepper:
    """Steps a model; `guard` is the share of its energy that an island may create in one."""

    def __init__(
        self,
        model: Model,
        tolerance: float = 1e-10,
        options: SearchOptions | None = None,
        guard: float = 1e-3,
        friction_tolerance: float = 0.0,
    ) -> None:
        self.model = model
        self.search = SolutionSearch(model, tolerance, options, friction_tolerance)
        self.velocity_stage = VelocityStage(self.search)
        self.guard = EnergyGuard(model, guard, tolerance)
        self.euler = EulerStepper(model, search=self.search)

    @property
    def memory(self) -> StepperMemory:
        """What is remembered between steps."""
        return self.search.memory

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h, otherwise than in one step where the guard demands it."""
        share = self.guard.tolerance
        rounding = self.guard.scale.rounding(state, h)

        def part(start: State, length: float, halvings: int) -> Solve | Failure:
            return self._guarded(start, length, share * length / h, rounding, halvings)

        def five(start: State, length: float) -> Attempt | None:
            solves = self.composed(start, length, share)
            return None if solves is None else Attempt(solves, form="rattle-4", guard="composed")

        options = self.search.options
        taken = in_parts(
            self.memory, state, h, part, halvings=options.halvings, solves=options.solves, instead=five
        )
        if taken.solves and taken.guard == "none":
            taken.form = "euler" if any(s.form == "euler" for s in taken.solves) else "rattle"
            divided = "substeps" if len(taken.solves) > 1 else "none"
            taken.guard = "euler" if taken.form == "euler" else divided
        return taken

    def _guarded(
        self, state: State, h: float, share: float, rounding: np.ndarray, halvings: int
    ) -> Solve | Failure:
        """A part of a step, by RATTLE or, halved often enough, by Euler; `share` bounds its gain."""
        reason, history = "", []
        schemes = []
        if halvings <= SUBSTEPS:
            schemes.append(self.solve)
        if halvings >= SUBSTEPS:
            schemes.append(self.euler.solve)
        for scheme in schemes:
            saved = self.memory.snapshot()
            outcome = attempted(scheme, state, h)
            if isinstance(outcome, Solve):
                excess = self.guard.excess(outcome, share, rounding, whole=halvings == 0)
                if excess <= 0:
                    return outcome
                outcome = (f"the step gains or loses {excess:.3g} J more than its guard allows", [])
            self.memory.restore(saved)
            reason = outcome[0]
            history += outcome[1]
        return reason, history

    def solve(self, state: State, h: float) -> Solve | Failure:
        """One step of two stages."""
        if abs(h) * float(np.max(np.linalg.norm(state.w, axis=1))) > MAX_TURN:
            return "a body turns too far in the step", []
        before = h / 2 * self.model.loads(state.time)
        after = h / 2 * self.model.loads(state.time + h)
        # stage 1: positions
        found = self._position_stage(state, h, before)
        if not isinstance(found, StepSolution):
            return found
        problem, solution, nu = found.problem, found.solution, found.nu
        moved = state.advanced(nu, h)
        records, ends = accept(self.search, problem, solution.z, state, moved, h, POSITION, problem.starts)
        residual = float(np.max(np.abs(problem.residual(solution.z, 0.0)), initial=0.0))
        overlap = max([0.0, *(-start.gap for start in problem.starts.values())])
        # stage 2: velocities
        for c, contact in ends.items():
            contact.bounce = self.velocity_stage.bounce(
                c, contact, problem.starts[c], state, before + after, h
            )

        def finish(stage: VelocitySolution) -> Solve:
            contacts = [*records, *stage.records]
            iterations = solution.iterations + stage.iterations
            worst = max(residual, stage.residual)
            return Solve(
                state, stage.state, h, nu, "rattle", contacts, iterations, found.status, worst, overlap
            )

        return self.velocity_stage.finished(stage_velocities(self.model, moved, h), h, after, ends, finish)

    def _position_stage(
        self, state: State, h: float, impulse: np.ndarray
    ) -> StepSolution[PositionNCP] | Failure:
        """Stage 1; where a contact would slip backwards, again with friction against the mean slip."""
        # the path is worth its price where the rows are singular and at the very start, where bodies may lie
        # on each other by impulses that nobody knows (not at a first contact later on: which pairs have
        # warm starts by then depends on who took the steps before, and a shorter step finds the impact)
        first = state.time == 0.0 or not self.memory.begun
        thorough = self.model.friction_residual == "fritz-john" or first
        found: StepSolution[PositionNCP] | Failure
        found = solve_step(self.search, PositionNCP, state, h, impulse, thorough)
        if not isinstance(found, StepSolution) and self.model.pairs.may_have_patches:
            found = solve_step(self.search, EndPointNCP, state, h, impulse, thorough)
        if not isinstance(found, StepSolution) or not found.problem.release_reversed_slip(found.solution.z):
            return found
        # some contacts no longer oppose the slip of the start: solved again with the mean slip there
        problem = found.problem
        again = solve_by_newton(problem, found.solution.z, self.search.options.newton)
        if not (again.converged and problem.certified(again.z)):
            return "Newton's method found no solution where sliding ends", [again.history]
        nu = self.search.velocities(problem, again.z)
        if self.memory.broad.missed(state, nu, abs(h), problem.candidates):
            return "another pair comes into reach where sliding ends", [again.history]
        crossing = self.search.crossing(problem, again.z, state, h)
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
            found = self.guard.modes(outcome)
            if found is None or (solves and found != modes):
                return None
            modes = found
            solves.append(outcome)
            state = outcome.end.at_time(state.time + part * h)
        return solves if self.guard.allows(solves, share, rounding) else None
