"""Subexpressions of parameters alone, computed once before an iteration and passed to its functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from implicit_geom.machine.lowering import Element, divisors


@dataclass(frozen=True)
class Precomputed:
    """Functions, the vector they are passed, and where that holds reciprocals of inputs, by function."""

    functions: dict[str, ca.Function]
    values: ca.SX
    reciprocals: dict[str, dict[Element, Element]]


def precomputed(
    expressions: list[ca.SX],
    known: list[ca.SX],
    names: dict[str, tuple[int, int | None]],
    inputs: Callable[[ca.SX], list[ca.SX]],
) -> Precomputed:
    """Functions of ranges of the expressions, to which all that depends on `known` alone is passed.

    `inputs` puts the vector that is passed, the second of them, in its place among the inputs. What the
    functions divide by is passed with its reciprocal.
    """
    found, symbols, extracted = ca.extract_parametric([ca.densify(e) for e in expressions], known, {})
    q = ca.SX.sym("q", len(symbols))
    found = ca.substitute(list(found), list(symbols), ca.vertsplit(q))
    values = ca.vertcat(ca.SX(0, 1), *extracted)

    def made(vector: ca.SX) -> dict[str, ca.Function]:
        return {n: ca.Function(n, inputs(vector), found[a:b]) for n, (a, b) in names.items()}

    given = inputs(q)
    parametric = [k for k, x in enumerate(given) if k == 1 or any(x is y for y in known)]
    all_of = set().union(*(divisors(f) for f in made(q).values()))
    divided = sorted(at for at in all_of if at[0] in parametric)
    inverse = ca.SX.sym("inverse", len(divided))
    places = {at: (1, len(symbols) + i) for i, at in enumerate(divided)}
    by = [values[i] if k == 1 else given[k][i] for k, i in divided]
    functions = made(ca.vertcat(q, inverse))
    return Precomputed(functions, ca.vertcat(values, *[1 / x for x in by]), dict.fromkeys(functions, places))
