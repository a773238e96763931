"""A disk that is full, a process that is killed: one clear error, the run and the older file are kept."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from implicit_geom import SimulationError, StepFailed, Trajectory, simulate

LIMITED = """
import resource, sys
from implicit_geom import SimulationError, Trajectory
run = Trajectory.load(sys.argv[1])
for size in map(int, sys.argv[3:]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        run.save(sys.argv[2])
        print("saved", end=" ")
    except SimulationError as error:
        print("refused" if "could not be written" in str(error) else error, end=" ")
"""
SAVES = """
import sys
from implicit_geom import Trajectory
run = Trajectory.load(sys.argv[1])
print("ready", flush=True)
while True:
    run.save(sys.argv[2])
"""
ROOT = str(Path(__file__).parents[2])


@pytest.fixture
def saved(disc, tmp_path: Path) -> tuple[Trajectory, Path]:
    run = simulate(disc(), duration=2.0, step=0.01, progress=False)
    run.save(tmp_path / "run.h5")
    return run, tmp_path / "run.h5"


def _python(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": ROOT}
    )


def test_files_may_not_grow(saved: tuple[Trajectory, Path], tmp_path: Path) -> None:
    """The system's own limit, in a process of its own: errors up to the size of the file, then success."""
    path = saved[1]
    size = path.stat().st_size
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "out.h5"
    sizes = [*np.linspace(0, size - 1, 14).astype(int).tolist(), size]
    process = _python(LIMITED, str(path), str(out), *map(str, sizes))
    told = process.communicate(timeout=120)[0].split()
    assert process.returncode == 0
    assert told == ["refused"] * 14 + ["saved"]
    assert Trajectory.load(out).time.tolist() == saved[0].time.tolist()
    assert os.listdir(tmp_path / "out") == ["out.h5"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace", "open"])
def test_no_space_left(call: str, saved: tuple[Trajectory, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the system says no: SimulationError, the older file as it was, nothing beside it."""
    run, path = saved
    before, genuine, left = path.read_bytes(), getattr(os, call), [0]

    def full(*arguments, **named):
        if call == "write":
            taken = min(len(arguments[1]), left[0])
            left[0] -= taken
            if taken:
                return genuine(arguments[0], arguments[1][:taken])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for size in (0, 1, 100, 5000, len(before) - 1) if call == "write" else (0,):
        left[0] = size
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            with pytest.raises(SimulationError, match="could not be written: No space left on device"):
                run.save(path)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == ["run.h5"]
    run.save(path)


def test_failed_steps_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a failed step is whole or not there, too."""
    failure = StepFailed("no luck", time=0.0, state={}, history=[])
    failure.write(tmp_path / "step.json")
    before = (tmp_path / "step.json").read_bytes()
    monkeypatch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(SimulationError, match="could not be written: full"):
        failure.write(tmp_path / "step.json")
    assert (tmp_path / "step.json").read_bytes() == before


def test_a_small_disk(saved: tuple[Trajectory, Path], tmp_path: Path) -> None:
    """A file system of a few kilobytes, where it may be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    for kilobytes in (4, 16, 64, 100):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(disk)]
        try:
            subprocess.run(mount, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("no small file system can be mounted here")
        try:
            with pytest.raises(SimulationError, match="No space left on device"):
                saved[0].save(disk / "out.h5")
            assert os.listdir(disk) == []
        finally:
            subprocess.run(["umount", str(disk)], check=True)


def test_killed_while_saving(saved: tuple[Trajectory, Path], tmp_path: Path) -> None:
    """A process that is killed at any instant leaves a whole file."""
    rng = np.random.default_rng(3)
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "out.h5"
    saved[0].save(out)
    for _ in range(4):
        process = _python(SAVES, str(saved[1]), str(out))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(float(rng.uniform(0.005, 0.1)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert Trajectory.load(out).time.tolist() == saved[0].time.tolist()
