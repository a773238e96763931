"""The stepper that a run's options name, or put together from switches."""

from __future__ import annotations

from typing import TypeAlias

from implicit_geom.classical.stepper import ClassicalStepper
from implicit_geom.classical.surfaces import faceted_scene
from implicit_geom.engine.native_runner import NativeRunner
from implicit_geom.geometry.over_planes import only_over_planes
from implicit_geom.model.model import Model
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.events.stepper import EventStepper
from implicit_geom.steppers.rattle import RattleStepper
from implicit_geom.steppers.rattle4 import Rattle4Stepper

FEW = 3  # bodies that `implicit-euler` solves by Newton's method on all rows, with one contact a pair

ImplicitStepper: TypeAlias = EulerStepper | RattleStepper | Rattle4Stepper | EventStepper
AnyStepper: TypeAlias = ImplicitStepper | ClassicalStepper


def make_stepper(model: Model, options: SimulationOptions) -> AnyStepper:
    """The stepper that the options name or describe.

    Where nothing is approximate but the surface, RATTLE steps the inscribed shapes as they are.
    """
    stepper = options.switches
    if options.name == "implicit-euler":
        return EulerStepper(model, options.tolerance, friction_tolerance=options.friction_tolerance)
    if stepper.integrator == "euler":
        return ClassicalStepper(model, stepper, options.tolerance)
    if stepper.surface == "faceted":
        model = Model(faceted_scene(model.scene, stepper.facets), options.friction_residual)
    if options.impacts == "events":
        return EventStepper(
            model,
            options.tolerance,
            guard=options.energy_guard,
            friction_tolerance=options.friction_tolerance,
            impact_law=options.impact_law,
            max_impacts=options.max_impacts,
            fourth=stepper.integrator == "rattle-4",
        )
    kind = Rattle4Stepper if stepper.integrator == "rattle-4" else RattleStepper
    return kind(
        model,
        options.tolerance,
        guard=options.energy_guard,
        friction_tolerance=options.friction_tolerance,
    )


def native_runner(model: Model, solver: AnyStepper, step: float) -> NativeRunner | None:
    """The engine's runner for scenes that it steps.

    One body in contacts of closed form is compiled; one of a shape unknown to the engine steps in Python, and
    so do a few under `implicit-euler`, and piles in the plane, which the solver of `contact` knows better.
    """
    alone = model.moving.size == 1
    if isinstance(solver, EulerStepper):
        if model.dim == 2 or model.moving.size <= FEW or solver.native is None:
            return None
        return NativeRunner(solver.native, solver, step)
    if not isinstance(solver, EventStepper) or (alone and (not len(model.pairs) or only_over_planes(model))):
        return None
    native = solver.native
    if native is None or (alone and not native.knows_all):
        return None
    return NativeRunner(native, solver, step)
