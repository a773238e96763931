"""Every solver finds the velocities of problems with a closed form, and says whether it did."""

from __future__ import annotations

import numpy as np
import pytest
from contact_cases import CASES

import implicit_geom.solvers.contact as _  # noqa: F401
from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solve import solve_contact

SOLVERS = ("default", "pssn", "nsgs", "admm", "cadoux-acary")
TWO_DISCS = ("rolling", "rolling sticks")
TOO_SLOW = {
    ("stack, heavy above", "nsgs")
}  # sweeps carry a load of 1e4 times a body's own weight in small bits


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", CASES)
def test_velocities(name: str, solver: str) -> None:
    """Certified to 1e-8, and the velocities are the known ones to 1e-6."""
    case = CASES[name]()
    if solver == "cadoux-acary" and name in TWO_DISCS:
        with pytest.raises(SceneError, match="one friction disc"):
            solve_contact(case.problem, solver)
        return
    if (name, solver) in TOO_SLOW:
        assert not solve_contact(case.problem, solver, sweeps=2000).converged
        return
    found = solve_contact(case.problem, solver)
    assert found.converged, found.residuals
    assert found.error <= 1e-8
    np.testing.assert_allclose(found.velocity, case.velocity, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_from_the_solution(name: str) -> None:
    """Started from a solution, the default solver stays there without a factorisation."""
    problem = CASES[name]().problem
    again = solve_contact(problem, start=solve_contact(problem))
    assert again.converged
    assert again.factorisations == again.iterations == 0


def test_no_contacts() -> None:
    """Without contacts nothing happens to the velocities."""
    M, v = 2 * np.eye(6), np.arange(6.0)
    problem = ContactProblem(M=M, H=np.zeros((6, 0)), v_free=v, mu=np.zeros(0), dim=3)
    for solver in SOLVERS:
        found = solve_contact(problem, solver)
        assert found.converged
        assert np.array_equal(found.velocity, v)


def test_nothing_closes() -> None:
    """Where all contacts open by themselves the default solver does nothing; impulses given to it vanish."""
    problem = CASES["opening"]().problem
    found = solve_contact(problem)
    assert found.info["by"] == "nothing"
    assert found.error == 0
    assert not found.impulse.any()
    again = solve_contact(problem, start=np.ones(12))
    assert again.error == 0
    assert not again.impulse.any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_solution(solver: str) -> None:
    """Between two walls that come closer, and where impulses move nothing: unsolved, and no warnings."""
    H = np.zeros((6, 6))
    H[2, [0, 3]] = 1, -1
    H[0, [1, 4]] = H[1, [2, 5]] = 1
    for directions in (H, 0 * H):
        problem = ContactProblem(
            M=np.eye(6), H=directions, v_free=np.zeros(6), w=[-1, 0, 0] * 2, mu=[0.5] * 2
        )
        options = {"sweeps": 1000} if solver == "nsgs" else {}
        found = solve_contact(problem, solver, **options)
        assert not found.converged
        assert found.error > 0.5


@pytest.mark.parametrize("solver", ["default", "admm", "nsgs"])
def test_bilateral_rows_alone(solver: str) -> None:
    """No contacts: the bilateral row takes its part of the velocity away."""
    joint = np.array([[1.0], [0.0], [0.0]])
    none = {"H": np.zeros((3, 0)), "mu": [], "dim": 5, "mu_r": []}
    found = solve_contact(ContactProblem(M=np.eye(3), v_free=(1, 2, 3), G=joint, b=[0.0], **none), solver)
    assert found.converged
    np.testing.assert_allclose(found.velocity, (0, 2, 3), atol=1e-14)


@pytest.mark.parametrize("solver", ["default", "admm", "nsgs"])
def test_rolling_contact_of_nothing(solver: str) -> None:
    """A contact between bodies that do not move keeps no other from being solved."""
    H = np.zeros((6, 10))
    H[:5, :5] = np.eye(5)
    still = np.repeat([0.0, 0.1], 5) * np.tile([1.0, 0, 0, 0, 0], 2)
    problem = ContactProblem(M=np.eye(6), H=H, v_free=-np.ones(6), w=still, mu=0.5, mu_r=0.1, dim=5)
    found = solve_contact(problem, solver)
    assert found.converged, found.residuals
    assert found.velocity[0] == pytest.approx(0.0, abs=1e-8)
