"""What a stepper remembers between steps, as plain data: with it a continued run repeats an unbroken one.

The plain form is {"warm": {pair: {field: value}}, "normals": {pair: [...]}, "history": [...] or None}, for
classical steppers {"impulses": [[pair, feature, ...], ...], "known": ..., "references": ..., "last": h},
made of lists and floats only, so that JSON keeps every bit. A run that goes on with a stepper of the other
kind starts without memory.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from implicit_geom.approximate.stepper import ApproximateStepper
from implicit_geom.contact_group import WarmStart
from implicit_geom.steppers import AnyStepper


class Memory:
    """A stepper's memory at one moment. Cheap: warm starts are replaced by the stepper, never changed."""

    def __init__(self, stepper: AnyStepper) -> None:
        self.classical: dict[str, Any] | None = None
        if isinstance(stepper, ApproximateStepper):
            self.classical = stepper.remember()
            return
        self.warm = dict(stepper.warm)
        self.normals = dict(stepper.broad.normals)
        self.history = stepper.history

    def plain(self) -> dict[str, Any]:
        """As lists and floats."""
        if self.classical is not None:
            return _plain_classical(self.classical)
        warm = {
            str(pair): {f.name: _plain(getattr(start, f.name)) for f in fields(start)}
            for pair, start in self.warm.items()
        }
        normals = {str(pair): _plain(n) for pair, n in self.normals.items()}
        history = None if self.history is None else [self.history[0], self.history[1].tolist()]
        return {"warm": warm, "normals": normals, "history": history}


def restore(stepper: AnyStepper, plain: dict[str, Any]) -> None:
    """Give a stepper the memory that `Memory.plain` wrote."""
    if isinstance(stepper, ApproximateStepper):
        if "impulses" in plain:
            stepper.recall(_classical(plain))
        return
    if "warm" not in plain:
        return
    stepper.begun = True
    stepper.warm = {
        int(pair): WarmStart(**{name: _array(value) for name, value in start.items()})
        for pair, start in plain["warm"].items()
    }
    history = plain["history"]
    stepper.history = None if history is None else (history[0], np.array(history[1], float))
    stepper.broad.normals = {int(pair): np.array(n, float) for pair, n in plain["normals"].items()}


def _plain_classical(memory: dict[str, Any]) -> dict[str, Any]:
    impulses = [[*key, *p.tolist()] for key, p in memory["warm"].items()]
    vectors = {
        name: {str(pair): v.tolist() for pair, v in memory[name].items()} for name in ("known", "references")
    }
    return {"impulses": impulses, **vectors, "last": memory["last"]}


def _classical(plain: dict[str, Any]) -> dict[str, Any]:
    warm = {(int(row[0]), int(row[1])): np.array(row[2:], float) for row in plain["impulses"]}
    vectors = {
        name: {int(pair): np.array(v, float) for pair, v in plain[name].items()}
        for name in ("known", "references")
    }
    return {"warm": warm, **vectors, "last": plain["last"]}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _array(value: Any) -> Any:
    return np.array(value, float) if isinstance(value, list) else value
