"""Many scenes of few structures, in the lanes of engines that run in threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from implicit_geom.compiled.engine import Engine
from implicit_geom.compiled.runner import suits
from implicit_geom.model import State
from implicit_geom.options import SimulationOptions

LANES = 8  # scenes an engine holds
CHUNK = 256  # steps between two looks at the other scenes


def run_lanes(lanes: list[Any], options: SimulationOptions, threads: int, told: Callable[[], None]) -> None:
    """Take lanes (`batch._Lane`) to their ends, in rounds.

    In a round each lane runs as far as it can; then those that left take one step alone.
    """
    engines = _Engines(options)
    h = options.step
    for lane in lanes:
        lane.compiled = suits(lane.model, options)
        if lane.compiled:
            lane.solver.widen(lane.state, h)
    with ThreadPoolExecutor(threads) as pool:
        while True:
            open_lanes = [lane for lane in lanes if not lane.finished]
            if not open_lanes:
                return
            ready = [lane for lane in open_lanes if lane.left]
            for _ in pool.map(lambda group: _run_group(engines, group, h), _grouped(ready)):
                told()
            for lane in open_lanes:
                if not lane.finished and (lane.stopped or not lane.left):
                    lane.step()
                    lane.solver.history = None
                    if lane.compiled:
                        lane.solver.widen(lane.state, h)


def _grouped(lanes: list[Any]) -> list[list[Any]]:
    """Lanes of equal structure and candidates, `LANES` at a time."""
    by_structure: dict[Any, list[Any]] = {}
    for lane in lanes:
        by_structure.setdefault(lane.structure, []).append(lane)
    return [
        same[i : i + LANES] for same in by_structure.values() for i in range(0, len(same), LANES)
    ]


def _run_group(engines: _Engines, group: list[Any], h: float) -> None:
    """Run up to `LANES` lanes until each is done or has left."""
    candidates = sorted({c for lane in group for c in lane.solver.warm})
    with engines.use(group[0], candidates) as engine:
        for i in range(LANES):
            lane = group[min(i, len(group) - 1)]
            lane.solver.know(lane.state, candidates)
            engine.load(i, lane.model, lane.solver.broad)
            solver = lane.solver
            engine.put(i, lane.state, solver.warm, solver.broad.normals, solver.history)
        wanted = np.zeros(LANES)
        for lane in group:
            lane.stopped = False
        while True:
            wanted[: len(group)] = [0 if lane.stopped else min(lane.left, CHUNK) for lane in group]
            if not np.any(wanted):
                break
            taken = engine.run(wanted, h)
            for i, lane in enumerate(group):
                _keep(engine, i, lane, int(taken[i]), h)
                lane.stopped |= bool(taken[i] < wanted[i])
        for i, lane in enumerate(group):
            lane.solver.warm, normals, lane.solver.history = engine.take(i)
            lane.solver.broad.normals.update(normals)


def _keep(engine: Engine, i: int, lane: Any, taken: int, h: float) -> None:
    """Copy what a lane did."""
    if not taken:
        return
    rows = engine.read(i, taken)
    ends = slice(engine.parts - 1, None, engine.parts)
    where = slice(lane.taken + 1, lane.taken + taken + 1)
    for part in ("x", "q", "v", "w"):
        getattr(lane, part)[where] = getattr(rows, part)[ends]
    lane.taken += taken
    time = lane.taken * h
    lane.state = State(time, *(getattr(lane, part)[lane.taken].copy() for part in ("x", "q", "v", "w")))


class _Engines:
    """Engines that are not in use, by structure."""

    def __init__(self, options: SimulationOptions) -> None:
        self.options = options
        self._idle: dict[Any, list[Engine]] = {}
        self._lock = threading.Lock()

    def use(self, lane: Any, candidates: list[int]) -> _Use:
        return _Use(self, lane, candidates)


class _Use:
    """An engine for as long as a group runs."""

    def __init__(self, engines: _Engines, lane: Any, candidates: list[int]) -> None:
        self.engines, self.lane, self.candidates = engines, lane, candidates
        self.key = (lane.structure, tuple(candidates))

    def __enter__(self) -> Engine:
        with self.engines._lock:
            idle = self.engines._idle.setdefault(self.key, [])
            if idle:
                self.engine = idle.pop()
            else:
                self.engine = Engine(
                    self.lane.model, LANES, self.engines.options, self.candidates, CHUNK, records=False
                )
        return self.engine

    def __exit__(self, *_: Any) -> None:
        with self.engines._lock:
            self.engines._idle[self.key].append(self.engine)
