"""Formulas of surfaces: grown from a grammar, mutated from good ones, and texts that are no formulas."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from implicit_geom import Scene, shapes
from implicit_geom.experiments.fuzz.judge import verdict

GOOD = (
    "x**2 + y**2/4 + z**2/9 - 1",
    "(x/a)**2 + (y/b)**4 + z**2 - 1",
    "abs(x) + abs(y) + abs(z) - 1",
    "abs(x)**1.5 + abs(y)**1.5 + abs(z)**1.5 - 1",
    "sqrt(x**2 + y**2) + z**2 - 1",
    "-log(1 - x**2) - log(4 - y**2) + z**2 - 2",
    "cosh(x) + cosh(y) + z**2 - 4",
    "exp(x) + exp(-x) + y**2 + z**2 - 5",
    "x**40 + y**2 + z**100 - 1",
    "(x - 50)**2 + y**2 + z**2 - 1",
)
FUNCTIONS = ("abs", "cos", "cosh", "exp", "log", "sin", "sinh", "sqrt")
NUMBERS = (
    "0", "1", "2", "3", "0.5", "1e-9", "1e9", "1e99", "1e308", "1e400", "7/3", "99", "100", "101", "pi",
    "123456789123456789123456789", "1e-308", "0.1", "2.5", "-1",
)  # fmt: skip
POWERS = (
    "2", "2", "3", "4", "1.5", "0.5", "-1", "99", "100", "1e3", "x", "a", "1/3", "0", "-2.5",
)  # fmt: skip
JUNK = (
    "", " ", "\t", "\n", "\x00", "\x1b[31m", "\u202e", "\u2028", "\u0661", "\uff11", "\u03c0", "\U0001d465",
    "\\", "'", '"', "#", ";", ",", "(", ")", "[", "]", "{", "}", ":=", "==", "//", "%", "@", "^", "~", "!",
    "**", "*", "..", "...", "lambda: ", "if", "else", "for", "await ", "yield", "__import__", ".real",
    "True", "None", "1j", "0x10", "1_0", "1e", "e1", "b''", "f'{x}'", "\\\n", "not ", " and ",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    text: str
    dim: int = 3
    parameters: dict[str, float] = field(default_factory=dict)


def cases(seed: int, count: int) -> Iterator[Case]:
    rng = random.Random(seed)
    makers = (_grown, _grown, _mutated, _mutated, _nested, _long, _powers, _junk)
    for _ in range(count):
        text = rng.choice(makers)(rng)
        names = {"a": rng.choice((1.0, 2.0, 99.0, 1e-9, 1e30)), "b": 2.0}
        given = {name: value for name, value in names.items() if name in text or rng.random() < 0.02}
        yield Case(text, rng.choice((3, 3, 3, 2)), given)


def check(case: Case) -> str:
    """Make the surface, and a scene with it, which asks for its mass properties."""

    def read() -> None:
        body = shapes.surface(case.text, dim=case.dim, **case.parameters)
        Scene(dim=case.dim).add("body", body, mass=1.0)

    return verdict(read)


def _grown(rng: random.Random) -> str:
    return f"{_expression(rng, rng.randint(1, 5))} - {rng.choice(NUMBERS)}"


def _expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(("x", "y", "z", "x", "y", "z", "a", rng.choice(NUMBERS)))
    kind = rng.random()
    if kind < 0.3:
        terms = [_expression(rng, depth - 1) for _ in range(rng.randint(2, 4))]
        return f"({rng.choice((' + ', ' + ', ' - ')).join(terms)})"
    if kind < 0.5:
        return f"{_expression(rng, depth - 1)}{rng.choice('**/')}{_expression(rng, depth - 1)}"
    if kind < 0.75:
        return f"({_expression(rng, depth - 1)})**{rng.choice(POWERS)}"
    if kind < 0.9:
        return f"{rng.choice(FUNCTIONS)}({_expression(rng, depth - 1)})"
    return f"({_expression(rng, depth - 1)})**2 + x**2 + y**2 + z**2"


def _mutated(rng: random.Random) -> str:
    text = rng.choice(GOOD)
    for _ in range(rng.randint(1, 4)):
        at, to = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        to = min(to, at + rng.randint(0, 6))
        new = rng.choice((rng.choice(JUNK), rng.choice(NUMBERS), text[at : at + 9], _expression(rng, 1)))
        text = text[:at] + new + text[to:]
    return text


def _nested(rng: random.Random) -> str:
    text = _expression(rng, 1)
    for _ in range(rng.choice((3, 10, 20, 48, 60, 300))):
        before, after = rng.choice(
            [(f"{f}(", ")") for f in FUNCTIONS]
            + [("(", f")**{p}") for p in POWERS]
            + [("1/(", ")"), ("-(", ")"), ("x + (", ")*y"), ("(", " + 1)"), ("3*(", ")"), ("(", ")/7")]
        )
        text = before + text + after
    return text


def _long(rng: random.Random) -> str:
    term = _expression(rng, rng.randint(1, 2))
    joint = rng.choice((" + ", "*", " - ", "/", "+abs(x)+", "**1*"))
    return joint.join([term] * rng.choice((5, 20, 45, 100, 5000)))


def _powers(rng: random.Random) -> str:
    text = f"{rng.choice(NUMBERS)}*{rng.choice('xyz')} + {rng.choice((*NUMBERS, 'y', 'a'))}"
    if rng.random() < 0.5:
        text = text.split(" + ")[0]
    for _ in range(rng.randint(1, 8)):
        text = f"({text})**{rng.choice(POWERS)}"
    return f"{text} + y**2 + z**2 - 1"


def _junk(rng: random.Random) -> str:
    size = rng.choice((1, 3, 10, 100, 2000))
    pieces = (*JUNK, *NUMBERS, *FUNCTIONS, "x", "y", "z", "+", "-")
    return "".join(rng.choice(pieces) for _ in range(size))
