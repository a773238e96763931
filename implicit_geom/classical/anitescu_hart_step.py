"""A step of `anitescu-hart`: that of `classical.step` with the subproblems of AH02 for its contacts.

In space the angular momentum R+ J R+^T w+ = R J R^T w + h tau + W p is not linear in w+. A quadratic program
needs a symmetric matrix, so that rounds are  J_W(w_k) w = R J R^T w_l + h tau + W p, until w stays; AH02
takes the inertia at the start of the step and stops there.
"""

from __future__ import annotations

import numpy as np

from implicit_geom import rotation
from implicit_geom.classical.anitescu_hart import Subproblem, solve_subproblem
from implicit_geom.classical.contacts import Contacts
from implicit_geom.classical.friction_pyramid import directions
from implicit_geom.classical.step import ClassicalStep, Key, StepOutcome
from implicit_geom.model.model import Model, State
from implicit_geom.scene.switches import Stepper

REACH = 1.5  # contacts are looked for within this much more than the motion expected


class AnitescuHartStep(ClassicalStep):
    """Solves steps of a model by LCP0, LCP1 or LCP2, as its stepper says."""

    def subproblem(self, gaps: Contacts, nu: np.ndarray) -> Subproblem:
        """The step with its momentum about the velocities nu (B, size)."""
        moving = self.model.moving
        u, B = self._symmetric(nu[moving])
        D = directions(gaps, self.stepper.directions, self.stepper.aligned, self.before)
        return Subproblem(gaps, D, u, B, moving, self.h)

    def _round(
        self, gaps: Contacts, nu: np.ndarray, there: State | None, warm: dict[Key, np.ndarray]
    ) -> StepOutcome | str:
        if not len(gaps):
            return super()._round(gaps, nu, there, warm)
        del there, warm  # (all is at the start of the step, and a quadratic program takes no guess)
        s = self.stepper
        found = solve_subproblem(
            self.subproblem(gaps, nu),
            s.relaxation,
            limit=s.relaxation_limit,
            tolerance=s.relaxation_tolerance,
        )
        if found.reason:
            return found.reason
        full = np.zeros_like(self.before)
        full[self.model.moving] = found.nu
        return StepOutcome(full, gaps, gaps, gaps, found.p, found.iterations, found.error, found.history)

    def _symmetric(self, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        momentum = self.momentum
        if momentum.linear:
            return momentum.about(nu)
        E = rotation.matrix(rotation.exp(self.h * nu[:, 3:]))
        inverse = np.linalg.inv(E @ momentum.J_W @ np.swapaxes(E, 1, 2))
        B = momentum.B.copy()
        B[:, 3:, 3:] = (inverse + np.swapaxes(inverse, 1, 2)) / 2
        spin = (B[:, 3:, 3:] @ momentum.target[:, :, None])[:, :, 0]
        return np.concatenate([momentum.free, spin], axis=1), B


def first_subproblem(model: Model, h: float, stepper: Stepper | None = None) -> Subproblem:
    """The subproblem of the first step of a model, for a look at it by itself."""
    step = AnitescuHartStep(model, stepper or Stepper.named("anitescu-hart"), 1e-10)
    state = model.initial_state()
    impulse = h * model.loads(state.time)
    step.momentum.prepare(state, h, impulse)
    step.h, step.before = h, np.concatenate([state.v, state.w], axis=1)
    pulled = np.linalg.norm(impulse[:, : model.dim], axis=1) / model.mass
    speed = np.linalg.norm(step.before, axis=1) + pulled
    return step.subproblem(step.finder.contacts(state, REACH * h * speed), step.before)
