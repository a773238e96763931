"""Solvers that certify different motions are right where the problem has several, and too loose otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from contact_cases import Contact, box, spatial

import implicit_geom.solvers.contact as _  # noqa: F401
from implicit_geom.experiments import solver_profile
from implicit_geom.experiments.solver_agreement import AGREE, LOOSE, SEVERAL, agreement
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import solution_of
from implicit_geom.solvers.contact.solve import solve_contact


def turning_box() -> ContactProblem:
    """A box that slides and turns on four points: how they share the load decides where friction acts."""
    contacts = [Contact((x, y, -0.1)) for x in (-0.2, 0.2) for y in (-0.1, 0.1)]
    return spatial([1.0], contacts, [0.3, 0.1, -0.1, 0, 0, 2.0], mu=0.5)


def test_several_motions_are_shown() -> None:
    """Loads on one diagonal, or on all four points: both are solutions, to 1e-10 m/s."""
    problem = turning_box()
    diagonal = np.zeros((4, 3))
    diagonal[[0, 3], 0] = 0.05
    found = {"zero": solve_contact(problem), "diagonal": solve_contact(problem, start=diagonal.ravel())}
    row = agreement(problem, found)
    assert row["verdict"] == SEVERAL
    assert row["difference"] > 1e-3
    assert row["certified"] == pytest.approx(row["difference"], rel=1e-3)
    assert row["certificate"] <= 1e-10


def test_a_loose_claim_is_no_motion() -> None:
    """Of a problem with one motion: impulses that are off by a thousandth, certified at 1 mm/s."""
    problem = box((1, 0, -0.1), mu=0.2)
    found = solve_contact(problem)
    off = solution_of(problem, problem.ball_impulses(1.001 * found.impulse), tolerance=1e-3)
    assert off.converged
    row = agreement(problem, {"exact": found, "off": off})
    assert row["difference"] > 1e-5
    assert row["verdict"] == LOOSE


def test_agreement_and_what_does_not_count() -> None:
    """Solvers agree on a box that slides; what does not claim to be a solution is not compared."""
    problem = box((1, 0, -0.1), mu=0.2)
    found = {name: solve_contact(problem, name) for name in ("pssn", "nsgs", "admm", "mncp-plm")}
    found["nothing"] = solution_of(problem, np.zeros(12))
    row = agreement(problem, found)
    assert (row["verdict"], row["solvers"]) == (AGREE, 4)
    assert row["difference"] < 1e-7


@pytest.mark.parametrize(("verdict", "passes"), [(AGREE, True), (SEVERAL, True), (LOOSE, False)])
def test_the_profile_fails_for_a_loose_claim(verdict: str, passes: bool) -> None:
    rows = {"verdict": [AGREE, verdict], "difference": [1e-8, 1e-7], "solvers": [2, 3]}
    checks = solver_profile.agreed({name: np.array(column) for name, column in rows.items()})
    assert all(check.passed for check in checks) == passes
