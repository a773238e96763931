"""A small language for the loops around the lowered equations: Python that writes LLVM code.

    with c.loop(n) as i:                # for i in range(n), n known only when the code runs
        total.set(total.get() + a[i] * b[i])
    with c.when(any_lane(bad)):         # branches are taken for all lanes together
        ...

Numbers have one lane a scene. What differs between lanes is chosen by `select(mask, yes, no)`; a branch
is taken where any lane wants it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from implicit_geom.machine.lowering import POINTER, constant, fused, intrinsic, number

I64 = ir.IntType(64)


class Module:
    """A module that grows function by function, all for the same number of lanes."""

    def __init__(self, name: str, lanes: int) -> None:
        self.ir = ir.Module(name)
        self.lanes = lanes
        self.T = number(lanes)

    @contextmanager
    def function(self, name: str, arguments: str, public: bool = False) -> Iterator[tuple[Code, list[Any]]]:
        """A function of the given arguments, a letter each: n array of numbers, w array of whole numbers,
        i whole number. What is returned (a whole number) is set by `Code.finish`; zero otherwise."""
        kinds = [I64 if a == "i" else POINTER for a in arguments]
        target = ir.Function(self.ir, ir.FunctionType(I64, kinds), name)
        target.attributes.add("nounwind")
        if not public:
            target.linkage = "internal"
            target.attributes.add("noinline")  # inlined loops take long to compile and gain nothing
        code = Code(self, ir.IRBuilder(target.append_basic_block()), target)
        wrapped: list[Any] = []
        for letter, argument in zip(arguments, target.args, strict=True):
            if letter == "i":
                wrapped.append(Whole(code, argument))
            else:
                wrapped.append(Array(code, argument, "n" if letter == "n" else "w"))
        yield code, wrapped
        if not code.b.block.is_terminated:
            code.b.ret(ir.Constant(I64, 0))


@dataclass(frozen=True)
class Whole:
    """A whole number, the same for all lanes."""

    c: Code
    v: Any

    def _other(self, other: Any) -> Any:
        return other.v if isinstance(other, Whole) else ir.Constant(I64, other)

    def __add__(self, other: Any) -> Whole:
        return Whole(self.c, self.c.b.add(self.v, self._other(other)))

    def __sub__(self, other: Any) -> Whole:
        return Whole(self.c, self.c.b.sub(self.v, self._other(other)))

    def __mul__(self, other: Any) -> Whole:
        return Whole(self.c, self.c.b.mul(self.v, self._other(other)))

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

    c: Code
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

    c: Code
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
    """A place in memory, of numbers ("n") or of whole numbers and addresses ("w")."""

    c: Code
    pointer: Any
    kind: str

    def _at(self, index: Any) -> Any:
        at = index.v if isinstance(index, Whole) else ir.Constant(I64, index)
        return self.c.b.gep(self.pointer, [at], source_etype=self.c.T if self.kind == "n" else I64)

    def __getitem__(self, index: Any) -> Any:
        if self.kind == "n":
            return Number(self.c, self.c.b.load(self._at(index), typ=self.c.T))
        return Whole(self.c, self.c.b.load(self._at(index), typ=I64))

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.kind == "n":
            self.c.b.store(self.c.number(value).v, self._at(index))
        else:
            self.c.b.store(value.v if isinstance(value, Whole) else ir.Constant(I64, value), self._at(index))

    def add(self, index: Any, value: Any) -> None:
        self[index] = self[index] + value

    def part(self, index: Any) -> Array:
        """The array from an element on."""
        return Array(self.c, self._at(index), self.kind)

    def array(self, index: Any, kind: str) -> Array:
        """The array whose address is element `index`."""
        return Array(self.c, self.c.b.load(self._at(index), typ=POINTER), kind)


class Variable:
    """A number, or a whole number, that changes."""

    def __init__(self, c: Code, value: Number | Whole) -> None:
        self.c, self.kind = c, type(value)
        with c.b.goto_entry_block():
            self.place = c.b.alloca(value.v.type)
        self.set(value)

    def get(self) -> Any:
        kind = self.c.T if self.kind is Number else I64
        return self.kind(self.c, self.c.b.load(self.place, typ=kind))

    def set(self, value: Any) -> None:
        if not isinstance(value, Number | Whole):
            value = self.c.number(value) if self.kind is Number else self.c.whole(value)
        self.c.b.store(value.v, self.place)


class Code:
    """The body of a function being written."""

    def __init__(self, module: Module, builder: ir.IRBuilder, function: ir.Function) -> None:
        self.module, self.b, self.f = module, builder, function
        self.lanes, self.T = module.lanes, module.T

    def number(self, value: Any) -> Number:
        return value if isinstance(value, Number) else Number(self, constant(float(value), self.lanes))

    def whole(self, value: Any) -> Whole:
        return value if isinstance(value, Whole) else Whole(self, ir.Constant(I64, value))

    def variable(self, value: Any) -> Variable:
        return Variable(self, self.number(value))

    def counter(self, value: Any = 0) -> Variable:
        return Variable(self, self.whole(value))

    def mask(self, value: Number) -> Mask:
        """Where a number is not zero."""
        return value.differs(0.0)

    def everywhere(self, condition: Any) -> Mask:
        """A condition that holds in all lanes or in none."""
        bits: Any = ir.IntType(1)
        no, yes = (_same(bits, value, self.lanes) for value in (0, 1))
        return Mask(self, self.b.select(condition, yes, no) if condition is not True else yes)

    def call_intrinsic(self, name: str, *arguments: Number) -> Number:
        called = intrinsic(self.module.ir, name, self.lanes, len(arguments))
        return Number(self, self.b.call(called, [a.v for a in arguments]))

    def call(self, name: str, *arguments: Any) -> Whole:
        """Call a function of this module."""
        values = [
            a.pointer if isinstance(a, Array) else a.v if isinstance(a, Whole) else ir.Constant(I64, a)
            for a in arguments
        ]
        return Whole(self, self.b.call(self.module.ir.globals[name], values))

    def run(self, function: ir.Function, *arguments: Array) -> None:
        """Call a lowered SX function of this module."""
        self.b.call(function, [a.pointer for a in arguments])

    def call_at(self, address: Whole, *arguments: Array) -> None:
        """Call a lowered SX function at an address."""
        kind = ir.FunctionType(ir.VoidType(), [POINTER] * len(arguments))
        pointer = self.b.inttoptr(address.v, POINTER)
        # a call through an opaque pointer needs the type said
        self.b.call(_Callee(pointer, kind), [a.pointer for a in arguments])

    @contextmanager
    def loop(self, count: Any, start: Any = 0) -> Iterator[Whole]:
        """for i in range(start, count)."""
        i = self.counter(start)
        check, body, after = (self.f.append_basic_block() for _ in range(3))
        self.b.branch(check)
        self.b.position_at_end(check)
        self.b.cbranch(i.get() < count, body, after)
        self.b.position_at_end(body)
        outer, self._after = getattr(self, "_after", None), after
        yield i.get()
        self._after = outer
        i.set(i.get() + 1)
        self.b.branch(check)
        self.b.position_at_end(after)

    def leave(self, condition: Any) -> None:
        """End the innermost loop where the condition holds."""
        on = self.f.append_basic_block()
        self.b.cbranch(condition, self._after, on)
        self.b.position_at_end(on)

    @contextmanager
    def when(self, condition: Any) -> Iterator[None]:
        """Where the condition holds."""
        body, after = self.f.append_basic_block(), self.f.append_basic_block()
        self.b.cbranch(condition, body, after)
        self.b.position_at_end(body)
        yield
        if not self.b.block.is_terminated:
            self.b.branch(after)
        self.b.position_at_end(after)

    def finish(self, value: Any = 0) -> None:
        """Return from the function."""
        self.b.ret(self.whole(value).v)

    def fill(self, array: Array, count: Any, value: float) -> None:
        with self.loop(count) as i:
            array[i] = value

    def copy(self, target: Array, source: Array, count: Any) -> None:
        with self.loop(count) as i:
            target[i] = source[i]

    def copy_where(self, mask: Mask, target: Array, source: Array, count: Any) -> None:
        """Copy in the lanes of the mask."""
        if self.lanes == 1:
            with self.when(mask.v):
                self.copy(target, source, count)
            return
        with self.loop(count) as i:
            target[i] = mask.select(source[i], target[i])


def _same(kind: Any, value: int, lanes: int) -> ir.Constant:
    """A constant in all lanes."""
    if lanes == 1:
        return ir.Constant(kind, value)
    return ir.Constant(ir.VectorType(kind, lanes), [value] * lanes)


class _Callee:
    """An address with the type of the function there, as IRBuilder.call wants it."""

    def __init__(self, pointer: Any, kind: ir.FunctionType) -> None:
        self.pointer = pointer
        self.function_type = self.ftype = kind
        self.type = ir.PointerType()

    def get_reference(self) -> str:
        return str(self.pointer.get_reference())
