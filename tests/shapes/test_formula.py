"""Surfaces given as text: what is read, what is refused, and that only convex bodies pass."""

import re
from typing import Any

import numpy as np
import pytest

from implicit_geom import shapes
from implicit_geom.shapes.formula.parse import numeric, parse

HOSTILE = [
    "__import__('os').system('x')",
    "x.__class__",
    "().__class__.__bases__[0]",
    "(lambda: 1)()",
    "open('f')",
    "eval('x')",
    "x if y else z",
    "[x for x in y]",
    "{x: y}",
    "(x, y)",
    "'a'*10",
    "b'a'",
    "f'{x}'",
    "9**9**9**9",
    "((9**99)**99)**99 + x",
    "exp(exp(exp(9)))*x",
    "x**1000",
    "x**y",
    "x[0]",
    "x == 1",
    "x < 1",
    "x and y",
    "not x",
    "~x",
    "x := 1",
    "x; y",
    "x @ y",
    "x // 2",
    "x % 2",
    "x ^ 2",
    "1j*x",
    "True*x",
    "None",
    "...",
    "*x",
    "sqrt(x, y)",
    "sqrt(*x)",
    "sqrt(x=1)",
    "sqrt(x)(y)",
    "sqrt",
    "await x",
    "yield",
    "import os",
    "1/0 + x",
    "log(-1) + x",
    "1e400*x",
    "9" * 500 + "*x",
    "x" + "+x" * 600,
    "-" * 900 + "x",
    "(" * 300 + "x" + ")" * 300,
    "\x00",
    "",
    "   ",
    "3",
    "a",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: re.sub(r"\W+", "_", t)[:20])
def test_hostile_text_is_refused_in_one_line(text: Any) -> None:
    """Anything outside the list of functions and names raises ShapeError with a one-line message."""
    with pytest.raises(shapes.ShapeError) as refused:
        shapes.surface(text)
    assert "\n" not in str(refused.value)
    assert 20 < len(str(refused.value)) < 300


@pytest.mark.parametrize("text", ["9**9**9**9", "x**1000", "x**-101", "x**(50*a)"])
def test_large_exponents_are_refused_for_their_size(text: str) -> None:
    """An exponent above the limit is refused before anything is computed with it."""
    with pytest.raises(shapes.ShapeError, match=r"exponent .* is larger than 100"):
        parse(text, "xyz", {"a": 3.0} if "a" in text else {})


FORMULAS = {
    "1 + 2*3 - 4/8": 6.5,
    "-2**2 + 2**-1": -3.5,
    "sqrt(abs(-9)) + exp(0) + log(1)": 4.0,
    "cos(pi) + cosh(0) + sin(0) + sinh(0)": 0.0,
    "a*b**2 - a/b": 2 * 9 - 2 / 3,
}


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_have_the_value_of_ordinary_arithmetic(text: Any) -> None:
    """Operators, precedence and functions mean what they mean in a formula."""
    names = {"a": 2.0, "b": 3.0} if "a*b" in text else {}
    value = numeric(parse(f"x + {text}", "xyz", names), {**names, "x": 0.0})
    assert value == pytest.approx(FORMULAS[text], abs=1e-15)


def test_names_are_checked_with_a_hint() -> None:
    """Missing, unknown, unused and reserved parameters are errors that name the parameter."""
    cases = [
        (lambda: shapes.surface("(x/radius)**2 + y**2 + z**2 - 1", radios=2), "did you mean 'radios'"),
        (lambda: shapes.surface("(x/a)**2 + y**2 + z**2 - 1"), "'a'.*a=..."),
        (lambda: shapes.surface("x**2 + y**2 + z**2 - 1", a=1), "'a' does not appear"),
        (lambda: shapes.surface("x**2 + y**2 - sqrt", sqrt=1), "'sqrt'.*rename"),
        (lambda: shapes.surface("x**2 + y**2 + z**2 - 1", dim=2), "'z' is not a coordinate"),
        (lambda: shapes.surface("sqr(x) - 1"), "did you mean 'sqrt'"),
        (lambda: shapes.surface("a*x**2 + y**2 + z**2 - 1", a="1"), "a = '1' must be a number"),
        (lambda: shapes.surface("x**2 - 1", dim=4), "dim = 4"),
        (lambda: shapes.surface(7), "text = 7"),
    ]
    for make, message in cases:
        with pytest.raises(shapes.ShapeError, match=message):
            make()


