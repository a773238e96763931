"""Whether threads and neighbours change an answer: batches of bodies that tumble, and cold starts.

Every batch is run on 1, 2, 3 and 8 threads, with its rows in another order, and some rows by `simulate`.
A cold start is a process whose first calls, of `simulate`, `simulate_batch` and `distance`, come from eight
threads at the same moment; afterwards it repeats them one by one. All must be the same, to the last bit.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from implicit_geom import Scene, shapes, simulate, simulate_batch
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.interface.progress import reporting
from implicit_geom.run.batch import Batch
from implicit_geom.scene.values import variants

TITLE = "batches on 1, 2, 3 and 8 threads, and cold starts from eight threads: the same bits"
PARAMS: dict[str, Any] = {"rows": 600, "duration": 1.0, "singly": 100, "processes": 20}
QUICK: dict[str, Any] = {"rows": 12, "duration": 0.4, "singly": 4, "processes": 1}

THREADS = (1, 2, 3, 8)
PARTS = ("position", "orientation", "velocity", "angular_velocity")
STEP = 0.01
CLOSE = 1e-11  # m, rad, m/s, rad/s: how near a row must be to `simulate`
KINDS: dict[str, tuple[shapes.Shape, float]] = {  # with restitution
    "box": (shapes.box(0.2, 0.1, 0.15), 0.0),
    "cylinder": (shapes.cylinder(0.2, 0.3), 0.0),
    "cone": (shapes.cone(0.2, 0.3), 0.0),
    "capsule": (shapes.capsule(0.1, 0.3), 0.0),
    "superellipsoid": (shapes.superellipsoid(0.2, 0.15, 0.1, 4), 0.0),
    "egg that bounces": (shapes.ellipsoid(0.25, 0.2, 0.15), 0.7),
}

# eight first calls at the same moment, then the same ones after each other
COLD = """
import sys, threading
import numpy as np
from implicit_geom import shapes
from implicit_geom import Scene, simulate_batch
from implicit_geom import distance
from implicit_geom import simulate

def scene(shape):
    s = Scene(gravity=(0, 0, -9.81))
    s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add("egg", shape, mass=1.0, position=(0, 0, 0.8), orientation=(0.9, 0.3, 0.3, 0))
    s.friction(mu=0.4, e_r=0.02)
    return s

def run(shape):
    return simulate(scene(shape), duration=0.5, step=0.01)["egg"].position

def batch(shape):
    values = {"friction.mu": np.linspace(0.1, 0.6, 17)}
    return simulate_batch(scene(shape), values, duration=0.5, step=0.01, threads=2)["egg"].position

def gaps(shape):
    poses = np.random.default_rng(0).normal(size=(20, 3)) + (2.0, 0, 0)
    box = shapes.box(0.2, 0.3, 0.4)
    return np.array([distance(shape, ((0, 0, 0), (1, 0, 0, 0)), box, (x, (1, 0, 0, 0))).gap for x in poses])

EGG, BOX = shapes.ellipsoid(0.5, 0.4, 0.3), shapes.box(0.2, 0.1, 0.15)
JOBS = [(run, EGG), (run, BOX), (batch, EGG), (batch, BOX), (gaps, EGG), (gaps, BOX), (run, EGG), (gaps, EGG)]
found, start = {}, threading.Barrier(len(JOBS))

def go(i):
    start.wait()
    found[i] = JOBS[i][0](JOBS[i][1])

sys.setswitchinterval(1e-4)
threads = [threading.Thread(target=go, args=(i,)) for i in range(len(JOBS))]
for t in threads: t.start()
for t in threads: t.join()
assert len(found) == len(JOBS)
for i, (job, shape) in enumerate(JOBS):
    assert found[i].tobytes() == job(shape).tobytes(), i
