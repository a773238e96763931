"""Several threads at once, from a cold start too, and forks beside them: the same answers, and no hang."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from implicit_geom import Scene, distance, shapes, simulate, simulate_batch
from implicit_geom.experiments.benchmarks.threads import COLD, in_fresh_process
from implicit_geom.process.building import Kept, built_once
from implicit_geom.process.threads import BUILDING

# a thread simulates shape after shape, for which it imports, builds and compiles; children do the same
FORK = """
import faulthandler, os, threading, time
from implicit_geom import shapes
from implicit_geom import Scene
from implicit_geom import simulate

def go(shape):
    s = Scene(gravity=(0, 0, -9.81))
    s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add("egg", shape, mass=1.0, position=(0, 0, 0.8), orientation=(0.9, 0.3, 0.3, 0))
    s.friction(mu=0.4, e_r=0.02)
    simulate(s, duration=0.5, step=0.01)

def keep_going():
    while not done:
        for shape in SHAPES:
            go(shape)

SHAPES = [shapes.box(0.2, 0.1, 0.15), shapes.cylinder(0.2, 0.3), shapes.capsule(0.1, 0.3)]
done = []
thread = threading.Thread(target=keep_going, daemon=True)
thread.start()
for k in range(12):
    time.sleep(0.013 * k)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        go(SHAPES[k % 3])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, f"child {k}"
done.append(1)
thread.join()
"""


def test_first_calls_from_eight_threads(tmp_path: Path) -> None:
    """`simulate`, `simulate_batch` and `distance`, cold and then with what is on disk: right to the bit."""
    for _ in range(2):
        assert not in_fresh_process(COLD, str(tmp_path / "cache"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_beside_a_thread_that_simulates(tmp_path: Path) -> None:
    """A child can simulate, whatever its parent's other thread was about."""
    assert not in_fresh_process(FORK, str(tmp_path / "cache"))


# batches and users' functions that fork themselves, beside forks of the main thread: none waits for ever
BATCHES = """
import faulthandler, os, threading, time
from implicit_geom import shapes
from implicit_geom import Scene, simulate_batch
from implicit_geom import simulate

def scene():
    s = Scene(gravity=(0, 0, -9.81))
    s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.8))
    s.friction(mu=0.4)
    return s

def batch(rows):
    values = {"friction.mu": [0.1 + 0.01 * i for i in range(rows)]}
    simulate_batch(scene(), values, duration=0.1, step=0.01, threads=2)

def child(work):
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(50, exit=True)
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

def batches():
    while not done:
        batch(20)

def forks_itself():
    s = scene()
    s.applied("egg", force=lambda t: child(lambda: None) or (0, 0, 0))
    simulate(s, duration=0.05, step=0.01)
    ended.append(1)

done, ended, started = [], [], time.monotonic()
threads = [threading.Thread(target=t, daemon=True) for t in (batches, forks_itself, forks_itself)]
for t in threads: t.start()
for k in range(10):
    child(lambda: batch(9))
    time.sleep(0.02)
for t in threads[1:]: t.join(50)
done.append(1)
threads[0].join(50)
assert len(ended) == 2
assert time.monotonic() - started < 55, "a fork waited for a thread that waited for it"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_beside_batches_and_within_loads(tmp_path: Path) -> None:
    """Threads of a pool, and threads that fork themselves, hold nothing that a fork waits for."""
    assert not in_fresh_process(BATCHES, str(tmp_path / "cache"))


def test_equations_are_built_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Symbols and functions of CasADi are made while no other thread can make any."""
    sites = set()

    def told() -> None:
        if not BUILDING._is_owned():  # type: ignore[attr-defined]
            frames = traceback.extract_stack()
            ours = [f for f in frames if "/implicit_geom/" in f.filename or "/shapes/" in f.filename]
            sites.add(f"{ours[-1].filename}:{ours[-1].lineno}")

    made, named = ca.Function.__init__, ca.SX.sym
    monkeypatch.setattr(ca.Function, "__init__", lambda *a, **k: (told(), made(*a, **k))[1])
    monkeypatch.setattr(ca.SX, "sym", lambda *a, **k: (told(), named(*a, **k))[1])
    for shape in (
        shapes.ellipsoid(0.3, 0.2, 0.1),
        shapes.box(0.2, 0.1, 0.15),
        shapes.surface("x**2 + 3*y**4 + z**2 - 0.04"),
        shapes.intersection(shapes.sphere(0.2), shapes.box(0.15, 0.15, 0.15)),
    ):
        scene = Scene(gravity=(0, 0, -9.81))
        scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
        scene.add("body", shape, mass=1.0, position=(0, 0, 0.4), angular_velocity=(1, 2, 0))
        scene.friction(mu=0.3, restitution=0.3)
        for stepper in ("implicit-rattle", "implicit-euler"):
            simulate(scene, duration=0.3, step=0.02, stepper=stepper, progress=False).summary()
        simulate_batch(scene, {"friction.mu": [0.1, 0.2]}, duration=0.1, step=0.02, progress=False)
        distance(shape, ((0, 0, 0), (1, 0, 0, 0)), shapes.box(0.3, 0.2, 0.1), ((1, 0.2, 0), (1, 0, 0, 0)))
    assert not sites


def test_distances_from_eight_threads() -> None:
    """Every thread has the answers to its own questions."""
    pairs = [
        (shapes.ellipsoid(0.5, 0.4, 0.3), shapes.ellipsoid(0.2, 0.3, 0.4)),
        (shapes.box(0.5, 0.4, 0.3), shapes.box(0.2, 0.3, 0.4)),
    ]
    places = np.random.default_rng(0).normal(size=(25, 3)) + (2.0, 0, 0)

    def gap(k: int) -> float:
        a, b = pairs[k % 2]
        return distance(a, ((0, 0, 0), (1, 0, 0, 0)), b, (places[k // 2], (0.6, 0.8, 0, 0))).gap

    wanted = [gap(k) for k in range(50)]
    found: dict[int, list[float]] = {}

    def ask(thread: int) -> None:
        order = np.random.default_rng(thread).permutation(50).tolist()
        by_question = {k: gap(k) for k in order}
        found[thread] = [by_question[k] for k in range(50)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=ask, args=(t,)) for t in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(interval)
    assert [found[t] == wanted for t in range(8)] == [True] * 8


def test_things_are_built_once_by_any_number_of_threads() -> None:
    """All get the same one."""
    kept: Kept[object] = Kept(4)
    made, got, start = [], [], threading.Barrier(8)

    def build() -> object:
        made.append(object())
        threading.Event().wait(0.02)
        return made[-1]

    def ask() -> None:
        start.wait()
        got.append(kept.get("one", build))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(made) == 1
    assert all(thing is made[0] for thing in got)


def test_what_was_not_used_for_longest_goes() -> None:
    """The number of things kept has a bound; the last used stay."""
    kept: Kept[int] = Kept(2)
    calls = []

    def get(key: int) -> int:
        return kept.get(key, lambda: calls.append(key) or key)

    assert [get(k) for k in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert calls == [1, 2, 3, 2]
    assert len(kept) == 2


def test_a_function_whose_results_are_kept() -> None:
    """Called once for each set of arguments."""
    calls = []

    @built_once
    def double(x: int) -> int:
        calls.append(x)
        return 2 * x

    assert [double(1), double(2), double(1)] == [2, 4, 2]
    assert calls == [1, 2]
