"""Functions that hand on what they know: nothing that one has computed is computed again by the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from implicit_geom.machine.lowering import Element, divisors


@dataclass(frozen=True)
class HandedOn:
    """Functions, what those before them hand on to them, and where that includes reciprocals, by function."""

    functions: dict[str, ca.Function]
    handed: ca.SX
    reciprocals: dict[str, dict[Element, Element]]


def handed_on(
    expressions: list[ca.SX],
    known: list[ca.SX],
    names: dict[str, tuple[int, int | None]],
    inputs: Callable[[ca.SX], list[ca.SX]],
) -> HandedOn:
    """Functions of ranges of the expressions, to which all that depends on `known` alone is handed on.

    `inputs` puts the vector that is handed on, the second of them, in its place among the inputs. What the
    functions divide by is handed on with its reciprocal.
    """
    found, symbols, values = ca.extract_parametric([ca.densify(e) for e in expressions], known, {})
    q = ca.SX.sym("q", len(symbols))
    found = ca.substitute(list(found), list(symbols), ca.vertsplit(q))
    handed = ca.vertcat(ca.SX(0, 1), *values)

    def made(vector: ca.SX) -> dict[str, ca.Function]:
        return {n: ca.Function(n, inputs(vector), found[a:b]) for n, (a, b) in names.items()}

    given = inputs(q)
    parametric = [k for k, x in enumerate(given) if k == 1 or any(x is y for y in known)]
    all_of = set().union(*(divisors(f) for f in made(q).values()))
    divided = sorted(at for at in all_of if at[0] in parametric)
    inverse = ca.SX.sym("inverse", len(divided))
    places = {at: (1, len(symbols) + i) for i, at in enumerate(divided)}
    by = [handed[i] if k == 1 else given[k][i] for k, i in divided]
    functions = made(ca.vertcat(q, inverse))
    return HandedOn(functions, ca.vertcat(handed, *[1 / x for x in by]), dict.fromkeys(functions, places))
