"""Functions with loops and branches as LLVM code, written by Python that reads like the loops themselves.

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
from typing import Any

from llvmlite import ir

from implicit_geom.machine.code_values import I64, Array, Emitter, Integer, Mask, Number, Variable
from implicit_geom.machine.instructions import POINTER, number


class ModuleWriter:
    """A module that grows function by function, all for the same number of lanes."""

    def __init__(self, name: str, lanes: int) -> None:
        self.ir = ir.Module(name)
        self.lanes = lanes
        self.T = number(lanes)

    @contextmanager
    def function(
        self, name: str, arguments: str, public: bool = False
    ) -> Iterator[tuple[CodeWriter, list[Any]]]:
        """A function of the given arguments, a letter each: n array of numbers, w array of integers and
        addresses, i integer. What is returned (an integer) is set by `CodeWriter.ret`; zero otherwise."""
        kinds = [I64 if a == "i" else POINTER for a in arguments]
        target = ir.Function(self.ir, ir.FunctionType(I64, kinds), name)
        target.attributes.add("nounwind")
        if not public:
            target.linkage = "internal"
            target.attributes.add("noinline")  # inlined loops take long to compile and gain nothing
        code = CodeWriter(self, ir.IRBuilder(target.append_basic_block()), target)
        wrapped: list[Any] = []
        for letter, argument in zip(arguments, target.args, strict=True):
            if letter == "i":
                wrapped.append(Integer(code, argument))
            else:
                wrapped.append(Array(code, argument, "n" if letter == "n" else "w"))
        yield code, wrapped
        if not code.b.block.is_terminated:
            code.b.ret(ir.Constant(I64, 0))


class CodeWriter(Emitter):
    """The body of a function being written."""

    def __init__(self, module: ModuleWriter, builder: ir.IRBuilder, function: ir.Function) -> None:
        super().__init__(builder, module.lanes)
        self.module, self.f = module, function
        self._after: Any = None  # the block behind the innermost loop

    def variable(self, value: Any) -> Variable:
        return Variable(self, self.number(value))

    def counter(self, value: Any = 0) -> Variable:
        return Variable(self, self.integer(value))

    def mask(self, value: Number) -> Mask:
        """Where a number is not zero."""
        return value.differs(0.0)

    def uniform(self, condition: Any) -> Mask:
        """A condition that holds in all lanes or in none."""
        bits: Any = ir.IntType(1)
        no, yes = (_same(bits, value, self.lanes) for value in (0, 1))
        return Mask(self, self.b.select(condition, yes, no) if condition is not True else yes)

    def call(self, name: str, *arguments: Any) -> Integer:
        """Call a function of this module."""
        values = [
            a.pointer if isinstance(a, Array) else a.v if isinstance(a, Integer) else ir.Constant(I64, a)
            for a in arguments
        ]
        return Integer(self, self.b.call(self.module.ir.globals[name], values))

    def call_lowered(self, function: ir.Function, *arguments: Array) -> None:
        """Call a lowered SX function of this module."""
        self.b.call(function, [a.pointer for a in arguments])

    def call_address(self, address: Integer, *arguments: Array) -> None:
        """Call a lowered SX function at an address."""
        kind = ir.FunctionType(ir.VoidType(), [POINTER] * len(arguments))
        pointer = self.b.inttoptr(address.v, POINTER)
        # a call through an opaque pointer needs the type said
        self.b.call(_Callee(pointer, kind), [a.pointer for a in arguments])

    @contextmanager
    def loop(self, count: Any, start: Any = 0) -> Iterator[Integer]:
        """for i in range(start, count)."""
        i = self.counter(start)
        check, body, after = (self.f.append_basic_block() for _ in range(3))
        self.b.branch(check)
        self.b.position_at_end(check)
        self.b.cbranch(i.get() < count, body, after)
        self.b.position_at_end(body)
        outer, self._after = self._after, after
        yield i.get()
        self._after = outer
        i.set(i.get() + 1)
        self.b.branch(check)
        self.b.position_at_end(after)

    def break_if(self, condition: Any) -> None:
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

    def ret(self, value: Any = 0) -> None:
        """Return from the function."""
        self.b.ret(self.integer(value).v)

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
