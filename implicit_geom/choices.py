"""Checks of given values that name what would be right."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from implicit_geom.errors import SceneError


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
