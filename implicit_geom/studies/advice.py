"""`advise`: the cheapest stepper and step that keep energy and position within a tolerance [C07, section VI].

Short trials on the first part of the motion, each stepper from the longest step down until it is good
enough. What is good enough in a part need not be in the whole: errors are carried over in proportion to
the time (of the position: to its square, while the path grows with it), and no event after the trial is
seen. `trial=1.0` runs all of it.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.errors import CallError, SceneError, SimulationError
from implicit_geom.interface.progress import Progress, part, reporting
from implicit_geom.run.simulate import simulate
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.options import SimulationOptions, positive
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import scene_of
from implicit_geom.scene.switches import NAMED, Stepper
from implicit_geom.studies.comparison import chosen_steppers
from implicit_geom.studies.reference_run import FINER, Reference, best_run

LADDER = (8, 4, 2, 1, 1 / 2, 1 / 4, 1 / 8)  # of the scene's step, the longest first
ALIKE = 1.25  # times that differ by less are equal: clocks are not better, iterations then decide
# beside the named ones: smooth surfaces with a classical step, and many facets
COMPOSED = (
    Stepper(gap="linearised", wrench="start"),
    Stepper(gap="linearised", wrench="start", friction="pyramid"),
    Stepper.named("stewart-trinkle", facets=512),
)


@dataclass(frozen=True)
class Trial:
    """One stepper at one step: relative errors carried over to the whole duration, and what it costs.

    step             s
    energy_error     over the energy at hand
    position_error   over the path of the body that goes farthest (or the largest body's size)
    cost             wall time for a second of motion, s; iterations likewise
    reason           why it failed, "" where it did not
    """

    stepper: Stepper
    step: float
    energy_error: float = np.nan
    position_error: float = np.nan
    cost: float = np.nan
    iterations: float = np.nan
    reason: str = ""

    @property
    def error(self) -> float:
        """The larger of the two errors; NaN of a run that failed."""
        return max(self.energy_error, self.position_error) if not self.reason else np.nan


@dataclass(frozen=True)
class Advice:
    """What the trials say: `advice.choice` is the trial to follow, None where none meets the tolerance.

    trials       in the order in which they were made: stepper, step, errors and cost
    tolerance    that was asked for
    duration     of the whole motion, s
    trial_time   the part of it that was run, s
    reference    what the errors were measured against
    left_out     steppers that do not suit the scene

    >>> advice = advise(scene, duration=0.4, step=0.01, tolerance=1e-2, steppers=["implicit-rattle"])
    >>> best = advice.choice
    >>> simulate(scene, duration=0.4, step=best.step, stepper=best.stepper)
    <Trajectory of 'ground', 'egg': 0.4 s in ... steps, implicit-rattle, ... converged>
    """

    trials: tuple[Trial, ...]
    tolerance: float
    duration: float
    trial_time: float
    reference: Reference
    left_out: tuple[str, ...] = ()  # steppers that do not suit the scene

    @property
    def uncertainty(self) -> float:
        """Of the reference, relative and carried over like the errors."""
        own = max(self.reference.energy_error, self.reference.position_error / self.reference.length)
        return own * self.duration / self.trial_time

    def meets(self, trial: Trial) -> bool:
        """Whether the error and what the reference is uncertain by stay within the tolerance together."""
        return trial.error + self.uncertainty <= self.tolerance

    @property
    def choice(self) -> Trial | None:
        """The cheapest trial that meets the tolerance; among equally cheap ones that of fewest iterations."""
        good = [t for t in self.trials if self.meets(t)]
        if not good:
            return None
        limit = ALIKE * min(t.cost for t in good)
        return min((t for t in good if t.cost <= limit), key=lambda t: (t.iterations, t.cost))

    @property
    def table(self) -> dict[str, np.ndarray]:
        """Columns, one row a trial: stepper, `meets`, and the fields of a trial."""
        names = ("step", "energy_error", "position_error", "cost", "iterations", "reason")
        columns = {"stepper": np.array([str(t.stepper) for t in self.trials])}
        columns |= {name: np.array([getattr(t, name) for t in self.trials]) for name in names}
        return columns | {"meets": np.array([self.meets(t) for t in self.trials])}

    def __repr__(self) -> str:
        best = self.choice
        told = "none meets it" if best is None else f"{best.stepper}, step = {best.step:g} s"
        return f"<Advice for tolerance {self.tolerance:g} of {len(self.trials)} trials: {told}>"

    def __str__(self) -> str:
        width = max(len(str(t.stepper)) for t in self.trials) + 2
        lines = [
            f"{'stepper':{width}}{'step, s':>10}{'energy error':>14}{'position error':>16}{'cost, s/s':>12}"
        ]
        for t in self.trials:
            verdict = t.reason or ("meets it" if self.meets(t) else "")
            lines.append(
                f"{t.stepper!s:{width}}{t.step:10.4g}{t.energy_error:14.2g}{t.position_error:16.2g}"
                f"{t.cost:12.2g}  {verdict}"
            )
        lines.append(f"reference: {self.reference.words}, relative uncertainty {self.uncertainty:.2g}")
        if self.trial_time < self.duration:
            lines.append(
                f"judged on the first {self.trial_time:g} s of {self.duration:g} s: errors are carried over, "
                "later events are not seen"
            )
            if not len(self.reference.run.contacts):
                lines.append("nothing touched in that time: give a larger trial (1.0 for all of the motion)")
        if self.left_out:
            lines.append(f"left out, as they do not suit the scene: {', '.join(self.left_out)}")
        best = self.choice
        if best is None and self.uncertainty > self.tolerance:
            lines.append(
                f"no trial can be judged to {self.tolerance:g}: the reference itself is uncertain by more; "
                "take a smaller step, or a larger tolerance"
            )
        elif best is None:
            lines.append(f"no trial meets the tolerance {self.tolerance:g}: take a smaller step")
        else:
            lines.append(f"advice: {best.stepper}, step = {best.step:g} s, for tolerance {self.tolerance:g}")
        return "\n".join(lines)


@checked_call(CallError, within=nullcontext)
def advise(
    scene: Scene | str | Path,
    *,
    duration: float | None = None,
    step: float | None = None,
    tolerance: float = 1e-3,
    trial: float = 0.25,
    steppers: Any = None,
    progress: Progress = None,
) -> Advice:
    """Find the cheapest stepper and step, from 8 to 1/8 of `step`, that meet a tolerance.

    scene       a Scene, or a scene file, whose duration and step then need not be given
    duration    s
    step        s
    tolerance   on the energy error over the energy at hand and the position error over the path, largest on
                the way
    trial       the share of the duration that is run; what happens later is not seen
    steppers    as in `compare`; the named ones and some composed ones if left out
    progress    as in `simulate`

    Returns an Advice, which prints as a table. SceneError for bad input.

    >>> advice = advise(scene, duration=0.4, step=0.01, tolerance=1e-2, steppers=["implicit-rattle"])
    >>> print(advice)
    stepper             step, s  energy error  position error   cost, s/s
    ...
    advice: implicit-rattle, step = ... s, for tolerance 0.01
    """
    tolerance, share = positive("tolerance", tolerance), positive("trial", trial)
    if tolerance >= 1:
        raise SceneError(f"tolerance = {tolerance:g} must be below 1: errors are relative")
    if share > 1:
        raise SceneError(f"trial = {share:g} must not be above 1, the whole duration")
    scene, given = scene_of(scene, {"duration": duration, "step": step})
    options = SimulationOptions(given.get("duration"), given.get("step"))  # type: ignore[arg-type]
    default = steppers is None
    chosen, left_out = chosen_steppers(scene, [*NAMED, *COMPOSED] if default else steppers, default)
    block = LADDER[0] * options.step
    time = min(math.ceil(share * options.duration / block - 1e-9) * block, options.duration)
    ladder = [factor * options.step for factor in LADDER if factor * options.step <= time]
    # at 1/2 and 1/4 of the shortest step that is tried, so that all its times are there
    coarsest = 4 * LADDER[-1] * options.step
    before, steps = 3 * FINER * math.ceil(time / coarsest), [math.ceil(time / h) for h in ladder]
    with reporting(progress, before + len(chosen) * sum(steps)) as done:
        reference = best_run(scene, duration=time, step=coarsest, progress=part(done, 0, before))
        found = Advice((), tolerance, options.duration, time, reference, tuple(left_out))
        trials: list[Trial] = []
        for stepper in chosen.values():
            first = before
            before += sum(steps)
            for h, count in zip(ladder, steps):
                trials.append(_try(scene, stepper, h, found, part(done, first, count)))
                first += count
                if found.meets(trials[-1]):
                    break
            done(before)
    return replace(found, trials=tuple(trials))


def _try(scene: Scene, stepper: Stepper, h: float, asked: Advice, progress: Progress) -> Trial:
    """One trial; one that is good enough is timed a second time, without what the first had to set up."""
    try:
        run = _simulate(scene, stepper, h, asked.trial_time, progress)
    except (SceneError, SimulationError) as error:
        return Trial(stepper, h, reason=str(error))
    if run.failed:
        return Trial(stepper, h, reason=run.failure)
    errors, carried = asked.reference.errors(run), asked.duration / asked.trial_time
    energy = float(errors.energy.max()) * carried
    position = float(errors.position.max()) / asked.reference.length * carried
    iterations = float(run.taken["iterations"].sum()) / asked.trial_time
    found = Trial(stepper, h, energy, position, _cost(run), iterations)
    if not asked.meets(found):
        return found
    again = _cost(_simulate(scene, stepper, h, asked.trial_time, False))
    return Trial(stepper, h, energy, position, min(found.cost, again), iterations)


def _simulate(scene: Scene, stepper: Stepper, h: float, time: float, progress: Progress) -> Trajectory:
    return simulate(scene, duration=time, step=h, stepper=stepper, on_failure="record", progress=progress)


def _cost(run: Trajectory) -> float:
    return float(run.taken["wall_time"].sum() / (run.time[-1] - run.time[0]))
