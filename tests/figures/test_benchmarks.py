"""Benchmarks: how times are summed, what is interpolated, and that they run without peers."""

import numpy as np
import pytest

from implicit_geom.experiments import peers
from implicit_geom.experiments.benchmarks import batch, precision, scale, step, timing
from implicit_geom.experiments.benchmarks.precision import time_for
from implicit_geom.experiments.benchmarks.timing import Contender, in_pieces, in_turns
from implicit_geom.experiments.peers import MODULES


def test_least_time_is_the_sum_of_the_least_pieces() -> None:
    rounds = iter([[1.0, 5.0], [4.0, 2.0], [3.0, 3.0]])
    contender = Contender("work", lambda: (np.array(next(rounds)), 7.0), unit=2)
    in_turns([contender], 3, warm=False)
    assert contender.least == (1.0 + 2.0) / 2
    assert contender.median == 6.0 / 2
    assert contender.least_call == 3.5


def test_seldom_contenders_run_in_some_rounds_only() -> None:
    often, seldom = (
        Contender(name, lambda: (np.ones(1), 1.0), every) for name, every in (("a", 1), ("b", 3))
    )
    in_turns([often, seldom], 7)
    assert (len(often.loops), len(seldom.loops)) == (7, 3)


@pytest.mark.parametrize(("steps", "seconds"), [(500, 0.0), (500, 0.025), (7, 1.0)])
def test_pieces_hold_all_steps(steps: int, seconds: float) -> None:
    pieces = in_pieces(steps, seconds)
    assert pieces.sum() == steps
    assert pieces.min() >= 1


def test_time_for_an_error_is_interpolated_between_runs_of_known_order() -> None:
    """error = h^2, time = 1 / h: an error of e takes e^(-1/2)."""
    rows = [(h, h**2, 1 / h) for h in (0.4, 0.2, 0.1)]
    seconds, h, how = time_for(rows, 0.02)
    assert (seconds, h) == pytest.approx((0.02**-0.5, 0.02**0.5))
    assert how == "between"


def test_time_for_an_error_is_never_extrapolated_beyond_one_halving() -> None:
    rows = [(h, h, 1 / h) for h in (0.4, 0.2)]
    seconds, h, how = time_for(rows, 0.11)
    assert (seconds, h, how) == (pytest.approx(1 / 0.11), pytest.approx(0.11), "continued")
    assert time_for(rows, 0.09)[2] == "not reached"
    assert np.isnan(time_for(rows, 0.09)[0])
    assert time_for([], 0.1)[2] == "not reached"
    assert time_for([(0.4, 0.1, 1.0), (0.2, 0.3, 2.0)], 0.01)[2] == "not reached"  # the error grows


def test_a_quick_run_below_the_target_counts_as_measured() -> None:
    """A longer step that takes longer, as one that is guarded does, gives no time by interpolation."""
    rows = [(0.2, 1e-2, 50.0), (0.1, 1e-5, 1.0)]
    assert time_for(rows, 1e-3) == (1.0, 0.1, "measured")


def test_growth_is_that_of_many_bodies() -> None:
    """Times of a few bodies, and of heaps that were not finished, say nothing of it."""
    growth = {
        "discs": np.array([10, 28, 100, 1000, 5000]),
        "milliseconds": np.array([9.0, 9.0, 10.0, 1e3, np.nan]),
    }
    assert scale.exponent(growth) == pytest.approx(2.0)
    growth["milliseconds"][2:4] = np.nan
    assert np.isnan(scale.exponent(growth))


@pytest.mark.parametrize("subject", [step, precision, batch])
def test_absent_peers_are_left_out_and_named(subject, monkeypatch) -> None:
    for module in (peers, timing, subject):
        monkeypatch.setattr(module, "installed", list)
    tables = subject.run({**subject.PARAMS, **subject.QUICK})
    assert all(check.passed for check in subject.check(tables))
    words = subject.report(tables)
    assert all(f"{name} is not installed" in words for name in MODULES)
    assert not any(
        name in str(tables[table]) for name in MODULES for table in tables if table != "conditions"
    )
