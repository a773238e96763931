"""MJ14's equations and minimisers: Jacobians on all branches, Fischer-Burmeister's zeros, textbook cases."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from implicit_geom.solvers.contact.mj14.implicit_ncp import ImplicitNCP
from implicit_geom.solvers.contact.mj14.minimum import Equations, Minimum
from implicit_geom.solvers.contact.mj14.mixed_lcp import MixedLCP
from implicit_geom.solvers.contact.mj14.projected import MEMORY, MONOTONE, WATCHDOG, projected, search
from implicit_geom.solvers.contact.mj14.regular import regular
from implicit_geom.solvers.contact.problem import ContactProblem

Minimise = Callable[..., Minimum]
METHODS: list[Minimise] = [regular, projected]


def slope(equations: Equations, x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    columns = [(equations.phi(x + eps * e) - equations.phi(x - eps * e)) / (2 * eps) for e in np.eye(x.size)]
    return np.stack(columns, axis=1)


class System:
    """phi and its derivative, given."""

    def __init__(
        self, phi: Callable[[np.ndarray], list[float]], jacobian: Callable[[np.ndarray], list[list[float]]]
    ) -> None:
        self._phi, self._jacobian = phi, jacobian

    def phi(self, x: np.ndarray) -> np.ndarray:
        return np.array(self._phi(x), float)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        return np.array(self._jacobian(x), float)


def test_fischer_burmeister_vanishes_at_complementary_pairs_alone() -> None:
    """[MJ14, eq. 23], with M = 0 and f = q: pairs (z, f)."""
    z, f = np.array([0, 0, 3, 1, -1, 1e-9, 2.0]), np.array([0, 2, 0, 1, 0, 1.0, -1])
    phi = MixedLCP(np.zeros((7, 7)), f).phi(z)
    assert np.all(phi[:3] == 0)
    assert np.all(np.abs(phi[3:]) > 5e-10)
    np.testing.assert_allclose(phi[3], np.sqrt(2) - 2)
    np.testing.assert_allclose(MixedLCP(np.zeros((7, 7)), f, 7).phi(z), -f)


@pytest.mark.parametrize("seed", range(3))
def test_jacobian_of_a_mixed_lcp(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = MixedLCP(rng.normal(size=(8, 8)), rng.normal(size=8), 3)
    z = rng.normal(size=8)
    np.testing.assert_allclose(problem.jacobian(z), slope(problem, z), atol=1e-8)


def test_jacobian_at_the_kink_is_a_derivative_from_one_side() -> None:
    """Where z_i = f_i = 0; MJ14 prints its diagonal alone, which is no limit of derivatives nearby."""
    rng = np.random.default_rng(0)
    M = rng.normal(size=(4, 4))
    problem, z = MixedLCP(M, np.zeros(4)), np.zeros(4)
    J = problem.jacobian(z)
    for i in range(4):
        near = problem.jacobian(1e-9 * np.eye(4)[i])
        np.testing.assert_allclose(J[i], near[i], atol=1e-12)
    np.testing.assert_allclose(np.diagonal(J), np.sqrt(1 + np.diagonal(M) ** 2) - 1 - np.diagonal(M))


def ncp(dim: int, seed: int = 0) -> ImplicitNCP:
    """Three contacts on two bodies, with two bilateral rows."""
    rng = np.random.default_rng(seed)
    H, G = rng.normal(size=(12, 3 * dim)), rng.normal(size=(12, 2))
    more = {"mu_r": [0.2] * 3} if dim == 5 else {"dim": dim}
    problem = ContactProblem(
        M=np.diag(rng.uniform(0.5, 2, 12)),
        H=H,
        v_free=rng.normal(size=12),
        mu=[0.5, 0.5, 0.5],
        G=G,
        b=[0.1, 0.2],
        **more,
    )
    return ImplicitNCP(problem)


@pytest.mark.parametrize("dim", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("z_n", "size"), [(-2.0, 0.3), (-2.0, 5.0), (1.0, 2.0)], ids=["stick", "slip", "open"]
)
def test_jacobian_of_the_cone_on_its_branches(dim: int, z_n: float, size: float) -> None:
    """[MJ14, eqs. 34, 35] as corrected; one contact on the branch, the others wherever they are."""
    equations = ncp(dim)
    rng = np.random.default_rng(3)
    x = rng.normal(size=2 + 3 * dim)
    first = np.append(z_n, rng.normal(size=dim - 1))
    first[1:] *= size / np.linalg.norm(first[1:])
    x[2 : 2 + dim] = first
    F = equations.forces(x)[0]
    u = F + first
    slips = size > 1
    if z_n > 0:
        assert np.all(F == 0)
        np.testing.assert_array_equal(u, first)
    elif dim < 5:
        assert F[0] == 2
        np.testing.assert_allclose(np.linalg.norm(F[1:]), min(0.5 * F[0], size))
        assert (np.abs(u[1:]).max() > 0) == slips
    np.testing.assert_allclose(equations.jacobian(x), slope(equations, x), atol=1e-7)


@pytest.mark.parametrize("minimise", METHODS)
def test_textbook_problems(minimise: Minimise) -> None:
    """Rosenbrock's valley and Powell's singular function."""
    valley = System(lambda x: [10 * (x[1] - x[0] ** 2), 1 - x[0]], lambda x: [[-20 * x[0], 10], [-1, 0]])
    found = minimise(valley, np.array([-1.2, 1.0]), tolerance=1e-10)
    np.testing.assert_allclose(found.x, 1, atol=1e-10)
    assert found.status == "solved"
    assert found.iterations < 80

    def powell(x: np.ndarray) -> list[float]:
        a, b, c, d = x.tolist()
        return [a + 10 * b, np.sqrt(5) * (c - d), (b - 2 * c) ** 2, np.sqrt(10) * (a - d) ** 2]

    def powell_slope(x: np.ndarray) -> list[list[float]]:
        a, b, c, d = x.tolist()
        s, t = 2 * (b - 2 * c), 2 * np.sqrt(10) * (a - d)
        return [[1, 10, 0, 0], [0, 0, np.sqrt(5), -np.sqrt(5)], [0, s, -2 * s, 0], [t, 0, 0, -t]]

    found = minimise(System(powell, powell_slope), np.array([3.0, -1, 0, 1]), tolerance=1e-10)
    assert found.residual < 1e-10
    np.testing.assert_allclose(found.x, 0, atol=1e-4)


@pytest.mark.parametrize("minimise", METHODS)
def test_textbook_complementarity(minimise: Minimise) -> None:
    """Four unknowns with the solution (2.8, 0, 0.8, 1.2); Murty's triangle, solved by (0, ..., 0, 1)."""
    M = np.array([[0, 0, -1, -1], [0, 0, 1, -2], [1, -1, 2, -2], [1, 2, -2, 4.0]])
    found = minimise(MixedLCP(M, np.array([2, 2, -2, -6.0])), np.zeros(4), tolerance=1e-10)
    np.testing.assert_allclose(found.x, [2.8, 0, 0.8, 1.2], atol=1e-10)
    n = 8
    triangle = MixedLCP(np.eye(n) + 2 * np.triu(np.ones((n, n)), 1), -np.ones(n))
    found = minimise(triangle, np.zeros(n), tolerance=1e-10)
    np.testing.assert_allclose(found.x, np.eye(n)[-1], atol=1e-10)
    # mixed: the first row an equation
    equation = MixedLCP(np.array([[2.0, 1], [1, 1]]), np.array([3.0, -1]), 1)
    found = minimise(equation, np.zeros(2), tolerance=1e-10)
    np.testing.assert_allclose(found.x, [-4, 5], atol=1e-9)


