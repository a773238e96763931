"""`implicit-rattle-4`: five `implicit-rattle` steps composed to one of order four.

The step is symmetric while no contact changes its mode, so that the sub-steps s, s, 1 - 4s, s, s of h
with s = 1 / (4 - 4^(1/3)) cancel its error of third order [Suzuki 1990]. The middle one runs backwards:
forces keep their signs, impulses change theirs. Where a contact closes, opens, or changes between
sticking and sliding within the step, `implicit-rattle` takes it.
"""

from __future__ import annotations

from implicit_geom.model.model import State
from implicit_geom.model.records import Attempt
from implicit_geom.steppers.rattle import RattleStepper


class Rattle4Stepper(RattleStepper):
    """Steps a model by the composition where it may, by `implicit-rattle` elsewhere."""

    def step(self, state: State, h: float) -> Attempt:
        saved, normals = dict(self.warm), dict(self.broad.normals)
        # slow motion has no smaller bound here: single steps in its place would be less accurate
        solves = self._composed(state, h, self.guard)
        if solves is not None:
            return Attempt(solves, form="rattle-4")
        self.warm, self.broad.normals = saved, normals
        return super().step(state, h)
