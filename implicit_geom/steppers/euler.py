"""`implicit-euler`: the geometrically implicit step of C07, eqs. 10 and 11.

Where a solve fails, or the motion crosses a body on the way, the step is halved.

Where a contact has restitution, a velocity stage at the end-of-step poses follows: Newton's law with
the normal velocity at the instant of impact.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat

import numpy as np

from implicit_geom.contact.rattle_ncp import EndContact, Start, start_velocity
from implicit_geom.contact.step_ncp import StepProblem
from implicit_geom.equations.thresholds import IMPACT_SPEED, SLAP, SLIDES, TOUCH
from implicit_geom.interface.errors import SimulationError
from implicit_geom.model.contact_group import ContactGroup, WarmStart
from implicit_geom.model.model import State
from implicit_geom.model.records import EULER, Attempt, ContactRecord, Failure, Solve
from implicit_geom.steppers.closed_contacts import contact_records
from implicit_geom.steppers.search import MAX_HALVINGS, MAX_SOLVES, Settled
from implicit_geom.steppers.velocity_stage import VelocitySolution, VelocityStage


class EulerStepper(VelocityStage):
    """Steps a model."""

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h, in parts where that is needed: a part that fails is halved."""
        saved = dict(self.warm)
        solves: list[Solve] = []
        history: list[list[float]] = []
        why = ""
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
            why = why or reason
            history += histories
            if halvings == MAX_HALVINGS or len(solves) + len(parts) >= MAX_SOLVES:
                self.warm = saved
                return Attempt([], reason, history)
            parts += [(length / 2, halvings + 1)] * 2
        return Attempt(solves, why=why)

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
        bouncy = any(law.restitution > 0 for law in self.model.pairs.laws)
        if not (bouncy and any(self.model.pairs[c].law.restitution > 0 for c in ends)):
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
        starts: dict[int, Start] = {}
        for g, _, members in problem.members():
            warm = [self.warm[c] for c in members]
            unknowns = np.array([w.unknowns for w in warm])
            unknowns[:, g.kernel.layout.at["D"]] *= np.array([[abs(w.h / problem.h)] for w in warm])
            points = g.closest(unknowns, problem.h)
            normal, slip = start_velocity(g, state, points)
            touching = points.gap <= TOUCH * g.get("L")[:, 0]
            columns = (points.gap.tolist(), normal.tolist(), slip, touching.tolist(), points.r2)
            starts.update(zip(members, map(Start, *columns), strict=False))
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
        self.begun = True
        records: list[ContactRecord] = []
        ends: dict[int, EndContact] = {}
        at_start = stage != EULER
        for (g, own, members), inputs in zip(problem.members(), problem.gather, strict=True):
            seen, u = g.seen(z[inputs]), z[own]
            names = {n: f"end_{n}" if at_start else n for n in ("r1", "r2", "n", "t", "o")}
            n, t, gap = seen[names["n"]], seen[names["t"]], seen["gap"][:, 0]
            m_c, U = g.get("m_c")[:, 0], g.get("U")[:, 0]
            reference = g.directions(n, g.get("direction"))
            if at_start:
                reference = np.where(g.given[:, None], reference, t)
            self.broad.normals.update(zip(members, n, strict=True))
            self.warm.update(
                zip(members, map(WarmStart, u, reference, m_c.tolist(), repeat(h)), strict=False)
            )
            # closed: the natural map's active branch, P_n > gap / h; or just touching
            closed = seen["p_n"][:, 0] / m_c > gap / abs(h)
            touching = closed | (gap <= TOUCH * g.get("L")[:, 0])
            self._take_over(g, seen, names, u, np.flatnonzero(touching), ends)
            chosen = np.flatnonzero(closed)
            for i in np.flatnonzero(closed & g.given).tolist():
                self._check_tangent(self.model.pairs[members[i]], t[i])
            found = contact_records(
                self.model, g, seen, chosen, start if at_start else end, gap[chosen], stage
            )
            # (Euler's form leaves contacts approaching at a speed of order h)
            fast = (IMPACT_SPEED if at_start else SLAP) * U
            points = end.x[g.second] + seen[names["r2"]]
            slips = np.array([starts[c].slip for c in members]).reshape(g.n, -1)
            slid = np.linalg.norm(slips, axis=1) > SLIDES * np.maximum(1.0, U)
            for i, record in zip(chosen.tolist(), found, strict=True):
                c = members[i]
                before, last = starts[c], ends[c]
                slow = before.normal_velocity >= -fast[i]
                struck = not (before.touching and slow)
                if not struck and g.kernel.kind.patches:
                    struck = self._slapped(c, before, last, start, end, h)
                record.impact = last.impact = struck
                record.lagged = last.lagged = before.lagged
                record.slid = last.slid = bool(slid[i])
                if at_start:
                    record.end_point = points[i]
            records += found
        return records, ends

    def _take_over(
        self,
        g: ContactGroup,
        seen: dict[str, np.ndarray],
        names: dict[str, str],
        u: np.ndarray,
        chosen: np.ndarray,
        ends: dict[int, EndContact],
    ) -> None:
        """What the velocity stage needs of the chosen contacts of a group."""
        at = g.kernel.layout.at
        columns = (
            *(seen[names[name]][chosen] for name in ("r1", "r2", "n", "t", "o")),
            seen["gap"][chosen, 0].tolist(),
            u[chosen, at["l"].start : at["k"].stop],
            u[chosen, at["P_n"].start :],
            g.get("m_c")[chosen, 0].tolist(),
        )
        rows = (EndContact(*row) for row in zip(*columns, strict=True))
        ends.update(zip(g.numbers[chosen].tolist(), rows, strict=True))
