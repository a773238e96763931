"""`implicit-geom sweep`: a table on disk, status 1 where a run failed, 2 for bad input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from implicit_geom import Sweep
from implicit_geom.studies.sweeps import workers

SWEEP = """
scene = "egg.toml"
summary = ["energy_lost", "final_position"]

[values]
bodies.egg.shape.a = [0.4, 0.5]
friction.mu = { start = 0.1, stop = 0.4, count = 2 }
"""


@pytest.fixture
def file(scene, folder: Path) -> Path:
    """A good sweep file beside its scene."""
    path = folder / "eggs.toml"
    path.write_text(SWEEP)
    return path


def test_sweep_writes_a_table(call, file: Path, folder: Path) -> None:
    """Status 0, the table in the folder named, what it ranges over printed; a second time only to resume."""
    outcome = call("sweep", "eggs.toml", "-o", "out", "--workers", "1")
    assert outcome.status == 0, outcome
    assert outcome.err == ""
    assert "4, 0 failed" in outcome.out
    assert len(Sweep.load(folder / "out")) == 4
    again = call("sweep", "eggs.toml", "-o", "out", "--workers", "1")
    assert again.status == 2
    assert "resume" in again.err
    assert call("sweep", "eggs.toml", "-o", "out", "--workers", "1", "--resume").status == 0


def test_failed_runs_are_shown(call, file: Path) -> None:
    """Status 1 and the reason; the runs that went well are there."""
    file.write_text(SWEEP.replace("[0.4, 0.5]", "[0.4]") + "bodies.egg.shape.c = [0.3, 0.6]\n")
    outcome = call("sweep", "eggs.toml", "--workers", "1")
    assert outcome.status == 1
    assert "4, 2 failed" in outcome.out
    assert "overlap" in outcome.out


def test_interrupt_keeps_the_rows(call, file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says how many rows there are and how to go on."""
    execute = workers.execute

    def interrupted(point, summary):
        if point.number == 1:
            raise KeyboardInterrupt
        return execute(point, summary)

    monkeypatch.setattr(workers, "execute", interrupted)
    outcome = call("sweep", "eggs.toml", "--workers", "1")
    assert outcome.status == 130
    assert "interrupted; 1 rows are in eggs/sweep.csv" in outcome.err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('scene = "egg.toml"', 'scene = "none.toml"', "none.toml: cannot be read"),
        ('scene = "egg.toml"', "scene = 3", "scene = 3"),
        ("summary =", "sumary =", "did you mean 'summary'?"),
        ('summary = ["energy_lost", "final_position"]', "", "summary is missing"),
        ("[values]", "[values", "not valid TOML"),
        ("bodies.egg", "bodies.eg", "did you mean 'egg'?"),
        ("energy_lost", "energy_lots", "did you mean 'energy_lost'?"),
    ],
)
def test_bad_sweep_file(old: str, new: str, words: str, call, file: Path, folder: Path) -> None:
    """One line, status 2, nothing written."""
    file.write_text(SWEEP.replace(old, new))
    outcome = call("sweep", "eggs.toml", "-o", "out")
    assert outcome.status == 2, outcome
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (folder / "out").exists()


def test_dask_is_refused(call, file: Path) -> None:
    """The engine that does not exist yet is refused with those that do."""
    outcome = call("sweep", "eggs.toml", "--engine", "dask")
    assert outcome.status == 2
    assert "available: local" in outcome.err


def test_processes_start_from_a_script(file: Path, folder: Path) -> None:
    """The command makes its runs in processes of its own."""
    command = [sys.executable, "-m", "implicit_geom.commands.cli", "sweep", "eggs.toml", "--workers", "2"]
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": root, "PATH": ""})
    assert (done.returncode, done.stderr) == (0, "")
    assert len(Sweep.load(folder / "eggs")) == 4
