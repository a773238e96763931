"""`implicit-euler`: the geometrically implicit step of C07, eqs. 10 and 11.

Where a solve fails, or the motion crosses a body on the way, the step is halved.

Where a contact has restitution, a velocity stage at the end-of-step poses follows: Newton's law with
the normal velocity at the instant of impact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.contact_group import WarmStart
from implicit_geom.errors import SimulationError
from implicit_geom.model import State
from implicit_geom.problem import StepProblem
from implicit_geom.rattle_problem import TOUCH, EndContact, Start, start_velocity
from implicit_geom.steppers.base import MAX_HALVINGS, MAX_SOLVES, Settled
from implicit_geom.steppers.closed import IMPACT_SPEED, SLAP, SLIDES, contact_record
from implicit_geom.steppers.solve import EULER, Attempt, ContactRecord, Failure, Solve
from implicit_geom.steppers.velocity import VelocitySolution, VelocityStage


class EulerStepper(VelocityStage):
    """Steps a model."""

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h, in parts where that is needed: a part that fails is halved."""
        saved = dict(self.warm)
        solves: list[Solve] = []
        history: list[list[float]] = []
        parts = [(h, 0)]  # lengths still to be taken, next one last, with their number of halvings
        while parts:
            length, halvings = parts.pop()
            outcome: Solve | Failure
            before, normals = dict(self.warm), dict(self.broad.normals)
            try:
                outcome = self._solve(state, length)
            except SimulationError as error:
                outcome = (str(error), [])
            if isinstance(outcome, Solve):
                solves.append(outcome)
                state = outcome.end
                continue
            # a solve may fail after its geometry was kept: the next one starts from the same state again
            self.warm, self.broad.normals = before, normals
            reason, histories = outcome
            history += histories
            if halvings == MAX_HALVINGS or len(solves) + len(parts) >= MAX_SOLVES:
                self.warm = saved
                return Attempt([], reason, history)
            parts += [(length / 2, halvings + 1)] * 2
        return Attempt(solves)

    def _solve(self, state: State, h: float) -> Solve | Failure:
        """One solve over h; a reason and the residual histories where there is no solution."""
        impulse = h * self.model.loads(state.time)
        found = self._settle(StepProblem, state, h, impulse)
        if not isinstance(found, Settled):
            return found
        problem, solution, nu = found.problem, found.solution, found.nu
        end = state.advanced(nu, h)
        starts = self._start_velocities(problem, state)
        records, ends = self._accept(problem, solution.z, state, end, h, EULER, starts)
        residual = float(np.max(np.abs(problem.residual(solution.z, 0.0)), initial=0.0))
        overlap = max([0.0, *(-start.gap for start in starts.values())])
        solve = Solve(
            state, end, h, nu, "euler", records, solution.iterations, found.status, residual, overlap
        )
        if not any(self.model.pairs[c].law.restitution > 0 for c in ends):
            return solve
        for c, contact in ends.items():
            contact.bounce = self._bounce(c, contact, starts[c], state, impulse, h, lag=h / 2)

        def finish(stage: VelocitySolution) -> Solve:
            return replace(
                solve,
                end=stage.state,
                contacts=[*records, *stage.records],
                iterations=solution.iterations + stage.iterations,
                residual=max(residual, stage.residual),
            )

        return self._bounced(end, h, np.zeros_like(impulse), ends, finish)

    def _start_velocities(self, problem: StepProblem, state: State) -> dict[int, Start]:
        """Gap and normal velocity of every candidate at the start of the step; before `_accept`."""
        starts = {}
        for g, _, members in problem.members():
            warm = [self.warm[c] for c in members]
            unknowns = np.array([w.unknowns for w in warm])
            unknowns[:, g.kernel.layout.at["D"]] *= np.array([[abs(w.h / problem.h)] for w in warm])
            points = g.closest(unknowns, problem.h)
            normal, slip = start_velocity(g, state, points)
            touching = points.gap <= TOUCH * g.get("L")[:, 0]
            for i, c in enumerate(members):
                starts[c] = Start(
                    float(points.gap[i]), float(normal[i]), slip[i], bool(touching[i]), points.r2[i]
                )
        return starts

    def _accept(
        self,
        problem: StepProblem,
        z: np.ndarray,
        start: State,
        end: State,
        h: float,
        stage: int,
        starts: dict[int, Start],
    ) -> tuple[list[ContactRecord], dict[int, EndContact]]:
        """Keep the unknowns for the next step; closed contacts for the records and for the velocity stage."""
        records, ends = [], {}
        at_start = stage != EULER
        for (g, own, members), inputs in zip(problem.members(), problem.gather, strict=True):
            seen = g.seen(z[inputs])
            m_c, L = g.get("m_c")[:, 0], g.get("L")[:, 0]
            at = g.kernel.layout.at
            names = {n: f"end_{n}" if at_start else n for n in ("r1", "r2", "n", "t", "o")}
            for i, c in enumerate(members):
                pair, u = self.model.pairs[c], z[own[i]].copy()
                r1, r2, n, t, o = (seen[names[name]][i] for name in ("r1", "r2", "n", "t", "o"))
                gap, p_n = float(seen["gap"][i, 0]), float(seen["p_n"][i, 0])
                self.broad.normals[c] = n.copy()
                reference = self._direction(pair.law, n, g.get("direction")[i].copy())
                if at_start and pair.law.direction is None:
                    reference = t.copy()
                self.warm[c] = WarmStart(u, reference, float(m_c[i]), h)
                # closed: the natural map's active branch, P_n > gap / h; or just touching
                closed = p_n / m_c[i] > gap / abs(h)
                if not (closed or gap <= TOUCH * L[i]):
                    continue
                ends[c] = EndContact(
                    r1, r2, n, t, o, gap, u[at["l"].start : at["k"].stop], u[at["P_n"].start :], float(m_c[i])
                )
                if not closed:
                    continue
                self._check_tangent(pair, t)
                before = starts[c]
                record = contact_record(self.model, c, g, seen, i, start if at_start else end, gap, stage)
                # (Euler's form leaves contacts approaching at a speed of order h)
                fast = (IMPACT_SPEED if at_start else SLAP) * g.get("U")[i, 0]
                slow = before.normal_velocity >= -fast
                struck = not (before.touching and slow) or self._slapped(c, before, ends[c], start, end, h)
                record.impact = ends[c].impact = struck
                record.lagged = ends[c].lagged = before.lagged
                speed = max(1.0, float(g.get("U")[i, 0]))
                record.slid = ends[c].slid = float(np.linalg.norm(before.slip)) > SLIDES * speed
                if at_start:
                    record.end_point = end.x[pair.second] + r2
                records.append(record)
        return records, ends
