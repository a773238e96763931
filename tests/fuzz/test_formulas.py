"""Random formulas are taken, or refused in one printable line, within two seconds each."""

from __future__ import annotations

import pytest

from implicit_geom.experiments.fuzz.formulas import Case, cases, check


def test_random_formulas_are_clean() -> None:
    """Grammar, mutations, nesting, long sums, powers of powers and junk: 250 of them."""
    bad = {case.text: told for case in cases(seed=0, count=250) if (told := check(case))}
    assert not bad


KNOWN = {  # text: what was wrong with it once
    "((((3*x)**99)**99)**99)**99-1": "exact integers without end",
    "exp(exp(exp(exp(0*x + 9)))) + x**2 - 1": "a constant that SymPy would evaluate exactly",
    "(((x/3)**99)**99)**99 + y**2 + z**2 - 1": "exact fractions without end",
    "abs(sinh((sqrt(sinh((((log(((x + z + 2 + y))**-2.5))/7 + 1))**99)))**1/3))": "SymPy asks what is real",
    "(((sin(1/(log(sqrt((sin((x**2 + y**2 + z**2)**99))**1.5)))) + 1))**2)**0.5": "and what is positive",
    "(((((pi*((((x + y + y + 2))**99)**1.5)**2 + 2)**-1)**99)**1.5)**-1)**-2.5 - 1": "and powers of powers",
    "xy*z*2 + y**2/4 + z**2/9 - 1": "a name that is part of 'xyz'",
    "sin(z) - 1e99": "all of space is inside",
    "x**2 + y**2 + z**2 - 1e-308": "too small for its volume",
    "(1e-9*x)**2 + y**2 + z**2 - 1": "minutes of quadrature: a needle",
    "+".join(f"abs(x-{i}.1)" for i in range(45)) + "+abs(y)+abs(z)-1000": "minutes of quadrature: kinks",
    "x" + "\u202e\x1b[31m\n" * 300: "control characters",
    "((x/21)**2 + z**4 + z + y + sin(x))*(z**2*(0 - y) + 99/y + 99**99 + x**0.5) - 1e99": "fifty searches",
}


@pytest.mark.parametrize("text", KNOWN, ids=KNOWN.values())
def test_what_was_not_clean_once(text: str) -> None:
    """Formulas that ran on for ever, or broke through as another error."""
    assert check(Case(text)) == ""


def test_sharp_and_kinked_bodies_keep_their_mass_properties() -> None:
    """The limit on arithmetic is beyond what convex bodies with edges and high powers need."""
    from implicit_geom import shapes

    volumes = {
        "x**2 + y**40 + 1000*z**2 - 1": 0.19384562469846048,
        "abs(x)**1.5 + abs(y)**1.5 + abs(z)**1.5 - 1": 2.9427657257998483,
        "abs(x) + abs(y-0.1*x) + abs(z+0.3*y+0.1*x) - 1": 4 / 3,
    }
    for text, volume in volumes.items():
        assert shapes.surface(text).volume == pytest.approx(volume, rel=1e-9)
