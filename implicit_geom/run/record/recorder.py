"""What a simulation writes down while it runs: every step, or every n-th one and the last.

Where steps are left out, nothing of them is lost that can be summed up: the residuals of a row that is kept
are the largest, its energies, impacts and wall time the sums, over all steps since the row before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.model.model import Model, State
from implicit_geom.model.reasons import divided, join_reasons
from implicit_geom.model.records import Attempt, Solve
from implicit_geom.model.solve_arrays import (
    ASSESSED,
    BLOCK,
    ENTRIES,
    KNOWN,
    RESIDUALS,
    STEP,
    UNKNOWN,
    SolveArrays,
    solve_arrays,
)
from implicit_geom.run.record.assessment import assess
from implicit_geom.run.record.call_account import Call
from implicit_geom.run.record.impact_table import of_points
from implicit_geom.run.record.solve_log import ARRAYS, SolveLog
from implicit_geom.run.record.solve_log import joined as one_run
from implicit_geom.run.record.step_log import StepLog, fields
from implicit_geom.scene.switches import Stepper

SUMMED = (*(f"{name}_energy" for name in ENTRIES), "impacts", "wall_time")

SHORT = 1e-4  # of a step: a part up to this long only leads to an impact


class Recorder:
    """Collects solves and steps after those of an earlier run, of which `taken` were taken.

    Residuals and energies of the steps stay unknown until they are asked for (`run.record.assessment`),
    unless steps are left out: then they are computed at once, by the laws of `stepper`, from `start` on.
    `reopen`: the earlier run left out as many, so that its last row may be one that an unbroken run has not.
    """

    def __init__(
        self,
        model: Model,
        call: Call,
        solves: SolveLog,
        steps: StepLog,
        *,
        taken: int,
        every: int,
        start: State,
        stepper: Stepper,
        reopen: bool = False,
    ) -> None:
        self.model, self.call = model, call
        self.solves, self.steps = solves.copy(), steps.copy()
        self.count = taken  # steps taken so far
        self._missing = len(steps) - taken  # what is to be added to a step's number to get its row
        self._objects: tuple[list[Solve], list[int], list[tuple[Any, ...]]] = ([], [], [])
        self._waiting: list[tuple[SolveArrays, np.ndarray]] = []
        self._failed = np.zeros(0, STEP)
        self._thin = _Thin(self, every, stepper, start, taken) if every > 1 else None
        if self._thin is not None and reopen and taken % every:
            self._thin.reopen()

    def add_arrays(self, solves: SolveArrays, steps: np.ndarray) -> None:
        """Steps that compiled code took."""
        self._flush()
        self.call.note(steps, solves.contacts["gap"], compiled=True)
        self.count += len(steps)
        self._put(solves, steps)

    def add(self, attempt: Attempt, time: float, h: float, wall_time: float, left: str) -> None:
        """A step that ended at `time`, and why it was not taken in compiled code."""
        solves, numbers, rows = self._objects
        solves += attempt.solves
        numbers += [self.count] * len(attempt.solves)
        # (the points of a pair in an impact are one contact, as in `run.contacts`)
        touching = {
            (c.pair, 0 if of_points(c.stage) else c.feature) for s in attempt.solves for c in s.contacts
        }
        status = "continued" if any(s.status == "continued" for s in attempt.solves) else "converged"
        struck = any(s.form == "impact" or s.bodies is not None for s in attempt.solves)
        divided_so = attempt.divided if struck else _divided(attempt.solves, h)
        if attempt.form != "rattle-4" and divided_so:
            status = "substepped"
        impacts = sum(s.form == "impact" for s in attempt.solves)
        iterations = sum(s.iterations for s in attempt.solves)
        residual = max(s.residual for s in attempt.solves)
        counts = (len(attempt.solves), len(touching), impacts)
        how = (iterations, 0, iterations, status, attempt.form, attempt.guard, *counts, residual)
        reason = join_reasons(left, divided(attempt.why))
        rows.append((time, h, *how, *UNKNOWN, wall_time, reason))
        self.count += 1
        if len(solves) >= BLOCK:
            self._flush()

    def add_failed(self, time: float, h: float, iterations: int, wall_time: float, reason: str) -> None:
        """The step that ended the run."""
        row = (
            time,
            h,
            iterations,
            0,
            iterations,
            "failed",
            "",
            "none",
            0,
            0,
            0,
            np.nan,
            *UNKNOWN,
            wall_time,
            divided(reason),
        )
        self._failed = np.array([row], STEP)

    def finish(self) -> tuple[SolveLog, StepLog]:
        """Everything recorded, the earlier run's part first."""
        self._flush()
        self._pack()
        if self._thin is not None:
            self._thin.close()
        if len(self._failed):
            self.call.note(self._failed, np.zeros(0), compiled=False)
            self.steps.add(self._failed)
            if self._thin is not None:
                self.steps.assess(fields(self._failed, KNOWN))
        return self.solves, self.steps

    def _flush(self) -> None:
        """Steps of the steppers as arrays."""
        solves, numbers, rows = self._objects
        if rows:
            self._objects = ([], [], [])
            arrays, steps = solve_arrays(self.model, solves, numbers), np.array(rows, STEP)
            self.call.note(steps, arrays.contacts["gap"], compiled=False)
            self._put(arrays, steps)

    def _put(self, solves: SolveArrays, steps: np.ndarray) -> None:
        self._waiting.append((solves, steps))
        if sum(len(solves) for solves, _ in self._waiting) >= BLOCK // 2:
            self._pack()

    def _pack(self) -> None:
        """What waits goes to the logs."""
        if not self._waiting:
            return
        solves = one_run([solves for solves, _ in self._waiting])
        steps = np.concatenate([steps for _, steps in self._waiting])
        self._waiting = []
        if self._thin is None:
            solves.table["step"] += self._missing
            self.solves.add(solves)
            self.steps.add(steps)
        else:
            self._thin.take(solves, steps)


