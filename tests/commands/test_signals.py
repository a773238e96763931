"""Commands that end early: by signals, which save what is done, or because nobody reads their output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Sweep, Trajectory
from implicit_geom.experiments.fuzz.kills import running
from implicit_geom.process.signals import HELD, Interrupted, listening

ROOT = str(Path(__file__).resolve().parents[2])
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are seen in /proc")

# the command line with something done before a step at t = 0.1
PROGRAM = """
import os, signal, sys
import pytest
from failing_steps import before_steps
from implicit_geom import Trajectory
from implicit_geom.commands.cli import main
save = Trajectory.save
def send(name):
    os.kill(os.getpid(), getattr(signal, name))
def before(_, state):
    if abs(state.time - 0.1) < 1e-9:
        {step}
def saving(self, path, **options):
    {save}
    save(self, path, **options)
before_steps(pytest.MonkeyPatch(), before)
Trajectory.save = saving
{first}
sys.exit(main(sys.argv[1:]))
"""


def run_with(step: str = "pass", save: str = "pass", first: str = "") -> tuple[int, str]:
    """`implicit-geom run egg.toml -o out.h5` with that done on the way: its status and what it says."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(step=step, save=save, first=first), "run", "egg.toml"]
        + ["-o", "out.h5"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([ROOT, f"{ROOT}/tests/support"])},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_saves_what_is_done(name: str, status: int, call, scene, folder: Path) -> None:
    """One line, the exit status of shells, and a run that goes on to the end of an unbroken one."""
    # (whoever started the tests may have had signals ignored)
    usual = ("SIGINT, signal.default_int_handler", "SIGHUP, signal.SIG_DFL")
    first = "; ".join(f"signal.signal(signal.{how})" for how in usual)
    found = run_with(f"send({name!r})", first=first)
    assert found == (status, "implicit-geom: interrupted at t = 0.1 s; the run so far is in out.h5\n")
    part = Trajectory.load(folder / "out.h5")
    assert len(part.time) == 11
    assert call("run", "egg.toml", "-o", "whole.h5").status == 0
    whole = Trajectory.load(folder / "whole.h5")
    again = part.resume(duration=0.1)
    assert np.abs(again.states.x - whole.states.x).max() < 1e-12
    assert sorted(path.name for path in folder.iterdir()) == ["egg.toml", "out.h5", "whole.h5"]


def test_a_second_signal_does_not_stop_the_saving(scene, folder: Path) -> None:
    """Whoever ends a session sends several, of several kinds."""
    save = "send('SIGTERM'); send('SIGHUP')"
    status, words = run_with("send('SIGTERM')", save)
    assert (status, words.count("\n")) == (143, 1)
    assert len(Trajectory.load(folder / "out.h5").time) == 11


def test_a_signal_while_a_whole_run_is_saved(scene, folder: Path) -> None:
    """The run is saved before the process ends."""
    status, words = run_with(save="send('SIGTERM')")
    assert (status, words) == (143, "implicit-geom: interrupted\n")
    assert len(Trajectory.load(folder / "out.h5").time) == 21
    assert sorted(path.name for path in folder.iterdir()) == ["egg.toml", "out.h5"]


def test_what_is_ignored_stays_ignored(scene, folder: Path) -> None:
    """As under nohup."""
    ignored = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    assert run_with("send('SIGHUP')", first=ignored) == (0, "")


def test_signals_wait_while_they_are_held() -> None:
    """Until the outermost block ends; handlers are put back."""
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)]
    done = []

    def work() -> None:
        with listening():
            with HELD:
                with HELD:
                    os.kill(os.getpid(), signal.SIGTERM)
                    done.append("inner")
                done.append("outer")
            done.append("after")

    with pytest.raises(Interrupted, match="SIGTERM") as caught:
        work()
    assert done == ["inner", "outer"]
    assert caught.value.number == signal.SIGTERM
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)] == before


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["bench", "--list"], ["run", "none.toml"]])
def test_nobody_reads_the_output(arguments: list[str], folder: Path) -> None:
    """Not a word, and the status of a program that such a pipe ends."""
    reader, writer = os.pipe()
    os.close(reader)
    both = arguments[0] == "run"  # (its error is what cannot be written)
    with open(folder / "words", "w+") as words:
        status = subprocess.run(
            [sys.executable, "-m", "implicit_geom.commands.cli", *arguments],
            stdout=writer,
            stderr=writer if both else words,
            env={**os.environ, "PYTHONPATH": ROOT, "PYTHONUNBUFFERED": ""},
            check=False,
        ).returncode
    os.close(writer)
    assert (status, (folder / "words").read_text()) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_cannot_be_written() -> None:
    """One line and status 1."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "implicit_geom.commands.cli", "bench", "--list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": ROOT, "PYTHONUNBUFFERED": ""},
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "implicit-geom: the output cannot be written: No space left on device\n"


# a sweep whose first run is soon over and whose others take forever
ENDLESS = """
import ctypes, sys, time
from pathlib import Path
from implicit_geom import read_scene, sweep

def busy(run):
    Path(f"begun-{run.scene.bodies['egg'].mass:g}").touch()
    if run.scene.bodies["egg"].mass > 1:
        FOREVER
    return 0.0

if __name__ == "__main__":
    scene, options = read_scene("egg.toml")
    sweep(scene, {"bodies.egg.mass": [1.0, 2.0, 3.0]}, {"busy": busy}, output="out", workers=2, **options)
"""
FOREVER = {
    "machine code": "ctypes.CDLL(None).sleep(10000)",
    "machine code that holds Python's lock": "ctypes.PyDLL(None).sleep(10000)",
    "Python": "while True: pass",
}


@linux
@pytest.mark.parametrize(
    ("name", "doing"),
    [("SIGKILL", doing) for doing in FOREVER] + [("SIGTERM", "machine code"), ("SIGINT", "Python")],
)
def test_no_worker_outlives_its_sweep(name: str, doing: str, scene, folder: Path) -> None:
    """Whatever ends the sweep and whatever its workers are doing; the rows that were done are there."""
    (folder / "endless.py").write_text(ENDLESS.replace("FOREVER", FOREVER[doing]))
    process = subprocess.Popen(
        [sys.executable, "endless.py"],
        env={**os.environ, "PYTHONPATH": ROOT},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        _wait_for(lambda: (folder / "begun-2").exists() and (folder / "begun-3").exists())
        _wait_for(lambda: (folder / "out" / "sweep.csv").read_text().count("\n") == 2)
        assert len(running(process.pid)) >= 3
        process.send_signal(getattr(signal, name))
        process.wait(60)
        _wait_for(lambda: not running(process.pid))
    finally:
        for left in running(process.pid):
            os.kill(left, signal.SIGKILL)
        process.wait()
    assert Sweep.load(folder / "out").table["bodies.egg.mass"].tolist() == [1.0]


def _wait_for(happened, seconds: float = 60.0) -> None:
    give_up = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < give_up
        time.sleep(0.05)
