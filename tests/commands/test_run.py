"""`implicit-geom run`: good runs, failed steps, interrupts and replays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from failing_steps import before_steps, fail_steps

from implicit_geom import Trajectory
from implicit_geom.model.model import State
from implicit_geom.scene.options import IMPLICIT


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default stepper fails at t = 0.1."""
    fail_steps(monkeypatch, 0.1, history=[[1.0]])


def test_run_saves_and_prints(call, scene, folder: Path) -> None:
    """A good run: status 0, a summary, a file that loads, a figure when asked for, nothing on stderr."""
    outcome = call("run", "egg.toml", "-o", "out.h5", "--plot")
    assert outcome.status == 0
    assert outcome.err == ""
    assert "20 steps: 20 converged" in outcome.out
    assert len(Trajectory.load(folder / "out.h5").time) == 21
    assert (folder / "out.png").stat().st_size > 10_000
    assert sorted(p.name for p in folder.iterdir()) == ["egg.toml", "out.h5", "out.png"]


def test_options_override_the_file(call, scene, folder: Path) -> None:
    """--step and --duration come before the file's values; the default output is named after the scene."""
    assert call("run", "egg.toml", "--step", "0.02", "--duration", "0.1").status == 0
    run = Trajectory.load(folder / "egg.h5")
    assert run.time.tolist() == [k * 0.02 for k in range(6)]


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_stepper_of_choice(stepper: str, call, scene, folder: Path) -> None:
    """--stepper names the stepper that takes the steps, and the summary says which it was."""
    outcome = call("run", "egg.toml", "--stepper", stepper, "--duration", "0.05")
    assert outcome.status == 0
    assert f"stepper     {stepper}" in outcome.out
    run = Trajectory.load(folder / "egg.h5")
    assert run.options.stepper == stepper
    assert ("euler" in run.steps["form"]) == (stepper == "implicit-euler")


def test_failed_step_keeps_the_work(call, scene, failing, folder: Path, monkeypatch) -> None:
    """Status 1, one line, the run so far saved and loadable, and a file that repeats the step."""
    outcome = call("run", "egg.toml", "-o", "out.h5")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1
    assert "step at t = 0.1 s failed: no luck" in outcome.err
    run = Trajectory.load(folder / "out.h5")
    assert run.failed
    assert len(run.time) == 11
    assert json.loads((folder / "out.failed.json").read_text())["reason"] == "no luck"
    again = call("run", "out.failed.json")
    assert again.status == 1
    assert "no luck" in again.err
    monkeypatch.undo()
    solved = call("run", str(folder / "out.failed.json"))
    assert solved.status == 0
    assert "now succeeds" in solved.out


