"""Many scenes at once for `simulate_batch`: in the SIMD lanes of engines, which run in threads.

What a scene does depends neither on the threads nor on the scenes beside it, to the last bit: lanes of an
engine have the same candidate pairs, and compiled code keeps them apart.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import numpy as np

from implicit_geom.compiled.eligibility import can_compile
from implicit_geom.compiled.engine import Engine
from implicit_geom.compiled.idle_engines import leave, take
from implicit_geom.compiled.memory.arrays import aligned
from implicit_geom.compiled.tables import ScalarSlot
from implicit_geom.model.model import Model, State
from implicit_geom.model.reasons import STRUCK
from implicit_geom.model.solve_arrays import PARTS
from implicit_geom.process.threads import paused
from implicit_geom.scene.options import SimulationOptions

LANES = 8  # scenes an engine holds
CHUNK = 256  # steps of one call
Key = tuple[Any, ...]
Memory = dict[tuple[int, ...], np.ndarray]  # a thread's own rows to write to, by shape


def run_lanes(
    lanes: list[Any], options: SimulationOptions, threads: int, on_progress: Callable[[], None]
) -> float:
    """Take lanes (`run.rows.lanes.Lane`) to their ends, in rounds; the time that the steps took, s.

    In a round each lane runs as far as it can; then those that left take one step alone.
    """
    wall_time = 0.0
    suits: dict[int, bool] = {}
    for lane in lanes:
        if id(lane.model) not in suits:
            suits[id(lane.model)] = can_compile(lane.model, options)
        lane.compiled = suits[id(lane.model)]
        if lane.compiled and lane.rows is None:
            lane.widen()
    threads = min(threads, max(-(-len(lanes) // LANES), 1))  # (more would find nothing to do)
    own: list[Memory] = [{} for _ in range(threads)]
    with ThreadPoolExecutor(max(threads - 1, 1)) as pool, _Engines(options, threads) as engines:
        with paused():
            wait([pool.submit(_nothing) for _ in range(threads - 1)])  # (threads take time to start)
        while open_lanes := [lane for lane in lanes if not lane.finished]:
            groups = _grouped([lane for lane in open_lanes if lane.left])
            engines.prepare(groups)
            waiting = groups[::-1]
            with paused():  # (what may not be torn by a fork says so itself)
                others = [pool.submit(_run_all, waiting, engines, memory, _nothing) for memory in own[1:]]
                try:
                    took = [_run_all(waiting, engines, own[0], on_progress)]
                except BaseException:
                    waiting.clear()  # an interrupt: no thread takes another
                    raise
                took += [other.result() for other in others]
            wall_time += max(took)
            started = time.perf_counter()
            for lane in open_lanes:
                if not lane.finished and (lane.stopped or not lane.left):
                    lane.step()
                    lane.solver.memory.history = None
                    if lane.compiled:
                        lane.widen()
            wall_time += time.perf_counter() - started
            on_progress()
    return wall_time


class _Engines:
    """Engines by key, as many as threads may want at once; in the end they are left to other batches."""

    def __init__(self, options: SimulationOptions, threads: int) -> None:
        self.options, self.threads = options, threads
        self._free: dict[Key, list[Engine]] = {}
        self._count: dict[Key, int] = {}

    def __enter__(self) -> _Engines:
        return self

    def __exit__(self, *_: object) -> None:
        for key, engines in self._free.items():
            for engine in engines:
                leave(self._kind(key, engine.model), engine)

    def prepare(self, groups: list[list[Any]]) -> None:
        """Have engines for all groups."""
        for key, same in Counter(group[0].key for group in groups).items():
            model, candidates = next(
                (group[0].model, list(group[0].candidates)) for group in groups if group[0].key == key
            )

            def make(model: Model = model, candidates: list[int] = candidates) -> Engine:
                return Engine(model, LANES, self.options, candidates, CHUNK, records=False)

            for _ in range(self._count.get(key, 0), min(same, self.threads)):
                self._free.setdefault(key, []).append(take(self._kind(key, model), make))
                self._count[key] = self._count.get(key, 0) + 1

    def of(self, key: Key) -> Engine:
        """One to be given `back`."""
        return self._free[key].pop()

    def back(self, key: Key, engine: Engine) -> None:
        self._free[key].append(engine)

    def _kind(self, key: Key, model: Model) -> Hashable:
        o = self.options
        of_steps = (o.name, o.tolerance, o.energy_guard, o.impacts)
        return (LANES, model.dim, len(model.bodies), *model.moving.tolist(), key, of_steps)


def _nothing() -> None:
    return None


def _run_all(
    waiting: list[list[Any]], engines: _Engines, memory: Memory, on_progress: Callable[[], None]
) -> float:
    """Run what no other thread has taken; all write to the thread's own rows, which stay in its cache.

    How long the steps took, s.
    """
    took = 0.0
    while waiting:
        try:
            group = waiting.pop()
        except IndexError:  # another thread was quicker
            break
        key = group[0].key
        engine = engines.of(key)
        if engine.output not in memory:
            memory[engine.output] = aligned(*engine.output)
        engine.write_to(memory[engine.output])
        one = _LaneGroup(group, engine, engines.options.step)
        started = time.perf_counter()
        one.run()
        took += time.perf_counter() - started
        one.release()
        engines.back(key, engine)
        on_progress()
    return took


def _grouped(lanes: list[Any]) -> list[list[Any]]:
    """Lanes of one key, `LANES` at a time."""
    by_key: dict[Key, list[Any]] = {}
    for lane in lanes:
        by_key.setdefault(lane.key, []).append(lane)
    return [same[i : i + LANES] for same in by_key.values() for i in range(0, len(same), LANES)]


def _alike(group: list[Any], taken: list[int]) -> Iterator[tuple[int, int]]:
    """Runs of lanes that are neighbours in the batch and took the same steps."""
    keys = [(lane.number - i, lane.taken, taken[i]) for i, lane in enumerate(group)]
    ends = [i for i in range(1, len(keys)) if keys[i] != keys[i - 1]]
    yield from pairwise([0, *ends, len(keys)])


class _LaneGroup:
    """A group of lanes in an engine."""

    def __init__(self, group: list[Any], engine: Engine, h: float) -> None:
        self.group, self.engine, self.h = group, engine, h
        places = [group[min(i, len(group) - 1)] for i in range(LANES)]
        if group[0].rows is not None:  # (then all have the numbers of rows: it is their first round)
            group[0].rows.load_into(engine, np.array([lane.number for lane in places]))
        for i, lane in enumerate(places):
            if lane.rows is None:
                memory = lane.solver.memory
                engine.load(i, lane.solver)
                engine.put(i, lane.state, memory.warm, memory.broad.normals, memory.history)
            lane.stopped = False

    def run(self) -> None:
        """Run until each lane is done or has left."""
        engine, group = self.engine, self.group
        rest = [0] * (LANES - len(group))
        while True:
            wanted = [0 if lane.stopped else min(lane.left, CHUNK) for lane in group]
            if not any(wanted):
                return
            taken = engine.run(np.array(wanted + rest, float), self.h).tolist()
            states = engine.states(max(taken))
            for first, last in _alike(group, taken):
                self._keep(states, group[first:last], first, taken[first])
            for lane, done in zip(group, taken, strict=False):
                # (one that left tries once more, without what it remembered, as in `simulate`)
                lane.stopped |= done == 0

    def _keep(self, states: dict[str, np.ndarray], lanes: list[Any], place: int, taken: int) -> None:
        """Copy what neighbouring lanes did in the same steps, at once."""
        scenes = slice(lanes[0].number, lanes[-1].number + 1)
        steps = slice(lanes[0].taken + 1, lanes[0].taken + 1 + taken)
        own = slice(place, place + len(lanes))
        for part in PARTS:
            for b in lanes[0].model.moving.tolist():
                lanes[0].shared[part][scenes, steps, b] = states[part][own, :taken, b]
        for lane in lanes:
            lane.taken += taken

    def release(self) -> None:
        """Give the lanes that go on what their steppers must know."""
        for i, lane in enumerate(self.group):
            if lane.finished:
                continue
            here = (lane.shared[part][lane.number, lane.taken].copy() for part in PARTS)
            lane.take_over(State(lane.taken * self.h, *here))
            if self.engine.scalars[ScalarSlot.EXIT_REASON, i] in STRUCK:
                lane.struck()
            memory = lane.solver.memory
            memory.warm, normals, memory.history = self.engine.take(i)
            memory.begun = True
            memory.broad.normals.update(normals)
