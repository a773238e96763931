"""What a stepper remembers between steps, as plain data: with it a continued run repeats an unbroken one.

The plain form is {"warm": {pair: {field: value}}, "normals": {pair: [...]}, "history": [...] or None}, with
"pressed": [[pair, tag, normal, friction (4), weight], ...] where crowds were stepped in native code, for
classical steppers {"impulses": [[pair, feature, ...], ...], "known": ..., "references": ..., "last": h},
made of lists and floats only, so that JSON keeps every bit. A run that goes on with a stepper of the other
kind starts without memory.
"""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any

import numpy as np

from implicit_geom.classical.stepper import ClassicalStepper
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.model import Model
from implicit_geom.run.make_stepper import AnyStepper
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.events.stepper import EventStepper

PRESSED = 8  # numbers that the native engine remembers of a point
PAIR = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)  # the number of a pair as a key


class Memory:
    """A stepper's memory at one moment. Cheap: warm starts are replaced by the stepper, never changed."""

    def __init__(self, stepper: AnyStepper) -> None:
        self.classical: dict[str, Any] | None = None
        if isinstance(stepper, ClassicalStepper):
            self.classical = stepper.snapshot()
            return
        self.warm, self.normals = stepper.memory.snapshot()
        self.history = stepper.memory.history
        self.pressed = stepper.pressed.tolist() if isinstance(stepper, EulerStepper | EventStepper) else []

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
        plain = {"warm": warm, "normals": normals, "history": history}
        return {**plain, "pressed": self.pressed} if self.pressed else plain


def restore(stepper: AnyStepper, plain: dict[str, Any]) -> None:
    """Give a stepper the memory that `Memory.plain` wrote; SceneError where its pairs are others."""
    try:
        check_plain(plain)
    except ValueError as error:
        raise SceneError(f"the solver's memory: {error}") from None
    if isinstance(stepper, ClassicalStepper):
        if "impulses" in plain:
            memory = _classical(plain)
            _check_classical(stepper.model, memory)
            stepper.restore(memory)
        return
    if "warm" not in plain:
        return
    warm = {
        int(pair): WarmStart(**{name: _array(value) for name, value in start.items()})
        for pair, start in plain["warm"].items()
    }
    normals = {int(pair): np.array(n, float) for pair, n in plain["normals"].items()}
    pairs, dim = stepper.model.pairs, stepper.model.dim
    for pair, start in warm.items():
        _check_vector("warm", pair, len(pairs), start.direction, dim)
        _check_vector("warm", pair, len(pairs), start.unknowns, pairs[pair].kernel.layout.size)
    for pair, n in normals.items():
        _check_vector("normals", pair, len(pairs), n, dim)
    history = plain["history"]
    stepper.memory.begun = True
    stepper.memory.restore((warm, normals))
    stepper.memory.history = None if history is None else (history[0], np.array(history[1], float))
    pressed = np.array([row for row in plain.get("pressed", []) if len(row) == PRESSED], float)
    if len(pressed) and isinstance(stepper, EulerStepper | EventStepper) and stepper.native is not None:
        for row in pressed:
            _check_vector("pressed", int(row[0]), len(pairs), row, PRESSED)
        stepper.native.pressed = pressed


def check_plain(plain: Any) -> None:
    """Whether plain data may be a stepper's memory; ValueError in one line where it may not.

    Whether its pairs are those of a scene is seen by `restore`.
    """
    keys = ({"warm", "normals", "history"}, {"impulses", "known", "references", "last"})
    if not isinstance(plain, dict) or set(plain) - {"pressed"} not in keys:
        raise ValueError("is not that of any stepper")
    tables = (
        {"normals": plain["normals"]} if "warm" in plain else {k: plain[k] for k in ("known", "references")}
    )
    for name, table in tables.items():
        for vector in _pairs(name, table):
            _numbers(name, vector)
    if "impulses" in plain:
        if not isinstance(plain["impulses"], list):
            raise ValueError("impulses is no list")
        for row in plain["impulses"]:
            _numbers("impulses", row)
            if len(row) < 3 or not all(isinstance(n, int) for n in row[:2]):
                raise ValueError("impulses must begin with a pair and a feature")
        _numbers("last", [plain["last"]])
        return
    for start in _pairs("warm", plain["warm"]):
        if not isinstance(start, dict) or set(start) != {f.name for f in fields(WarmStart)}:
            raise ValueError("warm is no table of warm starts")
        for name in ("unknowns", "direction"):
            _numbers(f"warm.{name}", start[name])
        _numbers("warm", [start["m_c"], start["h"]])
        if start["h"] == 0:
            raise ValueError("warm.h must not be 0")
    _check_history(plain["history"])
    if not isinstance(plain.get("pressed", []), list):
        raise ValueError("pressed is no list")
    for row in plain.get("pressed", []):
        _numbers("pressed", row)
        if len(row) not in (PRESSED - 1, PRESSED):  # (the former of an earlier version: it starts anew)
            raise ValueError(f"pressed has rows of other than {PRESSED} numbers")


def _check_history(history: Any) -> None:
    """None, or a count and rows of numbers; rows that are not known yet may hold NaN and infinity."""
    if history is None:
        return
    if not isinstance(history, list) or len(history) != 2 or not isinstance(history[1], list):
        raise ValueError("history is no count and its rows")
    _numbers("history", history[:1])
    for row in history[1]:
        _numbers("history", row, known=False)
        if len(row) != len(history[1][0]):
            raise ValueError("history has rows of unequal length")


def _pairs(name: str, table: Any) -> list[Any]:
    """What a table holds for each pair."""
    if not isinstance(table, dict) or not all(PAIR.fullmatch(key) for key in table):
        raise ValueError(f"{name} is no table with numbers of pairs as keys")
    return list(table.values())


def _numbers(name: str, values: Any, *, known: bool = True) -> None:
    """Refuse all but a list of numbers, finite ones where they are `known`."""
    right = isinstance(values, list) and all(type(v) in (int, float) for v in values)
    if not right or (known and not all(math.isfinite(v) for v in values)):
        raise ValueError(f"{name} holds something else than finite numbers")


def _check_vector(name: str, pair: int, pairs: int, vector: np.ndarray, size: int) -> None:
    if not 0 <= pair < pairs:
        raise SceneError(f"the solver's memory: {name} names pair {pair}, and the scene has {pairs}")
    if vector.shape != (size,):
        raise SceneError(
            f"the solver's memory: {name} of pair {pair} has {vector.size} numbers, where {size} belong; "
            "continue with the scene and the friction_residual of the run"
        )


def _check_classical(model: Model, memory: dict[str, Any]) -> None:
    pairs, dim = model.pairs, model.dim
    for (pair, _), p in memory["warm"].items():
        _check_vector("impulses", pair, len(pairs), p, 4 if dim == 3 else 2)
    for pair, axis in memory["references"].items():
        _check_vector("references", pair, len(pairs), axis, dim)
    for pair, unknowns in memory["known"].items():
        _check_vector("known", pair, len(pairs), unknowns[:0], 0)
        _check_vector("known", pair, len(pairs), unknowns, pairs[pair].kernel.layout.geometry)


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