def test_interrupt_keeps_the_work(call, scene, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt: status 130, one line, the run so far saved."""

    def interrupt(_: Any, state: State) -> None:
        if state.time > 0.095:
            raise KeyboardInterrupt

    before_steps(monkeypatch, interrupt)
    outcome = call("run", "egg.toml", "-o", "out.h5")
    assert outcome.status == 130
    assert "interrupted at t = 0.1 s" in outcome.err
    assert len(Trajectory.load(folder / "out.h5").time) == 11


def test_unexpected_errors_are_one_line(call, scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a bug gives one line and status 1; --debug shows the traceback."""
    before_steps(monkeypatch, lambda *_: 1 / 0)
    outcome = call("run", "egg.toml")
    assert outcome.status == 1
    assert outcome.err == "implicit-geom: ZeroDivisionError: division by zero\n"
    assert "Traceback" in call("run", "egg.toml", "--debug").err


def test_module_runs_as_a_program(scene, folder: Path) -> None:
    """python -m implicit_geom.commands.cli ends with the command's status, without a traceback."""
    command = [sys.executable, "-m", "implicit_geom.commands.cli", "run", "none.toml"]
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": root, "PATH": ""})
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_fields_of_a_stepper_after_colons(call, scene: str, folder: Path) -> None:
    """`--stepper NAME:field=value` is that stepper; a field that does not suit names what to change."""
    (folder / "egg.toml").write_text(scene)
    good = call("run", "egg.toml", "--stepper", "stewart-trinkle:facets=100")
    assert good.status == 0, good
    assert Trajectory.load(folder / "egg.h5").options.switches.facets == 100
    bad = call("run", "egg.toml", "--stepper", "stewart-trinkle:facets=3")
    assert bad.status == 2
    assert "stepper.facets = 3 does not suit bodies.egg.shape" in bad.err


def test_record_keeps_every_nth_step(call, scene, folder: Path) -> None:
    """--record comes before the file's value; the summary says what was kept."""
    outcome = call("run", "egg.toml", "--record", "8")
    assert outcome.status == 0
    assert "recorded    3 of them: every 8th and the last" in outcome.out
    assert len(Trajectory.load(folder / "egg.h5").time) == 4
    scene_file = folder / "egg.toml"
    scene_file.write_text(scene_file.read_text() + "record = 5\n")
    assert call("run", "egg.toml").status == 0
    assert len(Trajectory.load(folder / "egg.h5").time) == 5


def test_bad_record_is_one_line(call, scene) -> None:
    outcome = call("run", "egg.toml", "--record", "0")
    assert outcome.status == 2
    assert outcome.err.splitlines() == [
        "implicit-geom: record = 0 must be a whole number above zero: 10 keeps every tenth step"
    ]


def test_friction_that_was_not_set_is_one_line(call, scene, folder: Path) -> None:
    """A notice is one plain line on standard error, and one in the summary."""
    scene_file = folder / "egg.toml"
    scene_file.write_text(scene_file.read_text().replace("[friction]\nmu = 0.4\n", ""))
    outcome = call("run", "egg.toml")
    assert outcome.status == 0
    told = "friction: mu = 0 for every pair, because scene.friction was not called"
    assert outcome.err.splitlines() == [f"implicit-geom: notice: {told}"]
    assert f"notice      {told}" in outcome.out


@pytest.mark.parametrize("name", ["egg.toml", "out", "out.txt", "out.h5.gz"])
def test_names_of_other_kinds_are_refused(name: str, call, scene: str, folder: Path) -> None:
    """A run is saved as .h5 or .hdf5 only: status 2 before the simulation, the scene file as it was."""
    for force in ([], ["--force"]):
        outcome = call("run", "egg.toml", "-o", name, *force)
        assert outcome.status == 2
        assert "ends in .h5 or .hdf5" in outcome.err
        assert outcome.err.count("\n") == 1
    assert (folder / "egg.toml").read_text() == scene
    assert [p.name for p in folder.iterdir()] == ["egg.toml"]


def test_only_runs_are_overwritten(call, scene: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is replaced, another file only with --force, the scene file never; before the simulation."""
    assert [call("run", "egg.toml", "-o", "out.h5").status for _ in range(2)] == [0, 0]
    (folder / "out.h5").write_text("notes")
    (folder / "own.failed.json").write_text("notes")
    (folder / "scene.h5").write_text(scene)
    with monkeypatch.context() as patch:
        patch.setattr("implicit_geom.commands.run.simulate", lambda *_, **__: 1 / 0)
        for output, source in (("out.h5", "egg.toml"), ("own.h5", "egg.toml"), ("scene.h5", "scene.h5")):
            outcome = call("run", source, "-o", output)
            assert outcome.status == 2, outcome
            assert "--force" in outcome.err
        outcome = call("run", "scene.h5", "-o", "scene.h5", "--force")
        assert outcome.status == 2
        assert "is the input file 'scene.h5' itself" in outcome.err
    assert (folder / "scene.h5").read_text() == scene
    assert (folder / "out.h5").read_text() == "notes"
    assert call("run", "egg.toml", "-o", "out.h5", "--force").status == 0
    assert len(Trajectory.load(folder / "out.h5").time) == 21


def test_full_disk_is_one_line(call, scene, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 1, the summary, one line on stderr, and the earlier run is still there."""
    assert call("run", "egg.toml", "-o", "out.h5").status == 0
    before = (folder / "out.h5").read_bytes()

    def full(*_) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    outcome = call("run", "egg.toml", "-o", "out.h5")
    assert outcome.status == 1
    assert outcome.err.count("\n") == 1
    assert "out.h5: could not be written: No space left on device" in outcome.err
    assert "20 steps: 20 converged" in outcome.out
    assert (folder / "out.h5").read_bytes() == before
