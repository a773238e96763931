"""`simulate`: a scene stepped through time."""

from __future__ import annotations

import copy
import time as clock
from collections.abc import Iterator
from typing import Any

import numpy as np

from implicit_geom.approximate.stepper import ApproximateStepper
from implicit_geom.compiled import available
from implicit_geom.distance import closest
from implicit_geom.errors import SceneError, StepFailed
from implicit_geom.forks import paused, undisturbed
from implicit_geom.interrupts import HELD
from implicit_geom.model import Model, Pair, State
from implicit_geom.options import SimulationOptions
from implicit_geom.progress import Progress, reporting
from implicit_geom.replay import replay_record
from implicit_geom.scene import Scene
from implicit_geom.solver_state import Memory, restore
from implicit_geom.solves import STEP, Recorder, Solves
from implicit_geom.steppers import AnyStepper, make_stepper
from implicit_geom.steppers.solve import Attempt
from implicit_geom.switches import Stepper
from implicit_geom.trajectory import Trajectory

OVERLAP = 1e-8  # overlap at the start, relative to the smaller body, that is refused


@undisturbed
def simulate(
    scene: Scene | None,
    *,
    duration: float,
    step: float,
    stepper: str | Stepper = "implicit-rattle",
    friction_residual: str = "projection",
    tolerance: float = 1e-10,
    on_failure: str = "raise",
    energy_guard: float = 1e-2,
    friction_tolerance: float = 1e-10,
    progress: Progress = None,
    resume: Trajectory | None = None,
) -> Trajectory:
    """Simulate a scene for `duration` seconds in steps of `step` seconds.

    A duration that is no multiple of the step ends with a shortened step. With `resume`, a run is
    continued by `duration`; the result holds both parts and equals an unbroken run bit for bit
    (the scene may then be None, unless its loads are functions).
    A step that cannot be solved raises StepFailed, which carries the run so far; with
    on_failure="record" the run so far is returned, its last row in `steps` marked "failed".
    An interrupted run is attached to the KeyboardInterrupt as `run`.
    """
    options = SimulationOptions(
        duration, step, stepper, friction_residual, tolerance, on_failure, energy_guard, friction_tolerance
    )
    scene = _scene(scene, resume)
    model = Model(scene, options.friction_residual)
    solver = make_stepper(model, options)
    if resume is None:
        state = model.initial_state()
        recorder = Recorder(model, Solves.empty(state), np.zeros(0, STEP))
        check_overlap(solver, state)
    else:
        state = resume.final
        # residuals and energies of the first part are those of its own scene and stepper
        same = scene is resume.scene and options.stepper == resume.options.stepper
        earlier = resume.taken if same else resume.steps
        recorder = Recorder(model, resume.solves, earlier[earlier["status"] != "failed"])
        restore(solver, resume.memory)
    march = _March(scene, model, solver, options, recorder, state, resume)
    return march.run(progress)


class _March:
    """The loop over steps and what has to be kept when it ends early."""

    def __init__(
        self,
        scene: Scene,
        model: Model,
        solver: AnyStepper,
        options: SimulationOptions,
        recorder: Recorder,
        state: State,
        resume: Trajectory | None,
    ) -> None:
        self.scene, self.model, self.solver, self.options = scene, model, solver, options
        self.recorder = recorder
        self.initial = state if resume is None else resume.initial
        self.state = state
        self.runner = _runner(model, solver, options)
        if self.runner is not None and resume is None:
            self.runner.solver.widen(state, options.step)
        self.memory = Memory(solver)
        self.assessed = 0 if resume is None else min(resume.assessed, len(recorder.steps))
        self.elapsed = 0.0 if resume is None else float(resume.time[-1] - resume.time[0])

    def run(self, progress: Progress) -> Trajectory:
        lengths = self.options.step_lengths()
        # times are multiples of the step, not sums of steps
        base, count = self._base()
        full = int(np.sum(lengths == self.options.step))
        ends = base + (count + np.arange(1, len(lengths) + 1)) * self.options.step
        ends[full:] = base + (count + full) * self.options.step + np.cumsum(lengths[full:])
        with reporting(progress, len(lengths)) as done:
            try:
                k = 0
                while k < len(lengths):
                    taken = self._fast(ends[k:full]) if k < full else 0
                    if taken == 0:
                        failure = self._step(float(lengths[k]), float(ends[k]))
                        if failure:
                            return self._trajectory(failure)
                        taken = 1
                    k += taken
                    with paused():
                        done(k)
            except KeyboardInterrupt as interrupt:
                with HELD:
                    interrupt.run = self._trajectory("interrupted")  # type: ignore[attr-defined]
                raise
        return self._trajectory("")

    def _fast(self, ends: np.ndarray) -> int:
        """Take steps in compiled code, as many as it can take; how many they were."""
        if self.runner is None:
            return 0
        number = self.recorder.count
        state, solves, steps = self.runner.run(self.state, len(ends), number, ends)
        if len(steps):
            with HELD:
                self.recorder.add_arrays(solves, steps)
                self.state = state
                self.memory = Memory(self.solver)
        return len(steps)

    def _base(self) -> tuple[float, int]:
        """Where the count of equal steps starts, and how many of them are already taken."""
        steps = self.recorder.steps
        shorter = np.flatnonzero(steps["step"] != self.options.step)
        if shorter.size == 0:
            return self.initial.time, len(steps)
        return float(steps["time"][shorter[-1]]), len(steps) - 1 - int(shorter[-1])

    def _step(self, h: float, end: float) -> str:
        """Take one step; the reason where it failed and failures are to be recorded."""
        self.memory = Memory(self.solver)
        if self.runner is not None:
            self.runner.left()
        started = clock.perf_counter()
        attempt = self.solver.step(self.state, h)
        wall_time = clock.perf_counter() - started
        if attempt.reason or not attempt.solves:
            return self._fail(attempt, h, end, wall_time)
        with HELD:
            self.recorder.add(attempt, end, h, wall_time)
            self.state = attempt.solves[-1].end.at_time(end)
            if self.runner is not None:
                self.runner.solver.widen(self.state, h)
            self.memory = Memory(self.solver)
        return ""

    def _fail(self, attempt: Attempt, h: float, end: float, wall_time: float) -> str:
        reason = attempt.reason or "the stepper gave no solution"
        iterations = sum(len(history) for history in attempt.history)
        self.recorder.add_failed(end, h, iterations, wall_time)
        message = f"step at t = {self.state.time:.9g} s failed: {reason}"
        if self.options.on_failure == "record":
            return message
        s = self.state
        bodies = {
            name: (s.x[i], s.q[i], s.v[i], s.w[i] if self.model.dim == 3 else s.w[i, 0])
            for i, name in enumerate(self.model.names)
        }
        raise StepFailed(
            reason,
            time=s.time,
            state=bodies,
            history=attempt.history,
            replay=replay_record(self.scene, s, h, self.memory, self.options),
            run=self._trajectory(message),
        )

    def _trajectory(self, failure: str) -> Trajectory:
        solves, steps = self.recorder.finish()
        total = self.elapsed + self.options.duration
        options = SimulationOptions(**{**self.options.as_dict(), "duration": total})
        memory = self.memory.plain()
        return Trajectory(
            self.scene, options, self.initial, solves, steps, memory, failure, assessed=self.assessed
        )


