"""Convex relaxation: its programs are solved and certified, and its limits are the problem it relaxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from implicit_geom.classical.anitescu_hart import Subproblem, solve_subproblem
from implicit_geom.classical.anitescu_hart_step import first_subproblem
from implicit_geom.classical.quadratic_program import SMALL, SOLVERS, QuadraticProgram
from implicit_geom.experiments.piles import STEP, pile
from implicit_geom.model.model import Model
from implicit_geom.solvers import lcp


def random_program(
    m: int, seed: int, solvers: dict[str, dict[str, Any]] = SOLVERS
) -> tuple[QuadraticProgram, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, m // 2)) * (rng.uniform(size=(m, m // 2)) < 0.2) + np.eye(m, m // 2)
    A[m // 2 :, 0] += 1.0
    program = QuadraticProgram(sparse.csr_matrix(A), solvers)
    return program, A @ rng.normal(size=m // 2) + 0.1 * rng.uniform(size=m)


def heap(rows: int, mu: float) -> Subproblem:
    return first_subproblem(Model(pile(rows, mu)), STEP)


@pytest.mark.parametrize("m", [8, SMALL, 100])
def test_a_program_is_solved_and_its_motion_is_that_of_its_complementarity_problem(m: int) -> None:
    program, b = random_program(m, m)
    found = program.solve(b)
    assert found.converged
    assert found.solver == ("lemke" if m <= SMALL else "osqp")
    dual = lcp.solve_lcp((program.A @ program.A.T).toarray(), b * program.scale, solver="lemke")
    np.testing.assert_allclose(program.A.T @ dual.z, found.y, atol=1e-8)


def test_a_program_whose_solvers_are_inexact_is_finished_by_newton() -> None:
    """The certificate decides, not a solver's word: rough answers are not taken."""
    rough = {"osqp": {"error_on_fail": False, "osqp": {"verbose": False, "max_iter": 10, "polish": False}}}
    program, b = random_program(100, 3, rough)
    found = program.solve(b)
    assert found.converged
    assert found.solver in ("semismooth", "lemke")


def test_a_program_without_a_solution_says_so() -> None:
    """Negative control: y >= 1 and y <= -1."""
    program = QuadraticProgram(sparse.csr_matrix(np.array([[1.0], [-1.0]])))
    assert not program.solve(np.array([-1.0, -1.0])).converged


def test_without_friction_all_models_are_one() -> None:
    nu = [solve_subproblem(heap(3, 0.0), model).nu for model in ("LCP0", "LCP1", "LCP2")]
    np.testing.assert_allclose(nu[1], nu[0], atol=1e-10)
    np.testing.assert_allclose(nu[2], nu[0], atol=1e-10)


def test_small_friction_the_fixed_point_is_the_solution() -> None:
    """LCP1 tends to LCP0 at a linear rate [AH02, theorem 4.1]; one iteration is off by mu lambda."""
    problem = heap(4, 0.05)
    exact, limit, once = (
        solve_subproblem(problem, model, tolerance=1e-9) for model in ("LCP0", "LCP1", "LCP2")
    )
    assert exact.reason == limit.reason == once.reason == ""
    np.testing.assert_allclose(limit.nu, exact.nu, atol=1e-8)
    assert max(limit.history[k + 1] / limit.history[k] for k in range(1, len(limit.history) - 1)) < 0.5
    off = np.abs(once.nu - exact.nu).max()
    assert 1e-3 < off < 2 * np.max(0.05 * exact.slip)


def test_pressing_contacts_of_one_iteration_open_at_mu_lambda() -> None:
    """All laws but the normal one hold [AH02, after theorem 4.2]; that one is off by mu lambda."""
    problem = heap(5, 0.3)
    found = solve_subproblem(problem, "LCP2")
    c = problem.contacts
    full = np.zeros((1 + len(found.nu), 3))
    full[problem.moving] = found.nu
    pressed = found.p[:, 0] > 1e-6
    np.testing.assert_allclose(c.normal_velocity(full)[pressed], found.separation[pressed], atol=1e-9)
    assert found.separation.max() > 1e-3
    slip, p = c.slip(full)[:, 0], found.p
    assert np.all(np.abs(p[:, 1]) <= 0.3 * p[:, 0] + 1e-9)
    np.testing.assert_allclose(p[:, 1] * slip, -0.3 * p[:, 0] * np.abs(slip), atol=1e-9)


@pytest.mark.parametrize("mu", [0.6, 0.8])
def test_a_pile_that_holds_is_computed_exactly(mu: float) -> None:
    """No slip, no error [AH02, theorem 4.2]."""
    found = solve_subproblem(heap(5, mu), "LCP2")
    assert np.abs(found.nu).max() < 1e-10
    assert found.separation.max() < 1e-10


def test_a_fixed_point_that_is_not_reached_is_reported() -> None:
    found = solve_subproblem(heap(4, 0.2), "LCP1", limit=2)
    assert "not converged in 2 rounds" in found.reason
    assert len(found.history) == 2


def test_solvers_of_the_table_are_in_the_wheel() -> None:
    import casadi as ca

    assert all(ca.has_conic(name) for name in SOLVERS)
