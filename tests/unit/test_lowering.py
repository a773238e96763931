"""CasADi's instructions as machine code, the small language around them, the linear solver and Newton."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from llvmlite import ir
from machine_code import call, compiled, lanes_of

from implicit_geom import newton
from implicit_geom.compiled import lowering
from implicit_geom.compiled.code import Module
from implicit_geom.compiled.lowering import lower
from implicit_geom.compiled.objects import Code
from implicit_geom.compiled.solver import emit_solver
from implicit_geom.compiled.tables import Problem

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


def lowered(functions: dict[str, ca.Function], lanes: int) -> Code:
    module = ir.Module("test")
    for name, f in functions.items():
        lower(module, name, f, lanes)
    return compiled(module)


@pytest.fixture(scope="module", params=WIDTHS)
def each(request: pytest.FixtureRequest) -> tuple[int, Code]:
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
def test_an_instruction_gives_what_casadi_gives(name: str, each: tuple[int, Code]) -> None:
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


# ---- the small language


def written(lanes: int, arguments: str, write: Callable[[Any, list[Any]], None]) -> Callable[..., int]:
    """A function in the small language, compiled."""
    m = Module("test", lanes)
    with m.function("f", arguments, public=True) as (c, given):
        write(c, given)
    code = compiled(m.ir)
    return lambda *values: call(code, "f", *values)


@pytest.mark.parametrize("lanes", [1, 8])
def test_nested_loops_count_as_pythons_do(lanes: int) -> None:
    """sum over i < n, i <= j < n of a_i a_j, bounds known only when the code runs; none for n = 0."""

    def write(c: Any, given: list[Any]) -> None:
        n, a, out = given
        total = c.variable(0.0)
        with c.loop(n) as i, c.loop(n, i) as j:
            total.set(total.get() + a[i] * a[j])
        out[0] = total.get()

    f = written(lanes, "inn", write)
    a = np.random.default_rng(2).normal(size=(7, lanes))
    for n in (0, 1, 7):
        out = lanes_of(np.full((1, lanes), -1.0), lanes)
        f(n, lanes_of(a, lanes), out)
        wanted = sum((a[i] * a[j] for i in range(n) for j in range(i, n)), np.zeros(lanes))
        np.testing.assert_allclose(out[0], wanted, rtol=1e-14, atol=1e-14)


def test_leave_ends_the_innermost_loop_only() -> None:
    """`leave` before, in and after an inner loop; the outer loop goes on, or ends, as it is told."""

    def write(c: Any, given: list[Any]) -> None:
        n, out = given
        inner, outer, after = c.counter(), c.counter(), c.counter()
        with c.loop(n) as i:
            outer.set(outer.get() + 1)
            with c.loop(n) as j:
                c.leave(j > i)
                inner.set(inner.get() + 1)
            c.leave(i.equals(3))
            after.set(after.get() + 1)
        for k, counter in enumerate((inner, outer, after)):
            out[k] = counter.get()

    out = np.zeros(3, np.int64)
    written(1, "iw", write)(10, out)
    assert out.tolist() == [1 + 2 + 3 + 4, 4, 3]


def test_when_is_taken_where_any_lane_wants_it() -> None:
    """Branches are common to the lanes, `select` is not; a function may return from within a branch."""

    def write(c: Any, given: list[Any]) -> None:
        (a,) = given
        big = a[0] > 1.0
        with c.when(big.any()):
            a[1] = big.select(a[0], -1.0)
            with c.when((a[0] > 100.0).any()):
                c.finish(7)
        a[2] = (big & ~(a[0] > 2.0) | (a[0] < -1.0)).select(1.0, 0.0)

    f = written(4, "n", write)
    a = lanes_of([[0.0, 1.5, 3.0, -2.0], [9.0] * 4, [9.0] * 4], 4)
    assert f(a) == 0
    assert a[1:].tolist() == [[-1.0, 1.5, 3.0, -1.0], [0.0, 1.0, 0.0, 1.0]]
    a = lanes_of([[0.0, 0.5, np.nan, -2.0], [9.0] * 4, [9.0] * 4], 4)
    assert f(a) == 0
    assert a[1:].tolist() == [[9.0] * 4, [0.0, 0.0, 0.0, 1.0]]
    a = lanes_of([[0.0, 0.5, 200.0, -2.0], [9.0] * 4, [9.0] * 4], 4)
    assert f(a) == 7
    assert a[2].tolist() == [9.0] * 4


def test_a_comparison_with_nan_is_false_in_its_lane() -> None:
    """Whatever is compared with NaN is false, so that `not (x <= bound)` catches it; `differs` is true."""

    def write(c: Any, given: list[Any]) -> None:
        a, out = given
        x = a[0]
        masks = [x < 1.0, x <= 1.0, x > 1.0, ~(x <= 1.0), x.differs(0.0)]
        for k, mask in enumerate(masks):
            out[k] = mask.select(1.0, 0.0)

    out = lanes_of(np.zeros((5, 4)), 4)
    written(4, "nn", write)(lanes_of([[np.nan, 0.0, 1.0, 2.0]], 4), out)
    assert out.T.tolist() == [[0, 0, 0, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 0, 1], [0, 0, 1, 1, 1]]


# ---- the linear solver

SIZES = (1, 2, 5, 14, 31)


@pytest.fixture(scope="module", params=[1, 8])
def solver(request: pytest.FixtureRequest) -> tuple[int, Code]:
    """`factor` and `substitute`, and Newton's method for three unknowns."""
    m = Module("test", request.param)
    emit_solver(m, 3, 2, newton.NewtonOptions())
    with m.function("solve", "inwnn", public=True) as (c, (n, a, pivots, swaps, b)):
        c.call("factor", n, a, pivots, swaps)
        c.call("substitute", n, a, pivots, swaps, b)
    with m.function("run", "w", public=True) as (c, (p,)):
        c.call("newton", p)
    return request.param, compiled(m.ir)