@pytest.mark.parametrize("minimise", METHODS)
def test_a_system_without_a_root_ends_in_a_local_minimum(minimise: Minimise) -> None:
    """Negative control: x^2 + 1, and an LCP that nothing satisfies."""
    found = minimise(
        System(lambda x: [x[0] ** 2 + 1], lambda x: [[2 * x[0]]]), np.array([3.0]), tolerance=1e-8
    )
    assert found.status in ("local minimum", "limit")
    assert found.residual >= 1
    found = minimise(MixedLCP(np.array([[-1.0]]), np.array([-1.0])), np.ones(1), tolerance=1e-8)
    assert found.status != "solved"
    assert found.residual > 0.1


def test_damping_follows_the_ratio() -> None:
    """RLM from far away: psi never rises, and no damping at all (Newton) would leave the domain."""
    atan = System(lambda x: [np.arctan(x[0])], lambda x: [[1 / (1 + x[0] ** 2)]])
    found = regular(atan, np.array([3.0]), tolerance=1e-12)
    assert abs(found.x[0]) < 1e-12
    assert np.all(np.diff(found.history) <= 0)


def test_search_may_climb_up_to_its_bound() -> None:
    """A bound above psi lets a step climb; with psi itself as the bound the step is cut until it does not."""
    hill = System(lambda x: [x[0], 4 * np.sin(x[0])], lambda x: [[1], [4 * np.cos(x[0])]])
    x, dx = np.array([3.0]), np.array([-1.0])
    psi = 0.5 * float(hill.phi(x) @ hill.phi(x))
    free, strict = (search(hill, x, dx, bound, -1e-3) for bound in (3 * psi, psi))
    assert free is not None
    assert free[0][0] == 2.0
    assert free[2] > psi
    assert strict is not None
    assert 2.0 < strict[0][0] < 3.0
    assert strict[2] <= psi