@dataclass
class _Open:
    """The last step, which is kept only if the run ends with it: its solves and its row."""

    solves: SolveArrays
    row: np.ndarray


class _Thin:
    """Keeps every n-th step."""

    def __init__(self, recorder: Recorder, every: int, stepper: Stepper, start: State, taken: int) -> None:
        self.recorder, self.every, self.stepper = recorder, every, stepper
        self.start, self.taken = start, taken
        self.open: _Open | None = None
        self.waiting: list[tuple[SolveArrays, np.ndarray]] = []

    def reopen(self) -> None:
        """The last row of the earlier run is one that an unbroken run would not have kept."""
        row = self.recorder.steps.pop()
        self.open = _Open(self.recorder.solves.pop(len(self.recorder.steps)), row)

    def take(self, solves: SolveArrays, steps: np.ndarray) -> None:
        """Steps in one piece, from where the last ones ended."""
        solves.table["step"] -= self.taken
        known = assess(self.recorder.model, self.start, solves, len(steps), 0, self.stepper)
        for name in ASSESSED:
            steps[name] = known[name]
        number = self.taken + np.arange(len(steps))
        row = number // self.every - self.taken // self.every
        kept = np.append(np.flatnonzero((number[:-1] + 1) % self.every == 0), len(steps) - 1)
        rows = steps[kept]
        for name in (*RESIDUALS, *SUMMED):
            sums = np.zeros(len(rows))
            if self.open is not None:
                sums[0] = self.open.row[name][0]
            # (one after another: a run that was broken here sums in the same order)
            (np.maximum if name in RESIDUALS else np.add).at(sums, row, steps[name])
            rows[name] = sums
        chosen = _of_steps(solves, kept)
        self.start = solves.end(len(solves) - 1)
        self.taken += len(steps)
        self.open = None
        if self.taken % self.every == 0:
            self._write(chosen, rows)
            return
        cut = int(np.searchsorted(chosen.table["step"], len(rows) - 1))
        self._write(chosen.part(0, cut), rows[:-1])
        self.open = _Open(chosen.part(cut, len(chosen)), rows[-1:])

    def close(self) -> None:
        """The run ends: its last step is kept."""
        if self.open is not None:
            self.open.solves.table["step"] = 0
            self._write(self.open.solves, self.open.row)
            self.open = None
        self._pack()

    def _write(self, solves: SolveArrays, rows: np.ndarray) -> None:
        if len(rows):
            solves.table["step"] += len(self.recorder.steps) + sum(len(rows) for _, rows in self.waiting)
            self.waiting.append((solves, rows))
        if sum(len(solves) for solves, _ in self.waiting) >= BLOCK // 2:
            self._pack()

    def _pack(self) -> None:
        """What waits goes to the logs: a few rows at a time would take more room than they save."""
        if self.waiting:
            rows = np.concatenate([rows for _, rows in self.waiting])
            self.recorder.solves.add(one_run([solves for solves, _ in self.waiting]))
            self.recorder.steps.add(rows)
            self.recorder.steps.assess(fields(rows, KNOWN))
            self.waiting = []


def _divided(solves: list[Solve], h: float) -> bool:
    """Whether some body was taken through a step in more parts than its impacts cut it into."""
    if len(solves) == 1:
        return False
    counted = [s for s in solves if s.form == "impact" or abs(s.h) > SHORT * h]
    parts = [(-1 if s.form == "impact" else 1) * (True if s.bodies is None else s.bodies) for s in counted]
    return bool(np.any(sum(parts) > 1))


def _of_steps(solves: SolveArrays, kept: np.ndarray) -> SolveArrays:
    """The solves of some steps, which are numbered anew."""
    place = np.searchsorted(kept, solves.table["step"])
    here = kept[np.minimum(place, len(kept) - 1)] == solves.table["step"]
    number = np.cumsum(here) - 1
    contacts = solves.contacts[here[solves.contacts["solve"]]]
    contacts["solve"] = number[contacts["solve"]]
    chosen = {name: getattr(solves, name)[here] for name in ARRAYS[:-1]}
    chosen["table"]["step"] = place[here]
    return SolveArrays(contacts=contacts, **chosen)
