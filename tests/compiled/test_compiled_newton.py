"""The linear solver and Newton's method of compiled code."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from machine_code import call, compiled, lanes_of, lowered

from implicit_geom.compiled.loops.newton import emit_newton
from implicit_geom.compiled.tables import SystemSlot
from implicit_geom.machine.code_writer import ModuleWriter
from implicit_geom.machine.object_cache import LoadedCode
from implicit_geom.solvers import newton

SIZES = (1, 2, 5, 14, 31)


@pytest.fixture(scope="module", params=[1, 8])
def solver(request: pytest.FixtureRequest) -> tuple[int, LoadedCode]:
    """`factor` and `substitute`, and Newton's method for three unknowns."""
    m = ModuleWriter("test", request.param)
    emit_newton(m, 3, 2, newton.NewtonOptions())
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
def test_linear_systems_are_solved_as_numpy_solves_them(
    kind: str, n: int, solver: tuple[int, LoadedCode]
) -> None:
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


def test_a_singular_matrix_gives_no_number(solver: tuple[int, LoadedCode]) -> None:
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
    name: str, solver: tuple[int, LoadedCode], start: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """z and the report of `newton` for one body of three unknowns, in all lanes."""
    (lanes, code), slots = solver, SystemSlot
    f = equations(name)
    rows = ca.Function("rows", f.sx_in(), f.call(f.sx_in())[:1])
    functions = lowered({"both": f, "rows": rows}, lanes)
    zeros = {
        slot: lanes_of(np.zeros((size, lanes)), lanes)
        for slot, size in zip(
            (slots.F, slots.J, slots.DZ, slots.TRIAL, slots.SHIFT)
            + (slots.INPUTS, slots.ROWS, slots.ENTRIES, slots.REPORT, slots.SWAPS),
            (3, 9, 3, 3, 3, 3, 3, 9, 3, 9),
            strict=True,
        )
    }
    arrays = zeros | {
        SystemSlot.Z: lanes_of(start, lanes),
        SystemSlot.MOMENTUM_PARAMETERS: lanes_of(p, lanes),
        SystemSlot.TOLERANCE: lanes_of(np.full((3, lanes), TOLERANCE), lanes),
        SystemSlot.H: lanes_of(np.full((1, lanes), 1e-6), lanes),
        SystemSlot.PIVOTS: np.zeros(3, np.int64),
        SystemSlot.GROUP_TABLES: np.zeros(1, np.int64),
    }
    table = np.zeros(len(SystemSlot), np.int64)
    for slot, array in arrays.items():
        table[slot] = array.ctypes.data
    table[SystemSlot.BODIES], table[SystemSlot.SIZE], table[SystemSlot.MOMENTUM_STRIDE] = 1, 3, 3
    table[SystemSlot.MOMENTUM] = functions.address("both")
    table[SystemSlot.MOMENTUM_ROWS] = functions.address("rows")
    call(code, "run", table)
    return arrays[SystemSlot.Z], arrays[SystemSlot.REPORT]


class Plain:
    """The same equations for `newton.solve_by_newton`."""

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
def test_newton_finds_what_newton_solve_finds(name: str, solver: tuple[int, LoadedCode]) -> None:
    """Other equations in every lane: the same solutions as `newton.solve`, reported as such."""
    lanes = solver[0]
    rng = np.random.default_rng(8)
    p, start = rng.uniform(0.5, 4, (3, lanes)), rng.uniform(0.5, 2, (3, lanes))
    z, report = run_newton(name, solver, start, p)
    for k in range(lanes):
        wanted = newton.solve_by_newton(
            Plain(name, p[:, k]), start[:, k], newton.NewtonOptions(), damped=False
        )
        assert wanted.converged
        assert report[0, k] <= 1
        np.testing.assert_allclose(z[:, k], wanted.z, rtol=1e-12)
        assert abs(report[2, k]) <= 1e-9 * (1 + np.abs(p[:, k]).max())


def test_newton_reports_what_has_no_solution(solver: tuple[int, LoadedCode]) -> None:
    """z^2 = p < 0 in one lane: it is reported, and its neighbours are solved as they are alone."""
    lanes = solver[0]
    p, start = np.full((3, lanes), 2.0), np.full((3, lanes), 1.0)
    p[1, 0] = -2.0
    z, report = run_newton("root", solver, start, p)
    assert not report[0, 0] <= 1
    assert np.all(report[0, 1:] <= 1)
    np.testing.assert_allclose(z[:, 1:], np.sqrt(2.0), rtol=1e-15)


def test_newton_gives_up_where_newton_solve_does(solver: tuple[int, LoadedCode]) -> None:
    """A step to where the rows are far larger ends the iteration, though full steps would lead back."""
    lanes = solver[0]
    p, start = np.full((3, lanes), 2.0), np.full((3, lanes), 1.0)
    start[:, 0] = 1e-2
    wanted = newton.solve_by_newton(Plain("root", p[:, 0]), start[:, 0], newton.NewtonOptions(), damped=False)
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
    name: str, start: float, p: float, solver: tuple[int, LoadedCode]
) -> None:
    """One row of one lane spoils that lane and no other."""
    lanes = solver[0]
    z0, parameters = np.full((3, lanes), 0.5), np.full((3, lanes), 0.0 if name == "constant" else 0.6)
    z0[1, 0], parameters[1, 0] = start, p
    z, report = run_newton(name, solver, z0, parameters)
    assert not report[0, 0] <= 1
    assert np.all(report[0, 1:] <= 1)
    assert np.all(np.isfinite(z[:, 1:]))
