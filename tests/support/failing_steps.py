"""Steps that fail, or before which something happens, whoever takes them: steppers or machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from implicit_geom.compiled.runner import Runner
from implicit_geom.engine.native_runner import NativeRunner
from implicit_geom.model.model import State
from implicit_geom.model.records import Attempt
from implicit_geom.model.solve_arrays import STEP, SolveArrays
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.events.stepper import EventStepper
from implicit_geom.steppers.rattle import RattleStepper
from implicit_geom.steppers.rattle4 import Rattle4Stepper

Before = Callable[[Any, State], Attempt | None]


def before_steps(
    patch: pytest.MonkeyPatch, act: Before, fourth: bool | None = None, euler: bool = True
) -> None:
    """Call `act(stepper, state)` before every step of an implicit stepper; an attempt it returns is the step.

    fourth   of the RATTLE steppers only those of this order (True: `implicit-rattle-4`)
    euler    also of `implicit-euler`
    """

    def asked(stepper: Any, state: State) -> Attempt | None:
        kind = type(stepper)
        of_order_four = kind is Rattle4Stepper or getattr(stepper, "fourth", False)
        chosen = euler if kind is EulerStepper else fourth is None or of_order_four == fourth
        return act(stepper, state) if chosen else None

    for kind in (EulerStepper, RattleStepper, Rattle4Stepper, EventStepper):

        def step(self: Any, state: State, h: float, take: Any = kind.step) -> Attempt:
            return asked(self, state) or take(self, state, h)

        patch.setattr(kind, "step", step)
    for runner in (NativeRunner, Runner):

        def run(self: Any, state: State, wanted: int, step: int, ends: np.ndarray, go: Any = runner.run):
            if asked(self.solver, state):
                return state, SolveArrays.empty(state), np.zeros(0, STEP)
            return go(self, state, 1, step, ends)

        patch.setattr(runner, "run", run)


def fail_steps(
    patch: pytest.MonkeyPatch,
    time: float = 0.0,
    reason: str = "no luck",
    history: list[list[float]] | None = None,
    **which: Any,
) -> None:
    """Steps that start at the given time, s, or later fail."""

    def fails(_: Any, state: State) -> Attempt | None:
        return Attempt([], reason, history or []) if state.time > time - 1e-9 else None

    before_steps(patch, fails, **which)
