"""The march through time: the loop over steps, in machine code and by the stepper, and what it keeps."""

from __future__ import annotations

import copy
import time as clock
from typing import Any, Generic, TypeVar

import numpy as np

from implicit_geom.compiled.eligibility import why_not_compiled
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.progress import Progress, reporting
from implicit_geom.interface.words import shown
from implicit_geom.machine.availability import available
from implicit_geom.model.model import Model
from implicit_geom.model.reasons import SHORTER, STRUCK, WORDS
from implicit_geom.model.records import Attempt
from implicit_geom.model.solve_arrays import SolveArrays
from implicit_geom.process.signals import HELD
from implicit_geom.process.threads import paused
from implicit_geom.run.initial_state import check_overlap, check_scales
from implicit_geom.run.make_stepper import AnyStepper, make_stepper, native_runner
from implicit_geom.run.record.call_account import Call
from implicit_geom.run.record.recorder import Recorder
from implicit_geom.run.record.solve_log import SolveLog
from implicit_geom.run.record.step_log import StepLog
from implicit_geom.run.recorded_run import RecordedRun
from implicit_geom.run.storage.replay import replay_record
from implicit_geom.run.storage.solver_state import Memory, restore
from implicit_geom.run.storage.step_failed import StepFailed
from implicit_geom.scene.notices import friction_missing
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene
from implicit_geom.steppers.events.stepper import EventStepper

R = TypeVar("R", bound=RecordedRun)


def march(
    make: type[R],
    scene: Scene | None,
    options: SimulationOptions,
    progress: Progress,
    resume: RecordedRun | None,
    started: float | None = None,
) -> R:
    """A scene stepped through time, or a run continued; the result is made by `make`."""
    started = clock.perf_counter() if started is None else started
    if resume is None:
        options.check_step()
    scene = _scene(scene, resume)
    model = Model(scene, options.friction_residual)
    solver = make_stepper(model, options)
    if resume is None:
        state = model.initial_state()
        check_scales(model, state, options.step)
        check_overlap(solver, state)
    else:
        restore(solver, resume.memory)
    return March(scene, model, solver, options, resume, started, make).run(progress)


class March(Generic[R]):
    """The loop over steps and what has to be kept when it ends early."""

    def __init__(
        self,
        scene: Scene,
        model: Model,
        solver: AnyStepper,
        options: SimulationOptions,
        resume: RecordedRun | None,
        started: float,
        make: type[R],
    ) -> None:
        self.make = make
        self.scene, self.model, self.solver, self.options = scene, model, solver, options
        self.state = model.initial_state() if resume is None else resume.final
        self.initial = self.state if resume is None else resume.initial
        self.calls = [] if resume is None else list(resume.calls)
        self.elapsed = 0.0 if resume is None else float(resume.time[-1] - resume.time[0])
        self.base, self.equal = (self.state.time, 0) if resume is None else resume.clock(options.step)
        taken = sum(call.steps for call in self.calls)
        self.call = Call(str(options.stepper), taken + 1)
        self.recorder = Recorder(
            model,
            self.call,
            SolveLog(SolveArrays.empty(self.state)) if resume is None else resume.log,
            StepLog() if resume is None else _earlier(resume, scene, options),
            taken=taken,
            every=options.record,
            start=self.state,
            stepper=options.switches,
            reopen=resume is not None and resume.options.record == options.record,
        )
        self.runner, self.unsuited = _runner(model, solver, options)
        if self.runner is not None and resume is None:
            self.runner.begin(self.state)
        self.memory = Memory(solver)
        self.started = started
        self.contacts = 0  # closed in the last step

    def run(self, progress: Progress) -> R:
        lengths = self.options.step_lengths()
        # times are multiples of the step, not sums of steps
        base, count = self.base, self.equal
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
                        done(k, self._told)
            except KeyboardInterrupt as interrupt:
                with HELD:
                    interrupt.run = self._trajectory("interrupted")  # type: ignore[attr-defined]
                raise
            finally:
                if self.runner is not None:
                    self.runner.release()
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
                self._count(self.options.step, float(ends[len(steps) - 1]), len(steps))
                self.state = state
                self.contacts = int(steps["contacts"][-1])
                self.memory = Memory(self.solver)
            self._touched(bool(np.any(solves.contacts["p_n"] > 0)))
        return len(steps)

    def _told(self) -> str:
        """Where the run is: simulated time, that over the time it took, closed contacts."""
        taken = max(clock.perf_counter() - self.started, 1e-9)
        rate = (self.state.time - self.initial.time - self.elapsed) / taken
        return f"t = {self.state.time:.4g} s, {rate:.3g} x real time, {self.contacts} contacts"

    def _count(self, h: float, end: float, steps: int = 1) -> None:
        """Equal steps are counted; a shorter one starts the count anew."""
        self.base, self.equal = (self.base, self.equal + steps) if h == self.options.step else (end, 0)

    def _touched(self, touching: bool) -> None:
        """Bodies that touch without a word on their friction."""
        if touching and not self.call.notices and (notice := friction_missing(self.scene)):
            self.call.notices.append(notice)

    def _step(self, h: float, end: float) -> str:
        """Take one step; the reason where it failed and failures are to be recorded."""
        self.memory = Memory(self.solver)
        left = self.unsuited
        if self.runner is not None:
            left = self.runner.why if h == self.options.step else SHORTER
            self.runner.invalidate()
            if left in [WORDS[reason] for reason in STRUCK] and isinstance(self.solver, EventStepper):
                self.solver.struck = True
        started = clock.perf_counter()
        attempt = self.solver.step(self.state, h)
        wall_time = clock.perf_counter() - started
        if attempt.reason or not attempt.solves:
            return self._fail(attempt, h, end, wall_time)
        with HELD:
            self.recorder.add(attempt, end, h, wall_time, left)
            self._count(h, end)
            self.state = attempt.solves[-1].end.at_time(end)
            self.contacts = len({c.pair for c in attempt.solves[-1].contacts})
            if self.runner is not None:
                self.runner.begin(self.state)
            self.memory = Memory(self.solver)
        self._touched(any(c.p_n > 0 for solve in attempt.solves for c in solve.contacts))
        return ""

    def _fail(self, attempt: Attempt, h: float, end: float, wall_time: float) -> str:
        reason = attempt.reason or "the stepper gave no solution"
        iterations = sum(len(history) for history in attempt.history)
        self.recorder.add_failed(end, h, iterations, wall_time, reason)
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

    def _trajectory(self, failure: str) -> R:
        solves, steps = self.recorder.finish()
        total = self.elapsed + self.options.duration
        options = SimulationOptions(**{**self.options.as_dict(), "duration": total})
        memory = self.memory.plain()
        self.call.clock = [self.base, self.equal]
        self.call.total_time = clock.perf_counter() - self.started
        calls = [*self.calls, self.call]
        return self.make(self.scene, options, self.initial, solves, steps, memory, failure, calls=calls)


