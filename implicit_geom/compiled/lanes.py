"""Many scenes at once for `simulate_batch`: in the SIMD lanes of engines, which run in threads.

What a scene does depends neither on the threads nor on the scenes beside it, to the last bit: lanes of an
engine have the same candidate pairs, and compiled code keeps them apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise, product
from typing import Any

import numpy as np

from implicit_geom.compiled.eligibility import can_compile
from implicit_geom.compiled.engine import Engine
from implicit_geom.compiled.memory.arrays import aligned
from implicit_geom.model.model import State
from implicit_geom.model.solve_arrays import PARTS
from implicit_geom.process.threads import paused
from implicit_geom.scene.options import SimulationOptions

LANES = 8  # scenes an engine holds
CHUNK = 256  # steps of one call
ENGINES = 64  # that run in one round
Key = tuple[Any, ...]
Memory = dict[tuple[int, ...], np.ndarray]  # a thread's own rows to write to, by shape


def run_lanes(
    lanes: list[Any], options: SimulationOptions, threads: int, on_progress: Callable[[], None]
) -> float:
    """Take lanes (`batch.Lane`) to their ends, in rounds; the time that the steps took, s.

    In a round each lane runs as far as it can; then those that left take one step alone.
    """
    h = options.step
    idle: dict[Key, list[Engine]] = {}
    wall_time = 0.0
    for lane in lanes:
        lane.compiled = can_compile(lane.model, options)
        if lane.compiled:
            lane.solver.memory.widen(lane.state, h)
    threads = min(threads, max(-(-len(lanes) // LANES), 1))  # (more would find nothing to do)
    own: list[Memory] = [{} for _ in range(threads)]
    with ThreadPoolExecutor(max(threads - 1, 1)) as pool:
        with paused():
            wait([pool.submit(_nothing) for _ in range(threads - 1)])  # (threads take time to start)
        while open_lanes := [lane for lane in lanes if not lane.finished]:
            groups = _grouped([lane for lane in open_lanes if lane.left])
            for first in range(0, len(groups), ENGINES):
                held = [_LaneGroup(group, options, idle) for group in groups[first : first + ENGINES]]
                for memory, shape in product(own, {one.engine.output for one in held}):
                    if shape not in memory:
                        memory[shape] = aligned(*shape)
                        memory[shape].fill(0.0)  # (what was never written to is given out page by page)
                started = time.perf_counter()
                waiting = held[::-1]
                with paused():  # (machine code and copies of numbers: nothing that a fork could tear)
                    _run_in(pool, waiting, own, on_progress)
                wall_time += time.perf_counter() - started
                for one in held:
                    one.release(idle)
            started = time.perf_counter()
            for lane in open_lanes:
                if not lane.finished and (lane.stopped or not lane.left):
                    lane.step()
                    lane.solver.memory.history = None
                    if lane.compiled:
                        lane.solver.memory.widen(lane.state, h)
            wall_time += time.perf_counter() - started
            on_progress()
    return wall_time


def _run_in(
    pool: ThreadPoolExecutor, waiting: list[_LaneGroup], own: list[Memory], on_progress: Callable[[], None]
) -> None:
    """Run what is waiting, in this thread and as many of the pool as there are memories for."""
    others = [pool.submit(_run_all, waiting, memory, _nothing) for memory in own[1:]]
    try:
        _run_all(waiting, own[0], on_progress)
    except BaseException:
        waiting.clear()  # an interrupt: no thread takes another
        raise
    for other in others:
        other.result()


def _nothing() -> None:
    return None


def _run_all(waiting: list[_LaneGroup], memory: Memory, on_progress: Callable[[], None]) -> None:
    """Run what no other thread has taken; all write to the thread's own rows, which stay in its cache."""
    while waiting:
        try:
            one = waiting.pop()
        except IndexError:  # another thread was quicker
            return
        one.engine.write_to(memory[one.engine.output])
        one.run()
        on_progress()


def _key(lane: Any) -> Key:
    """Lanes of one key may share an engine: the same bodies, pairs and candidates."""
    return (lane.structure, *sorted(lane.solver.memory.warm))


def _grouped(lanes: list[Any]) -> list[list[Any]]:
    """Lanes of one key, `LANES` at a time."""
    by_key: dict[Key, list[Any]] = {}
    for lane in lanes:
        by_key.setdefault(_key(lane), []).append(lane)
    return [same[i : i + LANES] for same in by_key.values() for i in range(0, len(same), LANES)]


def _alike(group: list[Any], taken: list[int]) -> Iterator[tuple[int, int]]:
    """Runs of lanes that are neighbours in the batch and took the same steps."""
    keys = [(lane.number - i, lane.taken, taken[i]) for i, lane in enumerate(group)]
    ends = [i for i in range(1, len(keys)) if keys[i] != keys[i - 1]]
    yield from pairwise([0, *ends, len(keys)])


class _LaneGroup:
    """A group of lanes in an engine."""

    def __init__(self, group: list[Any], options: SimulationOptions, idle: dict[Key, list[Engine]]) -> None:
        self.group, self.h = group, options.step
        self.key = _key(group[0])
        free = idle.get(self.key)
        if free:
            self.engine = free.pop()
        else:
            candidates = sorted(group[0].solver.memory.warm)
            self.engine = Engine(group[0].model, LANES, options, candidates, CHUNK, records=False)
        for i in range(LANES):
            lane = group[min(i, len(group) - 1)]
            memory = lane.solver.memory
            self.engine.load(i, lane.solver)
            self.engine.put(i, lane.state, memory.warm, memory.broad.normals, memory.history)
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

    def release(self, idle: dict[Key, list[Engine]]) -> None:
        """Give the lanes what their steppers must know, and the engine to others."""
        for i, lane in enumerate(self.group):
            here = (lane.shared[part][lane.number, lane.taken].copy() for part in PARTS)
            lane.state = State(lane.taken * self.h, *here)
            memory = lane.solver.memory
            memory.warm, normals, memory.history = self.engine.take(i)
            memory.begun = True
            memory.broad.normals.update(normals)
        idle.setdefault(self.key, []).append(self.engine)
