"""Damaged and hostile saved runs: no crash, no hang, one clear line, none is accepted."""

from __future__ import annotations

from implicit_geom.experiments.fuzz import saved_runs


def test_no_damaged_run_is_accepted() -> None:
    """A few hundred files of each kind of damage; `bench fuzz` has more."""
    found = {case.name: words for case in saved_runs.cases(20, 200) if (words := saved_runs.check(case))}
    assert found == {}


def test_undamaged_files_are_read() -> None:
    """The files that the cases are made of load, with and without their hash, to the same content."""
    for data in saved_runs.originals():
        same = saved_runs.outcome(saved_runs.content, data, data, True, ".h5")
        assert same == ""
        other = saved_runs.outcome(saved_runs.content, saved_runs.without_hash(data), data, True, ".h5")
        assert other == ""


def test_accepted_damage_is_a_finding() -> None:
    """Negative control: damage that a hash made anew hides is read as another run, and the check says so."""
    data = saved_runs.originals()[0]
    index = saved_runs.index_of(data)
    image = bytearray(data[index["block"] :])
    image[index["arrays"]["initial/v"][3][0][0]] ^= 1
    changed = saved_runs.with_new_hash(index, bytes(image))
    assert saved_runs.check(saved_runs.Case("", changed, data, True, False)) == "accepted"
