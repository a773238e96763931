"""Work that is ended at random moments: no torn file, no process left, a sweep goes on to the same table."""

from __future__ import annotations

import sys

import pytest

from implicit_geom.experiments.fuzz.kills import SIGNALS, WORKS, cases, check

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are seen in /proc")


def test_nothing_is_lost_and_nothing_is_left() -> None:
    """Six kills, of every kind of work, most of them in the middle of it."""
    found = {case: check(case) for case in cases(seed=2716, count=6)}
    assert not {case: words for case, words in found.items() if words}


def test_cases_are_the_same_for_a_seed() -> None:
    """And twelve of them are every work with every signal."""
    made = list(cases(seed=1, count=12))
    assert made == list(cases(seed=1, count=12))
    assert {(case.work, case.signal) for case in made} == {(w, s) for w in WORKS for s in SIGNALS}
    assert made[:6] == list(cases(seed=1, count=6))
