"""One small function kept as an object file: made, counted, loaded as another process would, and tried."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
from llvmlite import ir
from machine_code import call, lanes_of

from implicit_geom.machine import object_cache
from implicit_geom.machine.lowering import lower
from implicit_geom.process.building import Kept

NAME = "the double of a number"


class Maker:
    """Makes a module and counts how often."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> tuple[ir.Module, dict[str, Any]]:
        self.count += 1
        module, x = ir.Module("test"), ca.SX.sym("x")
        lower(module, "double", ca.Function("f", [x], [2 * x]))
        return module, {"note": [1, 2], "text": "a\nb"}


def works(code: object_cache.LoadedCode) -> bool:
    out = lanes_of(np.zeros((1, 1)), 1)
    call(code, "double", lanes_of([[21.0]], 1), out)
    return bool(out[0, 0] == 42.0) and code.notes == {"note": [1, 2], "text": "a\nb"}


def load_anew(make: Maker) -> object_cache.LoadedCode:
    """As another process would."""
    object_cache._LOADED = Kept(8)
    return object_cache.load(NAME, make)
