"""What is saved replaces its own kind, and nothing else unless that is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest

from implicit_geom import SceneError, StepFailed, Trajectory, simulate
from implicit_geom.experiments.fuzz.saved_runs import without_hash


@pytest.fixture
def run(disc) -> Trajectory:
    return simulate(disc(), duration=0.02, step=0.01, progress=False)


def test_only_runs_are_replaced(run: Trajectory, tmp_path: Path) -> None:
    """An earlier run, with or without a hash, damaged or not, and an empty file are; others need force."""
    path = tmp_path / "run.h5"
    run.save(path)
    good = path.read_bytes()
    for earlier in (good, without_hash(good), good[:500], b""):
        path.write_bytes(earlier)
        run.save(path)
        assert Trajectory.load(path).time.tolist() == run.time.tolist()
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = [1.0]
    path.write_text("notes")
    (tmp_path / "words.h5").write_text("implicit-geom run notes of mine")
    for other in (path, tmp_path / "other.h5", tmp_path / "words.h5"):
        before = other.read_bytes()
        with pytest.raises(SceneError, match="exists and is not a run saved by implicit-geom"):
            run.save(other)
        assert other.read_bytes() == before
        run.save(other, force=True)
        assert len(Trajectory.load(other).time) == 3


def test_a_link_stays_a_link(run: Trajectory, tmp_path: Path) -> None:
    """What it leads to is replaced."""
    (tmp_path / "link.h5").symlink_to(tmp_path / "run.h5")
    run.save(tmp_path / "link.h5")
    assert (tmp_path / "link.h5").is_symlink()
    assert len(Trajectory.load(tmp_path / "run.h5").time) == 3


@pytest.mark.parametrize("name", [None, 5, "a\0.h5", "x" * 300 + ".h5", "\ud800.h5"], ids=range(5))
def test_what_cannot_be_a_name(name: Any, run: Trajectory) -> None:
    """One line, for saving and for loading."""
    for call in (run.save, Trajectory.load):
        with pytest.raises(SceneError, match="cannot be the name of a file") as caught:
            call(name)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["run", "run.txt", "scene.toml", "run.h5.bak", ".h5"])
def test_other_suffixes_are_refused(name: str, run: Trajectory, tmp_path: Path) -> None:
    """A run is HDF5 and its name says so, force or not; .hdf5 and .H5 do."""
    for force in (False, True):
        with pytest.raises(SceneError, match=r"ends in \.h5 or \.hdf5"):
            run.save(tmp_path / name, force=force)
    assert list(tmp_path.iterdir()) == []
    for good in ("a.hdf5", "b.H5"):
        run.save(tmp_path / good)


def test_only_failed_steps_are_replaced(tmp_path: Path) -> None:
    """The file of a failed step replaces another, and nothing else unless that is asked for."""
    failure = StepFailed("no luck", time=0.0, state={}, history=[])
    path = tmp_path / "step.json"
    for _ in range(2):
        failure.write(path)
    path.write_text('{"mine": 1}')
    with pytest.raises(SceneError, match="exists and is not the file of a failed step"):
        failure.write(path)
    assert path.read_text() == '{"mine": 1}'
    failure.write(path, force=True)
