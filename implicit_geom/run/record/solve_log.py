"""The solves that a run keeps, packed in blocks, so that long runs fit in memory.

An array is unpacked when it is asked for. A block holds whole steps; nothing is copied when the run ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from implicit_geom.model.model import State
from implicit_geom.model.solve_arrays import BLOCK, PARTS, SolveArrays
from implicit_geom.run.record.packing import Form, Packed, as_it_is

ARRAYS = ("table", *PARTS, "half", "bodies", "contacts")
KEPT = 1 << 25  # bytes: an unpacked array up to this size is kept for the next time


class SolveLog:
    """All solves of a run."""

    def __init__(self, empty: SolveArrays) -> None:
        self._blocks: list[dict[str, Packed]] = []
        self._empty = empty
        self._kept: dict[str, np.ndarray] = {}
        self._starts = [0]  # number of the first solve of each block, and of the next

    @staticmethod
    def of(solves: SolveArrays | SolveLog, block: int = BLOCK) -> SolveLog:
        """The log of solves that are at hand as arrays, packed by at least `block`: a step is never cut."""
        if isinstance(solves, SolveLog):
            return solves
        log = SolveLog(solves.part(0, 0))
        step = solves.table["step"]
        first = 0
        while first < len(solves):
            wanted = min(first + block, len(solves)) - 1
            last = int(np.searchsorted(step, step[wanted], side="right"))
            log.add(solves.part(first, last))
            first = last
        return log

    def __len__(self) -> int:
        return self._starts[-1]

    def copy(self) -> SolveLog:
        """A log of its own, of the same blocks."""
        twin = SolveLog(self._empty)
        twin._blocks, twin._starts = list(self._blocks), list(self._starts)
        return twin

    def add(self, solves: SolveArrays) -> None:
        """SolveArrays of whole steps, as a run of their own but for the numbers of the steps."""
        if len(solves):
            self._blocks.append({name: Packed(getattr(solves, name)) for name in ARRAYS})
            self._starts.append(len(self) + len(solves))
            self._kept = {}

    def pop(self, step: int) -> SolveArrays:
        """Take the solves of a step, the last one, out of the log."""
        if not self._blocks:
            return self._empty
        whole = self.part(self._starts[-2], len(self))
        cut = int(np.searchsorted(whole.table["step"], step))
        self._blocks.pop()
        self._starts.pop()
        self._kept = {}
        self.add(whole.part(0, cut))
        return whole.part(cut, len(whole))

    def blocks(self) -> Iterator[SolveArrays]:
        """The solves in order, as runs of their own."""
        for first, last in zip(self._starts, self._starts[1:]):
            yield self.part(first, last)

    def part(self, first: int, last: int) -> SolveArrays:
        """The solves first <= i < last as a run of their own."""
        found = []
        for block, start in self._within(first, last):
            rows = slice(max(first - start, 0), last - start)
            numbers = block["contacts"].column("solve")
            stop = min(last - start, len(block["table"]))
            inside = np.flatnonzero((numbers >= rows.start) & (numbers < stop))
            contacts = block["contacts"].unpack(inside)
            contacts["solve"] -= rows.start
            states = {name: block[name].unpack(rows) for name in ARRAYS[:-1]}
            found.append(SolveArrays(contacts=contacts, **states))
        return joined(found) if found else self._empty

    def _within(self, first: int, last: int) -> Iterator[tuple[dict[str, Packed], int]]:
        """The blocks that hold the solves first <= i < last, and where they start."""
        here = max(int(np.searchsorted(self._starts, first, side="right")) - 1, 0)
        while here < len(self._blocks) and self._starts[here] < last:
            yield self._blocks[here], self._starts[here]
            here += 1

    def end(self, i: int) -> State:
        """The state at the end of solve i."""
        i = range(len(self))[i]
        ((block, start),) = self._within(i, i + 1)
        at = slice(i - start, i - start + 1)
        row = block["table"].unpack(at)[0]
        return State(float(row["time"] + row["h"]), *(block[part].unpack(at)[0] for part in PARTS))

    def column(self, array: str, name: str, form: Form = as_it_is) -> np.ndarray:
        """A field of `table` or `contacts`, block by block in another form."""
        found = [form(block[array].column(name)) for block in self._blocks]
        if name == "solve":  # (numbers within a block)
            found = [numbers + start for numbers, start in zip(found, self._starts)]
        return np.concatenate(found) if found else form(getattr(self._empty, array)[name])

    def ends(self, part: str, rows: np.ndarray, body: int) -> np.ndarray:
        """x, q, v or w of a body at the ends of some solves, whose numbers do not fall."""
        out = np.empty((len(rows), *getattr(self._empty, part).shape[2:]))
        cuts = np.searchsorted(rows, self._starts)
        for block, start, a, b in zip(self._blocks, self._starts, cuts, cuts[1:]):
            out[a:b] = block[part].one(body, rows[a:b] - start)
        return out

    def _array(self, name: str) -> np.ndarray:
        if name in self._kept:
            return self._kept[name]
        like = getattr(self._empty, name)
        rows = sum(len(block[name]) for block in self._blocks)
        out = np.empty((rows, *like.shape[1:]), like.dtype)
        first = 0
        for block, start in zip(self._blocks, self._starts):
            own = out[first : first + len(block[name])]
            own[:] = block[name].unpack()
            if name == "contacts":
                own["solve"] += start
            first += len(own)
        if out.nbytes <= KEPT:
            self._kept[name] = out
        return out

    def __getattr__(self, name: str) -> np.ndarray:
        """table, x, q, v, w, half, bodies, contacts: unpacked."""
        if name not in ARRAYS:
            raise AttributeError(name)
        return self._array(name)

    def solves(self) -> SolveArrays:
        """All arrays, unpacked."""
        return SolveArrays(**{name: self._array(name) for name in ARRAYS})

    @property
    def nbytes(self) -> int:
        return sum(packed.nbytes for block in self._blocks for packed in block.values())


def joined(parts: list[SolveArrays]) -> SolveArrays:
    """Runs of their own as one."""
    if len(parts) == 1:
        return parts[0]
    together = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    together["contacts"]["solve"] += np.repeat(starts, [len(part.contacts) for part in parts])
    return SolveArrays(**together)
