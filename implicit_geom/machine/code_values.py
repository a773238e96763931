"""Numbers, integers, truth values and arrays of machine code, with Python's operators: each writes LLVM code.

A number has one lane a scene; an integer, such as an index, is the same for all lanes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from implicit_geom.machine.instructions import POINTER, constant, fused, intrinsic, number

I64 = ir.IntType(64)


class Emitter:
    """Where instructions are appended: a builder of LLVM code, with the number of lanes."""

    def __init__(self, builder: ir.IRBuilder, lanes: int) -> None:
        self.b, self.lanes, self.T = builder, lanes, number(lanes)

    def number(self, value: Any) -> Number:
        return value if isinstance(value, Number) else Number(self, constant(float(value), self.lanes))

    def integer(self, value: Any) -> Integer:
        return value if isinstance(value, Integer) else Integer(self, ir.Constant(I64, value))

    def call_intrinsic(self, name: str, *arguments: Number) -> Number:
        called = intrinsic(self.b.module, name, self.lanes, len(arguments))
        return Number(self, self.b.call(called, [a.v for a in arguments]))


@dataclass(frozen=True)
class Integer:
    """An integer, the same for all lanes."""

    c: Emitter
    v: Any

    def _other(self, other: Any) -> Any:
        return other.v if isinstance(other, Integer) else ir.Constant(I64, other)

    def __add__(self, other: Any) -> Integer:
        return Integer(self.c, self.c.b.add(self.v, self._other(other)))

    def __sub__(self, other: Any) -> Integer:
        return Integer(self.c, self.c.b.sub(self.v, self._other(other)))

    def __mul__(self, other: Any) -> Integer:
        return Integer(self.c, self.c.b.mul(self.v, self._other(other)))

    def _compare(self, sign: str, other: Any) -> Any:
        return self.c.b.icmp_signed(sign, self.v, self._other(other))

    def __lt__(self, other: Any) -> Any:
        return self._compare("<", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", other)

    def equals(self, other: Any) -> Any:
        return self._compare("==", other)

    def differs(self, other: Any) -> Any:
        return self._compare("!=", other)


@dataclass(frozen=True)
class Number:
    """A number in each lane."""

    c: Emitter
    v: Any

    factors: tuple[Any, Any] | None = None  # of a product: a sum with it is rounded once

    def _other(self, other: Any) -> Any:
        return other.v if isinstance(other, Number) else constant(float(other), self.c.lanes)

    def __add__(self, other: Any) -> Number:
        return self._sum(other, minus=False)

    def __sub__(self, other: Any) -> Number:
        return self._sum(other, minus=True)

    def _sum(self, other: Any, minus: bool) -> Number:
        b, lanes, y = self.c.b, self.c.lanes, self._other(other)
        if self.factors is not None:
            return Number(self.c, fused(b, lanes, *self.factors, b.fneg(y) if minus else y))
        if isinstance(other, Number) and other.factors is not None:
            first, second = other.factors
            return Number(self.c, fused(b, lanes, b.fneg(first) if minus else first, second, self.v))
        return Number(self.c, b.fsub(self.v, y) if minus else b.fadd(self.v, y))

    def __mul__(self, other: Any) -> Number:
        factors = self.v, self._other(other)
        return Number(self.c, self.c.b.fmul(*factors), factors)

    def __truediv__(self, other: Any) -> Number:
        return Number(self.c, self.c.b.fdiv(self.v, self._other(other)))

    def __neg__(self) -> Number:
        return Number(self.c, self.c.b.fneg(self.v))

    def __abs__(self) -> Number:
        return self.c.call_intrinsic("fabs", self)

    def sqrt(self) -> Number:
        return self.c.call_intrinsic("sqrt", self)

    def _compare(self, sign: str, other: Any) -> Mask:
        return Mask(self.c, self.c.b.fcmp_ordered(sign, self.v, self._other(other)))

    def __lt__(self, other: Any) -> Mask:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Mask:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Mask:
        return self._compare(">", other)

    def differs(self, other: Any) -> Mask:
        return Mask(self.c, self.c.b.fcmp_unordered("!=", self.v, self._other(other)))

    def max(self, other: Any) -> Number:
        """The larger one; where one of them is NaN, either may come out."""
        value = self._other(other)
        kept = self.c.b.fcmp_ordered(">", self.v, value)
        return Number(self.c, self.c.b.select(kept, self.v, value))


@dataclass(frozen=True)
class Mask:
    """A truth value in each lane; false wherever a NaN was compared."""

    c: Emitter
    v: Any

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.c, self.c.b.and_(self.v, other.v))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.c, self.c.b.or_(self.v, other.v))

    def __invert__(self) -> Mask:
        return Mask(self.c, self.c.b.not_(self.v))

    def any(self) -> Any:
        """Whether it holds in some lane."""
        if self.c.lanes == 1:
            return self.v
        bits = ir.IntType(self.c.lanes)
        return self.c.b.icmp_unsigned("!=", self.c.b.bitcast(self.v, bits), ir.Constant(bits, 0))

    def select(self, yes: Any, no: Any) -> Number:
        return Number(self.c, self.c.b.select(self.v, self.c.number(yes).v, self.c.number(no).v))


@dataclass(frozen=True)
class Array:
    """A place in memory, of numbers ("n") or of integers and addresses ("w")."""

    c: Emitter
    pointer: Any
    kind: str

    def _at(self, index: Any) -> Any:
        at = index.v if isinstance(index, Integer) else ir.Constant(I64, index)
        return self.c.b.gep(self.pointer, [at], source_etype=self.c.T if self.kind == "n" else I64)

    def __getitem__(self, index: Any) -> Any:
        if self.kind == "n":
            return Number(self.c, self.c.b.load(self._at(index), typ=self.c.T))
        return Integer(self.c, self.c.b.load(self._at(index), typ=I64))

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.kind == "n":
            self.c.b.store(self.c.number(value).v, self._at(index))
        else:
            self.c.b.store(
                value.v if isinstance(value, Integer) else ir.Constant(I64, value), self._at(index)
            )

    def add(self, index: Any, value: Any) -> None:
        self[index] = self[index] + value

    def offset(self, index: Any) -> Array:
        """The array from an element on."""
        return Array(self.c, self._at(index), self.kind)

    def array(self, index: Any, kind: str) -> Array:
        """The array whose address is element `index`."""
        return Array(self.c, self.c.b.load(self._at(index), typ=POINTER), kind)


class Variable:
    """A number, or an integer, that changes."""

    def __init__(self, c: Emitter, value: Number | Integer) -> None:
        self.c, self.kind = c, type(value)
        with c.b.goto_entry_block():
            self.place = c.b.alloca(value.v.type)
        self.set(value)

    def get(self) -> Any:
        kind = self.c.T if self.kind is Number else I64
        return self.kind(self.c, self.c.b.load(self.place, typ=kind))

    def set(self, value: Any) -> None:
        if not isinstance(value, Number | Integer):
            value = self.c.number(value) if self.kind is Number else self.c.integer(value)
        self.c.b.store(value.v, self.place)
