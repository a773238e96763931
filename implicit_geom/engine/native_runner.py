"""Steps of `implicit-rattle` in native code, as many as there are; the stepper takes what it cannot."""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np

from implicit_geom.engine.native_scene import REASONS, MarchOutput, NativeScene
from implicit_geom.model.model import State
from implicit_geom.model.solve_arrays import ASSESSED, PARTS, STEP, SolveArrays

MEMORY = 1 << 22  # bytes of the states of one call
LONGEST = 2048  # steps of one call
PAUSE = 0.1  # s of one call, roughly: progress is told and interrupts are obeyed between calls
NUMBERS = 19  # of a body in a solve


class NativeRunner:
    """Takes steps of full length for a stepper."""

    def __init__(self, native: NativeScene, solver: Any, step: float) -> None:
        self.native, self.solver, self.step = native, solver, step
        self.why = ""  # what ended the last run, in few words
        bodies = len(native.model.bodies)
        self._most = int(np.clip(MEMORY // (8 * NUMBERS * bodies), 16, LONGEST))
        self._next = 1  # steps of the next call

    def run(
        self, state: State, wanted: int, step: int, ends: np.ndarray
    ) -> tuple[State, SolveArrays, np.ndarray]:
        """Up to `wanted` steps; the state reached, the solves, and the rows of `run.steps`."""
        started = clock.perf_counter()
        out = self.native.march(state, self.step, ends[: min(wanted, self._next)])
        self.why, taken = out.reason, len(out.time)
        self._next = self._suited(max(taken, 1), clock.perf_counter() - started)
        if taken == 0:
            return state, SolveArrays.empty(state), np.zeros(0, STEP)
        memory = self.solver.memory
        memory.warm.clear()
        memory.begun = True
        rows = step_rows(out, ends[:taken], self.step)
        if self.native.euler:
            rows["guard"] = "none"
        out.solves.table["step"] += step
        last = State(float(ends[taken - 1]), *(getattr(out.solves, part)[-1].copy() for part in PARTS))
        return last, out.solves, rows

    def begin(self, state: State) -> None:
        """Nothing is known of the contacts of a state that it has not reached itself."""

    def _suited(self, taken: int, seconds: float) -> int:
        """How many steps take about PAUSE, after so many took so long; never many more than those."""
        wanted = min(PAUSE * taken / max(seconds, 1e-6), 4.0 * taken)
        return int(np.clip(wanted, 1, self._most))

    def release(self) -> None:
        """The run is over."""

    def invalidate(self) -> None:
        """The stepper takes a step itself."""
        self.native.pressed = np.zeros((0, 8))


def step_rows(out: MarchOutput, ends: np.ndarray, h: float) -> np.ndarray:
    """Rows of `run.steps` for steps that end at the given times."""
    table, contacts = out.solves.table, out.solves.contacts
    steps = np.zeros(len(ends), STEP)
    first = np.searchsorted(table["step"], np.arange(len(ends)))
    steps["time"], steps["step"] = ends, h
    steps["iterations"] = np.add.reduceat(table["iterations"], first)
    steps["rounds"], steps["factorisations"] = out.work.T
    steps["residual"] = np.maximum.reduceat(table["residual"], first)
    steps["status"] = np.where(out.divided, "substepped", "converged")
    steps["form"] = out.forms()
    steps["guard"] = np.where(out.euler, "euler", np.where(out.divided, "substeps", "none"))
    steps["solves"] = np.diff(np.append(first, len(table)))
    steps["impacts"] = np.add.reduceat((table["form"] == "impact").astype(int), first)
    # (the points of a pair are one contact, as in `run.contacts`)
    touching = np.column_stack([table["step"][contacts["solve"]], contacts["pair"]])
    steps["contacts"] = np.bincount(np.unique(touching, axis=0)[:, 0], minlength=len(ends))
    for name in ASSESSED:
        steps[name] = np.nan
    steps["wall_time"] = out.time
    steps["reason"] = np.array(REASONS)[out.why]
    return steps
