"""Checks of given values that name what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from implicit_geom.interface import numbers
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.numbers import QUATERNION
from implicit_geom.interface.words import hint, shown

__all__ = ["choice", "hint", "name_of", "number", "positive", "quaternion", "vector"]

LONGEST_NAME = 200


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    try:
        real = numbers.number(value)
    except numbers.NotNumbers as error:
        wanted = "a positive number" if str(error) == "a number" else f"positive and {error}"
        raise SceneError(f"{name} = {shown(value)} must be {wanted}") from None
    if real <= 0:
        raise SceneError(f"{name} = {shown(value)} must be positive and finite")
    return real


def number(field: str, value: Any, *, largest: float = numbers.LARGEST) -> float:
    """A finite number."""
    try:
        return numbers.number(value, largest=largest)
    except numbers.NotNumbers as error:
        raise SceneError(f"{field} = {shown(value)} must be {error}") from None


def vector(field: str, value: Any, *shape: int, largest: float = numbers.LARGEST) -> np.ndarray:
    """Finite numbers in an array of the given shape."""
    try:
        return numbers.array(value, shape, largest=largest)
    except numbers.NotNumbers as error:
        raise SceneError(f"{field} = {shown(value)} must be {error}") from None


def quaternion(field: str, value: Any) -> np.ndarray:
    """A quaternion w, x, y, z of about unit length; (4,), as it was given."""
    q = vector(field, value, 4)
    norm = float(np.linalg.norm(q))
    if abs(norm - 1) > QUATERNION:
        raise SceneError(
            f"{field} = {shown(value)} has the length {norm:.4g}; "
            "a quaternion w, x, y, z must have length 1: divide it by its length"
        )
    return q


def name_of(field: str, value: Any) -> str:
    """A name that can be printed, saved and typed: a text of visible characters."""
    if not isinstance(value, str) or not value:
        raise SceneError(f"{field} = {shown(value)} must be a non-empty text")
    if not value.isprintable():
        raise SceneError(f"{field} = {shown(value)} must have no line breaks or other control characters")
    if len(value) > LONGEST_NAME:
        raise SceneError(f"{field} = {shown(value)} must have at most {LONGEST_NAME} characters")
    return value


def choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """One of a closed set of names."""
    allowed = tuple(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise SceneError(f"{name} = {shown(value)} is not known{hint(value, allowed)}")