"""

Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    total = len(KINDS) + params["processes"]
    with reporting(None, total) as done:
        rows = []
        for kind in KINDS:
            rows.append(compared(kind, params))
            done(len(rows))
        wrong = 0
        with tempfile.TemporaryDirectory() as folder:
            for k in range(params["processes"]):
                # every other one finds compiled code on disk
                wrong += in_fresh_process(COLD, os.path.join(folder, f"cache{k // 2}")) != ""
                done(len(rows) + k + 1)
    batches = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    cold = {"processes": np.array([params["processes"]]), "wrong": np.array([wrong])}
    return {"batches": batches, "cold": cold}


def compared(kind: str, params: dict[str, Any]) -> dict[str, Any]:
    """One kind of body: rows that differ between numbers of threads and orders, and from `simulate`."""
    scene, values = tumbling(kind, params["rows"])
    options = {"duration": params["duration"], "step": STEP, "progress": False}
    started = time.perf_counter()
    runs = [simulate_batch(scene, values, threads=n, **options) for n in THREADS]
    took = time.perf_counter() - started
    order = np.random.default_rng(0).permutation(params["rows"])
    mixed = simulate_batch(scene, {k: v[order] for k, v in values.items()}, threads=2, **options)
    first = [row_bits(runs[0], i) for i in range(params["rows"])]
    by_threads = sum(row_bits(run, i) != bits for run in runs[1:] for i, bits in enumerate(first))
    by_order = sum(row_bits(mixed, i) != first[k] for i, k in enumerate(order))
    chosen = np.arange(params["rows"])[: params["singly"]]
    singly = variants(scene, {k: v[chosen] for k, v in values.items()})
    apart = max(_apart(runs[0], i, one, options) for i, one in zip(chosen, singly, strict=True))
    return {
        "kind": kind,
        "rows": params["rows"],
        "failed": int(np.sum(runs[0].status == "failed")),
        "steps_outside": int(np.sum(runs[0].solved)),
        "rows_by_threads": by_threads,
        "rows_by_order": by_order,
        "from_simulate": apart,
        "time": took / len(THREADS),
    }


def tumbling(kind: str, count: int) -> tuple[Scene, dict[str, np.ndarray]]:
    """A body that strikes the ground and tumbles, other in every row: impacts, and steps taken alone."""
    shape, restitution = KINDS[kind]
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("egg", shape, mass=1.0, position=(0, 0, 0.4), angular_velocity=(1, 2, 0))
    scene.friction(mu=0.4, e_r=0.02, restitution=restitution)
    rng = np.random.default_rng(7)
    turns = rng.normal(size=(count, 4))
    return scene, {
        "friction.mu": rng.uniform(0.0, 1.0, count),
        "bodies.egg.velocity": rng.normal(size=(count, 3)) * (0.5, 0.5, 1.0),
        "bodies.egg.orientation": turns / np.linalg.norm(turns, axis=1)[:, None],
    }


def row_bits(batch: Batch, i: int) -> bytes:
    """All that a row of a batch of `tumbling` did."""
    return b"".join(np.ascontiguousarray(getattr(batch["egg"], part)[i]).tobytes() for part in PARTS)


def _apart(batch: Batch, i: int, scene: Scene, options: dict[str, Any]) -> float:
    """How far a row is from the run of `simulate`."""
    run = simulate(scene, on_failure="record", **options)
    pairs = ((getattr(batch["egg"], part)[i], getattr(run["egg"], part)) for part in PARTS)
    return max(float(np.max(np.abs(ours[: len(theirs)] - theirs))) for ours, theirs in pairs)


def in_fresh_process(script: str, cache: str) -> str:
    """Run a script in a process of its own, with compiled code kept in a folder; why it failed."""
    command = [sys.executable, "-c", script]
    env = {**os.environ, "IMPLICIT_GEOM_CACHE": cache}
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return "did not end within 600 s"
    return "" if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr[-2000:]}"


def check(tables: dict[str, Table]) -> list[Check]:
    b = tables["batches"]
    return [
        at_most("rows that differ between 1, 2, 3 and 8 threads", int(b["rows_by_threads"].sum()), 0),
        at_most("rows that differ in another order", int(b["rows_by_order"].sum()), 0),
        at_most("largest difference from simulate", float(b["from_simulate"].max()), CLOSE),
        at_most("cold starts from eight threads that went wrong", int(tables["cold"]["wrong"][0]), 0),
    ]
