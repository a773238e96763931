"""The best run of a scene that can be had, how good it is by its own account, and distances from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.interface.progress import Progress, part, reporting
from implicit_geom.run.simulate import simulate
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.scene import Scene
from implicit_geom.studies.sweeps.summaries import energy_scale

STEPPERS = ("implicit-rattle-4", "implicit-rattle", "implicit-euler")  # the best first
FINER = 8  # the coarser of the two runs has this many steps in one of the steps that are judged
SAME_TIME = 1e-9  # of the duration


@dataclass(frozen=True)
class Errors:
    """Distance of a run from a reference at each of its times.

    energy    (T+1,) |E - E_ref| over the energy at hand in the reference. Within a step of an impact of the
              reference its energy counts as all values it takes within a step: the distance from a graph
              with its jumps filled, to which an impact that comes a step late or takes two is no error
    position  (T+1,) m, of the body that is farthest off
    """

    time: np.ndarray
    energy: np.ndarray
    position: np.ndarray

    def until(self, time: float) -> Errors:
        """The part up to a time."""
        kept = self.time <= time * (1 + SAME_TIME)
        return Errors(self.time[kept], self.energy[kept], self.position[kept])


@dataclass(frozen=True)
class Reference:
    """A run to be measured against.

    words            what it is
    energy_error,
    position_error   what it is itself uncertain by, at most: its distance from the same run with steps of
                     twice the length (an order-p error of the finer run is that over 2^p - 1); NaN of a
                     run that was given
    energy, length   the energy at hand, J, and the path of the body that goes farthest, but not less than
                     the largest body's size, m: relative errors are over these
    """

    run: Trajectory
    words: str
    energy_error: float = np.nan
    position_error: float = np.nan

    @property
    def energy(self) -> float:
        return energy_scale(self.run) or 1.0

    @property
    def length(self) -> float:
        bodies = [b for b in self.run.scene.bodies.values() if not b.fixed]
        moved = [np.linalg.norm(np.diff(self.run[b.name].position, axis=0), axis=1).sum() for b in bodies]
        return float(max(*moved, *(b.shape.size for b in bodies)))

    def errors(self, run: Trajectory) -> Errors:
        """How far a run is from this one, up to the last step it took."""
        rows = self._rows(run.time)
        energy = np.abs(run.energy - self.run.energy[rows]) / self.energy
        for k in self._jumps(run):
            low, high = rows[max(k - 1, 0)], rows[min(k + 1, len(rows) - 1)]
            jump, here = self.run.energy[low : high + 1], run.energy[k]
            energy[k] = max(np.min(jump) - here, here - np.max(jump), 0.0) / self.energy
        position = np.zeros(len(rows))
        for name, body in run.scene.bodies.items():
            if not body.fixed:
                apart = run[name].position - self.run[name].position[rows]
                position = np.maximum(position, np.linalg.norm(apart, axis=1))
        return Errors(run.time, energy, position)

    def _jumps(self, run: Trajectory) -> list[int]:
        """The rows of a run that are within a step of an impact of the reference."""
        solves = self.run.solves
        hits = np.unique(solves.table["step"][solves.contacts["solve"][solves.contacts["impact"]]])
        near = np.searchsorted(run.time, self.run.time[hits + 1])
        rows = np.unique(np.concatenate([near - 1, near, near + 1]))
        return [int(k) for k in rows if 0 <= k < len(run.time)]

    def _rows(self, time: np.ndarray) -> np.ndarray:
        mine = self.run.time
        rows = np.clip(np.searchsorted(mine, time), 1, len(mine) - 1)
        rows -= np.abs(mine[rows - 1] - time) < np.abs(mine[rows] - time)
        missed = np.abs(mine[rows] - time) > SAME_TIME * max(time[-1], mine[-1])
        if np.any(missed):
            raise SceneError(
                f"reference: has no state at t = {time[missed][0]:.9g} s; its step must divide the others', "
                "and it must last as long"
            )
        return rows


def best_run(
    scene: Scene, *, duration: float, step: float, progress: Progress = False, **options: Any
) -> Reference:
    """The scene at step / 16 by the best stepper that takes it there, checked against step / 8.

    Where contacts close, open or begin to slide every stepper is of first order in the instant, so that
    the two runs may differ by much more than between events: the difference is what is known.
    """
    reasons = []
    steps = math.ceil(duration / step)
    with reporting(progress, 3 * FINER * steps) as done:
        for stepper in STEPPERS:
            runs = [
                simulate(
                    scene,
                    duration=duration,
                    step=step / finer,
                    stepper=stepper,
                    on_failure="record",
                    progress=part(done, (finer - FINER) * steps, finer * steps),
                    **options,
                )
                for finer in (FINER, 2 * FINER)
            ]
            if not any(run.failed for run in runs):
                coarse, fine = runs
                apart = Reference(fine, "").errors(coarse)
                words = f"{stepper} at h = {step / (2 * FINER):.6g} s"
                return Reference(fine, words, float(apart.energy.max()), float(apart.position.max()))
            reasons += [f"{stepper}: {run.failure}" for run in runs if run.failed][:1]
    raise SimulationError(f"no stepper gives a reference: {'; '.join(reasons)}; give a run of your own")


def given_run(scene: Scene, reference: Any) -> Reference:
    """A run of the user's, of the same bodies."""
    if not isinstance(reference, Trajectory):
        raise SceneError(f"reference = {reference!r} must be a run, such as Trajectory.load(...) gives")
    moving = {name for name, body in scene.bodies.items() if not body.fixed}
    if reference.failed or not moving <= set(reference.names):
        raise SceneError("reference: must be a run of the same bodies that has reached its end")
    return Reference(reference, f"the run given, {reference.options.stepper}")
