"""`compare`: the same scene under several steppers, each measured against the best run there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.interface.progress import Progress, part, reporting
from implicit_geom.model.model import Model
from implicit_geom.run.make_stepper import make_stepper
from implicit_geom.run.simulate import simulate
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.options import SimulationOptions, positive
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import scene_of
from implicit_geom.scene.switches import NAMED, Stepper
from implicit_geom.studies.compared_runs import Compared, ComparedRuns, combinations
from implicit_geom.studies.comparison_figures import write
from implicit_geom.studies.reference_run import FINER, Reference, best_run, given_run


class Comparison(ComparedRuns):
    """Runs of one scene by stepper: `comparison.table["energy_error"]`, `print(comparison)`.

    found       the steppers by label, each with its run
    reference   what they are measured against, with its own uncertainty
    step        s
    left_out    named steppers that do not suit the scene, and why

    >>> comparison = compare(scene, duration=0.1, step=0.01, steppers=["implicit-rattle", "stewart-trinkle"])
    >>> comparison
    <Comparison at step 0.01 s of 2 steppers, 2 finished: implicit-rattle, stewart-trinkle>
    >>> comparison.table["energy_error"].shape
    (2,)
    """

    def save(self, folder: str | Path) -> list[Path]:
        """Write comparison.csv and comparison.png to a folder, and attribution.csv of all sixteen.

        folder   is made where there is none

        The paths that were written.
        """
        return write(self, Path(folder))


def compare(
    scene: Scene | str | Path,
    *,
    duration: float | None = None,
    step: float | None = None,
    steppers: Any = None,
    reference: Trajectory | None = None,
    progress: Progress = None,
    **options: Any,
) -> Comparison:
    """Run a scene under several steppers and measure each against the best run there is.

    scene      a Scene, or a scene file, whose duration and step then need not be given
    duration   s
    step       s
    steppers   names or `Stepper`s, or {label: stepper}; every named one if left out; "all" for the sixteen
               combinations of the switches
    reference  a run to measure against, whose step divides `step`; otherwise the best implicit stepper
               that takes the scene, at a sixteenth of it
    progress   as in `simulate`
    options    tolerance and friction_residual of `simulate`

    Returns a Comparison. A stepper that fails, or refuses the scene, is a row that says so. SceneError where
    none takes it.

    >>> comparison = compare(scene, duration=0.1, step=0.01, steppers=["implicit-rattle", "stewart-trinkle"])
    >>> print(comparison)
    stepper            energy error  position error  penetration  time a step  failed
    ...
    >>> len(compare(scene, duration=0.1, step=0.01, steppers="all"))
    16
    """
    scene, options = scene_of(scene, {**options, "duration": duration, "step": step})
    chosen, left_out = chosen_steppers(scene, list(NAMED) if steppers is None else steppers, steppers is None)
    # (the steppers differ in these; impacts as events are not every stepper's)
    for name in ("stepper", "on_failure", "energy_guard", "impacts", "impact_law", "max_impacts"):
        options.pop(name, None)
    duration, h = (positive(name, options.get(name)) for name in ("duration", "step"))
    steps = len(SimulationOptions(duration, h).step_lengths())
    before = 3 * FINER * steps if reference is None else 0
    with reporting(progress, before + len(chosen) * steps) as done:
        if reference is None:
            against = best_run(scene, **options, progress=part(done, 0, before))
        else:
            against = given_run(scene, reference)
        found = []
        for first, (name, stepper) in enumerate(chosen.items()):
            told = part(done, before + first * steps, steps)
            found.append(_run(scene, name, stepper, against, {**options, "progress": told}))
            told(1.0)
    return Comparison(found, against, h, left_out)


def _run(scene: Scene, name: str, stepper: Stepper, against: Reference, options: dict[str, Any]) -> Compared:
    try:
        run = simulate(scene, **options, stepper=stepper, on_failure="record")
    except (SceneError, SimulationError) as error:  # of this stepper: the reference has taken the scene
        return Compared(name, stepper, None, None, str(error))
    return Compared(name, stepper, run, against.errors(run), run.failure)


def chosen_steppers(scene: Scene, steppers: Any, suiting: bool) -> tuple[dict[str, Stepper], dict[str, str]]:
    """Steppers by label, from what `compare` takes, and which were left out, and why.

    Where only those `suiting` the scene are wanted the others are left out; where none suits it is refused.
    """
    if isinstance(steppers, str):
        steppers = combinations() if steppers == "all" else [steppers]
    if not isinstance(steppers, Mapping):
        made = [Stepper.of(given) for given in steppers]
        steppers = {str(stepper): stepper for stepper in made}
    if not steppers:
        raise SceneError("steppers must name at least one, such as ['implicit-euler']")
    chosen = {str(name): Stepper.of(given) for name, given in steppers.items()}
    refused = {name: why for name, stepper in chosen.items() if (why := _refused(scene, stepper))}
    if len(refused) == len(chosen):
        raise SceneError(next(iter(refused.values())))
    if not suiting:
        return chosen, {}
    return {name: stepper for name, stepper in chosen.items() if name not in refused}, refused


def _refused(scene: Scene, stepper: Stepper) -> str:
    """Why a stepper does not take the scene; empty where it does."""
    if stepper.exact and stepper.surface == "implicit":
        return ""
    try:
        make_stepper(Model(scene), SimulationOptions(1.0, 1.0, stepper))
    except SceneError as error:
        return str(error)
    return ""