def test_the_watchdog_goes_back_to_the_best_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that only climbs: bounds follow the last ten points, then the best is tried again."""
    calls: list[tuple[float, float]] = []

    def climbing(
        equations: Equations, x: np.ndarray, dx: np.ndarray, bound: float, slope: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        calls.append((float(x[0]), bound))
        new = x + (1 if len(calls) <= WATCHDOG + 1 else -0.5)
        phi = equations.phi(new)
        return new, phi, 0.5 * float(phi @ phi)

    monkeypatch.setattr("implicit_geom.solvers.contact.mj14.projected.search", climbing)
    line = System(lambda x: [x[0]], lambda x: [[1.0]])
    found = projected(line, np.array([1.0]), tolerance=1e-12, limit=WATCHDOG + 3)
    at, bounds = np.array(calls).T
    np.testing.assert_array_equal(at[:WATCHDOG], 1 + np.arange(WATCHDOG))
    np.testing.assert_array_equal(bounds[:WATCHDOG], 0.5 * at[:WATCHDOG] ** 2)
    assert at[WATCHDOG] == 1.0
    assert bounds[WATCHDOG] == bounds[0]
    assert at[WATCHDOG + 1] == 2.0
    assert at[WATCHDOG + 2] == 1.5
    assert bounds[WATCHDOG + 2] == 0.5 * 1.5**2  # monotone: not the 2 of the point before
    assert found.x[0] == 1.0
    assert found.status == "limit"


def test_the_search_remembers_ten_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where psi only falls, the bound is psi for five iterations, then the largest of the last ten."""
    calls: list[tuple[float, float]] = []

    def falling(
        equations: Equations, x: np.ndarray, dx: np.ndarray, bound: float, slope: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        calls.append((float(x[0]), bound))
        phi = equations.phi(x - 1)
        return x - 1, phi, 0.5 * float(phi @ phi)

    monkeypatch.setattr("implicit_geom.solvers.contact.mj14.projected.search", falling)
    projected(System(lambda x: [x[0]], lambda x: [[1.0]]), np.array([40.0]), tolerance=1e-12, limit=18)
    expected = [40 - max(k - MEMORY + 1, 0) if k >= MONOTONE else 40 - k for k in range(18)]
    np.testing.assert_array_equal([bound for _, bound in calls], 0.5 * np.array(expected) ** 2)
