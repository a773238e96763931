"""Linear complementarity: problems times solvers; solvers agree on what is unique; no solution is said so."""

from __future__ import annotations

from collections.abc import Iterator

import lcp_problems as problems
import numpy as np
import pytest
from lcp_problems import PROBLEMS, UNSOLVABLE, Lcp

from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers.lcp import SOLVERS, lemke, solve_lcp
from implicit_geom.solvers.lcp.solution import LCP, certified


def violation(problem: Lcp, z: np.ndarray) -> float:
    """The laws from the raw numbers, over the size of the problem."""
    w = problem.M @ z + problem.q
    size = max(np.max(np.abs(problem.q), initial=0.0), np.max(np.abs(z), initial=0.0), 1e-300)
    products = np.abs(w) @ np.abs(z) / size
    return max(-np.min(z, initial=0.0), -np.min(w, initial=0.0), products) / size


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_solution_is_one_and_says_so(name: str, solver: str) -> None:
    problem = PROBLEMS[name]
    found = solve_lcp(problem.M, problem.q, solver=solver)
    assert found.converged
    assert found.reason == "solved"
    assert found.error <= 1e-10
    assert violation(problem, found.z) <= 1e-10
    np.testing.assert_allclose(found.w, problem.M @ found.z + problem.q, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_solvers_agree_on_what_is_unique(name: str) -> None:
    problem = PROBLEMS[name]
    seen = [problem.seen @ solve_lcp(problem.M, problem.q, solver=solver).z for solver in SOLVERS]
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-9 * (1 + np.max(np.abs(seen[0]), initial=0.0)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", UNSOLVABLE)
def test_no_solution_is_reported_as_none(name: str, solver: str) -> None:
    """Negative control: nothing that is found may be called a solution."""
    found = solve_lcp(*UNSOLVABLE[name], solver=solver)
    assert not found.converged
    assert found.reason != "solved"
    assert found.error > 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_many_frictional_problems_without_a_failure(solver: str) -> None:
    """A hundred blows on a body with one to four contacts, mu up to 1, are all solved."""
    for seed in range(100):
        problem = problems.random_contacts(1 + seed % 4, (2, 4, 8)[seed % 3], (1 + seed % 10) / 10, seed)
        assert solve_lcp(problem.M, problem.q, solver=solver).converged, seed


def test_a_solution_as_guess_needs_no_pivots() -> None:
    problem = PROBLEMS["P, 60"]
    first = solve_lcp(problem.M, problem.q)
    assert first.iterations > 10
    assert solve_lcp(problem.M, problem.q, z0=first.z).iterations == 0
    newton = solve_lcp(problem.M, problem.q, z0=first.z * 1.001, solver="semismooth")
    assert newton.iterations <= 3


def test_units_do_not_matter() -> None:
    """Impulses in other units, row by row, change neither the pivots nor the answer."""
    problem = PROBLEMS["P, 12"]
    unit = 10.0 ** np.random.default_rng(0).uniform(-6, 6, 12)
    plain = solve_lcp(problem.M, problem.q)
    other = solve_lcp(problem.M * unit * unit[:, None], problem.q * unit)
    assert plain.iterations == other.iterations
    np.testing.assert_allclose(other.z * unit, plain.z, rtol=1e-9, atol=1e-12)


def test_the_limit_is_kept_and_reported() -> None:
    problem = PROBLEMS["P, 60"]
    found = solve_lcp(problem.M, problem.q, limit=5)
    assert (found.converged, found.iterations, found.reason) == (False, 5, lemke.LIMIT)


class FirstOfEqualRows(lemke.LemkePath):
    """A path whose rule for ties is none."""

    def smallest_row(self, rows: np.ndarray, column: np.ndarray) -> int:
        return int(rows[0])


def test_a_problem_on_which_a_plain_rule_for_ties_cycles() -> None:
    """Kostreva's problem, covered by ones: the first of equal rows cycles, the lexicographic one ends."""
    cyclic = LCP(np.array([[1.0, 2, 0], [0, 1, 2], [2, 0, 1]]), -np.ones(3))
    assert lemke.LemkePath(cyclic, np.ones(3), 1e-12).follow(50) == ""
    assert FirstOfEqualRows(cyclic, np.ones(3), 1e-12).follow(50) == lemke.LIMIT


class Spoilt(lemke.LemkePath):
    """A path whose inverse is wrong after ten pivots."""

    def pivot(self, row: int, column: np.ndarray, entering: int) -> None:
        super().pivot(row, column, entering)
        if self.pivots == 10:
            self.inverse += 1e-6
            self.x += 1e-7


def test_a_drifted_inverse_is_made_anew() -> None:
    """Spoilt after ten pivots, the inverse is noticed at the next look and the path ends in the solution."""
    problem = LCP(PROBLEMS["P, 60"].M, PROBLEMS["P, 60"].q)
    path = Spoilt(problem, lemke.covering(60, 0.618), 1e-12)
    assert path.follow(20) == lemke.LIMIT
    assert path.drift() > lemke.DRIFT
    path = Spoilt(problem, lemke.covering(60, 0.618), 1e-12)
    assert path.follow(1000) == ""
    assert path.pivots > lemke.CHECK
    assert path.drift() < 1e-13


@pytest.mark.parametrize(
    ("z", "named"),
    [([1.0, 1.0], "complementarity"), ([0.0, 0.5], "smallest_w"), ([-0.5, 1.0], "smallest_z")],
)
def test_what_breaks_one_law_is_no_solution(z: list[float], named: str) -> None:
    """z = (0, 1) solves w = z + (1, -1); each of these breaks one law and is seen by the number named."""
    problem = LCP(np.eye(2), np.array([1.0, -1.0]))
    assert certified(problem, np.array([0.0, 1.0]), 0, "").converged
    found = certified(problem, np.array(z), 0, "no")
    assert (found.converged, found.reason) == (False, "no")
    assert abs(getattr(found, named)) > 0.1


@pytest.mark.parametrize(
    ("M", "q", "message"),
    [
        (np.eye(2), np.zeros(3), r"M \(2, 2\) and q \(3,\) must be \(n, n\) and \(n,\)"),
        (np.eye(2), np.array([np.nan, 1]), "must be finite"),
        (np.array([[1, np.inf], [0, 1]]), np.zeros(2), "must be finite"),
    ],
)
def test_what_is_no_problem_is_refused(M: np.ndarray, q: np.ndarray, message: str) -> None:
    with pytest.raises(SceneError, match=message):
        solve_lcp(M, q)


def test_an_unknown_solver_suggests_the_nearest() -> None:
    with pytest.raises(SceneError, match="lemke"):
        solve_lcp(np.eye(1), np.ones(1), solver="lemki")


def skew_matrices(count: int) -> Iterator[tuple[np.ndarray, np.random.Generator]]:
    """Skew matrices of two to six rows, entries of 1e-6 to 1e6."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        n = int(rng.integers(2, 7))
        A = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-6, 6, size=(n, n))
        yield A - A.T, rng


@pytest.mark.parametrize(("solver", "least"), [("lemke", 200), ("semismooth", 197)])
def test_skew_problems_that_have_a_solution_are_solved(solver: str, least: int) -> None:
    """q is made of a solution, so there is one: Lemke's method must find one, Newton's may stall at times."""
    solved = 0
    for M, rng in skew_matrices(200):
        chosen = rng.uniform(size=len(M)) < 0.5
        size = rng.uniform(0.5, 2.0, len(M))
        q = np.where(chosen, 0.0, size) - M @ np.where(chosen, size, 0.0)
        found = solve_lcp(M, q, solver=solver)
        if found.converged:
            solved += 1
            assert violation(Lcp(M, q, np.eye(len(M))), found.z) <= 1e-10
    assert solved >= least


@pytest.mark.parametrize("solver", SOLVERS)
def test_skew_problems_that_have_none_are_not_solved(solver: str) -> None:
    """Negative control: a row of M without a positive entry leaves w below zero there, whatever z is."""
    for M, rng in skew_matrices(200):
        M[0] = -abs(M[0])
        M[:, 0] = -M[0]
        q = rng.normal(size=len(M))
        q[0] = -abs(q[0])
        assert not solve_lcp(M, q, solver=solver).converged


@pytest.mark.parametrize("solver", SOLVERS)
def test_skew_problems_at_random_are_solved_row_by_row_or_not_at_all(solver: str) -> None:
    """About half have a solution; each answer holds in every row by itself; nothing is raised."""
    solved = 0
    for M, rng in skew_matrices(400):
        q = rng.normal(size=len(M))
        found = solve_lcp(M, q, solver=solver)
        if not found.converged:
            continue
        solved += 1
        rows = abs(q) + abs(M) @ abs(found.z)
        assert np.all(M @ found.z + q >= -1e-9 * rows)
        assert found.z.min() >= -1e-9 * abs(found.z).max()
    assert 180 < solved < 220
