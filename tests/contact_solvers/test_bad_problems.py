"""Contact problems and calls that cannot be right are refused in one line that names the field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from implicit_geom import ContactProblem, SceneError, solve_contact

GOOD: dict[str, Any] = {"M": np.eye(3), "H": np.eye(3), "v_free": (-1, 0, 0), "mu": [0.3]}
COUPLED = np.array([[1.0, 2, 0], [0, 1, 0], [0, 0, 1]])
PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "negative mass": ({"M": -np.eye(3)}, "M is not positive definite"),
    "one negative mass": ({"M": np.diag([1.0, -1, 1])}, "M is not positive definite"),
    "no mass": ({"M": np.zeros((3, 3))}, "M is not positive definite"),
    "indefinite": ({"M": np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]])}, "M is not positive definite"),
    "not symmetric": ({"M": COUPLED}, "M is not symmetric"),
    "not square": ({"M": np.ones((3, 2))}, r"M has the shape \(3, 2\)"),
    "text": ({"M": "heavy"}, "M = 'heavy' must be a matrix"),
    "NaN in H": ({"H": np.full((3, 3), np.nan)}, "H holds a number that is not finite"),
    "NaN in v": ({"v_free": (np.nan, 0, 0)}, "v_free holds a number that is not finite"),
    "negative mu": ({"mu": [-0.1]}, "mu must be zero or positive"),
    "text for mu": ({"mu": "much"}, "mu = 'much' must be numbers"),
    "negative e": ({"e": -1}, "e must be zero or positive"),
    "text for e": ({"e": "round"}, "e = 'round' must be numbers"),
    "complex masses": ({"M": np.eye(3) * 1j}, "M = .* must be real numbers"),
    "complex velocities": ({"v_free": np.array([1j, 0, 0])}, "v_free = .* must be real numbers"),
    "rows as a float": ({"dim": 3.0}, "dim = 3.0 must be a whole number"),
    "mistyped": ({"muu": 0.3}, "there is no such argument; did you mean 'mu'"),
}
CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "solver": ({"solver": "psn"}, "did you mean 'pssn'"),
    "tolerance of zero": ({"tolerance": 0}, "tolerance = 0 must be positive"),
    "tolerance of text": ({"tolerance": "fine"}, "tolerance = 'fine' must be"),
    "NaN to start from": ({"start": [np.nan, 0, 0]}, "start holds a number that is not finite"),
    "start of another size": ({"start": [1, 2]}, r"start has the shape \(2,\)"),
    "sweeps as a float": ({"solver": "nsgs", "sweeps": 1.5}, "sweeps = 1.5 must be a whole number"),
    "negative budget": ({"budget": -1}, "budget = -1 must be a whole number, not below zero"),
    "yes as a number": ({"solver": "admm", "iterations": True}, "iterations = True must be a whole number"),
    "text for seconds": ({"solver": "nsgs", "seconds": "long"}, "seconds = 'long' must be a number"),
    "NaN for seconds": ({"solver": "nsgs", "seconds": np.nan}, "seconds = nan must be a number"),
    "text for yes": ({"sweeps": "no"}, "sweeps = 'no' must be True or False"),
    "option": ({"budgett": 3}, "has no such option; did you mean 'budget'"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_is_refused(name: str) -> None:
    """When it is made, before any solver sees it."""
    changes, words = PROBLEMS[name]
    with pytest.raises(SceneError, match=words) as caught:
        ContactProblem(**{**GOOD, **changes})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", CALLS)
def test_call_is_refused(name: str) -> None:
    """Whatever the solver would make of it."""
    changes, words = CALLS[name]
    with pytest.raises(SceneError, match=words) as caught:
        solve_contact(ContactProblem(**GOOD), **changes)
    assert "\n" not in str(caught.value)


def test_good_one_is_taken() -> None:
    """The control."""
    assert solve_contact(ContactProblem(**GOOD)).converged
