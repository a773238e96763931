"""Small modules compiled without the cache, and memory aligned for them."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
from llvmlite import ir

from implicit_geom.machine.lowering import lower
from implicit_geom.machine.object_cache import LoadedCode, _compile

ALIGNMENT = 64


def lanes_of(values: Any, lanes: int) -> np.ndarray:
    """A copy (..., lanes) of numbers (...) or (..., lanes), aligned for vectors."""
    values = np.asarray(values, float)
    if values.shape[-1:] != (lanes,) or values.ndim == 1:
        values = np.repeat(values[..., None], lanes, axis=-1)
    raw = np.full(values.size + ALIGNMENT // 8, np.nan)
    skip = (-raw.ctypes.data % ALIGNMENT) // 8
    out = raw[skip : skip + values.size].reshape(values.shape)
    out[...] = values
    return out


def compiled(module: ir.Module) -> LoadedCode:
    return LoadedCode(_compile(module), {})


def call(code: LoadedCode, name: str, *arguments: np.ndarray | int) -> int:
    """Call a function; arrays are passed by address."""
    values = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    return code.function(name, len(values))(*values)


def lowered(functions: dict[str, ca.Function], lanes: int) -> LoadedCode:
    module = ir.Module("test")
    for name, f in functions.items():
        lower(module, name, f, lanes)
    return compiled(module)