def matrices(kind: str, n: int, count: int) -> np.ndarray:
    """(n, n, count) regular matrices, each another one."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n, count))
    if kind == "badly scaled":
        A *= 10.0 ** rng.uniform(-8, 8, (n, 1, count))
    if kind == "scaled columns":
        A *= 10.0 ** rng.uniform(-8, 8, (1, n, count))
    if kind == "permuted":
        for k in range(count):
            A[:, :, k] = np.diag(rng.uniform(1, 2, n))[rng.permutation(n)]
    if kind == "small diagonal":
        A[np.arange(n), np.arange(n)] *= 1e-13 if n > 1 else 1.0
    if kind == "saddle":
        # like the equations of a contact: a zero block on the diagonal
        m = n // 3
        for k in range(count):
            A[n - m :, n - m :, k] = 0.0
    return A


@pytest.mark.parametrize(
    "kind", ["random", "badly scaled", "scaled columns", "permuted", "small diagonal", "saddle"]
)
@pytest.mark.parametrize("n", SIZES)
def test_linear_systems_are_solved_as_numpy_solves_them(kind: str, n: int, solver: tuple[int, Code]) -> None:
    """The residual is as small as that of numpy.linalg.solve, with another matrix in every lane."""
    lanes, code = solver
    A, b = matrices(kind, n, lanes), np.random.default_rng(n + 1).normal(size=(n, lanes))
    x, pivots = lanes_of(b.reshape(n, lanes), lanes), np.zeros(n, np.int64)
    call(
        code,
        "solve",
        n,
        lanes_of(A.reshape(n * n, lanes), lanes),
        pivots,
        lanes_of(np.zeros((n * n, lanes)), lanes),
        x,
    )
    for k in range(lanes):
        best = np.linalg.solve(A[:, :, k], b[:, k])
        scale = np.abs(A[:, :, k]) @ np.abs(best) + np.abs(b[:, k])
        # (pivots are chosen among entries within a factor of 30 where lanes differ: they may grow more)
        allowed = 1e-13 if lanes == 1 else 1e-11
        assert np.max(np.abs(A[:, :, k] @ x[:, k] - b[:, k]) / scale) < allowed


def test_a_singular_matrix_gives_no_number(solver: tuple[int, Code]) -> None:
    """A singular lane ends in infinities or NaN, its neighbours are solved."""
    lanes, code = solver
    A, b = matrices("random", 4, lanes), np.ones((4, lanes))
    A[:, 2, 0] = 0.0
    x = lanes_of(b, lanes)
    call(
        code,
        "solve",
        4,
        lanes_of(A.reshape(16, lanes), lanes),
        np.zeros(4, np.int64),
        lanes_of(np.zeros((16, lanes)), lanes),
        x,
    )
    assert not np.all(np.isfinite(x[:, 0]))
    for k in range(1, lanes):
        np.testing.assert_allclose(x[:, k], np.linalg.solve(A[:, :, k], b[:, k]), rtol=1e-10)


# ---- Newton's method

TOLERANCE = 1e-10


def equations(name: str) -> ca.Function:
    """rows(z; p), three unknowns, with their dense Jacobian."""
    z, p = ca.SX.sym("z", 3), ca.SX.sym("p", 3)
    rows = {
        "cubic": z**3 + z + 0.1 * ca.vertcat(z[1], z[2], z[0]) - p,
        "root": z**2 - p,  # none where p < 0
        "logarithm": ca.log(z) - p,  # NaN where z < 0
        "constant": 0 * z + p,  # a singular matrix
        "kink": z + ca.fmax(z, 0) - p,
    }[name]
    return ca.Function("rows", [z, p], [ca.densify(rows), ca.densify(ca.jacobian(rows, z))])


def run_newton(
    name: str, solver: tuple[int, Code], start: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """z and the report of `newton` for one body of three unknowns, in all lanes."""
    lanes, code = solver
    f = equations(name)
    rows = ca.Function("rows", f.sx_in(), f.call(f.sx_in())[:1])
    functions = lowered({"both": f, "rows": rows}, lanes)
    zeros = {
        slot: lanes_of(np.zeros((size, lanes)), lanes)
        for slot, size in (
            (Problem.F, 3), (Problem.J, 9), (Problem.DZ, 3), (Problem.TRIAL, 3), (Problem.SHIFT, 3),
            (Problem.INPUTS, 3), (Problem.ROWS, 3), (Problem.ENTRIES, 9), (Problem.REPORT, 3),
            (Problem.SWAPS, 9),
        )
    }  # fmt: skip
    arrays = zeros | {
        Problem.Z: lanes_of(start, lanes),
        Problem.MOMENTUM_PARAMETERS: lanes_of(p, lanes),
        Problem.TOLERANCE: lanes_of(np.full((3, lanes), TOLERANCE), lanes),
        Problem.H: lanes_of(np.full((1, lanes), 1e-6), lanes),
        Problem.PIVOTS: np.zeros(3, np.int64),
        Problem.GROUP_TABLES: np.zeros(1, np.int64),
    }
    table = np.zeros(len(Problem), np.int64)
    for slot, array in arrays.items():
        table[slot] = array.ctypes.data
    table[Problem.BODIES], table[Problem.SIZE], table[Problem.MOMENTUM_STRIDE] = 1, 3, 3
    table[Problem.MOMENTUM] = functions.address("both")
    table[Problem.MOMENTUM_ROWS] = functions.address("rows")
    call(code, "run", table)
    return arrays[Problem.Z], arrays[Problem.REPORT]


class Plain:
    """The same equations for `newton.solve`."""

    shift = np.zeros(3)
    proximal = np.zeros(3)
    tolerance = np.full(3, TOLERANCE)

    def __init__(self, name: str, p: np.ndarray) -> None:
        self.f, self.p = equations(name), p

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        return self.linearise(z, eps)[0]

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        rows, J = self.f(z, self.p)
        return np.array(rows)[:, 0], np.array(J)

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        return dz

    def certified(self, z: np.ndarray) -> bool:
        return True


@pytest.mark.parametrize("name", ["cubic", "root", "kink"])
def test_newton_finds_what_newton_solve_finds(name: str, solver: tuple[int, Code]) -> None:
    """Other equations in every lane: the same solutions as `newton.solve`, reported as such."""
    lanes = solver[0]
    rng = np.random.default_rng(8)
    p, start = rng.uniform(0.5, 4, (3, lanes)), rng.uniform(0.5, 2, (3, lanes))
    z, report = run_newton(name, solver, start, p)
    for k in range(lanes):
        wanted = newton.solve(Plain(name, p[:, k]), start[:, k], newton.NewtonOptions(), damped=False)
        assert wanted.converged
        assert report[0, k] <= 1
        np.testing.assert_allclose(z[:, k], wanted.z, rtol=1e-12)
        assert abs(report[2, k]) <= 1e-9 * (1 + np.abs(p[:, k]).max())


def test_newton_reports_what_has_no_solution(solver: tuple[int, Code]) -> None:
    """z^2 = p < 0 in one lane: it is reported, and its neighbours are solved as they are alone."""
    lanes = solver[0]
    p, start = np.full((3, lanes), 2.0), np.full((3, lanes), 1.0)
    p[1, 0] = -2.0
    z, report = run_newton("root", solver, start, p)
    assert not report[0, 0] <= 1
    assert np.all(report[0, 1:] <= 1)
    np.testing.assert_allclose(z[:, 1:], np.sqrt(2.0), rtol=1e-15)


def test_newton_gives_up_where_newton_solve_does(solver: tuple[int, Code]) -> None:
    """A step to where the rows are far larger ends the iteration, though full steps would lead back."""
    lanes = solver[0]
    p, start = np.full((3, lanes), 2.0), np.full((3, lanes), 1.0)
    start[:, 0] = 1e-2
    wanted = newton.solve(Plain("root", p[:, 0]), start[:, 0], newton.NewtonOptions(), damped=False)
    assert not wanted.converged
    _, report = run_newton("root", solver, start, p)
    assert not report[0, 0] <= 1
    assert np.all(report[0, 1:] <= 1)


@pytest.mark.parametrize(
    ("name", "start", "p"),
    [
        ("logarithm", -1.0, 0.0),  # NaN from the start
        ("logarithm", 20.0, 0.0),  # NaN after the first step
        ("cubic", np.nan, 1.0),
        ("cubic", 1.0, np.nan),
        ("cubic", 1.0, np.inf),
        ("cubic", 1e200, 0.0),  # rows overflow
        ("constant", 1.0, 1.0),  # a singular matrix
        ("kink", np.nan, 1.0),  # a maximum may lose the NaN
    ],
)
def test_nan_is_never_reported_as_converged(
    name: str, start: float, p: float, solver: tuple[int, Code]
) -> None:
    """One row of one lane spoils that lane and no other."""
    lanes = solver[0]
    z0, parameters = np.full((3, lanes), 0.5), np.full((3, lanes), 0.0 if name == "constant" else 0.6)
    z0[1, 0], parameters[1, 0] = start, p
    z, report = run_newton(name, solver, z0, parameters)
    assert not report[0, 0] <= 1
    assert np.all(report[0, 1:] <= 1)
    assert np.all(np.isfinite(z[:, 1:]))
