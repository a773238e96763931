"""LLVM types and instructions for numbers with one lane a scene: constants, intrinsics, multiply-add."""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

DOUBLE = ir.DoubleType()
POINTER = ir.PointerType()


@cache
def can_fuse() -> bool:
    """Whether the processor has a fused multiply-add."""
    return platform.machine() in ("aarch64", "arm64") or bool(llvm.get_host_cpu_features().get("fma", False))


def number(lanes: int) -> ir.Type:
    """The type of a number: one lane a scene."""
    return DOUBLE if lanes == 1 else ir.VectorType(DOUBLE, lanes)


def constant(value: float, lanes: int) -> ir.Constant:
    return ir.Constant(number(lanes), value if lanes == 1 else [value] * lanes)


def intrinsic(module: ir.Module, name: str, lanes: int, arguments: int) -> ir.Function:
    """llvm.name for the number type."""
    kind = number(lanes)
    suffix = "f64" if lanes == 1 else f"v{lanes}f64"
    return declared(module, f"llvm.{name}.{suffix}", ir.FunctionType(kind, [kind] * arguments))


def fused(b: ir.IRBuilder, lanes: int, x: Any, y: Any, z: Any) -> Any:
    """x y + z, rounded once where the processor can."""
    if can_fuse():
        return b.call(intrinsic(b.module, "fma", lanes, 3), [x, y, z])
    return b.fadd(b.fmul(x, y), z)


def declared(module: ir.Module, name: str, kind: ir.FunctionType) -> ir.Function:
    """A function of another library, declared once in a module."""
    if name in module.globals:
        return module.globals[name]
    return ir.Function(module, kind, name)
