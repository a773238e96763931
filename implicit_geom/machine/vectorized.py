"""CasADi functions evaluated for many columns at once, with NumPy arrays for inputs and outputs."""

from __future__ import annotations

from threading import local
from typing import Any, cast

import casadi as ca
import numpy as np

from implicit_geom.machine.availability import available
from implicit_geom.process.threads import BUILDING

COMPILED = 64  # columns for which machine code is worth making


class ThreadSafeFunction:
    """A function of one column that any thread may call: each has arrays of its own."""

    def __init__(self, function: ca.Function) -> None:
        self._function = function
        self._own = local()

    def __call__(self, *inputs: Any) -> list[np.ndarray]:
        """Evaluate. The arrays returned are overwritten by the thread's next call."""
        try:
            mapped = self._own.mapped
        except AttributeError:
            mapped = self._own.mapped = VectorizedFunction(self._function, 1)
        return [out[0] for out in mapped(*inputs)]


class VectorizedFunction:
    """A function evaluated for n columns; inputs and outputs are NumPy arrays (n, rows), kept and reused.

    Outputs hold the structural nonzeros. Many columns are evaluated in machine code, where that can be had.
    In CasADi the number of columns is rounded up to a power of two, so that few mapped functions are ever
    made; the extra columns repeat the last one.
    """

    def __init__(self, function: ca.Function, n: int) -> None:
        self.n = n
        compiled = n >= COMPILED and available() and function.is_a("SXFunction")
        width = n if compiled else 1 << (n - 1).bit_length()
        self.inputs = [np.zeros((width, function.nnz_in(i))) for i in range(function.n_in())]
        self.outputs = [np.zeros((width, function.nnz_out(i))) for i in range(function.n_out())]
        if compiled:
            from implicit_geom.machine.compiled_vectorized import over_columns

            call = over_columns(function)
            places = [array.ctypes.data for array in (*self.inputs, *self.outputs)]
            self._trigger: Any = lambda: call(n, *places)
            return
        with BUILDING:
            mapped = function if width == 1 else function.map(width)
            # the buffer object must live as long as the trigger: CasADi keeps no reference to it
            self._buffer, self._trigger = mapped.buffer()
        self._function = mapped
        for i, array in enumerate(self.inputs):
            self._buffer.set_arg(i, memoryview(cast(Any, array)))
        for i, array in enumerate(self.outputs):
            self._buffer.set_res(i, memoryview(cast(Any, array)))

    def __call__(self, *inputs: Any) -> list[np.ndarray]:
        """Evaluate; None keeps an input as it is. The arrays returned are overwritten by the next call."""
        for array, value in zip(self.inputs, inputs, strict=True):
            if value is not None:
                array[: self.n] = value
                array[self.n :] = array[self.n - 1]
        self._trigger()
        return [out[: self.n] for out in self.outputs]
