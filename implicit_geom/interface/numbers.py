"""What counts as a number and as a vector: plain real numbers, nothing that merely turns into one.

Texts, true and false, complex numbers and masked arrays are refused although NumPy would take them: each is
more likely a mistake than a length. The reasons read on after "must be ...": "r = '1' must be a number".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LARGEST = 1e50  # products of masses, inertias and squares of lengths are still doubles
QUATERNION = 0.1  # of a quaternion's length from one: typed with few digits, not another quantity


class NotNumbers(ValueError):
    """Why a value is no number; worded as in `must be ...`."""


def number(value: Any, *, largest: float = LARGEST) -> float:
    """A finite real number, at most `largest` in size."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and not isinstance(value, np.ma.MaskedArray):
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise NotNumbers("a number")
    try:
        real = float(value)
    except OverflowError:  # an integer above 1e308
        raise NotNumbers(f"at most {min(largest, 1e308):g} in size") from None
    if not math.isfinite(real):
        raise NotNumbers("finite")
    if abs(real) > largest:
        raise NotNumbers(f"at most {largest:g} in size")
    return real


def array(value: Any, shape: tuple[int, ...], *, largest: float = LARGEST) -> np.ndarray:
    """Finite real numbers in an array of a shape; lists, tuples and arrays are taken."""
    wanted = " x ".join(map(str, shape)) + " numbers"
    try:
        return np.array(_nested(value, shape, largest), float)
    except NotNumbers as error:
        raise NotNumbers(wanted if str(error) == "a number" else f"{wanted}, each {error}") from None


def _nested(value: Any, shape: tuple[int, ...], largest: float) -> Any:
    if not shape:
        return number(value, largest=largest)
    if isinstance(value, np.ma.MaskedArray):
        raise NotNumbers("a number of a plain array, not of a masked one")
    if not isinstance(value, list | tuple | np.ndarray) and hasattr(value, "__array__"):
        value = np.asarray(value)  # a column of a table, say
    listed = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
    if not listed or len(value) != shape[0]:
        raise NotNumbers("a number")
    return [_nested(v, shape[1:], largest) for v in value]
