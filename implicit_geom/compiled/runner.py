"""One scene for `simulate`: compiled steps, between those that its stepper must take itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from implicit_geom.compiled import structs
from implicit_geom.compiled.eligibility import FORMS, LARGEST
from implicit_geom.compiled.engine import Engine
from implicit_geom.compiled.idle_engines import leave, take
from implicit_geom.compiled.memory.output import MarchOutput
from implicit_geom.compiled.tables import ScalarSlot
from implicit_geom.equations.thresholds import COMPOSITION
from implicit_geom.model.model import Model, State
from implicit_geom.model.reasons import WORDS, ExitReason, words
from implicit_geom.model.records import EULER, POSITION, VELOCITY
from implicit_geom.model.solve_arrays import ASSESSED, PARTS, SOLVE, STEP, SolveArrays, contact_dtype
from implicit_geom.scene.options import SimulationOptions

MEMORY = 1 << 22  # bytes for the rows of one call
LONGEST = 2048  # steps of one call
MANY = "not compiled: many contacts"


class Runner:
    """Takes steps of full length for a stepper, as many as are ordinary."""

    def __init__(self, model: Model, solver: Any, options: SimulationOptions) -> None:
        self.model, self.solver, self.options = model, solver, options
        self._engines: dict[tuple[int, ...], tuple[Hashable, Engine]] = {}
        self._current: Engine | None = None  # the engine that holds the solver's memory
        self.why = ""  # what ended the last run, in few words

    def run(
        self, state: State, wanted: int, step: int, ends: np.ndarray
    ) -> tuple[State, SolveArrays, np.ndarray]:
        """Up to `wanted` steps; the state reached, the solves, and the rows of `run.steps`.

        Where there are none, `why` says the reason. `step` is the number of the first step, `ends` are the
        times at which the steps end.
        """
        engine = self._engine(state, wanted)
        none = state, SolveArrays.empty(state), np.zeros(0, STEP)
        if engine is None:
            self.why = MANY
            return none
        taken = int(engine.run(np.array([min(wanted, engine.chunk)], float), self.options.step)[0])
        wall_time = engine.wall_time / max(taken, 1)
        self.why = words(engine.scalars[ScalarSlot.EXIT_REASON, 0])
        if taken == 0:
            self._current = None
            return none
        rows = engine.read(0, taken)
        memory = self.solver.memory
        memory.warm, normals, memory.history = engine.take(0)
        memory.begun = True
        memory.broad.normals.update(normals)
        times = np.concatenate([[state.time], ends[: taken - 1]])
        solves = _solves(self.model, engine, rows, times, step, self.options)
        steps = _steps(engine, solves, ends[:taken], self.options, wall_time)
        last = State(float(ends[taken - 1]), *(getattr(solves, part)[-1].copy() for part in PARTS))
        return last, solves, steps

    def begin(self, state: State) -> None:
        """Find the candidate pairs of a state that it has not reached itself."""
        self.solver.memory.widen(state, self.options.step)

    def invalidate(self) -> None:
        """The stepper takes a step itself: what the engine holds is out of date."""
        self._current = None
        self.solver.memory.history = None

    def _engine(self, state: State, wanted: int) -> Engine | None:
        """The engine for the pairs that the solver has warm starts for, set to its state."""
        if self._current is not None:
            return self._current
        candidates = tuple(sorted(self.solver.memory.warm))
        if candidates not in self._engines:
            if len(self._engines) > 32:
                self.release()
            sizes = [self.model.pairs[c].kernel.layout.size for c in candidates]
            bodies = self.model.moving.size * (self.model.dim + self.model.spins)
            if bodies + sum(sizes) > LARGEST:
                return None
            self._engines[candidates] = self._taken(candidates, wanted)
        _, engine = self._engines[candidates]
        memory = self.solver.memory
        engine.put(0, state, memory.warm, memory.broad.normals, memory.history)
        self._current = engine
        return engine

    def _taken(self, candidates: tuple[int, ...], wanted: int) -> tuple[Hashable, Engine]:
        """An engine for these pairs, left by an earlier run of its kind or a new one; and the kind."""
        m, options = self.model, self.options
        width = 2 * len(candidates) * 32 + len(m.bodies) * 20  # numbers a solve, roughly
        substeps = len(COMPOSITION) if options.name == "implicit-rattle-4" else 1
        most = 1 << (max(wanted, 16) - 1).bit_length()
        chunk = int(np.clip(MEMORY // (8 * width * substeps), 16, min(most, LONGEST)))
        kernels = tuple(id(m.pairs[c].kernel) for c in range(len(m.pairs)))
        of_steps = (options.name, options.tolerance, options.energy_guard, options.impacts)
        kind = (m.dim, len(m.bodies), *m.moving.tolist(), kernels, candidates, of_steps, chunk)
        engine = take(kind, lambda: Engine(m, 1, options, list(candidates), chunk))
        engine.load(0, self.solver)
        return kind, engine

    def release(self) -> None:
        """Leave the engines to other runs."""
        self._current = None
        while self._engines:
            leave(*self._engines.popitem()[1])


def _solves(
    model: Model, engine: Engine, rows: MarchOutput, times: np.ndarray, step: int, options: SimulationOptions
) -> SolveArrays:
    """The rows of an engine as `SolveArrays`; `times` are those at the starts of the steps."""
    per_step = engine.solves(0, len(times))
    count = len(rows.iterations)
    table = np.zeros(count, SOLVE)
    table["step"] = step + np.repeat(np.arange(len(times)), per_step)
    table["h"], before = options.step, np.zeros(count)
    lengths = np.array(COMPOSITION) * options.step
    first = np.flatnonzero(np.diff(table["step"], prepend=-1))
    composed = first[per_step > 1, None] + np.arange(len(lengths))
    table["h"][composed] = lengths
    before[composed] = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
    table["time"] = np.repeat(times, per_step) + before
    table["form"] = "rattle" if engine.rattle else "euler"
    table["iterations"], table["status"] = rows.iterations, "converged"
    table["residual"] = rows.residual
    contacts = _contacts(model, engine, rows)
    bodies = np.ones(rows.x.shape[:2], bool)
    return SolveArrays(table, rows.x, rows.q, rows.v, rows.w, rows.half, bodies, contacts)


def _contacts(model: Model, engine: Engine, rows: MarchOutput) -> np.ndarray:
    """Closed contacts, solve by solve, those of stage 1 first."""
    pairs = np.array(engine.order, int)
    if not engine.order:
        return np.zeros(0, contact_dtype(model.dim))
    bodies = np.sort([[model.pairs[c].first, model.pairs[c].second] for c in engine.order], axis=1)
    at = structs.record(model.dim).at
    stages = (POSITION, VELOCITY) if engine.rattle else (EULER,)
    parts = []
    for stage, records in zip(stages, rows.records, strict=True):
        solve, which = np.nonzero(records[:, :, at["closed"].start] > 0)
        chosen = records[solve, which]
        out = np.zeros(len(solve), contact_dtype(model.dim))
        out["solve"], out["pair"], out["stage"] = solve, pairs[which], stage
        out["first"], out["second"] = bodies[which].T
        for name, where in at.items():
            if name != "closed":
                values = chosen[:, where]
                out[name] = values if out[name].ndim == 2 else values[:, 0]
        parts.append(out)
    together = np.concatenate(parts)
    return together[np.argsort(together["solve"], kind="stable")]


def _steps(
    engine: Engine,
    solves: SolveArrays,
    ends: np.ndarray,
    options: SimulationOptions,
    wall_time: float,
) -> np.ndarray:
    """One row of `run.steps` for every step."""
    steps = np.zeros(len(ends), STEP)
    per_step = engine.solves(0, len(ends))
    first = np.cumsum(per_step) - per_step
    steps["time"], steps["step"] = ends, options.step
    steps["iterations"] = np.add.reduceat(solves.table["iterations"], first)
    steps["factorisations"] = steps["iterations"]  # (one in each iteration of Newton's method)
    steps["residual"] = np.maximum.reduceat(solves.table["residual"], first)
    refused = per_step > engine.substeps
    steps["status"], steps["guard"] = "converged", np.where(refused, "composed", "none")
    steps["form"], steps["solves"] = np.where(refused, "rattle-4", FORMS[options.name]), per_step
    pairs = len(engine.model.pairs)
    which = np.repeat(np.arange(len(ends)), per_step)[solves.contacts["solve"]]
    touching = np.unique(which * pairs + solves.contacts["pair"])
    steps["contacts"] = np.bincount(touching // max(pairs, 1), minlength=len(ends))
    for name in ASSESSED:
        steps[name] = np.nan
    steps["wall_time"] = wall_time
    steps["reason"][refused] = WORDS[ExitReason.GAIN]
    return steps
