"""RATTLE with impacts as events: `implicit-rattle` and `implicit-rattle-4` with `impacts="events"`.

The equations of a step are those of `rattle`. Where a contact closes within it, the step is cut at the
instant (`impacts`): a flight to it, the jump of the velocities there by the law of impact (`contact.impact`),
and the rest. Islands of contacts are stepped by themselves (`islands`), each under a guard of its own
(`steppers.guard`): a part that has no solution or gains too much is composed of five, or halved. After
`max_impacts` impacts the rest of a step is taken by `implicit-euler`, without restitution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from implicit_geom.engine.native_scene import REASONS
from implicit_geom.model.model import State
from implicit_geom.model.records import Attempt, Failure, Solve
from implicit_geom.model.solve_arrays import solve_records
from implicit_geom.steppers.events.flights import Flights
from implicit_geom.steppers.events.impacts import SHORT
from implicit_geom.steppers.events.islands import (
    IslandsMeet,
    at_once,
    islands_of,
    joined,
    of_island,
    one_after_another,
    pairs_within,
)
from implicit_geom.steppers.events.touching_points import touching_points
from implicit_geom.steppers.substeps import attempted, in_parts

GAINS = "the step gains"  # how the guard's reasons begin
SUBSTEPS = 3  # halvings before a part is taken by implicit-euler


@dataclass
class StepProgress:
    """A step so far: its length, its share of gain, and how its parts were taken."""

    step: float
    share: float
    rounding: np.ndarray
    struck: int = 0
    composed: bool = False
    plain: bool = False
    why: str = ""


class EventStepper(Flights):
    """Steps a model; impacts are events."""

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h: in native code, or as written here."""
        alone, self.struck = self.model.moving.size == 1 and not self.struck, False
        if self.native is not None:
            taken = self._in_one(state, h) if alone else None
            if taken is not None:
                return taken
            out = self.native.march(state, h, np.array([state.time + h]))
            if not out.reason:
                self.memory.warm.clear()
                self.memory.begun = True
                solves = solve_records(state, out.solves)
                euler, divided = bool(out.euler[0]), bool(out.divided[0])
                guard = "euler" if euler else "substeps" if divided else "none"
                why = REASONS[out.why[0]]
                form = str(out.forms()[0])
                return Attempt(solves, form=form, guard=guard, why=why, divided=divided)
            if out.reason.startswith("friction.direction"):
                return Attempt([], out.reason)
            taken = self._at_the_end(state, h, out.reason)
            if taken is not None:
                return taken
        return self.reference_step(state, h)

    def _at_the_end(self, state: State, h: float, why: str) -> Attempt | None:
        """A step by `implicit-euler`, whose equations know where points run; None where anything bounces."""
        if any(law.restitution > 0 for law in self.model.pairs.laws):
            return None
        saved = self.memory.snapshot()
        solves = self._inelastic(state, h)
        if isinstance(solves, list):
            return Attempt(solves, form="euler", guard="euler", why=why)
        self.memory.restore(saved)
        return None

    def _in_one(self, state: State, h: float) -> Attempt | None:
        """A step without events, of one body, by Newton's method; None where there is none."""
        candidates = self.search.candidates(state, h, self.model.loads(state.time))
        if self.impacts.strikes(state, h, candidates):
            return None
        saved = self.memory.snapshot()
        tolerance, rounding = self.guard.tolerance, self.guard.scale.rounding(state, h)
        solves = self.composed(state, h, tolerance) if self.fourth else None
        form = "rattle" if solves is None else "rattle-4"
        if solves is None:
            self.memory.restore(saved)
            outcome = self._guarded(state, h, tolerance, rounding, 0)
            solves = [outcome] if isinstance(outcome, Solve) else []
        if solves and not self.impacts.closes(state, h, solves[-1].end, candidates):
            for s in solves:
                s.ledger = None
                for contact in s.contacts:
                    contact.impact = False  # (a point that runs along a face is no blow)
            if form == "rattle-4" or self.guard.excess(solves[0], tolerance, rounding, whole=True) <= 0:
                return Attempt(solves, form=form)
        self.memory.restore(saved)
        return None

    def reference_step(self, state: State, h: float) -> Attempt:
        """Advance by h, island by island."""
        loads = self.model.loads(state.time)
        candidates = self.memory.broad.candidates(state, abs(h), loads)
        islands = islands_of(self.model, candidates)
        if len(islands) == 1:
            return self._advance(state, h)
        saved = self.memory.snapshot()
        while True:
            try:
                return self._by_islands(state, h, islands, candidates)
            except IslandsMeet as meeting:
                self.memory.restore(saved)
                islands = joined(islands, meeting.bodies)
            finally:
                self.search.island = None
            if len(islands) == 1:
                return self._advance(state, h)

    def _by_islands(
        self, state: State, h: float, islands: list[np.ndarray], candidates: list[int]
    ) -> Attempt:
        self.memory.fill(state, candidates)
        attempts = []
        for island in islands:
            self.search.island = island
            attempts.append(self._advance(state, h))
            if attempts[-1].reason:
                return attempts[-1]
        self.search.island = None
        self._check_apart(state, h, attempts, islands, candidates)
        return together(state, attempts)

    def _check_apart(
        self,
        state: State,
        h: float,
        attempts: list[Attempt],
        islands: list[np.ndarray],
        candidates: list[int],
    ) -> None:
        """Raises where the motion may have brought bodies of two islands together."""
        fastest = np.zeros((len(self.model.bodies), self.model.dim + self.model.spins))
        for attempt in attempts:
            for s in attempt.solves:
                quicker = np.linalg.norm(s.half, axis=1) > np.linalg.norm(fastest, axis=1)
                fastest[quicker] = s.half[quicker]
        missed = self.memory.broad.missed(state, fastest, abs(h), candidates)
        for island in islands:
            pairs_within(self.model, missed, island)

    def _advance(self, state: State, h: float) -> Attempt:
        """Advance the island at hand by h, otherwise than in one step where guard or impacts demand it."""
        progress = StepProgress(h, self.guard.tolerance, self.guard.scale.rounding(state, h))

        def part(start: State, length: float, halvings: int) -> list[Solve] | Failure:
            return self._part(start, length, halvings, progress)

        options = self.search.options
        taken = in_parts(self.memory, state, h, part, halvings=options.halvings, solves=options.solves)
        if taken.solves:
            euler = any(s.form == "euler" for s in taken.solves)
            plain = "rattle-4" if progress.composed and not progress.plain else "rattle"
            taken.form = "euler" if euler else plain
            refused = progress.composed and not self.fourth
            otherwise = "substeps" if taken.divided else "composed" if refused else "none"
            taken.guard = "euler" if euler else otherwise
            taken.why = taken.why or progress.why
        return taken

    def _part(self, state: State, h: float, halvings: int, progress: StepProgress) -> list[Solve] | Failure:
        """A part of a step, or of it what comes before an impact and the impact."""
        if h < SHORT * progress.step:
            touching = self.search.island_pairs(self.memory.broad.within(state, 0.0))
            found = self.impacts.short(state, h, progress.step, touching)
            return found if isinstance(found, tuple) else [of_island(s, self.search.island) for s in found]
        if progress.struck >= self.max_impacts:
            progress.why = progress.why or "more impacts in a step than max_impacts"
            return self._inelastic(state, h)
        saved = self.memory.snapshot()
        if self.fourth and halvings == 0:
            solves = self.composed(state, h, progress.share)
            if solves is not None:
                progress.composed = True
                return solves
            self.memory.restore(saved)
        share = progress.share * h / progress.step
        outcome = self._guarded(state, h, share, progress.rounding, halvings)
        if isinstance(outcome, Solve) and not any(c.impact for c in outcome.contacts):
            progress.plain = True
            return [outcome]
        after = self.memory.snapshot()
        self.memory.restore(saved)
        if isinstance(outcome, tuple) and halvings == 0 and outcome[0].startswith(GAINS):
            progress.why = progress.why or outcome[0]
            solves = self.composed(state, h, progress.share)
            if solves is not None:
                progress.composed = True
                return solves
            self.memory.restore(saved)
        if isinstance(outcome, tuple) and outcome[0].startswith("tunnelling"):
            return outcome
        found = self._next_impact(state, h, progress.step)
        if isinstance(found, list) and found[-1].form == "impact":
            progress.struck += 1
            self.memory.warm.clear()  # (they belong to the start of the part)
            return found
        if isinstance(found, list) and self._allowed(found, share, progress, halvings == 0):
            progress.plain = True
            self.memory.warm.clear()
            return found
        if isinstance(outcome, Solve) and halvings > SUBSTEPS:
            progress.plain = True
            self.memory.restore(after)
            return [outcome]
        if isinstance(outcome, Solve):
            return found if isinstance(found, tuple) else (f"{GAINS} or loses too much", [])
        return outcome

    def _allowed(self, solves: list[Solve], share: float, progress: StepProgress, whole: bool) -> bool:
        """Whether the guard allows what solves gain."""
        return all(self.guard.excess(s, share, progress.rounding, whole) <= 0 for s in solves)

    def _next_impact(self, state: State, h: float, step: float) -> list[Solve] | Failure:
        candidates = self.search.candidates(state, h, self.model.loads(state.time))
        found = self.impacts.next_impact(state, h, step, candidates)
        if isinstance(found, list):
            return [of_island(solve, self.search.island) for solve in found]
        return found

    def _settled(self, solves: list[Solve], step: float) -> list[Solve] | Failure:
        """Solves, and an inelastic impact where they leave closed contacts approaching."""
        end = solves[-1].end
        pulled = self.impacts.pulled(end, step)
        candidates = self.search.island_pairs(self.memory.broad.within(end, 0.0))
        points = [touching_points(self.model, end, c, pulled) for c in candidates]
        if not any(np.any(p.striking) for p in points):
            return solves
        struck = self.impacts.impact(end, points, pulled, restitution=False)
        if isinstance(struck, tuple):
            return struck
        return [*solves, *(of_island(s, self.search.island) for s in struck)]

    def _inelastic(self, state: State, h: float) -> list[Solve] | Failure:
        """The rest of a step with too many impacts, by Euler, without restitution."""
        outcome = self.euler.solve(state, h, inelastic=True)
        if isinstance(outcome, tuple):
            return outcome
        return self._settled([of_island(outcome, self.search.island)], h)

    def _guarded(
        self, state: State, h: float, share: float, rounding: np.ndarray, halvings: int
    ) -> Solve | Failure:
        """A part of a step, by RATTLE or, halved often enough, by Euler; `share` bounds its gain."""
        reason, history = "", []
        schemes: list[Callable[[State, float], Solve | Failure]] = []
        if halvings <= SUBSTEPS:
            schemes.append(self.solve)
        if halvings >= SUBSTEPS:
            schemes.append(self.euler.solve)
        for scheme in schemes:
            saved = self.memory.snapshot()
            outcome = attempted(scheme, state, h)
            if isinstance(outcome, Solve):
                outcome = of_island(outcome, self.search.island)
                if any(c.impact for c in outcome.contacts):
                    return outcome
                excess = self.guard.excess(outcome, share, rounding, whole=halvings == 0)
                if excess <= 0:
                    return outcome
                outcome = (f"{GAINS} or loses {excess:.3g} J more than its guard allows", [])
            self.memory.restore(saved)
            reason = outcome[0]
            history += outcome[1]
        return reason, history


def together(start: State, attempts: list[Attempt]) -> Attempt:
    """The step of all islands."""
    order = ("none", "composed", "substeps", "euler")
    forms = ("rattle-4", "rattle", "euler")
    return Attempt(
        at_once(start, [a.solves for a in attempts])
        or one_after_another(start, [a.solves for a in attempts]),
        form=max((a.form for a in attempts), key=forms.index),
        guard=max((a.guard for a in attempts), key=order.index),
        why=next((a.why for a in attempts if a.why), ""),
        divided=any(a.divided for a in attempts),
    )
