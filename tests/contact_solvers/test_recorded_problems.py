"""Recorded problems of bins, stacks, an arch and a wedge: the default solver certifies all of them."""

from __future__ import annotations

import numpy as np
import pytest
from contact_cases import RECORDED, recorded

import implicit_geom.solvers.contact as _  # noqa: F401
from implicit_geom.solvers.contact.solve import solve_contact

NAMES = sorted(path.stem for path in RECORDED.glob("*.npz"))
UNIQUE = ("sphere2", "wedge20")  # motions


def test_there_are_some() -> None:
    assert len(NAMES) >= 6


@pytest.mark.parametrize("name", NAMES)
def test_default_certifies(name: str) -> None:
    """Mass ratios of 1e4, mu = 1, redundant points: all residuals within 1e-8 m/s."""
    found = solve_contact(recorded(name))
    assert found.error <= 1e-8, found


@pytest.mark.parametrize("solver", ["nsgs", "admm", "cadoux-acary"])
@pytest.mark.parametrize("name", UNIQUE)
def test_agreement(name: str, solver: str) -> None:
    """Solvers that certify have the same contact velocities where the motion is unique."""
    reference, other = solve_contact(recorded(name)), solve_contact(recorded(name), solver)
    if other.converged:
        np.testing.assert_allclose(other.contact_velocity, reference.contact_velocity, atol=1e-6)
    else:
        assert solver == "cadoux-acary"


@pytest.mark.parametrize(("name", "budget"), [("stack10", 1), ("arch11", 5)])
def test_fallbacks(name: str, budget: int) -> None:
    """With a budget that is soon spent the fallbacks take over."""
    found = solve_contact(recorded(name), budget=budget)
    assert found.info["by"] in ("admm", "sweeps", "best")
    assert found.converged


def test_out_of_budget() -> None:
    """What is not solved is not called solved; the best of what was seen is returned."""
    found = solve_contact(recorded("cube27"), budget=1)
    assert not found.converged
    assert found.error == pytest.approx(min(found.history), rel=1e-6)
