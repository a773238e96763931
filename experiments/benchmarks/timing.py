"""Times of contenders that are measured in turns, and what the machine was like meanwhile.

In every round each contender runs once, so that all meet the same disturbances. A run is timed in pieces of
a few milliseconds, which often pass undisturbed also on a shared machine; the least time of a run is
the sum of the least times of its pieces. Without pieces, a run of 25 ms would never be as lucky as one of
2 ms, and the ratio of the two too large. The median, of whole runs, says what to expect.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.peers import MODULES, SOURCES, installed, version_of
from implicit_geom.machine.availability import SWITCH

ABSENT = "-"
PIECE = 2e-3  # s


@dataclass
class Contender:
    """A piece of work: `measure()` gives the seconds of the pieces of its loop, and of its whole call.

    every: it runs in one round out of so many. unit: what a time is divided by, such as the steps.
    """

    name: str
    measure: Callable[[], tuple[np.ndarray, float]]
    every: int = 1
    unit: int = 1
    loops: list[np.ndarray] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)

    @property
    def least(self) -> float:
        """Seconds of the loop a unit, each piece from the round that disturbed it least."""
        return float(np.sum(np.min(self.loops, axis=0))) / self.unit

    @property
    def median(self) -> float:
        """Seconds of the loop a unit, of whole runs."""
        return float(np.median(np.sum(self.loops, axis=1))) / self.unit

    @property
    def least_call(self) -> float:
        """Seconds of the whole call a unit, set-up and records included."""
        return min(self.calls) / self.unit


def in_turns(contenders: Iterable[Contender], rounds: int, *, warm: bool = True) -> None:
    """Measure all contenders, round by round; if they are to be warm, a first run of each is not counted."""
    chosen = list(contenders)
    for contender in chosen if warm else []:
        contender.measure()
    for turn in range(rounds):
        for contender in chosen:
            if turn % contender.every == 0:
                loop, call = contender.measure()
                contender.loops.append(loop)
                contender.calls.append(call)


def in_pieces(steps: int, seconds: float) -> np.ndarray:
    """Numbers of steps of pieces of about PIECE seconds each, of a run that takes so many."""
    count = int(np.clip(np.ceil(seconds / PIECE), 1, steps))
    return np.diff(np.round(np.linspace(0, steps, count + 1)).astype(int))


@contextmanager
def uncompiled() -> Iterator[None]:
    """All steps by the steppers themselves."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = before


def conditions(*, timed: bool) -> Table:
    """One row: whether times are to be judged, the machine, its load, the peers' versions."""
    here = installed()
    versions = [version_of(name) if name in here else ABSENT for name in MODULES]
    names = ("timed", "processor", "cores", "load", *MODULES)
    return columns(names, [(int(timed), _processor(), os.cpu_count() or 1, _load(), *versions)])


def remarks(table: Table) -> list[str]:
    """What a reader of the times has to know about where they were taken."""
    row = {name: column[0] for name, column in table.items()}
    lines = [f"  {row['processor']}, {row['cores']} cores, load {row['load']:.1f}"]
    lines += [
        f"  {name} is not installed: its rows are left out ({SOURCES[name]})"
        for name in MODULES
        if row[name] == ABSENT
    ]
    if row["load"] > row["cores"]:
        lines.append("  the machine was busy: the medians are too long, and the least times may be")
    return lines


def judged(table: Table) -> bool:
    """Whether the times of this run were taken to be compared."""
    return bool(table["timed"][0])


def _load() -> float:
    """Processes that run or wait on this machine, over the last minute; NaN where it does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else np.nan


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
