"""The steps that a run keeps, packed in blocks; a column is unpacked when it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.model.solve_arrays import ASSESSED, BLOCK, KNOWN, PLAIN, STEP
from implicit_geom.run.record.packing import Form, Packed, as_it_is


class StepLog:
    """All steps of a run: `log["iterations"]`; the columns that follow from the solves are known in part."""

    def __init__(self) -> None:
        self._blocks: list[Packed] = []
        self._known: list[np.ndarray] = []

    @staticmethod
    def of(steps: np.ndarray | StepLog, known: int, block: int = BLOCK) -> StepLog:
        """The log of steps that are at hand as rows of `STEP`, the first `known` of them complete."""
        if isinstance(steps, StepLog):
            return steps
        log = StepLog()
        for first in range(0, len(steps), block):
            log.add(steps[first : first + block])
        log.assess(fields(steps[:known], KNOWN))
        return log

    def __len__(self) -> int:
        return sum(len(block) for block in self._blocks)

    @property
    def assessed(self) -> int:
        """How many rows, the first ones, are complete."""
        return sum(len(rows) for rows in self._known)

    def copy(self) -> StepLog:
        """A log of its own, of the same blocks."""
        twin = StepLog()
        twin._blocks, twin._known = list(self._blocks), list(self._known)
        return twin

    def add(self, rows: np.ndarray) -> None:
        """More steps, rows of `STEP`; of their assessed columns nothing is kept."""
        if len(rows):
            self._blocks.append(Packed(fields(rows, PLAIN)))

    def assess(self, known: np.ndarray) -> None:
        """The assessed columns of the first rows for which they were not known."""
        if len(known):
            self._known.append(known)

    def pop(self) -> np.ndarray:
        """Take the last row out of the log, a row of `STEP`."""
        rows, known = self._blocks.pop().unpack(), self._assessed()
        last = np.zeros(1, STEP)
        for name in PLAIN.names or ():
            last[name] = rows[name][-1]
        if len(rows) > 1:
            self._blocks.append(Packed(rows[:-1]))
        for name in ASSESSED:
            last[name] = known[name][-1] if len(known) > len(self) else np.nan
        self._known = [known[: len(self)]]
        return last

    def __getitem__(self, name: str) -> np.ndarray:
        return self.column(name)

    def column(self, name: str, form: Form = as_it_is) -> np.ndarray:
        """A column, block by block in another form."""
        if name in ASSESSED:
            out = np.full(len(self), np.nan)
            out[: self.assessed] = self._assessed()[name]
            return out
        found = [form(block.column(name)) for block in self._blocks]
        return np.concatenate(found) if found else form(np.zeros(0, PLAIN[name]))

    def last(self, name: str) -> Any:
        """A field of the last row."""
        return self._blocks[-1].column(name, slice(-1, None))[0]

    def rows(self) -> np.ndarray:
        """The table, as rows of `STEP`."""
        out = np.empty(len(self), STEP)
        first = 0
        for block in self._blocks:
            own = out[first : first + len(block)]
            for name in PLAIN.names or ():
                own[name] = block.column(name)
            first += len(own)
        for name in ASSESSED:
            out[name] = self[name]
        return out

    def _assessed(self) -> np.ndarray:
        """What is known of the assessed columns, in one piece."""
        if len(self._known) != 1:
            self._known = [np.concatenate([np.zeros(0, KNOWN), *self._known])]
        return self._known[0]


def fields(rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Some of the columns of a table, as a table."""
    out = np.empty(len(rows), dtype)
    for name in dtype.names or ():
        out[name] = rows[name]
    return out
