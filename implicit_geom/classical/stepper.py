"""The classical time steppers: steps of `classical.step` with warm starts, halving and failure.

A step fails where its problem is not solved. Where gap or wrench are those of the end and the rounds do
not settle, or bodies have changed sides, it is halved, as `implicit-euler` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.classical.anitescu_hart_step import AnitescuHartStep
from implicit_geom.classical.contact_records import classical_contact_records
from implicit_geom.classical.nguyen_trinkle import NguyenTrinkleStep
from implicit_geom.classical.overlaps import Overlap, Overlaps
from implicit_geom.classical.step import ClassicalStep, Key, StepOutcome
from implicit_geom.equations.tangent import references
from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import Attempt, Failure, Solve
from implicit_geom.scene.scene_file import friction_laws
from implicit_geom.scene.switches import VERTEX_SCHEMES, Stepper
from implicit_geom.steppers.substeps import in_parts

MAX_HALVINGS = 8  # rounds that do not settle in a 256th of the step will not do so in less
MAX_SOLVES = 256


class ClassicalStepper:
    """Steps a model by the switches of a `Stepper`."""

    history = None  # (only compiled steps keep one)

    def __init__(self, model: Model, stepper: Stepper, tolerance: float = 1e-10) -> None:
        for field, law in _laws(model):
            if law.restitution > 0:
                raise SceneError(
                    f"{field}.restitution = {law.restitution:g}: a classical stepper takes 0 only; "
                    "set it to 0, or take implicit-euler or implicit-rattle"
                )
        self.model, self.stepper, self.tolerance = model, stepper, tolerance
        self.problem = self._problem()
        self.overlap = Overlaps(model, self.problem.finder)
        self.warm: dict[Key, np.ndarray] = {}  # impulses of the last step, of contacts that pressed
        self.last: float = 0.0  # its length
        self._constant = model.loads(0.0) if model.scene.constant_loads else None

    def _problem(self) -> ClassicalStep:
        """What solves a step."""
        if self.stepper.scheme in VERTEX_SCHEMES:
            return NguyenTrinkleStep(self.model, self.stepper, self.tolerance)
        for body in self.model.bodies:
            if len(body.shape.pieces) > 1:
                raise SceneError(
                    f"bodies.{body.name}.shape: of the classical steppers only nguyen-trinkle, in the plane, "
                    "takes a union; take an implicit stepper"
                )
        kind = AnitescuHartStep if self.stepper.scheme == "anitescu-hart" else ClassicalStep
        return kind(self.model, self.stepper, self.tolerance)

    def step(self, state: State, h: float) -> Attempt:
        """Advance by h."""
        halvings = 0 if self.problem.at_start else MAX_HALVINGS
        return in_parts(
            self,
            state,
            h,
            lambda start, length, _: self._solve(start, length),
            halvings=halvings,
            solves=MAX_SOLVES,
        )

    def _solve(self, state: State, h: float) -> Solve | Failure:
        scale = h / self.last if self.last else 1.0
        warm = {key: scale * p for key, p in self.warm.items()} if scale != 1 else self.warm
        try:
            found = self.problem.solve(state, h, h * self._loads(state.time), warm)
            if isinstance(found, str):
                return self._failure(found)
            end = state.advanced(found.nu, h)
            crossed = self._crossed(found, state, end)
            if crossed:
                return self._failure(crossed)
            contacts = classical_contact_records(
                self.problem, found, state, end, self._overlaps(found, end, h)
            )
        except SimulationError as error:
            return self._failure(str(error))
        self._keep(found, h)
        return Solve(
            state, end, h, found.nu, "euler", contacts, found.rounds, "converged", found.error,
        )  # fmt: skip

    def _failure(self, reason: str) -> Failure:
        return reason, [list(self.problem.trace)]

    def _overlaps(self, found: StepOutcome, end: State, h: float) -> list[Overlap]:
        """Of polytopes that were near each other in the step."""
        if not self.overlap.any:
            return []
        travel = h * self.problem.fastest(found.nu)
        return self.overlap.at(end, self.overlap.pairs(end, travel))

    def _loads(self, time: float) -> np.ndarray:
        """`Model.loads`, asked once where no load depends on time."""
        return self.model.loads(time) if self._constant is None else self._constant

    def _crossed(self, found: StepOutcome, start: State, end: State) -> str:
        """Bodies that pass through each other within the step have changed sides: a reason."""
        h, fastest = self.problem.h, self.problem.fastest(found.nu)
        passed = self.overlap.passed(start, found.nu, h, fastest, self.stepper.gap == "end")
        c = found.all
        if passed or self.problem.at_start or not len(c):
            return passed
        bounded = np.isfinite(self.model.reach)
        both = np.flatnonzero(bounded[c.first] & bounded[c.second])
        if not both.size:
            return ""
        one, two = (self.problem.finder.at_pose(c.take(both), s).normal for s in (start, end))
        turned = np.flatnonzero(np.sum(one * two, axis=1) <= 0)
        if not turned.size:
            return ""
        k = both[turned[0]]
        names = [self.model.names[b] for b in (c.first[k], c.second[k])]
        return f"tunnelling: the motion of {names[0]!r} and {names[1]!r} crosses within the step"

    def _keep(self, found: StepOutcome, h: float) -> None:
        """Impulses, and the axes along which tangents are taken, for the next step."""
        c, self.last = found.gaps, h
        keys = list(zip(c.pair.tolist(), c.feature.tolist(), strict=True))
        self.warm = {key: p for key, p in zip(keys, found.p, strict=True) if p[0] > 0}
        if self.model.dim == 3:
            finder = self.problem.finder
            for (pair, _), n in zip(keys, found.wrenches.normal, strict=True):
                last = finder.references.get(pair, np.zeros(3))
                finder.references[pair] = references(n[None], last[None])[0]

    # ---- between steps

    def overlaps(self, state: State) -> list[tuple[int, float]]:
        """Pairs that overlap, with their gaps."""
        c = self.problem.finder.contacts(state, np.zeros(len(state.x)))
        return list(zip(c.pair.tolist(), c.gap.tolist(), strict=True))

    @property
    def memory(self) -> ClassicalStepper:
        """What is remembered between steps is kept here."""
        return self

    def snapshot(self) -> dict[str, Any]:
        """All that the next step depends on beside the state."""
        finder = self.problem.finder
        return {
            "warm": dict(self.warm),
            "known": dict(finder.known),
            "references": dict(finder.references),
            "last": self.last,
        }

    def restore(self, memory: dict[str, Any]) -> None:
        """Back to a snapshot."""
        finder = self.problem.finder
        self.warm, self.last = dict(memory["warm"]), memory["last"]
        finder.known, finder.references = dict(memory["known"]), dict(memory["references"])


def _laws(model: Model) -> list[tuple[str, Any]]:
    return list(friction_laws(model.scene))
