"""Damaged and hostile files of failed steps: no crash, no hang, one clear line, none is accepted."""

from __future__ import annotations

import json
from pathlib import Path

from implicit_geom.experiments.fuzz import replay_files


def test_no_damaged_replay_file_is_accepted() -> None:
    """A few hundred files of each kind of damage; `bench fuzz` has more."""
    found = {case.name: words for case in replay_files.cases(21, 300) if (words := replay_files.check(case))}
    assert found == {}


def test_undamaged_files_are_repeated(tmp_path: Path) -> None:
    """The files that the cases are made of are repeated to the same bits with their hash, a new one, none."""
    for data in replay_files.originals():
        ends = set()
        new = replay_files.with_new_hash(json.loads(data))
        for k, form in enumerate((data, replay_files.without_hash(data), new)):
            (tmp_path / f"{k}.json").write_bytes(form)
            ends.add(replay_files.repeat(tmp_path / f"{k}.json"))
        assert len(ends) == 1


def test_crash_and_unclean_errors_are_findings() -> None:
    """Negative control: a process that dies, and an error that is none of ours, are told."""
    alone = replay_files.Alone("os")  # has no `look`
    assert alone.outcome(b"{}").startswith("crashed")
    alone.close()
    bad = replay_files.outcome(lambda path: bytes(1 // 0), b"", b"", False, ".json")
    assert bad.startswith("ZeroDivisionError")
