"""CasADi's instructions as machine code."""

from __future__ import annotations

import itertools
import math

import casadi as ca
import numpy as np
import pytest
from llvmlite import ir
from machine_code import call, compiled, lanes_of, lowered

from implicit_geom.machine import lowering
from implicit_geom.machine.lowering import lower
from implicit_geom.machine.object_cache import LoadedCode

WIDTHS = (1, 4, 8)
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-300, 1e300, -1e300, math.inf, -math.inf, math.nan)
# instructions of CasADi that no equation here has: what is not translated must say so
UNTRANSLATED = {
    "ERF", "ERFINV", "ASINH", "ACOSH", "ATANH", "FMOD", "REMAINDER", "LOG1P", "EXPM1", "HYPOT", "PRINTME",
}  # fmt: skip
UNARY, BINARY = "unary", "binary"


def scalar_instructions() -> dict[str, tuple[int, str, ca.Function]]:
    """Every instruction that CasADi has for scalars: (number, arity, a function that consists of it)."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    found = {}
    for label, op in vars(ca).items():
        if not label.startswith("OP_") or label in ("OP_CONST", "OP_INPUT", "OP_OUTPUT", "OP_ASSIGN"):
            continue
        for arity, inputs in ((UNARY, [x]), (BINARY, [x, y])):
            try:
                made = ca.SX.unary(op, x) if arity == UNARY else ca.SX.binary(op, x, y)
            except Exception:
                continue
            f = ca.Function("f", inputs, [made])
            if op in [f.instruction_id(k) for k in range(f.n_instructions())]:
                found[label.removeprefix("OP_")] = (op, arity, f)
    found["CONSTPOW"] = (ca.OP_CONSTPOW, UNARY, ca.Function("f", [x], [x**2.7]))
    return found


INSTRUCTIONS = scalar_instructions()
TRANSLATED = sorted(set(INSTRUCTIONS) - UNTRANSLATED)


@pytest.fixture(scope="module", params=WIDTHS)
def each(request: pytest.FixtureRequest) -> tuple[int, LoadedCode]:
    """All translated instructions, compiled for a number of lanes."""
    return request.param, lowered({name: INSTRUCTIONS[name][2] for name in TRANSLATED}, request.param)


def samples(arity: str) -> np.ndarray:
    """(inputs, n) special and random values; n is a multiple of every number of lanes."""
    rng = np.random.default_rng(5)
    if arity == UNARY:
        values = np.array(SPECIAL)[None]
        more = np.concatenate(
            [rng.normal(size=20), rng.uniform(-1, 1, 20), 10 ** rng.uniform(-200, 200, 19)]
        )[None]
    else:
        values = np.array(list(itertools.product(SPECIAL, repeat=2))).T
        more = np.vstack([rng.normal(size=111) * 3, rng.uniform(-3, 3, 111)])
    out = np.hstack([values, more])
    return out[:, : out.shape[1] // 8 * 8]


def by_casadi(f: ca.Function, inputs: np.ndarray) -> np.ndarray:
    return np.array([float(f(*column)) for column in inputs.T])


def test_the_table_of_instructions_is_whole() -> None:
    """Every instruction that the lowering knows is among those tested."""
    assert all(
        op in [f.instruction_id(k) for k in range(f.n_instructions())] for op, _, f in INSTRUCTIONS.values()
    )
    known = {*lowering.INTRINSICS, *lowering.LIBRARY, *lowering.COMPARISONS}
    assert known <= {INSTRUCTIONS[name][0] for name in TRANSLATED}
    assert {"ADD", "SUB", "MUL", "DIV", "NEG", "SQ", "TWICE", "INV", "FMIN", "FMAX", "SIGN"} <= set(
        TRANSLATED
    )
    assert {"NOT", "AND", "OR", "IF_ELSE_ZERO"} <= set(TRANSLATED)


@pytest.mark.parametrize("name", TRANSLATED)
def test_an_instruction_gives_what_casadi_gives(name: str, each: tuple[int, LoadedCode]) -> None:
    """Each translated instruction, with other inputs in every lane, against CasADi's own evaluation."""
    lanes, code = each
    _, arity, f = INSTRUCTIONS[name]
    inputs = samples(arity)
    wanted, got = by_casadi(f, inputs), np.zeros(inputs.shape[1])
    for k in range(0, got.size, lanes):
        out = lanes_of(np.zeros((1, lanes)), lanes)
        call(code, name, *(lanes_of(row[None, k : k + lanes], lanes) for row in inputs), out)
        got[k : k + lanes] = out[0]
    if name in ("FMIN", "FMAX"):
        # of a number and NaN either may come out, no other number
        nan = np.isnan(inputs).any(axis=0)
        assert np.all((np.isnan(got) | (got == inputs).any(axis=0))[nan])
        wanted, got = wanted[~nan], got[~nan]
    np.testing.assert_allclose(got, wanted, rtol=4e-16, atol=0)
    plain = np.isfinite(wanted) & (wanted != 0)
    assert np.array_equal(np.sign(got[plain]), np.sign(wanted[plain]))


