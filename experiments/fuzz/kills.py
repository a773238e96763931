"""Processes ended at a random moment: nothing is torn, nothing is lost, nothing is left running.

A `run`, a `sweep` or a script with `simulate_batch` is started as a process group of its own and is sent
SIGKILL, SIGTERM or SIGINT, alone or with its group as a terminal does it. Then

    output   is what it was before (or absent), or whole: a run that says so is saved up to a step and goes
             on from there to the very end of an undisturbed one
    table    of a sweep holds rows of the undisturbed one and, resumed, equals it byte for byte
    rest     no process of the group is left after PATIENCE
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import implicit_geom
from implicit_geom import SceneError, Trajectory
from implicit_geom.machine.disk import FOLDER
from implicit_geom.studies.sweeps.rows import read

PATIENCE = 10.0  # s until nothing may be left running
HANG = 120.0  # s
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
SAVED = "the run so far is in"
SCENE = """
[bodies.ground]
shape = {{ kind = "halfspace", normal = [0, 0, 1] }}
fixed = true
[bodies.egg]
shape = {{ kind = "ellipsoid", a = 0.5, b = 0.4, c = 0.3 }}
mass = 1.0
position = [0, 0, 0.4]
velocity = [1, 0.3, 0]
[friction]
mu = 0.4
[simulation]
duration = {duration}
step = 0.01
stepper = "{stepper}"
"""
SWEEP = """
scene = "scene.toml"
summary = ["energy_lost", "final_position", "steps"]
[values]
simulation.stepper = ["implicit-rattle", "stewart-trinkle"]
friction.mu = { start = 0.1, stop = 0.5, count = 5 }
"""
BATCH = """
import os
import numpy as np
from implicit_geom import read_scene, simulate_batch
scene, options = read_scene("scene.toml")
found = simulate_batch(scene, {"friction.mu": np.linspace(0.1, 0.9, 96)}, **options, threads=2)
with open("part", "wb") as file:
    np.save(file, found["egg"].position)
os.replace("part", "batch.npy")
"""
CLI = ("-m", "implicit_geom.commands.cli")
# by name: duration and stepper of the scene, the command, its output
WORKS: dict[str, tuple[float, str, tuple[str, ...], str]] = {
    "run": (6.0, "stewart-trinkle", (*CLI, "run", "scene.toml", "-o", "out.h5"), "out.h5"),
    "compiled run": (600.0, "implicit-rattle", (*CLI, "run", "scene.toml", "-o", "out.h5"), "out.h5"),
    "sweep": (1.0, "implicit-rattle", (*CLI, "sweep", "sweep.toml", "-o", "out"), "out/sweep.csv"),
    "batch": (200.0, "implicit-rattle", ("batch.py",), "batch.npy"),
}


@dataclass(frozen=True)
class Case:
    """What is ended, by what, and when, as a share of the time it takes undisturbed."""

    number: int
    work: str  # of WORKS
    signal: str
    moment: float
    to_all: bool  # the signal goes to the whole group
    older: bool  # an older run is where the new one goes
    cold: bool  # no compiled code is on disk yet


def cases(seed: int, count: int) -> Iterator[Case]:
    """Every kind of work and every signal in turn, at random moments."""
    random_ = random.Random(seed)
    pairs = [(work, name) for name in SIGNALS for work in WORKS]
    for number in range(count):
        if number % len(pairs) == 0:
            random_.shuffle(pairs)
        work, name = pairs[number % len(pairs)]
        moment = random_.uniform(0.02, 1.1)
        to_all = name != "SIGKILL" and random_.random() < 0.5
        yield Case(number, work, name, moment, to_all, random_.random() < 0.5, random_.random() < 0.25)


def check(case: Case) -> str:
    """Empty where all is well, otherwise what was found."""
    with tempfile.TemporaryDirectory() as name:
        whole, seconds, kept = _undisturbed(case.work)
        folder = Path(name)
        _set_up(folder, case.work)
        code = folder / "code" if case.cold else kept
        output = folder / WORKS[case.work][3]
        older = b""
        if case.older and output.suffix == ".h5":
            shutil.copy(whole.parent / "older.h5", output)
            older = output.read_bytes()
        found = _ended(folder, code, case, seconds * case.moment)
        if isinstance(found, str):
            return found
        status, words = found
        if output.suffix == ".csv":
            return _table(folder, code, output, whole, status)
        if output.suffix == ".npy":
            torn = output.exists() and output.read_bytes() != whole.read_bytes()
            return "the batch's file is torn" if torn else ""
        return _run(output, whole, older, status, words)


def _ended(folder: Path, code: Path, case: Case, after: float) -> tuple[int, str] | str:
    """Start the work, end it, wait until nothing of it is left: exit status and words, or what was found."""
    with open(folder / "words", "w+") as words:
        process = _start(folder, code, WORKS[case.work][2], words)
        number = getattr(signal, case.signal)
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(after)
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number) if case.to_all else process.send_signal(number)
            status = process.wait(HANG)
        except subprocess.TimeoutExpired:
            _end_all(process)
            return f"still running {HANG:g} s after {case.signal}"
        give_up = time.monotonic() + PATIENCE
        while running(process.pid) and time.monotonic() < give_up:
            time.sleep(0.05)
        left = running(process.pid)
        if left:
            _end_all(process)
            return f"{len(left)} processes left running {PATIENCE:g} s after {case.signal}"
        words.seek(0)
        return status, words.read()


def _start(folder: Path, code: Path, command: tuple[str, ...], words: object) -> subprocess.Popen[str]:
    root = str(Path(str(implicit_geom.__file__)).parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, *command, *(("--workers", "2") if "sweep" in command else ())],
        cwd=folder,
        env={**os.environ, FOLDER: str(code), "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=words,  # type: ignore[call-overload]
        text=True,
        start_new_session=True,
        # (a shell's background jobs ignore it, and so would their children)
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def running(group: int) -> list[int]:
    """The processes of a group that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group, *_ = entry.read_text().rpartition(")")[2].split()
            if int(its_group) == group and state not in "ZX":
                found.append(int(entry.parent.name))
    return found


