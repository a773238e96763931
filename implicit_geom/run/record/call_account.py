"""An account of each call of `simulate` that made a run: what `summary()` says of all steps, kept or not."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

SLOWEST = 3  # steps that are named


@dataclass
class Call:
    """One call.

    stepper     its text
    first       number of its first step, from 1
    steps       solved
    statuses    how many of its steps ended in which way
    guards      how many were taken in which way by the guard, see `model.records.Attempt`
    fourth      how many are of order four of their own accord
    compiled    steps that were taken in machine code; None where that is not known
    outside     by reason: how many steps were taken outside it, and the time they took, s
    slowest     steps: time taken, s; end of the step, s; what it went into
    step_time   that the steps took, s
    total_time  of the whole call by the wall clock, s: set-up, steps and recording
    deepest     overlap of a closed contact at the end of any solve, m
    notices     what was said of the scene, see `implicit_geom.scene.notices`
    clock       time from which equal steps are counted, s, and how many of them were taken since
    """

    stepper: str
    first: int
    steps: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    guards: dict[str, int] = field(default_factory=dict)
    fourth: int = 0
    compiled: int | None = 0
    outside: dict[str, list[float]] = field(default_factory=dict)
    slowest: list[list[Any]] = field(default_factory=list)
    step_time: float = 0.0
    total_time: float = 0.0
    deepest: float = 0.0
    notices: list[str] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)

    def note(self, steps: np.ndarray, gaps: np.ndarray, compiled: bool) -> None:
        """Steps that were taken, rows of `STEP`, and the gaps of their closed contacts."""
        self._count(steps)
        self.deepest = max(self.deepest, float(-gaps.min(initial=0.0)))
        longest = np.argsort(steps["wall_time"])[-SLOWEST:]
        times = [[float(row["wall_time"]), float(row["time"]), _cause(row)] for row in steps[longest]]
        self.slowest = sorted([*self.slowest, *times], reverse=True)[:SLOWEST]
        if compiled:
            self.compiled = (self.compiled or 0) + len(steps)
            return
        for row in steps:
            told = self.outside.setdefault(str(row["reason"]), [0, 0.0])
            told[0], told[1] = told[0] + 1, told[1] + float(row["wall_time"])

    def _count(self, steps: Any) -> None:
        for told, name in ((self.statuses, "status"), (self.guards, "guard")):
            for way, count in zip(*np.unique(steps[name], return_counts=True), strict=True):
                told[str(way)] = told.get(str(way), 0) + int(count)
        self.steps += int(np.sum(steps["status"] != "failed"))
        self.fourth += int(np.sum((steps["form"] == "rattle-4") & (steps["guard"] == "none")))
        self.step_time += float(steps["wall_time"].sum())

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _cause(step: np.void) -> str:
    """What the time of a step went into."""
    counts = [(step[name], name) for name in ("contacts", "impacts", "solves", "rounds", "factorisations")]
    told = [f"{n} {name if n > 1 else name[:-1]}" for n, name in counts if n]
    return ", ".join(filter(None, [str(step["reason"]), *told]))


def calls_of(plain: Any) -> list[Call]:
    """The accounts that `as_dict` gave, from a file; ValueError for anything else."""
    if not isinstance(plain, list) or not plain:
        raise ValueError("not a list of accounts")
    return [_call(each) for each in plain]


def _call(plain: Any) -> Call:
    names = {f.name for f in fields(Call)}
    if not isinstance(plain, dict) or plain.keys() != names:
        raise ValueError("an account has other fields")
    call = Call(**plain)
    try:
        return _checked(call)
    except (TypeError, AttributeError, LookupError):
        raise ValueError("an account has fields of other types") from None


def _checked(call: Call) -> Call:
    counts: list[Any] = [*call.statuses.values(), *call.guards.values(), call.first, call.steps, call.fourth]
    counts += [0 if call.compiled is None else call.compiled, *(told[0] for told in call.outside.values())]
    numbers = [call.step_time, call.total_time, call.deepest, *call.clock]
    numbers += [x for told in call.outside.values() for x in told]
    numbers += [x for slow in call.slowest for x in slow[:2]]
    words = [call.stepper, *call.statuses, *call.guards, *call.outside, *call.notices]
    words += [slow[2] for slow in call.slowest]
    good = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in counts)
    good = good and all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)
    if not good or not all(isinstance(word, str) and word.isprintable() for word in words):
        raise ValueError("an account holds something else than numbers and lines of text")
    return call


def of_steps(stepper: str, steps: Any) -> Call:
    """The account of a run of which only the rows are known: one that an earlier version saved."""
    call = Call(stepper, 1, compiled=None)
    call._count(steps)
    call.total_time = call.step_time
    return call
