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

The guard: a step that has no solution, turns too far, or gains more energy than allowed is composed of
five (see `rattle4`) where no contact changes its mode; otherwise it is halved, up to SUBSTEPS times, and
then taken by `implicit-euler`, which pushes at the end-of-step point.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from implicit_geom.contact.rattle_ncp import EndPointProblem, PositionProblem
from implicit_geom.equations.thresholds import COMPOSITION, MAX_TURN, SLIDES, SLOW_TURN
from implicit_geom.interface.errors import SimulationError
from implicit_geom.model.body_rows import drifted
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.ledger import step_ledger
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import POSITION, VELOCITY, Attempt, ContactRecord, Failure, Solve
from implicit_geom.solvers.newton import NewtonOptions, solve
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.search import MAX_HALVINGS, MAX_SOLVES, Settled
from implicit_geom.steppers.velocity_stage import VelocitySolution

SUBSTEPS = 3  # halvings before a part is taken by implicit-euler


class RattleStepper(EulerStepper):
    """Steps a model; `guard` is the gain of energy in a step, over the energy at hand, that is refused."""

    def __init__(
        self,
        model: Model,
        tolerance: float = 1e-10,
        options: NewtonOptions | None = None,
        guard: float = 1e-2,
        friction_tolerance: float = 0.0,
    ) -> None:
        super().__init__(model, tolerance, options, friction_tolerance)
        self.guard = guard
        self.scale = EnergyScale(model)
        self.patches = model.pairs.may_have_patches

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h, otherwise than in one step where the guard demands it."""
        saved, normals = dict(self.warm), dict(self.broad.normals)
        turn = abs(h) * float(np.max(np.linalg.norm(state.w, axis=1)))
        bound = self.guard * (0.1 if turn < SLOW_TURN else 1.0)
        rounding = self.scale.rounding(state, h)
        solves: list[Solve] = []
        history: list[list[float]] = []
        why = ""
        parts = [(h, 0)]  # lengths still to be taken, next one last, with their number of halvings
        while parts:
            length, halvings = parts.pop()
            outcome = self._part(state, length, bound * length / h, rounding, halvings)
            if isinstance(outcome, Solve):
                solves.append(outcome)
                state = outcome.end
                continue
            why = why or outcome[0]
            if halvings == 0:
                composed = self._composed(state, h, bound)
                if composed is not None:
                    return Attempt(composed, form="rattle-4", guard="composed", why=why)
                self.warm, self.broad.normals = dict(saved), dict(normals)
            reason, histories = outcome
            history += histories
            if halvings == MAX_HALVINGS or len(solves) + len(parts) >= MAX_SOLVES:
                self.warm, self.broad.normals = saved, normals
                return Attempt([], reason, history)
            parts += [(length / 2, halvings + 1)] * 2
        form = "euler" if any(s.form == "euler" for s in solves) else "rattle"
        guard = "euler" if form == "euler" else "substeps" if len(solves) > 1 else "none"
        return Attempt(solves, form=form, guard=guard, why=why)

    def _part(self, state: State, h: float, guard: float, rounding: float, halvings: int) -> Solve | Failure:
        """A part of a step, by RATTLE or, halved often enough, by Euler; `guard` bounds its gain.

        A whole step in which no contact changes its mode may not lose more either: what it loses in one
        phase of a motion it gains in another, and to refuse the gains alone would drain the motion.
        """
        reasons: list[str] = []
        history: list[list[float]] = []
        ways = []
        if halvings <= SUBSTEPS:
            ways.append(self._rattle)
        if halvings >= SUBSTEPS:
            ways.append(self._solve)
        for way in ways:
            saved, normals = dict(self.warm), dict(self.broad.normals)
            outcome: Solve | Failure
            try:
                outcome = way(state, h)
            except SimulationError as error:
                outcome = (str(error), [])
            if isinstance(outcome, Solve):
                gain = self._gain(outcome)
                if halvings == 0 and self._modes(outcome) is not None:
                    gain = max(gain, abs(step_ledger(self.model, outcome).remainder))
                excess = gain - self._allowed(outcome.start, outcome.end, guard) - rounding
                if excess <= 0:
                    return outcome
                outcome = (f"the step gains {excess:.3g} J more than its guard allows", [])
            self.warm, self.broad.normals = saved, normals
            reasons.append(outcome[0])
            history += outcome[1]
        return reasons[-1], history

    def _gain(self, solve: Solve) -> float:
        """Gain of energy, J, without the work of applied forces and what lifts bodies out of each other."""
        entry = step_ledger(self.model, solve)
        return entry.change - entry.work - self.scale.weight * solve.overlap

    def _allowed(self, start: State, end: State, guard: float) -> float:
        """That share of the energy above the lowest configuration, J."""
        return guard * max(self.scale.above_lowest(start), self.scale.above_lowest(end))

    def _rattle(self, state: State, h: float) -> Solve | Failure:
        """One step of two stages."""
        if abs(h) * float(np.max(np.linalg.norm(state.w, axis=1))) > MAX_TURN:
            return "a body turns too far in the step", []
        before = h / 2 * self.model.loads(state.time)
        after = h / 2 * self.model.loads(state.time + h)
        # the path is worth its price where the rows are singular and at the very start, where bodies may lie
        # on each other by impulses that nobody knows (not at a first contact later on: which pairs have
        # warm starts by then depends on who took the steps before, and a shorter step finds the impact)
        start = state.time == 0.0 or not self.begun
        thorough = self.model.friction_residual == "fritz-john" or start
        found = self._settle(PositionProblem, state, h, before, thorough)
        if not isinstance(found, Settled) and self.patches:
            found = self._settle(EndPointProblem, state, h, before, thorough)
        if not isinstance(found, Settled):
            return found
        problem, solution = found.problem, found.solution
        if problem.reversed_slip(solution.z):
            again = solve(problem, solution.z, self.options)
            if not (again.converged and problem.certified(again.z)):
                return "Newton's method found no solution where sliding ends", [again.history]
            if self.broad.missed(state, self._velocities(problem, again.z), abs(h), problem.candidates):
                return "another pair comes into reach where sliding ends", [again.history]
            crossing = self._crossing(problem, again.z, state, h)
            if crossing:
                return crossing, [again.history]
            again.iterations += solution.iterations
            solution = again
        nu = self._velocities(problem, solution.z)
        moved = state.advanced(nu, h)
        records, ends = self._accept(problem, solution.z, state, moved, h, POSITION, problem.starts)
        residual = float(np.max(np.abs(problem.residual(solution.z, 0.0)), initial=0.0))
        overlap = max([0.0, *(-start.gap for start in problem.starts.values())])
        for c, contact in ends.items():
            contact.bounce = self._bounce(c, contact, problem.starts[c], state, before + after, h)

        def finish(stage: VelocitySolution) -> Solve:
            contacts = [*records, *stage.records]
            iterations = solution.iterations + stage.iterations
            worst = max(residual, stage.residual)
            return Solve(
                state, stage.state, h, nu, "rattle", contacts, iterations, found.status, worst, overlap
            )

        return self._bounced(drifted(self.model, moved, h), h, after, ends, finish)

    def _composed(self, state: State, h: float, guard: float) -> list[Solve] | None:
        """Five steps composed to one of order four, see `rattle4`.

        None where one fails, a contact changes its mode, or more than the guard's share of energy is gained.
        """
        solves: list[Solve] = []
        gain = 0.0
        modes: Hashable = None
        for part in COMPOSITION:
            try:
                outcome = self._rattle(state, part * h)
            except SimulationError:
                return None
            if not isinstance(outcome, Solve) or outcome.status != "converged":
                return None
            found = self._modes(outcome)
            if found is None or (solves and found != modes):
                return None
            modes = found
            solves.append(outcome)
            gain += self._gain(outcome)
            state = outcome.end.at_time(state.time + part * h)
        start = solves[0].start
        if gain > self._allowed(start, state, guard) + self.scale.rounding(start, h):
            return None
        return solves

    def _modes(self, solve: Solve) -> Hashable | None:
        """Which contacts are closed, and which of them slide; None where that changes within the solve."""
        found: list[set[tuple[int, bool]]] = []
        speed = max(1.0, float(np.max(np.abs(solve.half))))
        for stage in (POSITION, VELOCITY):
            modes = set()
            for c in (c for c in solve.contacts if c.stage == stage):
                if c.impact or c.p_n * solve.h < 0:
                    return None
                slides = self._has_friction(c) and float(np.linalg.norm(c.slip)) > SLIDES * speed
                if stage == POSITION and not slides == c.lagged == c.slid:
                    return None
                modes.add((c.pair, slides))
            found.append(modes)
        return frozenset(found[0]) if found[0] == found[1] else None

    def _has_friction(self, c: ContactRecord) -> bool:
        return bool(self.model.pairs[c.pair].kernel.kind.components)