@pytest.mark.parametrize("name", sorted(UNTRANSLATED & set(INSTRUCTIONS)))
def test_an_instruction_without_translation_raises(name: str) -> None:
    """Nothing is left out silently."""
    with pytest.raises(NotImplementedError, match="no translation"):
        lower(ir.Module("test"), "f", INSTRUCTIONS[name][2])


def random_function(seed: int) -> ca.Function:
    """Many instructions, with comparisons whose registers are used as numbers and as conditions."""
    rng = np.random.default_rng(seed)
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 2)
    values = [*ca.vertsplit(x), *ca.vertsplit(p), ca.SX(0.7)]
    for _ in range(60):
        a, b, c = (values[i] for i in rng.integers(max(0, len(values) - 12), len(values), 3))
        made = [
            a + b,
            a * b - c,
            a / (1 + b**2),
            ca.if_else(a < b, b, c),
            (a <= c) + ca.sin(b),
            ca.if_else(ca.logic_and(a > 0, ca.logic_not(b > c)), a, -c),
            ca.if_else(a, ca.logic_not(b), c),  # (numbers as conditions)
            ca.fmax(a, ca.fmin(b, c)),
            ca.sqrt(ca.fabs(a)) * ca.sign(b),
            ca.exp(-(a**2)) + ca.atan2(b, 1 + c**2),
        ]
        values.append(made[rng.integers(len(made))])
    J = ca.jacobian(ca.vertcat(*values[-6:]), x)
    return ca.Function("f", [x, p], [ca.vertcat(*values[-8:]), J])


@pytest.mark.parametrize("lanes", WIDTHS)
def test_lanes_do_not_mix(lanes: int) -> None:
    """Whole functions with sparse outputs: each lane is its own scene, whatever stands beside it."""
    functions = {f"f{seed}": random_function(seed) for seed in range(6)}
    code = lowered(functions, lanes)
    rng = np.random.default_rng(1)
    for name, f in functions.items():
        x, p = rng.normal(size=(3, lanes)), rng.normal(size=(2, lanes))
        alone = []
        for spoil in (False, True):
            if spoil and lanes > 1:
                x[:, 1] = np.nan
            outs = [lanes_of(np.zeros((f.nnz_out(i), lanes)), lanes) for i in (0, 1)]
            call(code, name, lanes_of(x, lanes), lanes_of(p, lanes), *outs)
            for lane in range(lanes):
                if spoil and lane == 1:
                    continue
                wanted = f(x[:, lane], p[:, lane])
                for out, value in zip(outs, wanted, strict=True):
                    np.testing.assert_allclose(out[:, lane], value.nonzeros(), rtol=1e-13, atol=1e-13)
            alone.append([np.delete(out, 1, axis=1) if lanes > 1 else out for out in outs])
        for one, two in zip(*alone, strict=True):
            assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("lanes", WIDTHS)
def test_choices_are_made_by_their_own_conditions(lanes: int) -> None:
    """An if_else is one choice, also with NaN in the branch not taken; a sum of two others is a sum."""
    x, y, z = (ca.SX.sym(name) for name in "xyz")
    one, two = (ca.if_else(c > 0, z, 0) for c in (x, y))
    f = ca.Function("f", [x, y, z], [ca.if_else(x > 0, z, ca.sqrt(x)) + 0.5, one + two, two + one])
    code = lowered({"f": f}, lanes)
    for a, b in itertools.product((-1.0, 2.0), repeat=2):
        out = [lanes_of(np.zeros((1, lanes)), lanes) for _ in range(3)]
        call(code, "f", *(lanes_of(np.full((1, lanes), v), lanes) for v in (a, b, 7.0)), *out)
        wanted = [7.5 if a > 0 else np.nan, 7.0 * (a > 0) + 7.0 * (b > 0), 7.0 * (a > 0) + 7.0 * (b > 0)]
        np.testing.assert_array_equal([o[0] for o in out], np.repeat(np.array(wanted)[:, None], lanes, 1))


def test_a_reciprocal_at_hand_is_used() -> None:
    """What is divided by is known, and a quotient becomes a product where its reciprocal is an input."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 3)
    f = ca.Function("f", [x, p], [ca.vertcat(x[0] / p[1], x[1] / p[0] + p[1] / x[0], (x[0] + p[0]) / p[1])])
    assert lowering.divisors(f) == {(0, 0), (1, 0), (1, 1)}
    module = ir.Module("test")
    lower(module, "f", f, 1, {(1, 1): (1, 2)})
    out = np.zeros((3, 1))
    values = [lanes_of(np.array(v)[:, None], 1) for v in ([3.0, 5.0], [2.0, 4.0, 0.125])]  # (1/8 for 1/4)
    call(compiled(module), "f", *values, out)
    np.testing.assert_allclose(out[:, 0], [3 / 8, 5 / 2 + 4 / 3, 5 / 8])
