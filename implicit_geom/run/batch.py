"""`simulate_batch`: one scene with many values, in SIMD lanes and threads.

Scenes that take the same course through the equations share the lanes of a processor's vectors. A lane
that needs more than an ordinary step (an impact with restitution, a contact that jumps) takes that
step alone and joins others afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.progress import Progress, reporting
from implicit_geom.interface.words import shown
from implicit_geom.model.solve_arrays import PARTS
from implicit_geom.process.lazy import cached_property
from implicit_geom.run.body_motion import BodyMotion
from implicit_geom.run.initial_state import check_room
from implicit_geom.run.rows.lanes import Lane, started_lanes
from implicit_geom.run.rows.native_march import march_all
from implicit_geom.run.rows.scenes import Scenes
from implicit_geom.scene.notices import friction_missing
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.switches import Stepper

PAUSE = 0.1  # s between two reports of progress: counting thousands of scenes takes time
NAMED = 3  # failures that `summary` names
FREE = 1e-9  # relative: a change of velocity this close to that of free flight is free flight's


class Batch:
    """Many runs as one set of arrays: `batch["egg"].position` is (scenes, T+1, dim).

    time         (T+1,) s
    status       (scenes,) "done" or "failed"; bodies of a failed scene are at NaN after its last good step
    failures     the reasons, by number of the scene
    solved       (scenes,) steps that were taken outside the compiled code
    wall_time    time that all steps took, without the set-up, s
    total_time   of the whole call of `simulate_batch` by the wall clock, set-up included, s
    notices      what was said of the scene
    scenes       one for each row of the values

    >>> batch = simulate_batch(scene, {"friction.mu": [0.2, 0.4]}, duration=0.1, step=0.01)
    >>> batch.status.tolist(), batch.energy.shape
    (['done', 'done'], (2, 11))
    >>> print(batch.summary())
    rows        2, 0 failed
    ...
    """

    def __init__(
        self,
        scenes: Sequence[Scene],
        options: SimulationOptions,
        lanes: list[Lane],
        wall_time: float,
        total_time: float,
    ) -> None:
        self.scenes, self.options, self.wall_time, self.total_time = scenes, options, wall_time, total_time
        self.notices: list[str] = []
        count = len(options.step_lengths())
        self.time = np.minimum(np.arange(count + 1) * options.step, options.duration)
        self.failures = {i: lane.failure for i, lane in enumerate(lanes) if lane.failure}
        self.status = np.array(["failed" if i in self.failures else "done" for i in range(len(lanes))])
        self.solved = np.array([lane.alone for lane in lanes])
        self._parts = lanes[0].shared

    def __len__(self) -> int:
        return len(self.scenes)

    def __repr__(self) -> str:
        return (
            f"<Batch of {len(self)} rows, {len(self.failures)} failed: {self._counts()}, {self._seconds()}>"
        )

    def summary(self) -> str:
        """A few lines of text: rows, steps, failures, time taken."""
        lines = [
            f"rows        {len(self)}, {len(self.failures)} failed",
            f"steps       {self._counts()}",
            f"stepper     {self.options.stepper}",
            f"wall time   {self._seconds()}",
            *(f"notice      {text}" for text in self.notices),
            *(f"FAILED      row {i}: {text}" for i, text in list(self.failures.items())[:NAMED]),
        ]
        more = len(self.failures) - NAMED
        return "\n".join([*lines, f"FAILED      {more} more, see batch.failures"] if more > 0 else lines)

    def _counts(self) -> str:
        each, left = len(self.time) - 1, int(self.solved.sum())
        rows = f" in {int(np.sum(self.solved > 0))} rows" if left else ""
        return f"{each} steps a row, {left} of {each * len(self)} left machine code{rows}"

    def _seconds(self) -> str:
        return f"{self.total_time:.3g} s in all, {self.wall_time:.3g} s for the steps"

    @property
    def names(self) -> list[str]:
        """The bodies in the order in which they were added."""
        return list(self.scenes[0].bodies)

    def __getitem__(self, name: str) -> BodyMotion:
        """The motions of a body by its name, (scenes, T+1, ...); SceneError where there is no such body."""
        self.scenes[0].require(name, "batch")
        i = self.names.index(name)
        x, q, v, w = (self._parts[part][:, :, i] for part in PARTS)
        return BodyMotion(x, q, v, w if self.scenes[0].dim == 3 else w[..., 0], name)

    def _ipython_key_completions_(self) -> list[str]:
        return self.names

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        """Of all bodies, (scenes, T+1) J."""
        total = np.zeros(self._parts["x"].shape[:2])
        for i, name in enumerate(self.names):
            if self.scenes[0].bodies[name].fixed:
                continue
            mass = np.array([s.bodies[name].mass for s in self.scenes])
            J = np.array([s.bodies[name].inertia for s in self.scenes])
            v, w = self._parts["v"][:, :, i], self._parts["w"][:, :, i]
            if self.scenes[0].dim == 3:
                w = np.einsum("stji,stj->sti", rotation.matrix(self._parts["q"][:, :, i]), w)  # body axes
            total += np.einsum("s,sti,sti->st", mass, v, v) / 2 + np.einsum("sti,sij,stj->st", w, J, w) / 2
        return total

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """Of gravity, (scenes, T+1) J, zero at the world's origin."""
        total = np.zeros(self._parts["x"].shape[:2])
        gravity = np.array([s.gravity for s in self.scenes])
        for i, name in enumerate(self.names):
            if not self.scenes[0].bodies[name].fixed:
                mass = np.array([s.bodies[name].mass for s in self.scenes])
                total -= np.einsum("s,sd,std->st", mass, gravity, self._parts["x"][:, :, i])
        return total

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy, (scenes, T+1) J."""
        return self.kinetic_energy + self.potential_energy


@checked_call(CallError)
def simulate_batch(
    scene: Scene,
    values: Mapping[str, Any],
    *,
    duration: float,
    step: float,
    stepper: str | Stepper = "implicit-rattle",
    friction_residual: str = "projection",
    tolerance: float = 1e-10,
    energy_guard: float = 1e-3,
    impact_law: str = "newton",
    max_impacts: int = 12,
    impacts: str | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Batch:
    """Simulate a scene once for every row of `values`, in SIMD lanes and threads.

    scene      a Scene without loads that are functions of time
    values     arrays of one length by the names of a scene file's fields: "bodies.egg.shape.a",
               "bodies.egg.mass", "bodies.egg.velocity", "friction.mu", "gravity"; an inertia that follows
               from shape and mass follows the new ones
    threads    as many as there are processors if left out

    The other options are those of `simulate`. Returns a Batch, each row bit for bit what `simulate` gives.
    Nothing is compiled again when a value changes. A scene that cannot be solved to its end is marked in
    `batch.status`; the others are not touched by it. SceneError for bad input names the row.

    >>> batch = simulate_batch(scene, {"bodies.egg.shape.c": [0.28, 0.29, 0.3]}, duration=0.5, step=0.01)
    >>> batch["egg"].position[:, -1, 2].round(3)
    array([0.28, 0.29, 0.3 ])
    """
    given = (duration, step, stepper, friction_residual, tolerance, "record", energy_guard)
    options = SimulationOptions(*given, impact_law=impact_law, max_impacts=max_impacts, impacts=impacts)
    options.check_step()
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise SceneError(f"threads = {shown(threads)} must be a whole number above zero")
    started = time.perf_counter()
    scenes = Scenes(scene, values)
    check_room(len(scenes), len(scene.bodies), options)
    lanes = started_lanes(scenes, options)
    wall_time = run_to_end(lanes, options, threads or os.cpu_count() or 1, progress)
    batch = Batch(scenes, options, lanes, wall_time, time.perf_counter() - started)
    said = scene.friction_given or any(path.startswith("friction.") for path in values)
    if not said and _touched(lanes, options.step):
        batch.notices = [friction_missing(scene)]
    return batch


def _touched(lanes: list[Lane], h: float) -> bool:
    """Whether any contact has closed: a body that nothing touches gains h times its load in each step."""
    for lane in lanes:
        model, done = lane.model, slice(0, min(lane.taken, lane.full) + 1)
        for b in model.moving.tolist():
            v = lane.shared["v"][lane.number, done, b]
            free = h * model.loads(0.0)[b, : model.dim] / model.mass[b]
            gained = np.linalg.norm(np.diff(v, axis=0) - free, axis=1)
            if np.any(gained > FREE * (np.linalg.norm(v[1:], axis=1) + np.linalg.norm(free))):
                return True
    return False


def run_to_end(
    lanes: list[Lane], options: SimulationOptions, threads: int, progress: Progress, pause: float = PAUSE
) -> float:
    """Take all lanes to their ends, with reports of progress at least `pause` apart; the time it took, s."""
    from implicit_geom.machine.availability import available

    total = sum(len(lane.lengths) for lane in lanes)
    with reporting(progress, total) as done:
        due = 0.0

        def told() -> None:
            nonlocal due
            if time.perf_counter() >= due:
                done(sum(lane.over for lane in lanes))
                due = time.perf_counter() + pause

        started = time.perf_counter()
        if available() and lanes and lanes[0].native is not None:
            march_all(lanes, threads, PAUSE, told)
            wall_time = time.perf_counter() - started
        elif available():
            from implicit_geom.compiled.lanes import run_lanes

            wall_time = run_lanes(lanes, options, threads, told)
        else:
            for lane in lanes:
                while not lane.finished:
                    lane.step()
                    told()
            wall_time = time.perf_counter() - started
        for lane in lanes:
            lane.close()
        done(total)
    return wall_time
