"""An SX function in machine code, evaluated for many columns in one call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import casadi as ca
from llvmlite import ir

from implicit_geom.machine.instructions import DOUBLE, POINTER
from implicit_geom.machine.lowering import lower
from implicit_geom.machine.object_cache import load
from implicit_geom.process.building import Kept

WHOLE = ir.IntType(64)
_KNOWN: Kept[tuple[ca.Function, Callable[..., int]]] = Kept(256)  # by the function's identity, kept with it


def over_columns(function: ca.Function) -> Callable[..., int]:
    """The call (n, in_0, ..., out_0, ...) with addresses of arrays (n, nonzeros); kept with the function."""
    return _KNOWN.get(id(function), lambda: (function, _call(function)))[1]


def _call(function: ca.Function) -> Callable[..., int]:
    text = hashlib.sha256(function.serialize().encode()).hexdigest()
    code = load(f"columns {text}", lambda: (_module(function), {}))
    return code.function("columns", 1 + function.n_in() + function.n_out())


def _module(function: ca.Function) -> ir.Module:
    module = ir.Module("columns")
    one = lower(module, "one", function)
    one.linkage = "internal"
    strides = [function.nnz_in(i) for i in range(function.n_in())]
    strides += [function.nnz_out(i) for i in range(function.n_out())]
    kind = ir.FunctionType(WHOLE, [WHOLE] + [POINTER] * len(strides))
    target = ir.Function(module, kind, "columns")
    entry, body, done = (target.append_basic_block(name) for name in ("entry", "body", "done"))
    builder = ir.IRBuilder(entry)
    zero: Any = ir.Constant(WHOLE, 0)
    count = target.args[0]
    builder.cbranch(builder.icmp_signed(">", count, zero), body, done)
    builder.position_at_end(body)
    k = builder.phi(WHOLE)
    k.add_incoming(zero, entry)
    places = []
    for pointer, stride in zip(target.args[1:], strides, strict=True):
        offset = builder.mul(k, ir.Constant(WHOLE, stride))
        places.append(builder.gep(pointer, [offset], source_etype=DOUBLE))
    builder.call(one, places)
    following = builder.add(k, ir.Constant(WHOLE, 1))
    k.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, count), body, done)
    builder.position_at_end(done)
    builder.ret(zero)
    return module
