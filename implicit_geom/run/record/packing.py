"""Arrays kept small, without losing a bit: what is the same in all rows is kept once.

Of each column (each component of a vector) only what changes from row to row is kept; whole numbers as their
distance from the smallest one, in as few bytes as that takes; texts as numbers of the texts that occur.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

ALL = slice(None)
SHORT = 1024  # rows: a long run has blocks of more
Form = Callable[[np.ndarray], np.ndarray]


def as_it_is(column: np.ndarray) -> np.ndarray:
    """No other form."""
    return column


class Packed:
    """An array, plain or structured, that will not change any more; a short one stays as it is."""

    def __init__(self, array: np.ndarray) -> None:
        self.dtype, self.count = array.dtype, len(array)
        self.whole = array if len(array) <= SHORT else None
        names = array.dtype.names
        self.columns: dict[str, _Column] = {}
        if self.whole is None:
            self.columns = {name: pack(array[name]) for name in names} if names else {"": pack(array)}

    def __len__(self) -> int:
        return self.count

    def column(self, name: str, rows: slice | np.ndarray = ALL) -> np.ndarray:
        """A field of a structured array, in some of its rows."""
        return self.columns[name].unpack(rows) if self.whole is None else self.whole[name][rows].copy()

    def one(self, i: int, rows: slice | np.ndarray = ALL) -> np.ndarray:
        """array[rows, i] of a plain array."""
        return self.columns[""].one(i, rows) if self.whole is None else self.whole[rows, i]

    def unpack(self, rows: slice | np.ndarray = ALL) -> np.ndarray:
        """The array, or some of its rows."""
        if self.whole is not None:
            return self.whole[rows].copy()
        if self.dtype.names is None:
            return self.columns[""].unpack(rows)
        parts = {name: column.unpack(rows) for name, column in self.columns.items()}
        out = np.empty(len(next(iter(parts.values()))), self.dtype)
        for name, values in parts.items():
            out[name] = values
        return out

    @property
    def nbytes(self) -> int:
        return self.whole.nbytes if self.whole is not None else sum(c.nbytes for c in self.columns.values())


class _Column:
    """Rows of which some components change: `first` is the first row, `kept` (rows, changing)."""

    def __init__(self, values: np.ndarray) -> None:
        self.dtype, self.shape = values.dtype, values.shape
        flat = np.ascontiguousarray(values).reshape(len(values), int(np.prod(values.shape[1:])))
        # floats are compared by their bits: NaN is NaN, and 0 is not -0
        bits = flat.view(np.int64) if self.dtype == np.float64 else flat
        self.first = flat[:1].copy()
        changing = np.any(bits != bits[:1], axis=0)
        self.changing = ALL if np.all(changing) else np.flatnonzero(changing)
        self._keep(flat[:, self.changing])

    def _keep(self, changing: np.ndarray) -> None:
        self.kept = changing.copy()

    def _kept(self, rows: slice | np.ndarray) -> np.ndarray:
        return np.asarray(self.kept[rows])

    def one(self, i: int, rows: slice | np.ndarray = ALL) -> np.ndarray:
        """The components at [:, i]."""
        size = int(np.prod(self.shape[2:]))
        first, last = i * size, (i + 1) * size
        here = slice(first, last)
        places: slice | np.ndarray = slice(0, size)
        if not isinstance(self.changing, slice):
            here = slice(*np.searchsorted(self.changing, (first, last)))
            places = self.changing[here] - first
        kept = self.kept[rows, here]
        out = np.empty((len(kept), size), self.dtype)
        out[:] = self.first[:, first:last]
        out[:, places] = kept
        return out.reshape(len(out), *self.shape[2:])

    def unpack(self, rows: slice | np.ndarray = ALL) -> np.ndarray:
        kept = self._kept(rows)
        out = np.empty((len(kept), self.first.shape[1]), self.dtype)
        if self.first.size:
            out[:] = self.first
        out[:, self.changing] = kept
        return out.reshape(len(out), *self.shape[1:])

    @property
    def nbytes(self) -> int:
        return int(self.first.nbytes + self.kept.nbytes)


class _Whole(_Column):
    """Whole numbers."""

    def _keep(self, changing: np.ndarray) -> None:
        self.least = changing.min(initial=0 if not changing.size else changing.flat[0])
        span = int(changing.max(initial=self.least)) - int(self.least)
        if span > np.iinfo(np.int64).max:
            self.least, self.kept = self.dtype.type(0), changing.copy()
        else:
            self.kept = (changing - self.least).astype(np.min_scalar_type(span))

    def _kept(self, rows: slice | np.ndarray) -> np.ndarray:
        return np.asarray(self.kept[rows].astype(self.dtype) + self.least)


class _Text(_Column):
    """Texts."""

    def _keep(self, changing: np.ndarray) -> None:
        self.texts, codes = np.unique(changing, return_inverse=True)
        self.kept = codes.reshape(changing.shape).astype(np.min_scalar_type(len(self.texts)))

    def _kept(self, rows: slice | np.ndarray) -> np.ndarray:
        codes = self.kept[rows]
        return np.asarray(self.texts[codes]) if codes.size else np.empty(codes.shape, self.dtype)


def pack(values: np.ndarray) -> _Column:
    """A column, kept in the way that suits its kind."""
    return {"i": _Whole, "u": _Whole, "U": _Text}.get(values.dtype.kind, _Column)(values)
