"""Linear complementarity: problems times solvers; solvers agree on what is unique; no solution is said so."""

from __future__ import annotations

import lcp_problems as problems
import numpy as np
import pytest
from lcp_problems import PROBLEMS, UNSOLVABLE, Lcp

from implicit_geom.errors import SceneError
from implicit_geom.lcp import SOLVERS, lemke, solve
from implicit_geom.lcp.solution import Problem


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
    found = solve(problem.M, problem.q, solver=solver)
    assert found.converged
    assert found.reason == "solved"
    assert found.error <= 1e-10
    assert violation(problem, found.z) <= 1e-10
    np.testing.assert_allclose(found.w, problem.M @ found.z + problem.q, atol=1e-12)


@pytest.mark.parametrize("name", PROBLEMS)
def test_solvers_agree_on_what_is_unique(name: str) -> None:
    problem = PROBLEMS[name]
    seen = [problem.seen @ solve(problem.M, problem.q, solver=solver).z for solver in SOLVERS]
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-9 * (1 + np.max(np.abs(seen[0]), initial=0.0)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", UNSOLVABLE)
def test_no_solution_is_reported_as_none(name: str, solver: str) -> None:
    """Negative control: nothing that is found may be called a solution."""
    found = solve(*UNSOLVABLE[name], solver=solver)
    assert not found.converged
    assert found.reason != "solved"
    assert found.error > 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_many_frictional_problems_without_a_failure(solver: str) -> None:
    """A hundred blows on a body with one to four contacts, mu up to 1, are all solved."""
    for seed in range(100):
        problem = problems.random_contacts(1 + seed % 4, (2, 4, 8)[seed % 3], (1 + seed % 10) / 10, seed)
        assert solve(problem.M, problem.q, solver=solver).converged, seed


def test_a_solution_as_guess_needs_no_pivots() -> None:
    problem = PROBLEMS["P, 60"]
    first = solve(problem.M, problem.q)
    assert first.iterations > 10
    assert solve(problem.M, problem.q, z0=first.z).iterations == 0
    newton = solve(problem.M, problem.q, z0=first.z * 1.001, solver="semismooth")
    assert newton.iterations <= 3


def test_units_do_not_matter() -> None:
    """Impulses in other units, row by row, change neither the pivots nor the answer."""
    problem = PROBLEMS["P, 12"]
    unit = 10.0 ** np.random.default_rng(0).uniform(-6, 6, 12)
    plain = solve(problem.M, problem.q)
    other = solve(problem.M * unit * unit[:, None], problem.q * unit)
    assert plain.iterations == other.iterations
    np.testing.assert_allclose(other.z * unit, plain.z, rtol=1e-9, atol=1e-12)


def test_the_limit_is_kept_and_reported() -> None:
    problem = PROBLEMS["P, 60"]
    found = solve(problem.M, problem.q, limit=5)
    assert (found.converged, found.iterations, found.reason) == (False, 5, lemke.LIMIT)


def test_a_drifted_inverse_is_made_anew() -> None:
    """An inverse that is spoilt on the way is noticed, and the solution is found all the same."""
    problem = PROBLEMS["P, 60"]
    path = lemke.Path(Problem(problem.M, problem.q), np.ones(60))
    assert path.follow(20) == lemke.LIMIT
    assert path.drift() < 1e-12
    path.inverse += 1e-6
    path.x += 1e-6
    assert path.drift() > lemke.DRIFT
    assert path.refresh()
    assert path.drift() < 1e-12


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
        solve(M, q)


def test_an_unknown_solver_suggests_the_nearest() -> None:
    with pytest.raises(SceneError, match="lemke"):
        solve(np.eye(1), np.ones(1), solver="lemki")
