"""Arrays that compiled code reads and writes by address: aligned for vectors, and kept as long as needed."""

from __future__ import annotations

from typing import Any

import numpy as np

ALIGNMENT = 64  # bytes


def aligned(*shape: int) -> np.ndarray:
    """Zeros, aligned for the processor's vectors."""
    size = int(np.prod(shape))
    raw = np.zeros(size + ALIGNMENT // 8)
    skip = (-raw.ctypes.data % ALIGNMENT) // 8
    return raw[skip : skip + size].reshape(shape)


class LaneArrays:
    """Makes arrays with a last axis of lanes, and holds all whose addresses some table has."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._held: list[np.ndarray] = []

    def numbers(self, *shape: int) -> np.ndarray:
        """Zeros (*shape, lanes)."""
        out = aligned(*shape, self.lanes)
        self._held.append(out)
        return out

    def integers(self, values: Any) -> np.ndarray:
        """Integers, the same for all lanes."""
        out = np.ascontiguousarray(values, np.int64)
        self._held.append(out)
        return out

    def table(self, size: int, entries: dict[Any, Any]) -> np.ndarray:
        """A table of addresses and integers, by slot."""
        return fill_table(self.integers(np.zeros(size)), entries)


def fill_table(table: np.ndarray, entries: dict[Any, Any]) -> np.ndarray:
    """Write integers, and addresses of arrays, to their slots."""
    for slot, value in entries.items():
        table[slot] = value.ctypes.data if isinstance(value, np.ndarray) else value
    return table
