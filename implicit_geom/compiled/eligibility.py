"""Which scenes and steppers can be compiled at all, and why others cannot."""

from __future__ import annotations

from implicit_geom.model.model import Model
from implicit_geom.scene.options import SimulationOptions

LARGEST = 160  # unknowns: above this a dense matrix is no longer the quick way
FORMS = {"implicit-euler": "euler", "implicit-rattle": "rattle", "implicit-rattle-4": "rattle-4"}


def why_not_compiled(model: Model, options: SimulationOptions) -> str:
    """Why a scene cannot be stepped in compiled code at all, in few words; empty where it can."""
    velocities = model.moving.size * (model.dim + model.spins)
    reasons = {
        "stepper": options.name not in FORMS,
        # its rows are singular where a contact opens
        "fritz-john": options.friction_residual == "fritz-john",
        "loads are functions of time": not model.scene.constant_loads,
        "many bodies": velocities > LARGEST,
        "an unbounded body moves": not all(model.bodies[b].shape.bounded for b in model.moving),
        # which of two solutions is meant is up to the steppers
        "a union has seams": model.pairs.have_seams,
    }
    return next((f"not compiled: {why}" for why, found in reasons.items() if found), "")


def can_compile(model: Model, options: SimulationOptions) -> bool:
    """Whether a scene may be stepped in compiled code at all."""
    return not why_not_compiled(model, options)
