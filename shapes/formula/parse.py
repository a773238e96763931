"""A formula given as text, turned into an expression tree; data, never code.

The text is parsed by Python's grammar, but only these may appear in it: numbers, + - * / **, the
coordinates, pi, the given parameters, and the functions below. Everything else is refused by
name. Nothing is ever evaluated by the interpreter; constants are folded in floating point, so that
no power can grow without bound.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import sympy as sp

from implicit_geom.interface.words import shown
from implicit_geom.shapes.errors import ShapeError

MAX_TEXT = 1000  # characters
MAX_DEPTH = 50  # nested operations
MAX_POWER = 100.0  # |exponent|; sharper edges are better given as an intersection
MAX_NUMBER = 1e100  # also of the whole numbers that SymPy keeps exactly: its powers of them stay short
TINY = 1e-30

FUNCTIONS: dict[str, tuple[Callable[[float], float], Any, Any]] = {
    "abs": (abs, sp.Abs, ca.fabs),
    "cos": (math.cos, sp.cos, ca.cos),
    "cosh": (math.cosh, sp.cosh, ca.cosh),
    "exp": (math.exp, sp.exp, ca.exp),
    "log": (math.log, sp.log, ca.log),
    "sin": (math.sin, sp.sin, ca.sin),
    "sinh": (math.sinh, sp.sinh, ca.sinh),
    "sqrt": (math.sqrt, sp.sqrt, ca.sqrt),
}
# Functions that SymPy takes for real numbers of which it knows nothing: asked whether sinh(log(sin(x))) is
# real, or positive, it would expand all that is inside, for hours. `value` is the value of its argument.
OPAQUE: dict[str, Any] = {
    name: type(f"real_{name}", (sp.Function,), {"is_real": True, "nargs": 1})
    for name in (*FUNCTIONS, "value")
}
SIMPLE = 4  # operations of an expression with roots that SymPy may look into
NESTING = (*(FUNCTIONS[name][1] for name in ("cos", "cosh", "exp", "log", "sin", "sinh")), *OPAQUE.values())
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
SPOKEN: dict[type[ast.AST], str] = {
    ast.BoolOp: "and / or",
    ast.Compare: "a comparison",
    ast.IfExp: "if / else",
    ast.JoinedStr: "a string",
    ast.Lambda: "a lambda",
    ast.ListComp: "a comprehension",
    ast.Subscript: "an index",
}
ALLOWED = "numbers, x, y, z, pi, parameters, + - * / ** and " + ", ".join(FUNCTIONS)


def parse(text: Any, coordinates: str, parameters: Mapping[str, float]) -> sp.Expr:
    """The SymPy expression of `text`, parameters kept as symbols.

    Raises ShapeError, in one line, for anything outside the list above, for a name that is
    neither a coordinate nor a parameter, and for a parameter that is not used.
    """
    if not isinstance(text, str):
        raise ShapeError(f"surface: text = {shown(text)} must be a string such as 'x**2 + y**2 + z**2 - 1'")
    if len(text) > MAX_TEXT:
        raise ShapeError(f"surface: the text has {len(text)} characters; at most {MAX_TEXT} are read")
    for name in parameters:
        if name in FUNCTIONS or name in ("x", "y", "z", "pi"):
            raise ShapeError(f"surface: parameter {shown(name)} has a fixed meaning in a formula; rename it")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ShapeError(f"surface: {_short(text)} is not a formula; write e.g. 'x**2 + y**2 - 1'") from error
    found = _Reader(coordinates, parameters).read(tree.body, 0)
    expression = sp.sympify(found) if isinstance(found, float) else found
    used = {s.name for s in expression.free_symbols}
    for name in parameters:
        if name not in used:
            raise ShapeError(
                f"surface: parameter {shown(name)} does not appear in {_short(text)}; leave it out"
            )
    if not used & set(coordinates):
        raise ShapeError(f"surface: {_short(text)} depends on none of {', '.join(coordinates)}")
    return expression


class _Reader:
    """Walks the syntax tree; constants come back as floats, everything else as SymPy expressions."""

    def __init__(self, coordinates: str, parameters: Mapping[str, float]) -> None:
        self.coordinates = coordinates
        self.parameters = parameters

    def read(self, node: ast.AST, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ShapeError(f"surface: more than {MAX_DEPTH} operations are nested; write a shorter formula")
        if isinstance(node, ast.Constant):
            return self._number(node.value)
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self.read(node.operand, depth + 1)
            return -inner if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BinOp):
            return self._binary(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        raise _refused(_describe(node))

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _refused(f"the constant {_short(repr(value))}")
        if not abs(value) <= MAX_NUMBER:
            raise ShapeError(f"surface: a number is larger than {MAX_NUMBER:g}")
        return float(value)

    def _name(self, name: str) -> Any:
        if name == "pi":
            return math.pi
        if name in (*self.coordinates, *self.parameters):
            return sp.Symbol(name, real=True)
        known = [*self.coordinates, "pi", *self.parameters, *FUNCTIONS]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; give it as a parameter, {name[:40]}=..."
        raise ShapeError(f"surface: {_short(name)} is not a coordinate ({', '.join(self.coordinates)}){hint}")

    def _call(self, node: ast.Call, depth: int) -> Any:
        if not isinstance(node.func, ast.Name):
            raise _refused(f"a call of {_describe(node.func)}")
        name = node.func.id
        if name not in FUNCTIONS or len(node.args) != 1 or node.keywords:
            near = difflib.get_close_matches(name, FUNCTIONS, 1)
            hint = f" (did you mean {near[0]!r}, with one argument?)" if near else ""
            raise _refused(f"the call {_short(name)}(...){hint}")
        number = FUNCTIONS[name][0]
        inner = self.read(node.args[0], depth + 1)
        return _fold(number, inner) if isinstance(inner, float) else _bounded(_applied(name, inner))

    def _binary(self, node: ast.BinOp, depth: int) -> Any:
        if type(node.op) not in OPERATORS:
            hint = " (write ** for a power)" if isinstance(node.op, ast.BitXor) else ""
            raise _refused(f"the operator {type(node.op).__name__}{hint}")
        act = OPERATORS[type(node.op)]
        left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
        if isinstance(node.op, ast.Pow):
            self._check_power(right)
        if isinstance(node.op, ast.Div) and right == 0:
            raise ShapeError("surface: division by zero")
        if isinstance(left, float) and isinstance(right, float):
            return _fold(act, left, right)
        if isinstance(node.op, ast.Pow) and not isinstance(left, float) and not _symbolic(right).is_Integer:
            left = _base(left)
        return _bounded(act(_symbolic(left), _symbolic(right)))

    def _check_power(self, power: Any) -> None:
        names = set() if isinstance(power, float) else {s.name for s in power.free_symbols}
        if names & set(self.coordinates):
            raise _refused("a power with a coordinate in its exponent (use exp)")
        value = power if isinstance(power, float) else numeric(power, self.parameters)
        if not abs(value) <= MAX_POWER:
            raise ShapeError(f"surface: the exponent {value:g} is larger than {MAX_POWER:g}")


def numeric(expression: sp.Expr, parameters: Mapping[str, float]) -> float:
    """Value of an expression without coordinates, by the same walk that makes CasADi expressions."""
    return float(to_casadi(expression, {k: ca.SX(v) for k, v in parameters.items()}))


def to_casadi(expression: sp.Expr, symbols: Mapping[str, ca.SX]) -> ca.SX:
    """The CasADi expression of a SymPy tree, its symbols replaced by name."""
    if isinstance(expression, sp.Symbol):
        return symbols[expression.name]
    if expression.is_number:
        return ca.SX(_real(expression))
    args = [to_casadi(a, symbols) for a in expression.args]
    if expression.is_Add or expression.is_Mul:
        total = args[0]
        for a in args[1:]:
            total = total + a if expression.is_Add else total * a
        return total
    if isinstance(expression, sp.Pow):
        # the derivative of a square root at zero would be 0/0
        return ca.sqrt(args[0] + TINY) if expression.exp == sp.Rational(1, 2) else args[0] ** args[1]
    if expression.func is OPAQUE["value"]:
        return args[0]
    for name, (_, symbolic, casadi) in FUNCTIONS.items():
        if expression.func in (symbolic, OPAQUE[name]):
            return casadi(args[0])
    raise ShapeError(f"surface: {_short(str(expression))} cannot be evaluated; write it in a simpler form")


def _symbolic(value: Any) -> Any:
    """Whole numbers stay whole, so that x**2 is a polynomial and not a general power."""
    if not isinstance(value, float):
        return value
    return sp.Integer(int(value)) if value.is_integer() and abs(value) < 2**53 else sp.Float(value, 17)


def _applied(name: str, inner: sp.Expr) -> sp.Expr:
    """A function of an expression, opaque where SymPy would ask too much about that."""
    if name == "sqrt":
        return sp.sqrt(_base(inner))
    return FUNCTIONS[name][1](inner) if _tame(inner) and inner.is_extended_real else OPAQUE[name](inner)


def _base(expression: sp.Expr) -> sp.Expr:
    """What a root, or a power that is no whole number, is taken of."""
    return expression if _tame(expression) else OPAQUE["value"](expression)


def _tame(expression: sp.Expr) -> bool:
    """Whether an expression is short, or made of sums, products and whole powers, without functions in it."""
    if expression.has(*NESTING):
        return False
    return expression.count_ops() <= SIMPLE or all(p.exp.is_Integer for p in expression.atoms(sp.Pow))


def _bounded(expression: sp.Expr) -> Any:
    """What SymPy made of an operation, a constant as a float; refused where a number in it has grown too far.

    Asked after every operation, so that the next one starts from short numbers: (3*x)**99 is 3**99 * x**99,
    and such powers of powers would otherwise have as many digits as the machine has bytes.
    """
    if not expression.free_symbols:
        return _real(expression)
    for part in sp.preorder_traversal(expression):
        if isinstance(part, sp.Number) and not (abs(part) <= MAX_NUMBER and _denominator(part) <= MAX_NUMBER):
            raise ShapeError(f"surface: a number in the formula becomes larger than {MAX_NUMBER:g}")
        if isinstance(part, sp.Pow) and part.exp.is_number and not abs(part.exp) <= MAX_POWER:
            raise ShapeError(f"surface: powers of powers make an exponent larger than {MAX_POWER:g}")
    return expression


def _denominator(number: sp.Number) -> int:
    return int(number.q) if isinstance(number, sp.Rational) else 1


def _real(number: sp.Expr) -> float:
    try:
        value = complex(number)
    except (ArithmeticError, TypeError, ValueError):
        value = complex(math.nan)
    if value.imag != 0 or not math.isfinite(value.real):
        raise ShapeError(f"surface: the constant {_short(str(number))} is not a finite real number")
    return value.real


def _fold(act: Callable[..., Any], *numbers: float) -> float:
    try:
        value = act(*numbers)
    except (ArithmeticError, ValueError) as error:
        raise ShapeError(f"surface: a constant has no value ({error})") from error
    if isinstance(value, complex) or not abs(value) <= MAX_NUMBER:
        raise ShapeError(f"surface: a constant is not real or larger than {MAX_NUMBER:g}")
    return float(value)


def _refused(what: str) -> ShapeError:
    return ShapeError(f"surface: {what} is refused; allowed are {ALLOWED}")


def _describe(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"the attribute {_short(node.attr)}"
    name = type(node).__name__
    return SPOKEN.get(type(node), f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
