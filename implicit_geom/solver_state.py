"""What a stepper remembers between steps, as plain data: with it a continued run repeats an unbroken one.

The plain form is {"warm": {pair: {field: value}}, "normals": {pair: [...]}, "history": [...] or None}, made
of lists and floats only, so that JSON keeps every bit.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from implicit_geom.contact_group import WarmStart
from implicit_geom.steppers.euler import EulerStepper


class Memory:
    """A stepper's memory at one moment. Cheap: warm starts are replaced by the stepper, never changed."""

    def __init__(self, stepper: EulerStepper) -> None:
        self.warm = dict(stepper.warm)
        self.normals = dict(stepper.broad.normals)
        self.history = stepper.history

    def plain(self) -> dict[str, Any]:
        """As lists and floats."""
        warm = {
            str(pair): {f.name: _plain(getattr(start, f.name)) for f in fields(start)}
            for pair, start in self.warm.items()
        }
        normals = {str(pair): _plain(n) for pair, n in self.normals.items()}
        history = None if self.history is None else [self.history[0], self.history[1].tolist()]
        return {"warm": warm, "normals": normals, "history": history}


def restore(stepper: EulerStepper, plain: dict[str, Any]) -> None:
    """Give a stepper the memory that `Memory.plain` wrote."""
    stepper.warm = {
        int(pair): WarmStart(**{name: _array(value) for name, value in start.items()})
        for pair, start in plain["warm"].items()
    }
    history = plain["history"]
    stepper.history = None if history is None else (history[0], np.array(history[1], float))
    stepper.broad.normals = {int(pair): np.array(n, float) for pair, n in plain["normals"].items()}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _array(value: Any) -> Any:
    return np.array(value, float) if isinstance(value, list) else value
