"""Checks on the numbers a user gives a shape; each error names the field and the fix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from shapes.errors import ShapeError


def positive(kind: str, name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above zero (or zero, where `zero` allows it)."""
    number = finite(kind, name, value)
    if number < 0 or (number == 0 and not zero):
        wanted = "zero or a positive number" if zero else "a positive number"
        raise ShapeError(f"{kind}: {name} = {value!r} must be {wanted}, in metres")
    return number


def finite(kind: str, name: str, value: Any) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise ShapeError(f"{kind}: {name} = {value!r} must be a number")
    try:
        number = float(value)
    except (OverflowError, TypeError) as error:  # an integer above 1e308, a complex number
        raise ShapeError(f"{kind}: {name} = {value!r} must be a real number below 1e308") from error
    if not math.isfinite(number):
        raise ShapeError(f"{kind}: {name} = {value!r} must be finite")
    return number


def count(kind: str, name: str, value: Any, *, least: int, most: int = 100_000) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ShapeError(f"{kind}: {name} = {value!r} must be a whole number from {least} to {most}")
    return int(value)


def vector(kind: str, name: str, value: Any, length: int) -> tuple[float, ...]:
    """`length` finite numbers."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != length:
        raise ShapeError(f"{kind}: {name} = {value!r} must be {length} numbers")
    return tuple(finite(kind, f"{name}[{i}]", v) for i, v in enumerate(value))


def direction(kind: str, name: str, value: Any, length: int) -> tuple[float, ...]:
    """A vector of any length but zero, made a unit vector."""
    v = np.array(vector(kind, name, value, length))
    largest = float(np.max(np.abs(v)))
    if largest == 0:
        raise ShapeError(f"{kind}: {name} = {value!r} must not be zero; give a direction")
    if abs(float(np.linalg.norm(v / largest)) * largest - 1) < 4 * np.finfo(float).eps:
        return tuple(v.tolist())  # a unit vector is kept bit for bit, so that saved shapes load unchanged
    v = v / largest  # first, because the squares of large or small components leave the number range
    return tuple((v / np.linalg.norm(v)).tolist())
