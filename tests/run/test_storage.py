"""Saved runs: what is read back is what was written, and nothing else is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from implicit_geom import Scene, SceneError, Trajectory, shapes, simulate
from implicit_geom.experiments.fuzz.saved_runs import without_hash
from implicit_geom.rotation import unit
from implicit_geom.scene.options import IMPLICIT
from implicit_geom.scene.scene_file import to_dict


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_round_trip_keeps_every_bit(stepper: str, eggs: Scene, tmp_path: Path) -> None:
    """Arrays, scene, options and memory survive save and load unchanged."""
    run = simulate(eggs, duration=0.2, step=0.01, stepper=stepper)
    run.save(tmp_path / "run.h5")
    back = Trajectory.load(tmp_path / "run.h5")
    for name in ("time", "energy", "ledger", "contacts", "steps"):
        a, b = getattr(run, name), getattr(back, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes(), name
    for part in ("x", "q", "v", "w"):
        assert getattr(run.states, part).tobytes() == getattr(back.states, part).tobytes()
    for part in ("table", "x", "q", "v", "w", "half", "contacts"):
        assert getattr(run.solves, part).tobytes() == getattr(back.solves, part).tobytes()
    assert back.memory == run.memory
    assert back.options == run.options
    assert to_dict(back.scene) == to_dict(run.scene)
    assert not back.failed


def test_any_scene_survives(tmp_path: Path) -> None:
    """Shapes made of shapes, moved centres, given inertia, loads: the scene read back has the same bits."""
    scene = Scene(gravity=(0.1, 0.2, -9.81))
    lens = shapes.intersection(shapes.sphere(1).moved((0, 0, 0.7)), shapes.sphere(1).moved((0, 0, -0.7)))
    scene.add("lens", lens, mass=1 / 3, position=(0, 0, 3), orientation=unit((1, 2, 3, 4)))
    third = shapes.ellipsoid(1 / 3, 0.4, 0.5)
    scene.add("egg", third, mass=1.0, com=(0.01, 0, 0), inertia=(0.1, 0.2, 0.25), position=(5, 0, 0))
    scene.friction(mu=0.1, e_t=0.3, direction=(1, 1, 1))
    scene.friction("egg", "lens", mu=0.7, e_t=0.2, direction=(0, 1, 3), frame="lens")
    scene.applied("egg", force=(1, 2, 1 / 7), torque=(0, 0, 0.1))
    run = simulate(scene, duration=0.02, step=0.01)
    run.save(tmp_path / "run.h5")
    back = Trajectory.load(tmp_path / "run.h5").scene
    assert to_dict(back) == to_dict(scene)
    for name, body in scene.bodies.items():
        assert back.bodies[name].shape == body.shape
        for field in ("com", "inertia", "position", "orientation", "velocity", "angular_velocity"):
            assert getattr(back.bodies[name], field).tobytes() == getattr(body, field).tobytes()
    assert back.pair_friction("lens", "egg") == scene.pair_friction("lens", "egg")
    assert np.array_equal(back.load("egg", 0.0)[0], scene.load("egg", 0.0)[0])


def test_file_explains_itself(eggs: Scene, tmp_path: Path) -> None:
    """Versions and the motion by name are there for other programs."""
    run = simulate(eggs, duration=0.05, step=0.01)
    run.save(tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        assert set(json.loads(file["versions"][()])) == {"implicit-geom", "python", "numpy", "casadi"}
        names = list(file["motion"].attrs["bodies"])
        position = file["motion/position"][()]
    assert np.array_equal(position[:, names.index("low")], run["low"].position)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    """Text, an HDF5 file of something else, a cut file and no file: one clear line each."""
    (tmp_path / "text.h5").write_text("hello")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = [1.0]
    for name in ("text.h5", "other.h5"):
        with pytest.raises(SceneError, match="not a run saved by implicit-geom"):
            Trajectory.load(tmp_path / name)
    with pytest.raises(SceneError, match="no such file"):
        Trajectory.load(tmp_path / "missing.h5")


def test_damaged_and_newer_files_are_refused(disc, tmp_path: Path) -> None:
    """A run with a missing part, or of a later format, is refused in one line."""
    path = tmp_path / "run.h5"
    simulate(disc(), duration=0.02, step=0.01).save(path)
    path.write_bytes(without_hash(path.read_bytes()))
    with h5py.File(path, "a") as file:
        del file["steps"]
    with pytest.raises(SceneError, match="damaged"):
        Trajectory.load(path)
    with h5py.File(path, "a") as file:
        file.attrs["format_version"] = 99
    with pytest.raises(SceneError, match="newer version"):
        Trajectory.load(path)


def test_writing_is_all_or_nothing(disc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails half-way leaves the old file as it was and nothing else behind."""
    path = tmp_path / "run.h5"
    run = simulate(disc(), duration=0.02, step=0.01)
    run.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("implicit_geom.run.storage.saved_runs.described", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


def test_any_reason_of_failure_can_be_read_back(disc, tmp_path: Path) -> None:
    """A reason in several lines is saved as one; one line is kept as it is."""
    run = simulate(disc(), duration=0.02, step=0.01)
    for reason, kept in (("é: no luck", "é: no luck"), ("no\n  luck\x1b[2J", "no luck\\x1b[2J")):
        run.failure = reason
        run.save(tmp_path / "run.h5")
        assert Trajectory.load(tmp_path / "run.h5").failure == kept


def test_no_directory_is_a_clear_error(disc, tmp_path: Path) -> None:
    """Saving into a directory that does not exist names it."""
    with pytest.raises(SceneError, match="there is no directory"):
        simulate(disc(), duration=0.02, step=0.01).save(tmp_path / "none" / "run.h5")
