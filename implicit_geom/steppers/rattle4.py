"""`implicit-rattle-4`: five `implicit-rattle` steps composed to one of order four.

The step is symmetric while no contact changes its mode, so that the sub-steps s, s, 1 - 4s, s, s of h
with s = 1 / (4 - 4^(1/3)) cancel its error of third order [Suzuki 1990]. The middle one runs backwards:
forces keep their signs, impulses change theirs. Where a contact closes, opens, or changes between
sticking and sliding within the step, `implicit-rattle` takes it.
"""

from __future__ import annotations

from implicit_geom.model.model import Model, State
from implicit_geom.model.records import Attempt
from implicit_geom.steppers.guard import EnergyGuard
from implicit_geom.steppers.memory import StepperMemory
from implicit_geom.steppers.rattle import RattleStepper
from implicit_geom.steppers.search import SearchOptions


class Rattle4Stepper:
    """Steps a model by the composition where it may, by `implicit-rattle` elsewhere."""

    def __init__(
        self,
        model: Model,
        tolerance: float = 1e-10,
        options: SearchOptions | None = None,
        guard: float = 1e-3,
        friction_tolerance: float = 0.0,
    ) -> None:
        self.model = model
        self.rattle = RattleStepper(model, tolerance, options, guard, friction_tolerance)

    @property
    def memory(self) -> StepperMemory:
        """What is remembered between steps."""
        return self.rattle.memory

    @property
    def guard(self) -> EnergyGuard:
        """What energy an island may create."""
        return self.rattle.guard

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h."""
        saved = self.memory.snapshot()
        solves = self.rattle.composed(state, h, self.guard.tolerance)
        if solves is not None:
            return Attempt(solves, form="rattle-4")
        self.memory.restore(saved)
        return self.rattle.step(state, h)