def _earlier(resume: RecordedRun, scene: Scene, options: SimulationOptions) -> StepLog:
    """The steps of the run to be continued, without one that failed.

    Residuals and energies are those of its own scene and stepper, and of all its steps: they are computed
    before anything changes.
    """
    same = scene is resume.scene and options.stepper == resume.options.stepper
    if not same or options.record > 1:
        resume.assess()
    log = resume.taken.copy()
    if len(log) and log["status"][-1] == "failed":
        log.pop()
    return log


def _runner(model: Model, solver: AnyStepper, options: SimulationOptions) -> tuple[Any, str]:
    """The march in machine code, where it can be had and suits the scene; otherwise why there is none.

    Scenes of several bodies go to the native engine; one body by itself has code of its own between events.
    """
    native = native_runner(model, solver, options.step)
    if native is not None:
        return native, ""
    reason = why_not_compiled(model, options)
    if not reason and not available():
        reason = "not compiled: switched off, or llvmlite is missing"
    if reason:
        return None, reason
    from implicit_geom.compiled.runner import Runner  # (it needs llvmlite)

    return Runner(model, solver, options), ""


def _scene(scene: Scene | None, resume: RecordedRun | None) -> Scene:
    """A copy of the scene, so that later changes to it leave the run alone."""
    if resume is not None and not isinstance(resume, RecordedRun):
        raise SceneError(
            f"resume = {type(resume).__name__} must be a run, such as Trajectory.load(...) gives"
        )
    if resume is not None:
        if scene is None:
            return resume.scene
        check_same_bodies(scene, resume.scene)
    if not isinstance(scene, Scene):
        raise SceneError(f"scene = {shown(scene)} must be a Scene; read a scene file with read_scene(path)")
    twin = copy.copy(scene)
    # (lists first: another thread may be adding to the scene; a body is there before anything about it is)
    twin._applied = dict(scene._applied)
    twin._pair_friction = {pair: dict(law) for pair, law in list(scene._pair_friction.items())}
    twin.bodies = dict(scene.bodies)
    return twin


def check_same_bodies(scene: Any, before: Scene) -> None:
    """A run is continued, or checked, with the bodies it was started with."""
    if not isinstance(scene, Scene):
        raise SceneError(f"scene = {shown(scene)} must be a Scene; read a scene file with read_scene(path)")
    now, then = list(scene.bodies.values()), list(before.bodies.values())
    same = scene.dim == before.dim and [b.name for b in now] == [b.name for b in then]
    same = same and all(
        a.shape == b.shape and a.mass == b.mass and np.array_equal(a.inertia, b.inertia)
        for a, b in zip(now, then)
    )
    if not same:
        raise SceneError("scene: the run has other bodies; pass the scene it was started with")
