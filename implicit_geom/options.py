"""The options of a simulation: frozen, and checked when they are made."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from implicit_geom.errors import SceneError
from implicit_geom.friction import FORMS

AVAILABLE = ("implicit-rattle", "implicit-rattle-4", "implicit-euler")
PLANNED = ("stewart-trinkle", "anitescu-hart", "nguyen-trinkle")
ON_FAILURE = ("raise", "record")
WHOLE = 1e-9  # a duration this close (relative) to a multiple of the step counts as that multiple


@dataclass(frozen=True)
class SimulationOptions:
    """How a scene is simulated; duration and step in seconds, tolerance relative to a step's speeds.

    `energy_guard` is the gain of energy in a step, over the energy above the lowest configuration,
    that the RATTLE steppers refuse; a tenth of it where no body turns by 0.1 rad in the step.
    """

    duration: float
    step: float
    stepper: str = "implicit-rattle"
    friction_residual: str = "projection"
    tolerance: float = 1e-10
    on_failure: str = "raise"
    energy_guard: float = 1e-2

    def __post_init__(self) -> None:
        for name in ("duration", "step", "tolerance", "energy_guard"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.tolerance < 1e-14:
            raise SceneError(
                f"tolerance = {self.tolerance:g} is below what rounding allows; 1e-10 is the default"
            )
        if self.energy_guard < 1e-6:
            raise SceneError(
                f"energy_guard = {self.energy_guard:g} is less than a step can promise; 0.01 is the default"
            )
        if self.tolerance >= 1:
            raise SceneError(f"tolerance = {self.tolerance:g} must be well below 1; 1e-10 is the default")
        if self.duration / self.step > 1e12:
            raise SceneError(
                f"step = {self.step:g} is too short for duration = {self.duration:g}; take a longer one"
            )
        _check_stepper(self.stepper)
        choice("friction_residual", self.friction_residual, FORMS)
        choice("on_failure", self.on_failure, ON_FAILURE)

    def as_dict(self) -> dict[str, Any]:
        """The options by name, as in the [simulation] table of a scene file."""
        return asdict(self)

    def step_lengths(self) -> np.ndarray:
        """The length of every step; the last one is shorter where the duration is no multiple of `step`."""
        ratio = self.duration / self.step
        whole = round(ratio)
        if whole >= 1 and abs(ratio - whole) <= WHOLE * ratio:
            return np.full(whole, self.step)
        whole = math.floor(ratio)
        return np.append(np.full(whole, self.step), self.duration - whole * self.step)


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise SceneError(f"{name} = {value!r} must be a positive number")
    if not math.isfinite(value) or value <= 0:
        raise SceneError(f"{name} = {value!r} must be positive and finite")
    return float(value)


def choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """One of a closed set of names."""
    allowed = tuple(allowed)
    if value not in allowed:
        raise SceneError(f"{name} = {value!r} is not known{hint(value, allowed)}")


def hint(value: Any, known: Iterable[str]) -> str:
    """`; did you mean ...?` with the nearest known name, or all of them."""
    known = list(known)
    near = difflib.get_close_matches(str(value), known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"


def _check_stepper(name: Any) -> None:
    if name in AVAILABLE:
        return
    if name in PLANNED:
        raise SceneError(f"stepper = {name!r} is not available yet; available: {', '.join(AVAILABLE)}")
    raise SceneError(f"stepper = {name!r} is not known{hint(name, (*AVAILABLE, *PLANNED))}")
