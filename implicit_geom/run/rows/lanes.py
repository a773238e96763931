"""Lanes: the rows of a batch on their way through time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from implicit_geom.compiled.eligibility import can_compile
from implicit_geom.engine.native_runner import NativeRunner
from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.machine.availability import available
from implicit_geom.model.model import Model, State
from implicit_geom.model.solve_arrays import PARTS
from implicit_geom.process.lazy import cached_property
from implicit_geom.run.initial_state import check_overlap, check_scales
from implicit_geom.run.make_stepper import make_stepper, native_runner
from implicit_geom.run.rows.numbers import RowNumbers, row_numbers
from implicit_geom.run.rows.scenes import Scenes
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene
from implicit_geom.steppers.events.stepper import EventStepper

Shared = dict[str, np.ndarray]  # x, q, v, w of all scenes, (scenes, T+1, B, ...)


class Lane:
    """One scene on its way.

    number     among the scenes
    model      its own, or one of the same structure where `rows` has its numbers
    full       how many of its steps have the full length
    taken      steps
    alone      of these outside the compiled code
    compiled   whether compiled code suits it
    stopped    the compiled code has left this lane at its next step
    rows       where it has no scene of its own yet: the numbers that it starts from
    """

    def __init__(
        self,
        number: int,
        model: Model,
        lengths: np.ndarray,
        full: int,
        shared: Shared,
        own: Callable[[], Any],
    ) -> None:
        self.number, self.model, self.lengths, self.shared = number, model, lengths, shared
        self.full = full
        self._own = own
        self.state: State | None = None
        self.rows: RowNumbers | None = None
        self.candidates: tuple[int, ...] = ()
        self.taken, self.alone = 0, 0
        self.compiled, self.stopped, self.failure = True, False, ""

    @cached_property
    def solver(self) -> Any:
        """The stepper of its scene."""
        return self._own()

    @property
    def key(self) -> tuple[Any, ...]:
        """Lanes of one key may share an engine: the same bodies, pairs and candidates."""
        if self.rows is None:
            self.candidates = tuple(sorted(self.solver.memory.warm))
        return (self.structure, *self.candidates)

    @cached_property
    def structure(self) -> tuple[Any, ...]:
        """Lanes of equal structure can share an engine."""
        return tuple(id(pair.kernel) for pair in self.model.pairs)

    @property
    def left(self) -> int:
        """Steps of full length still to be taken in compiled code."""
        return 0 if self.failure or not self.compiled else max(self.full - self.taken, 0)

    @property
    def finished(self) -> bool:
        return bool(self.failure) or self.taken == len(self.lengths)

    @property
    def over(self) -> int:
        """Steps that need no more work: all of them once it has failed."""
        return len(self.lengths) if self.failure else self.taken

    def widen(self) -> None:
        """Find the pairs that may matter in the next steps."""
        assert self.state is not None
        self.solver.memory.widen(self.state, float(self.lengths[0]))

    def step(self) -> None:
        """One step by the stepper itself."""
        assert self.state is not None
        try:
            attempt = self.solver.step(self.state, float(self.lengths[self.taken]))
        except SimulationError as error:
            self.failure = str(error)
            return
        self.alone += 1
        if attempt.reason or not attempt.solves:
            self.failure = f"step at t = {self.state.time:.9g} s failed: {attempt.reason}"
            return
        self.keep(attempt.solves[-1].end)

    @cached_property
    def native(self) -> NativeRunner | None:
        """The engine, where `simulate` uses it."""
        return native_runner(self.solver.model, self.solver, float(self.lengths[0]))

    def keep(self, state: State) -> None:
        self.taken += 1
        self.state = state
        for part in PARTS:
            self.shared[part][self.number, self.taken] = getattr(state, part)

    def take_over(self, state: State) -> None:
        """It has reached a state in compiled code, and goes on with a scene of its own."""
        self.state, self.rows = state, None
        self.model = self.solver.model

    def struck(self) -> None:
        """The next step is likely to hold an impact."""
        if isinstance(self.solver, EventStepper):
            self.solver.struck = True

    def close(self) -> None:
        """Nothing is known of the bodies after a failure."""
        if self.failure:
            for values in self.shared.values():
                values[self.number, self.taken + 1 :, self.model.moving] = np.nan


def started_lanes(scenes: Sequence[Scene], options: SimulationOptions) -> list[Lane]:
    """Every scene at its start; SceneError names the row that cannot be started."""
    shared: Shared = {}
    first = _started(scenes, 0, scenes[0], options, shared)
    numbers = None
    compiled = available() and can_compile(first.model, options)
    if isinstance(scenes, Scenes) and len(scenes) > 1 and compiled:
        numbers = row_numbers(scenes.variants, first.solver, options.step)
    if numbers is None:
        rest = (scenes[i] for i in range(1, len(scenes)))
        return [first, *(_started(scenes, i, scene, options, shared) for i, scene in enumerate(rest, 1))]
    for part in PARTS:
        shared[part][:, 0, first.model.moving[0]] = getattr(numbers.body, part)
        fixed = np.setdiff1d(np.arange(len(first.model.bodies)), first.model.moving)
        shared[part][:, :, fixed] = getattr(first.state, part)[fixed]

    def own(i: int) -> Callable[[], Any]:
        return lambda: make_stepper(Model(scenes[i], options.friction_residual), options)

    same = (first.model, first.lengths, first.full, shared)
    lanes = [first, *(Lane(i, *same, own(i)) for i in range(1, len(scenes)))]
    for lane, ahead in zip(lanes, numbers.over.ahead(options.step).tolist(), strict=True):
        lane.rows, lane.candidates = numbers, tuple(c for c, found in enumerate(ahead) if found)
        lane.structure = first.structure
    return lanes


def _started(
    scenes: Sequence[Scene], number: int, scene: Scene, options: SimulationOptions, shared: Shared
) -> Lane:
    """A scene at rest; the first one makes the arrays that all share."""
    try:
        model = Model(scene, options.friction_residual)
        solver = make_stepper(model, options)
        state = model.initial_state()
        check_scales(model, state, options.step)
        check_overlap(solver, state)
    except SceneError as error:
        raise SceneError(f"values, row {number}: {error}") from None
    lengths = options.step_lengths()
    fixed = np.setdiff1d(np.arange(len(model.bodies)), model.moving)
    for part in PARTS:
        first = getattr(state, part)
        if part not in shared:
            shared[part] = np.empty((len(scenes), len(lengths) + 1, *first.shape))
        shared[part][number, 0] = first
        shared[part][number][:, fixed] = first[fixed]
    full = int(np.sum(lengths == lengths[0]))
    lane = Lane(number, model, lengths, full, shared, lambda: solver)
    lane.state = state
    return lane
