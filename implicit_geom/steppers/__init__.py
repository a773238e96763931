"""Time steppers by name."""

from __future__ import annotations

from implicit_geom.errors import SceneError
from implicit_geom.model import Model
from implicit_geom.options import SimulationOptions
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.rattle import RattleStepper
from implicit_geom.steppers.rattle4 import Rattle4Stepper


def make_stepper(model: Model, options: SimulationOptions) -> EulerStepper:
    """The stepper that the options name."""
    if options.name == "implicit-euler":
        return EulerStepper(model, options.tolerance)
    kinds = {"implicit-rattle": RattleStepper, "implicit-rattle-4": Rattle4Stepper}
    if options.name not in kinds:
        raise SceneError(f"stepper = {options.stepper} is not available yet")
    return kinds[options.name](model, options.tolerance, guard=options.energy_guard)
