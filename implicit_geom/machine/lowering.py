"""CasADi's SX functions translated to LLVM code, one instruction each.

An SX function is a list of scalar instructions. Each becomes one LLVM instruction on numbers of the
type that the caller chooses: `double`, or a vector of doubles, one lane a scene. The function

    void name(T* in_0, ..., T* out_0, ...)

reads and writes the structural nonzeros of its inputs and outputs, in CasADi's order.

Rounding is decided here, not by LLVM, so that a scene gives the same bits alone and in a lane: a sum with a
product that nothing else uses is rounded once (`fused`), and where several numbers are divided by one, they
are multiplied by its reciprocal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import casadi as ca
from llvmlite import ir

from implicit_geom.machine.instructions import DOUBLE, POINTER, constant, declared, fused, intrinsic, number

Emit = Callable[..., Any]
Element = tuple[int, int]  # an input and a place in it
NOWHERE: Element = (-1, -1)

# instructions that a library call or an intrinsic of LLVM takes
INTRINSICS = {
    ca.OP_SQRT: "sqrt",
    ca.OP_SIN: "sin",
    ca.OP_COS: "cos",
    ca.OP_EXP: "exp",
    ca.OP_LOG: "log",
    ca.OP_POW: "pow",
    ca.OP_CONSTPOW: "pow",
    ca.OP_FABS: "fabs",
    ca.OP_FLOOR: "floor",
    ca.OP_CEIL: "ceil",
    ca.OP_COPYSIGN: "copysign",
}
LIBRARY = {
    ca.OP_TAN: "tan",
    ca.OP_ASIN: "asin",
    ca.OP_ACOS: "acos",
    ca.OP_ATAN: "atan",
    ca.OP_ATAN2: "atan2",
    ca.OP_SINH: "sinh",
    ca.OP_COSH: "cosh",
    ca.OP_TANH: "tanh",
}
COMPARISONS = {ca.OP_LT: "<", ca.OP_LE: "<=", ca.OP_EQ: "==", ca.OP_NE: "!="}


def divisors(function: ca.Function) -> set[Element]:
    """The elements of inputs that something is divided by."""
    found, origin = set(), dict[int, Element]()
    for k in range(function.n_instructions()):
        op, out, arguments = _instruction(function, k)
        if op == ca.OP_DIV and arguments[1] in origin:
            found.add(origin[arguments[1]])
        if op == ca.OP_INPUT:
            origin[out[0]] = arguments[0], arguments[1]
        elif op != ca.OP_OUTPUT:
            origin.pop(out[0], None)
    return found


def lower(
    module: ir.Module,
    name: str,
    function: ca.Function,
    lanes: int = 1,
    reciprocals: dict[Element, Element] | None = None,
) -> ir.Function:
    """Add an SX function to a module; `reciprocals` says which inputs have theirs among the inputs."""
    arguments = function.n_in() + function.n_out()
    target = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER] * arguments), name)
    target.attributes.add("nounwind")
    for argument in target.args:
        argument.add_attribute("noalias")
    builder = ir.IRBuilder(target.append_basic_block())
    _Lowering(builder, function, lanes, reciprocals or {}).run()
    builder.ret_void()
    return target


def _instruction(function: ca.Function, k: int) -> tuple[int, list[int], list[int]]:
    return function.instruction_id(k), function.instruction_output(k), function.instruction_input(k)


class _Lowering:
    """The state of one translation: which value each of CasADi's work registers holds."""

    def __init__(
        self, builder: ir.IRBuilder, function: ca.Function, lanes: int, reciprocals: dict[Element, Element]
    ) -> None:
        self.reciprocals = reciprocals
        self.origin: dict[int, Element] = {}  # registers that hold an input
        self.b = builder
        self.f = function
        self.lanes = lanes
        self.T = number(lanes)
        self.work: dict[int, Any] = {}
        self.truths: dict[int, Any] = {}  # comparisons: the same register as a truth value
        self.choices: dict[int, tuple[Any, Any]] = {}  # by value: what it was chosen by, where not zero
        self.opposites: dict[int, Any] = {}  # by truth value: the one it is the opposite of
        self.zero, self.one = constant(0.0, lanes), constant(1.0, lanes)
        self.products: dict[int, tuple[Any, Any]] = {}  # registers that hold one, for a single use
        # by value: the value, and its reciprocal, where several are divided by it
        self.inverses: dict[int, tuple[Any, Any]] = {}

    def _uses(self) -> tuple[Counter[int], Counter[int]]:
        """How often the result of each instruction is used, and how often divided by."""
        used, divided = Counter[int](), Counter[int]()
        made: dict[int, int] = {}  # by register: the instruction whose result it holds
        for k in range(self.f.n_instructions()):
            op, out, arguments = _instruction(self.f, k)
            if op in (ca.OP_INPUT, ca.OP_CONST):
                made[out[0]] = k
                continue
            used.update(made[a] for a in arguments)
            if op in (ca.OP_DIV, ca.OP_INV):
                divided[made[arguments[-1]]] += 1
            if op != ca.OP_OUTPUT:
                made[out[0]] = k
        return used, divided

    def run(self) -> None:
        f, n_in = self.f, self.f.n_in()
        used, divided = self._uses()
        for k in range(f.n_instructions()):
            op, out, arguments = _instruction(f, k)
            self.single, self.shared = used[k] == 1, divided[k] > 1
            if op == ca.OP_INPUT:
                self._keep(out[0], self._load((arguments[0], arguments[1])))
                self.origin[out[0]] = arguments[0], arguments[1]
            elif op == ca.OP_OUTPUT:
                self.b.store(self.work[arguments[0]], self._at(n_in + out[0], out[1]))
            elif op == ca.OP_CONST:
                self._keep(out[0], constant(f.instruction_constant(k), self.lanes))
            else:
                self._compute(op, out[0], arguments)

    def _load(self, element: Element) -> Any:
        return self.b.load(self._at(*element), typ=self.T)

    def _at(self, argument: int, element: int) -> Any:
        pointer = self.b.function.args[argument]
        return self.b.gep(pointer, [ir.Constant(ir.IntType(64), element)], source_etype=self.T)

    def _keep(self, register: int, value: Any, truth: Any = None) -> None:
        self.work[register] = value
        self.origin.pop(register, None)
        self.products.pop(register, None)
        if self.shared:
            self.inverses.setdefault(id(value), (value, None))
        if truth is None:
            self.truths.pop(register, None)
        else:
            self.truths[register] = truth

    def _truth(self, register: int) -> Any:
        if register in self.truths:
            return self.truths[register]
        return self.b.fcmp_unordered("!=", self.work[register], self.zero)

    def _compute(self, op: int, out: int, arguments: list[int]) -> None:
        b = self.b
        if op in COMPARISONS or op in (ca.OP_NOT, ca.OP_AND, ca.OP_OR):
            truth = self._compare(op, arguments)
            self._keep(out, b.select(truth, self.one, self.zero), truth)
            return
        if op == ca.OP_IF_ELSE_ZERO:
            truth, value = self._truth(arguments[0]), self.work[arguments[1]]
            chosen = b.select(truth, value, self.zero)
            self.choices[id(chosen)] = truth, value
            self._keep(out, chosen)
            return
        if op == ca.OP_ADD and (both := self._either(*(self.work[a] for a in arguments))) is not None:
            self._keep(out, both)
            return
        values = [self.work[a] for a in arguments]
        if op == ca.OP_DIV and (inverse := self.reciprocals.get(self.origin.get(arguments[1], NOWHERE))):
            self._keep_product(out, values[0], self._load(inverse))
        elif op in (ca.OP_MUL, ca.OP_SQ):
            self._keep_product(out, values[0], values[-1])
        elif op in (ca.OP_DIV, ca.OP_INV) and id(values[-1]) in self.inverses:
            inverse = self._inverse(values[-1])
            if op == ca.OP_INV:
                self._keep(out, inverse)
            else:
                self._keep_product(out, values[0], inverse)
        elif op in (ca.OP_ADD, ca.OP_SUB):
            self._keep(out, self._sum(arguments, op == ca.OP_SUB))
        else:
            self._keep(out, self._arithmetic(op, values))

    def _keep_product(self, register: int, x: Any, y: Any) -> None:
        self._keep(register, self.b.fmul(x, y))
        if self.single:
            self.products[register] = x, y

    def _inverse(self, value: Any) -> Any:
        """The reciprocal of a number that several are divided by."""
        if self.inverses[id(value)][1] is None:
            self.inverses[id(value)] = value, self.b.fdiv(self.one, value)
        return self.inverses[id(value)][1]

    def _sum(self, arguments: list[int], minus: bool) -> Any:
        """x + y or x - y; with one of them a product."""
        b, (x, y) = self.b, (self.work[a] for a in arguments)
        first, second = (self.products.get(a) for a in arguments)
        if first is not None:
            return fused(b, self.lanes, *first, b.fneg(y) if minus else y)
        if second is not None:
            return fused(b, self.lanes, b.fneg(second[0]) if minus else second[0], second[1], x)
        return b.fsub(x, y) if minus else b.fadd(x, y)

    def _either(self, x: Any, y: Any) -> Any:
        """The choice that a sum of two is, of which one is zero: CasADi's if_else; None for other sums."""
        if id(x) not in self.choices or id(y) not in self.choices:
            return None
        (truth, value), (other, instead) = self.choices[id(x)], self.choices[id(y)]
        if self.opposites.get(id(other)) is truth:
            return self.b.select(truth, value, instead)
        return None

    def _compare(self, op: int, arguments: list[int]) -> Any:
        b = self.b
        if op in COMPARISONS:
            ordered = b.fcmp_unordered if op == ca.OP_NE else b.fcmp_ordered
            return ordered(COMPARISONS[op], *(self.work[a] for a in arguments))
        if op == ca.OP_NOT:
            truth = self._truth(arguments[0])
            opposite = b.not_(truth)
            self.opposites[id(opposite)] = truth
            return opposite
        both = [self._truth(a) for a in arguments]
        return b.and_(*both) if op == ca.OP_AND else b.or_(*both)

    def _arithmetic(self, op: int, values: list[Any]) -> Any:
        b, x = self.b, values[0]
        y = values[-1]
        simple: dict[int, Emit] = {
            ca.OP_ASSIGN: lambda: x,
            ca.OP_DIV: lambda: b.fdiv(x, y),
            ca.OP_NEG: lambda: b.fneg(x),
            ca.OP_TWICE: lambda: b.fadd(x, x),
            ca.OP_INV: lambda: b.fdiv(self.one, x),
            ca.OP_FMIN: lambda: b.select(b.fcmp_ordered("<", x, y), x, y),
            ca.OP_FMAX: lambda: b.select(b.fcmp_ordered(">", x, y), x, y),
            ca.OP_SIGN: lambda: self._sign(x),
        }
        if op in simple:
            return simple[op]()
        if op in INTRINSICS:
            return b.call(intrinsic(b.module, INTRINSICS[op], self.lanes, len(values)), values)
        if op in LIBRARY:
            return self._library(LIBRARY[op], values)
        raise NotImplementedError(f"CasADi instruction {op} has no translation")

    def _sign(self, x: Any) -> Any:
        """1, -1, or x itself where it is zero or NaN."""
        b, minus_one = self.b, constant(-1.0, self.lanes)
        rest = b.select(b.fcmp_ordered("<", x, self.zero), minus_one, x)
        return b.select(b.fcmp_ordered(">", x, self.zero), self.one, rest)

    def _library(self, name: str, values: list[Any]) -> Any:
        """A function of the C library, lane by lane."""
        b = self.b
        called = declared(b.module, name, ir.FunctionType(DOUBLE, [DOUBLE] * len(values)))
        if self.lanes == 1:
            return b.call(called, values)
        out = ir.Constant(self.T, ir.Undefined)
        for lane in range(self.lanes):
            index = ir.Constant(ir.IntType(32), lane)
            out = b.insert_element(out, b.call(called, [b.extract_element(v, index) for v in values]), index)
        return out
