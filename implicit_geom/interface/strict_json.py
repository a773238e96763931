"""JSON from files that may be damaged, or made to do harm."""

from __future__ import annotations

import json
import math
from typing import Any

LONGEST = 20  # digits of a whole number: all that 64 bits hold


def read_json(text: str | bytes) -> Any:
    """What a JSON text holds; ValueError in one line for anything else.

    A key twice, a whole number of more than 64 bits, a number too large for a float and nesting without end
    are refused. The words NaN and Infinity are read: who uses the content says where they may be (`finite`).
    """
    try:
        return json.loads(text, object_pairs_hook=_table, parse_int=_whole, parse_float=_float)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def finite(value: Any, where: str) -> Any:
    """The same value, once no number in it is NaN or infinite; ValueError names the place."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} = {value} must be finite")
    if isinstance(value, dict):
        for key, entry in value.items():
            finite(entry, f"{where}.{key}")
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            if not isinstance(entry, float) or not math.isfinite(entry):
                finite(entry, f"{where}[{i}]")
    return value


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a key is there twice")
    return table


def _whole(text: str) -> int:
    if len(text) > LONGEST:
        raise ValueError(f"the whole number {text[:LONGEST]}... is too long")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:LONGEST]} is too large")
    return number
