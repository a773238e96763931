"""`simulate`: a scene stepped through time."""

from __future__ import annotations

import time as clock

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.errors import CallError
from implicit_geom.interface.progress import Progress
from implicit_geom.run.march import march
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.switches import Stepper


@checked_call(CallError)
def simulate(
    scene: Scene | None,
    *,
    duration: float,
    step: float,
    stepper: str | Stepper = "implicit-rattle",
    friction_residual: str = "projection",
    tolerance: float = 1e-10,
    on_failure: str = "raise",
    energy_guard: float = 1e-3,
    friction_tolerance: float = 1e-10,
    record: int = 1,
    impact_law: str = "newton",
    max_impacts: int = 12,
    impacts: str | None = None,
    progress: Progress = None,
    resume: Trajectory | None = None,
) -> Trajectory:
    """Simulate a scene for `duration` seconds in steps of `step` seconds.

    scene                a Scene; None where `resume` brings its own
    duration             s; one that is no multiple of the step ends with a shortened step
    step                 s, not longer than the duration
    stepper              one of the names below, or a `Stepper` put together from switches
    friction_residual    "projection", "fritz-john" or "implicit": how the friction law is written; same
                         solutions
    tolerance            on the equations of a step, relative to its speeds
    on_failure           "raise": StepFailed; "record": the run so far is returned and marked
    energy_guard         what an island of contacts may create in a step of the implicit-rattle steppers, over
                         its own energy; it may lose ten times that
    friction_tolerance   of the friction law alone, where larger than `tolerance`; for piles of many contacts
    record               n: keep every n-th step and the last one, for long runs
    impacts              "events": steps of the RATTLE steppers are cut at the instants of impacts; "stages"
    impact_law           of impacts as events: "newton", "poisson" or "energetic"
    max_impacts          of an island at which a step is cut (of a crowd: over its bodies)
    progress             True, False, a function of the fraction done; None: a bar on a terminal
    resume               a run to be continued by `duration`, see `Trajectory.resume`

    implicit-rattle      second order, symmetric
    implicit-rattle-4    fourth order between events
    implicit-euler       first order
    stewart-trinkle      classical: facets, linearised gap, wrench of the start, friction pyramid
    nguyen-trinkle       classical, planar: a vertex against a whole convex polygon
    anitescu-hart        classical: friction relaxed so that a step is a convex program

    Returns a Trajectory. SceneError for bad input. A step that cannot be solved raises StepFailed, which
    carries the run so far; with on_failure="record" its last row in `steps` is marked "failed". With
    record=n, arrays over time, `steps` and `contacts` have the kept rows only, while `ledger`, residuals,
    `max_penetration` and `summary()` account for all steps (which are therefore assessed at once, at some ten
    microseconds each). Where bodies touch and `scene.friction` was never called, a SceneNotice says so, once
    a scene. An interrupted run is attached to the KeyboardInterrupt as `run`.

    >>> scene = Scene(gravity=(0, 0, -9.81))
    >>> scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    >>> scene.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.31))
    >>> scene.friction(mu=0.4)
    >>> simulate(scene, duration=0.5, step=0.01)
    <Trajectory of 'ground', 'egg': 0.5 s in 50 steps, implicit-rattle, 50 converged>
    """
    started = clock.perf_counter()
    options = SimulationOptions(
        duration,
        step,
        stepper,
        friction_residual,
        tolerance,
        on_failure,
        energy_guard,
        friction_tolerance,
        record,
        impact_law,
        max_impacts,
        impacts,
    )
    return march(Trajectory, scene, options, progress, resume, started)
