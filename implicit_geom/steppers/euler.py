"""`implicit-euler`: the geometrically implicit step of C07, eqs. 10 and 11.

    m (v+ - v) = h F + W_v(q+) p,   J_W+ w+ - J_W w = h tau + W_w(q+) p            [C07, eq. 4]
    x+ = x + h v+,   R+ = exp(h w+) R
    a2 = a1 + d n,   n = sum l_i grad f_i(a1) = -sum k_j grad g_j(a2)  at q+       [C07, eqs. 9, 22]
    0 <= p_n _|_ d(q+) >= 0,   friction of p against W_t(q+)^T nu+                 [C07, eqs. 3, 5, 11]

The stages of a step: candidate pairs and the solution of these equations (`candidates`, `search`), the
closed contacts in it (`closed_contacts`) and, where one has restitution, a velocity stage at the poses of the
end: Newton's law with the normal velocity at the instant of impact (`velocity_stage`).
Where a solve fails, or the motion crosses a body on the way, the step is halved (`substeps`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.engine.native_scene import NativeScene, why_not_native
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import EULER, Attempt, Failure, Solve
from implicit_geom.process.lazy import cached_property
from implicit_geom.steppers.candidates import StepSolution, solve_step
from implicit_geom.steppers.closed_contacts import accept, start_contacts
from implicit_geom.steppers.guard import EnergyGuard
from implicit_geom.steppers.memory import StepperMemory
from implicit_geom.steppers.search import SearchOptions, SolutionSearch
from implicit_geom.steppers.substeps import in_parts
from implicit_geom.steppers.velocity_stage import VelocitySolution, VelocityStage

GAIN = 1e-3  # of its energy: parts of a step in which a crowd gains more are halved


class EulerStepper:
    """Steps a model; another stepper that falls back on it shares its search."""

    def __init__(
        self,
        model: Model,
        tolerance: float = 1e-10,
        options: SearchOptions | None = None,
        friction_tolerance: float = 0.0,
        *,
        search: SolutionSearch | None = None,
    ) -> None:
        self.model = model
        self.search = search or SolutionSearch(model, tolerance, options, friction_tolerance)
        self.velocity_stage = VelocityStage(self.search)
        self.guard: EnergyGuard | None = None  # (none of its own)

    @cached_property
    def native(self) -> NativeScene | None:
        """The engine that steps crowds, where there is one: inelastic contacts, all of friction's law."""
        laws = self.model.pairs.laws
        if any(law.restitution > 0 for law in laws) or why_not_native(self.model):
            return None
        if self.search.friction_tolerance > self.search.tolerance:
            return None
        return NativeScene(self.model, GAIN, 1, self.search.tolerance, euler=True)

    @property
    def pressed(self) -> np.ndarray:
        """(n, 8) what the engine knows of the last step's impulses; none where it has not been asked for."""
        made = self.__dict__.get("native")
        return np.zeros((0, 8)) if made is None else made.pressed

    @property
    def memory(self) -> StepperMemory:
        """What is remembered between steps."""
        return self.search.memory

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h, in parts where that is needed: a part that fails is halved."""
        options = self.search.options
        return in_parts(
            self.memory,
            state,
            h,
            lambda start, length, _: self.solve(start, length),
            halvings=options.halvings,
            solves=options.solves,
        )

    def solve(self, state: State, h: float, inelastic: bool = False) -> Solve | Failure:
        """One solve over h [C07, eqs. 10, 11]; a reason and residual histories where there is no solution.

        `inelastic`: without restitution.
        """
        impulse = h * self.model.loads(state.time)
        found = solve_step(self.search, StepNCP, state, h, impulse)
        if not isinstance(found, StepSolution):
            return found
        problem, solution = found.problem, found.solution
        end = state.advanced(found.nu, h)
        starts = start_contacts(self.memory, problem, state)
        records, ends = accept(self.search, problem, solution.z, state, end, h, EULER, starts)
        residual = float(np.max(np.abs(problem.residual(solution.z, 0.0)), initial=0.0))
        overlap = max([0.0, *(-start.gap for start in starts.values())])
        solve = Solve(
            state, end, h, found.nu, "euler", records, solution.iterations, found.status, residual, overlap
        )
        if inelastic or not self.velocity_stage.needed(ends):
            return solve
        for c, contact in ends.items():
            contact.bounce = self.velocity_stage.bounce(c, contact, starts[c], state, impulse, h, lag=h / 2)

        def finish(stage: VelocitySolution) -> Solve:
            return replace(
                solve,
                end=stage.state,
                contacts=[*records, *stage.records],
                iterations=solution.iterations + stage.iterations,
                residual=max(residual, stage.residual),
            )

        return self.velocity_stage.finished(end, h, np.zeros_like(impulse), ends, finish)
