"""Runs with search options that no public call takes: the march of `simulate` around one's own stepper."""

from __future__ import annotations

import time

from implicit_geom import Scene, Trajectory
from implicit_geom.model.model import Model
from implicit_geom.run.march import March
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.search import SearchOptions


def euler_run(scene: Scene, search: SearchOptions, *, duration: float, step: float) -> Trajectory:
    """`simulate` by implicit-euler with these options of the search."""
    options = SimulationOptions(duration, step, "implicit-euler")
    model = Model(scene, options.friction_residual)
    stepper = EulerStepper(model, options.tolerance, search)
    return March(scene, model, stepper, options, None, time.perf_counter(), Trajectory).run(None)
