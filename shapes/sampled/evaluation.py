"""A CasADi function at many points: in blocks, through buffers, and never more often than is worth it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import casadi as ca
import numpy as np

from implicit_geom.process.threads import building
from implicit_geom.shapes.errors import ShapeError

CALL = 8000  # instructions in whose time Python makes a call
BLOCKS = (2048, 64)  # points in one call; each size is a function of its own, made when it is first needed


class Pointwise:
    """`function` of (n, k) arrays, one row a point; the same bits as CasADi gives one by one.

    Its instructions are counted in `allowed`, which the functions of a shape share: a formula of a few
    characters can ask for hours of ray casting.
    """

    def __init__(self, function: ca.Function, allowed: Allowance) -> None:
        self.function, self.allowed = function, allowed
        self.length = function.n_instructions()
        self._blocks: dict[int, Any] = {}

    def __call__(self, *inputs: np.ndarray) -> np.ndarray:
        n = len(inputs[0])
        self.allowed.spend(CALL + max(n, BLOCKS[-1]) * self.length)
        found = np.empty((n, self.function.nnz_out(0)))
        start = 0
        for size in BLOCKS:
            while n - start >= size or (size == BLOCKS[-1] and start < n):
                stop = min(start + size, n)
                with building():  # (all threads share the buffers)
                    found[start:stop] = self._block(size, [given[start:stop] for given in inputs])
                start = stop
        return found

    def _block(self, size: int, inputs: list[np.ndarray]) -> np.ndarray:
        if size not in self._blocks:
            self._blocks[size] = self._prepare(size)
        arrays, out, trigger, _ = self._blocks[size]
        n = len(inputs[0])
        for array, given in zip(arrays, inputs, strict=True):
            array[:n] = given
            array[n:] = given[-1]
        trigger()
        return cast(np.ndarray, out[:n])

    def _prepare(self, size: int) -> tuple[list[np.ndarray], np.ndarray, Any, Any]:
        mapped = self.function.map(size)
        arrays = [np.zeros((size, self.function.nnz_in(i))) for i in range(self.function.n_in())]
        out = np.zeros((size, self.function.nnz_out(0)))
        buffer, trigger = mapped.buffer()
        for i, array in enumerate(arrays):
            buffer.set_arg(i, memoryview(cast(Any, array)))
        buffer.set_res(0, memoryview(cast(Any, out)))
        return arrays, out, trigger, (buffer, mapped)  # the last two must live as long as the trigger


class Allowance:
    """How much arithmetic may be spent: any amount, except within `limit`."""

    def __init__(self) -> None:
        self.instructions, self.advice = np.inf, ""

    @contextmanager
    def limit(self, instructions: float, advice: str) -> Iterator[None]:
        """Within it, more than so many instructions end in a ShapeError with this advice."""
        self.instructions, self.advice = instructions, advice
        try:
            yield
        finally:
            self.instructions = np.inf

    def spend(self, instructions: int) -> None:
        self.instructions -= instructions
        if self.instructions < 0:
            raise ShapeError(self.advice)