CURVED = {  # text: whether an eigenvalue is named
    "x**2 + y**2 - z**2 - 1": True,
    "(sqrt(x**2 + y**2) - 2)**2 + z**2 - 0.25": True,
    "x**4 + y**4 + z**4 - 1.5*x**2*y**2*9 - 1": True,
    "x**3 + y**2 + z**2 - 1": True,
    "sqrt(abs(x)) + sqrt(abs(y)) + sqrt(abs(z)) - 1": True,
    "x*y*z - 1": True,
    "(x**2 - 4)**2 + y**2 + z**2 - 1": False,
    "x**2 - abs(y) + y**2 + z**2 - 1": False,
}


@pytest.mark.parametrize("text", CURVED)
def test_non_convex_is_refused_with_a_point(text: Any) -> None:
    """A body that is not convex, or in pieces, is refused; the message names a point of it."""
    with pytest.raises(shapes.ShapeError, match=r"not convex.*\(-?\d.*, .*\)") as refused:
        shapes.surface(text)
    negative = re.search(r"eigenvalue -", str(refused.value))
    assert (negative is not None) == CURVED[text]


def test_empty_surface_is_refused() -> None:
    """A function that is positive everywhere, or only touches zero, encloses nothing."""
    for text in ("x**2 + y**2 + z**2 + 1", "z**2"):
        with pytest.raises(shapes.ShapeError, match="no point lies inside"):
            shapes.surface(text)


def test_undefined_values_are_refused() -> None:
    """A fractional power of a negative number is refused with the advice to use abs."""
    with pytest.raises(shapes.ShapeError, match="abs"):
        shapes.surface("x**2.5 + y**2 + z**2 - 1")


CONVEX = {
    "x**2 + y**2/4 + z**2/9 - 1": 8 * np.pi,
    "(x - 50)**2 + y**2 + z**2 - 1": 4 / 3 * np.pi,
    "x**2 + y**2 + z**2 - 1e-6": 4 / 3 * np.pi * 1e-9,
    "sqrt(x**2 + y**2 + z**2) - 1": 4 / 3 * np.pi,
    "abs(x) + abs(y) + abs(z) - 1": 4 / 3,
    "(x**2 + y**2)**2 + z**4 - 1": None,
    "x**100 + y**100 + z**100 - 1": None,
    "-log(1 - x**2) - log(4 - y**2) + z**2 - 2": None,
}


@pytest.mark.parametrize("text", CONVEX)
def test_convex_text_is_accepted(text: Any) -> None:
    """Convex bodies of any place, size and sharpness are accepted, with the right volume."""
    body = shapes.surface(text)
    assert body.bounded
    assert body.violation(body.interior)[0] < 0
    if CONVEX[text] is not None:
        assert body.volume == pytest.approx(CONVEX[text], rel=1e-8)


def test_root_form_is_used_for_high_degrees() -> None:
    """A homogeneous function of degree above two is replaced by its root: gradients stay near one inside."""
    body = shapes.surface("x**20 + y**20 + z**20 - 1")
    assert body.degree == 20
    t = np.array([0.3, 0.9, 1.5])
    points = t[:, None] * np.array([[0.5, 0.4, 1.0]])
    values = body.violation(points)
    slopes = np.diff(values) / np.diff(t)
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-9)
    assert shapes.surface("x**20 + y**2 + z**2 - 1").degree is None


def test_parameters_stay_symbolic() -> None:
    """Two surfaces of one text and other numbers share their structure but are not equal."""
    text = "(x/a)**2 + (y/b)**4 + z**2 - 1"
    one, two = shapes.surface(text, a=1, b=2), shapes.surface(text, b=3, a=1)
    assert one.structure == two.structure
    assert one != two
    assert one.parameters == {"text": text, "a": 1.0, "b": 2.0}
