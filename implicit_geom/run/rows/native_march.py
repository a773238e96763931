"""The scenes of a batch in native code: each marches by itself, several threads at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from implicit_geom.model.solve_arrays import PARTS


def march(lane: Any) -> None:
    """As many steps as the engine takes at once, or one by the stepper itself."""
    runner, wanted = lane.native, lane.full - lane.taken
    if runner is None or wanted <= 0:
        lane.step()
        return
    ends = lane.state.time + float(lane.lengths[0]) * np.arange(1, wanted + 1)
    state, solves, steps = runner.run(lane.state, wanted, lane.taken, ends)
    if not len(steps):
        lane.step()
        return
    last = np.searchsorted(solves.table["step"], lane.taken + np.arange(len(steps)), side="right") - 1
    done = slice(lane.taken + 1, lane.taken + 1 + len(steps))
    for part in PARTS:
        lane.shared[part][lane.number, done] = getattr(solves, part)[last]
    lane.taken += len(steps)
    lane.state = state


def march_all(lanes: Sequence[Any], threads: int, pause: float, told: Callable[[], None]) -> None:
    """Every lane to its end; native code does not keep other threads waiting."""

    def run(lane: Any) -> None:
        while not lane.finished:
            march(lane)

    if threads == 1:
        for lane in lanes:
            while not lane.finished:
                march(lane)
                told()
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = {pool.submit(run, lane) for lane in lanes}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=pause, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                told()
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