def _end_all(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _run(output: Path, whole: Path, older: bytes, status: int, words: str) -> str:
    """What is wrong with the output of a run."""
    saved = SAVED in words
    if status == 0 and not output.exists():
        return "no output, though all went well"
    if not output.exists():
        return "a run said to be saved is not there" if saved or older else ""
    if output.read_bytes() == older:
        return "a run said to be saved is not there" if saved or status == 0 else ""
    try:
        found, complete = Trajectory.load(output), Trajectory.load(whole)
    except SceneError as error:
        return f"torn: {error}"
    steps = len(found.time) - 1
    for part in ("x", "q", "v", "w"):
        if not np.array_equal(getattr(found.states, part), getattr(complete.states, part)[: steps + 1]):
            return f"the run saved at step {steps} is another one"
    left = len(complete.time) - 1 - steps
    if left and not saved:
        return f"{left} steps are missing and nobody said so"
    if left:
        found = found.resume(duration=left * found.options.step, progress=False)
        if not np.array_equal(found.states.x, complete.states.x):
            return f"the run saved at step {steps} goes on in another way"
    rest = [path.name for path in output.parent.glob(".out.h5*")]
    if rest and status != -signal.SIGKILL:
        return f"left behind: {rest}"
    return ""


def _table(folder: Path, code: Path, output: Path, whole: Path, status: int) -> str:
    """What is wrong with the table of a sweep, or with what it becomes when it is resumed."""
    _, wanted = read(whole)
    try:
        _, rows = read(output) if output.exists() else ([], [])
    except SceneError as error:
        return f"torn: {error}"
    if any(row not in wanted for row in rows):
        return "a row is not that of the undisturbed sweep"
    if status == 0 and len(rows) < len(wanted):
        return "rows are missing, though all went well"
    with open(folder / "words", "w+") as words:
        again = _start(folder, code, (*WORKS["sweep"][2], "--resume"), words).wait(HANG)
        words.seek(0)
        if again != 0:
            return f"cannot be resumed: {words.read()}"
    names = (output.name, "sweep.json")
    same = all((output.parent / n).read_bytes() == (whole.parent / n).read_bytes() for n in names)
    return "" if same else "resumed, it is not the undisturbed sweep"


def _set_up(folder: Path, work: str) -> None:
    duration, stepper, _, _ = WORKS[work]
    (folder / "scene.toml").write_text(SCENE.format(duration=duration, stepper=stepper))
    (folder / "sweep.toml").write_text(SWEEP)
    (folder / "batch.py").write_text(BATCH)


@cache
def _place() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()  # (removed when Python ends)


@cache
def _undisturbed(work: str) -> tuple[Path, float, Path]:
    """The output of work that nothing ends, how long it takes, s, and where its compiled code is kept."""
    folder = Path(_place().name) / work.replace(" ", "-")
    folder.mkdir()
    code = Path(_place().name) / "code"
    _set_up(folder, work)
    output = folder / WORKS[work][3]
    for _ in range(2):  # the first one compiles
        shutil.rmtree(folder / "out", ignore_errors=True)
        with open(folder / "words", "w+") as words:
            started = time.monotonic()
            status = _start(folder, code, WORKS[work][2], words).wait(HANG)
            seconds = time.monotonic() - started
            words.seek(0)
            assert status == 0, words.read()
    if output.suffix == ".h5":
        run = Trajectory.load(output)
        run.resume(duration=run.options.step, progress=False).save(folder / "older.h5")
    return output, seconds, code
