"""The rolling ellipsoid as work to be timed: by our steppers and by peers, in pieces.

Each function gives a `measure()` as `timing.Contender` takes it: seconds of the pieces of the stepping
loop, and seconds of the whole call (NaN where there is none to compare).
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np

from implicit_geom import Trajectory, simulate
from implicit_geom.experiments import ellipsoid_rolling
from implicit_geom.experiments.benchmarks.timing import in_pieces, uncompiled
from implicit_geom.experiments.peers import RollingBody, peer

Measure = Callable[[], tuple[np.ndarray, float]]


def rolled(stepper: str, h: float, count: int, before: Trajectory | None = None) -> Trajectory:
    """The ellipsoid, stepped from its start or on from where it was."""
    return simulate(
        None if before else ellipsoid_rolling.scene(),
        duration=count * h,
        step=h,
        stepper=stepper,
        progress=False,
        resume=before,
    )


def ours(stepper: str, h: float, count: int) -> Measure:
    """The loop in pieces by resuming, which repeats an unbroken run bit for bit; the call unbroken."""
    pieces = in_pieces(count, min(_loop(rolled(stepper, h, count)) for _ in range(3)))

    def measure() -> tuple[np.ndarray, float]:
        started = clock.perf_counter()
        whole = rolled(stepper, h, count)
        call = clock.perf_counter() - started
        if len(pieces) == 1:
            return np.array([_loop(whole)]), call
        r = rolled(stepper, h, int(pieces[0]))
        for steps in pieces[1:].tolist():
            r = rolled(stepper, h, steps, r)
        ends = np.cumsum(pieces)
        assert len(r.taken) == ends[-1] == len(whole.taken)
        return np.add.reduceat(r.taken["wall_time"], [0, *ends[:-1]]), call

    return measure


def _loop(run: Trajectory) -> float:
    return float(np.sum(run.taken["wall_time"]))


def ours_uncompiled(stepper: str, h: float, count: int) -> Measure:
    """Uncompiled, where a step is a piece."""

    def measure() -> tuple[np.ndarray, float]:
        with uncompiled():
            started = clock.perf_counter()
            r = rolled(stepper, h, count)
            call = clock.perf_counter() - started
        return r.taken["wall_time"].copy(), call

    return measure


def of_peer(
    name: str, body: RollingBody, h: float, count: int, setting: Any, *, called: bool = True
) -> Measure:
    """A peer's loop, unrecorded; where called, MuJoCo's call with the states of every step."""
    module = peer(name)
    timed = module.stepping(body, h, setting)
    pieces = in_pieces(count, min(float(np.sum(timed(np.array([count])))) for _ in range(3)))

    def measure() -> tuple[np.ndarray, float]:
        if name != "mujoco" or not called:
            return timed(pieces), np.nan
        started = clock.perf_counter()
        module.simulate(body, duration=count * h, step=h, setting=setting)
        call = clock.perf_counter() - started
        return timed(pieces), call

    return measure
