"""The options of a simulation: frozen, and checked when they are made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from implicit_geom.interface.choices import choice, hint, positive
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.words import shown
from implicit_geom.scene.switches import NAMED, Stepper

__all__ = ["SimulationOptions", "choice", "hint", "positive"]

IMPLICIT = ("implicit-rattle", "implicit-rattle-4", "implicit-euler")
FRICTION_RESIDUALS = ("projection", "fritz-john", "implicit")
ON_FAILURE = ("raise", "record")
IMPACTS = ("stages", "events")
IMPACT_LAWS = ("newton", "poisson", "energetic")
MOST_STEPS = 1e8  # a run keeps some 500 bytes a step, in memory
WHOLE = 1e-9  # a duration this close (relative) to a multiple of the step counts as that multiple


@dataclass(frozen=True)
class SimulationOptions:
    """How a scene is simulated; duration and step in seconds, tolerance relative to a step's speeds.

    `energy_guard` is what an island of contacts may create in a step of the RATTLE steppers, over its own
    energy (`steppers.island_energy`); it may lose ten times that. Classical steppers take neither it nor
    `friction_residual`.
    `friction_tolerance`, where larger than `tolerance`, is that of the friction law alone, in steps of many
    contacts: those of a pile at the edge of slip. Momentum, gaps and normal impulses keep to `tolerance`.
    `record` = n keeps every n-th step and the last one.
    `impacts` = "events" cuts the steps of `implicit-rattle` and `implicit-rattle-4` at the instants of
    impacts; "stages" leaves them to the stages of the step. `impact_law` is the law of impacts as events (one
    other than Newton's makes them that). A step is cut at up to `max_impacts` of them; in an island of more
    than three bodies each counts once for every body. The rest of the step is one whose contacts may close on
    the way, and obey Newton's law at its end. Other steppers refuse them.
    `stepper` is a name, or a `Stepper` (or its fields) where no name stands for the same.
    """

    duration: float
    step: float
    stepper: str | Stepper = "implicit-rattle"
    friction_residual: str = "projection"
    tolerance: float = 1e-10
    on_failure: str = "raise"
    energy_guard: float = 1e-3
    friction_tolerance: float = 1e-10
    record: int = 1
    impact_law: str = "newton"
    max_impacts: int = 12
    impacts: str | None = None

    def __post_init__(self) -> None:
        for name in ("duration", "step", "tolerance", "energy_guard", "friction_tolerance"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.tolerance < 1e-14:
            raise SceneError(
                f"tolerance = {self.tolerance:g} is below what rounding allows; 1e-10 is the default"
            )
        if self.energy_guard < 1e-6:
            raise SceneError(
                f"energy_guard = {self.energy_guard:g} is less than a step can promise; 0.001 is the default"
            )
        for name in ("tolerance", "friction_tolerance"):
            if getattr(self, name) >= 1:
                value = getattr(self, name)
                raise SceneError(f"{name} = {value:g} must be well below 1; 1e-10 is the default")
        if self.duration / self.step > MOST_STEPS:
            raise SceneError(
                f"step = {self.step:g} is too short for duration = {self.duration:g}: more than "
                f"{MOST_STEPS:g} steps; take a longer one, or continue the run with resume"
            )
        object.__setattr__(self, "stepper", _stepper(self.stepper))
        choice("friction_residual", self.friction_residual, FRICTION_RESIDUALS)
        choice("on_failure", self.on_failure, ON_FAILURE)
        choice("impact_law", self.impact_law, IMPACT_LAWS)
        events = self.switches.integrator.startswith("rattle")
        if self.impacts is None or self.impact_law != "newton":
            default = "events" if events or self.impact_law != "newton" else "stages"
            object.__setattr__(self, "impacts", default)
        choice("impacts", self.impacts, IMPACTS)
        if self.impacts == "events" and not events:
            asked = (
                f"impact_law = {self.impact_law!r}" if self.impact_law != "newton" else "impacts = 'events'"
            )
            raise SceneError(f"{asked}: take implicit-rattle or implicit-rattle-4; no other stepper has it")
        for name, means in (("record", "10 keeps every tenth step"), ("max_impacts", "12 is the default")):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise SceneError(f"{name} = {shown(value)} must be a whole number above zero: {means}")
            object.__setattr__(self, name, int(value))

    def check_step(self) -> None:
        """Refuse a step that is longer than the whole motion (a run that is continued may end with one)."""
        if self.step > self.duration * (1 + WHOLE):
            raise SceneError(
                f"step = {self.step:g} s is longer than duration = {self.duration:g} s: take a shorter step"
            )

    def as_dict(self) -> dict[str, Any]:
        """The options by name, as in the [simulation] table of a scene file."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if isinstance(self.stepper, Stepper):
            values["stepper"] = self.stepper.as_dict()
        return values

    @property
    def name(self) -> str:
        """The stepper's name; empty where it is put together from switches that no name stands for."""
        return self.stepper if isinstance(self.stepper, str) else ""

    @property
    def undecided(self) -> float:
        """Slip, over a step's speeds, that the solver does not tell from none."""
        return max(self.tolerance, self.friction_tolerance)

    @property
    def switches(self) -> Stepper:
        """The stepper's switches."""
        return Stepper.of(self.stepper)

    def step_lengths(self) -> np.ndarray:
        """The length of every step; the last one is shorter where the duration is no multiple of `step`."""
        ratio = self.duration / self.step
        whole = round(ratio)
        if whole >= 1 and abs(ratio - whole) <= WHOLE * ratio:
            return np.full(whole, self.step)
        whole = math.floor(ratio)
        return np.append(np.full(whole, self.step), self.duration - whole * self.step)


def _stepper(given: Any) -> str | Stepper:
    """The name of a stepper where it has one, otherwise its switches."""
    if isinstance(given, Stepper | Mapping):
        stepper = Stepper.of(given)
        return stepper.name or stepper
    if not isinstance(given, str) or given not in NAMED:
        raise SceneError(f"stepper = {shown(given)} is not known{hint(given, NAMED)}")
    return given
