"""Checks on the numbers a user gives a shape; each error names the field and the fix."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np

from implicit_geom.interface import numbers
from implicit_geom.interface.words import shown
from implicit_geom.shapes.errors import ShapeError

MOST_POINTS = 10_000  # vertices of one shape, checked within a second


def positive(kind: str, name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above zero (or zero, where `zero` allows it)."""
    number = finite(kind, name, value)
    if number < 0 or (number == 0 and not zero):
        wanted = "zero or a positive number" if zero else "a positive number"
        raise ShapeError(f"{kind}: {name} = {shown(value)} must be {wanted}, in metres")
    if 0 < number < 1 / numbers.LARGEST:
        raise ShapeError(f"{kind}: {name} = {shown(value)} must be at least {1 / numbers.LARGEST:g} m")
    return number


def finite(kind: str, name: str, value: Any) -> float:
    """A finite number."""
    try:
        return numbers.number(value)
    except numbers.NotNumbers as error:
        raise ShapeError(f"{kind}: {name} = {shown(value)} must be {error}") from None


def count(kind: str, name: str, value: Any, *, least: int, most: int = 100_000) -> int:
    """A whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ShapeError(f"{kind}: {name} = {shown(value)} must be a whole number from {least} to {most}")
    return int(value)


def vector(
    kind: str, name: str, value: Any, length: int, *, largest: float = numbers.LARGEST
) -> tuple[float, ...]:
    """`length` finite numbers."""
    try:
        return tuple(numbers.array(value, (length,), largest=largest).tolist())
    except numbers.NotNumbers as error:
        raise ShapeError(f"{kind}: {name} = {shown(value)} must be {error}") from None


def points_of(kind: str, name: str, value: Any, dim: int, *, least: int) -> np.ndarray:
    """At least so many points of `dim` coordinates, (N, dim); an error names the first that is none."""
    if isinstance(value, np.ndarray):
        value = list(value)
    if not isinstance(value, list | tuple) or len(value) < least:
        raise ShapeError(
            f"{kind}: {name} = {shown(value)} must be at least {least} points of {dim} numbers each"
        )
    most_of(kind, name, value, MOST_POINTS, "points")
    return np.array([vector(kind, f"{name}[{i}]", v, dim) for i, v in enumerate(value)])


def most_of(kind: str, name: str, value: Sized, most: int, what: str) -> None:
    """Refuse more parts than a shape can be made of in reasonable time."""
    if len(value) > most:
        raise ShapeError(f"{kind}: {name} are {len(value)} {what}; at most {most} are taken")


def quaternion(kind: str, name: str, value: Any) -> tuple[float, ...]:
    """A quaternion w, x, y, z, made a unit quaternion; one far from that is refused."""
    v = vector(kind, name, value, 4)
    norm = float(np.linalg.norm(v))
    if abs(norm - 1) > numbers.QUATERNION:
        raise ShapeError(
            f"{kind}: {name} = {shown(value)} has the length {norm:.4g}; "
            "a quaternion w, x, y, z must have length 1: divide it by its length"
        )
    return direction(kind, name, v, 4)


def direction(kind: str, name: str, value: Any, length: int) -> tuple[float, ...]:
    """A vector of any length but zero, made a unit vector."""
    v = np.array(vector(kind, name, value, length, largest=np.inf))
    largest = float(np.max(np.abs(v)))
    if largest == 0:
        raise ShapeError(f"{kind}: {name} = {shown(value)} must not be zero; give a direction")
    if abs(float(np.linalg.norm(v / largest)) * largest - 1) < 4 * np.finfo(float).eps:
        return tuple(v.tolist())  # a unit vector is kept bit for bit, so that saved shapes load unchanged
    v = v / largest  # first, because the squares of large or small components leave the number range
    return tuple((v / np.linalg.norm(v)).tolist())