def _runner(model: Model, solver: AnyStepper, options: SimulationOptions) -> Any:
    """The compiled march, where it can be had and suits the scene."""
    if not available():
        return None
    from implicit_geom.compiled.runner import Runner, suits

    return Runner(model, solver, options) if suits(model, options) else None


def _scene(scene: Scene | None, resume: Trajectory | None) -> Scene:
    """A copy of the scene, so that later changes to it leave the run alone."""
    if resume is not None and not isinstance(resume, Trajectory):
        raise SceneError(
            f"resume = {type(resume).__name__} must be a run, such as Trajectory.load(...) gives"
        )
    if resume is not None:
        if scene is None:
            return resume.scene
        _check_same(scene, resume.scene)
    if not isinstance(scene, Scene):
        raise SceneError(f"scene = {scene!r} must be a Scene; read a scene file with read_scene(path)")
    twin = copy.copy(scene)
    # (lists first: another thread may be adding to the scene; a body is there before anything about it is)
    twin._applied = dict(scene._applied)
    twin._pair_friction = {pair: dict(law) for pair, law in list(scene._pair_friction.items())}
    twin.bodies = dict(scene.bodies)
    return twin


def _check_same(scene: Any, before: Scene) -> None:
    """A run is continued with the bodies it was started with."""
    now, then = list(scene.bodies.values()), list(before.bodies.values())
    same = scene.dim == before.dim and [b.name for b in now] == [b.name for b in then]
    same = same and all(
        a.shape == b.shape and a.mass == b.mass and np.array_equal(a.inertia, b.inertia)
        for a, b in zip(now, then)
    )
    if not same:
        raise SceneError(
            "scene: the run to be continued has other bodies; pass the scene it was started with"
        )


def check_overlap(solver: AnyStepper, state: State) -> None:
    """Refuse bodies that overlap at the start, by more than the rounding of the user's numbers.

    A stepper on facets may know other shapes than the scene does: it is its own that must not overlap.
    """
    model = solver.model
    for pair, gap in _overlaps(solver, state):
        if gap < -OVERLAP * min(model.pieces.size[piece] for piece in pair.pieces):
            a, b = sorted((pair.first, pair.second))
            raise SceneError(
                f"bodies.{model.names[b]}.position: bodies {model.names[a]!r} and {model.names[b]!r} overlap "
                f"by {-gap:.6g} m at the start; move them apart by that much"
            )


def _overlaps(solver: AnyStepper, state: State) -> Iterator[tuple[Pair, float]]:
    """Pairs that may overlap, and their gaps."""
    if isinstance(solver, ApproximateStepper):
        yield from ((solver.model.pairs[c], gap) for c, gap in solver.overlaps(state))
        return
    for i in solver.broad.overlapping(state, OVERLAP):
        pair = solver.model.pairs[i]
        a, b = (solver.model.placed(state, piece) for piece in pair.pieces)
        yield pair, closest(a, b).points.gap
