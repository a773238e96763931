"""Compiled steps against the steppers they stand for: every step of the experiments, from the same state.

Each step that compiled code takes is taken again by the stepper itself, from the same state with the same
warm starts. The differences at its end are relative: positions to the body's size, velocities and spins
(times size) to the larger of the body's speed at both ends and what gravity adds in the step, after
4 roundings of its position over the step, to which no velocity is known: gaps are differences of
positions. The runs go on from the compiled result, so that differences do not add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import experiments
from experiments.benchmarks.timing import uncompiled
from experiments.check import Check, at_least, at_most
from implicit_geom import Trajectory
from implicit_geom.compiled.runner import Runner
from implicit_geom.model import Model, State
from implicit_geom.simulate import _March
from implicit_geom.solver_state import Memory, restore

TITLE = "compiled steps against the steppers' own, step by step over the experiments"
SKIPPED = ("work-precision",)  # the same runs as others, with peers beside them
PARAMS: dict[str, Any] = {"quick": False, "names": None}
QUICK: dict[str, Any] = {"quick": True, "names": ("c07-spin", "ellipsoid-rolling", "landing")}
BOUND = 1e-12
# experiments without a motion that magnifies rounding: whole runs are compared, too
STEADY = (
    "c07-spin",
    "c07-two-spheres",
    "disc-on-edge",
    "ellipsoid-on-ellipsoid",
    "ellipsoid-rolling",
    "euler-disc",
    "sliding-spinning-ball",
    "spinning-egg",
)
WHOLE_BOUND = 1e-9  # m
Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows, whole = [], []
    names = params["names"] or [n for n in experiments.REGISTRY if n not in SKIPPED]
    for name in names:
        module = experiments.REGISTRY[name]
        chosen = {**module.PARAMS, **(module.QUICK if params["quick"] else {})}
        with compared() as found:
            module.run(chosen)
        rows.append((name, found.compiled, found.own, found.position, found.velocity, found.failed))
        if name in STEADY:
            whole.append((name, *_whole_runs(module, chosen)))
    columns = ("experiment", "compiled", "own", "position", "velocity", "not_repeated")
    tables = {"steps": {c: np.array([r[i] for r in rows]) for i, c in enumerate(columns)}}
    columns = ("experiment", "runs", "position")
    tables["runs"] = {c: np.array([r[i] for r in whole]) for i, c in enumerate(columns)}
    return tables


def _whole_runs(module: Any, params: dict[str, Any]) -> tuple[int, float]:
    """All runs of an experiment with and without compiled code: how many, largest distance of a body, m."""
    with recorded() as ours:
        module.run(params)
    with recorded() as theirs, uncompiled():
        module.run(params)
    pairs = list(zip(ours, theirs, strict=True))
    return len(pairs), max(float(np.max(np.abs(a.states.x - b.states.x))) for a, b in pairs)


@contextmanager
def recorded() -> Iterator[list[Trajectory]]:
    """Collects the runs that `simulate` makes within it."""
    runs: list[Trajectory] = []
    march = _March.run

    def run(self: _March, progress: Any) -> Trajectory:
        runs.append(march(self, progress))
        return runs[-1]

    _March.run = run  # type: ignore[method-assign]
    try:
        yield runs
    finally:
        _March.run = march  # type: ignore[method-assign]


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["steps"]
    return [
        at_most("position after a step / size", float(np.max(t["position"])), BOUND),
        at_most("velocity after a step / speed", float(np.max(t["velocity"])), BOUND),
        at_most("compiled steps that the stepper takes otherwise", float(np.sum(t["not_repeated"])), 0),
        at_least("steps in compiled code", float(np.sum(t["compiled"])), 100),
        at_most("position in whole runs", float(np.max(tables["runs"]["position"])), WHOLE_BOUND, "m"),
    ]


class Comparison:
    """Counts of steps, and the largest differences so far."""

    def __init__(self) -> None:
        self.compiled = self.own = self.failed = 0
        self.position = self.velocity = 0.0

    def add(self, model: Model, start: State, ours: State, theirs: State, h: float) -> None:
        m = model.moving
        size = np.where(np.isfinite(model.size[m]), model.size[m], 1.0)
        gravity = abs(h) * float(np.linalg.norm(model.scene.gravity))
        speed = np.full(m.size, gravity)
        for s in (start, theirs):
            own = np.linalg.norm(s.v[m], axis=1) + size * np.linalg.norm(s.w[m], axis=1)
            speed = np.maximum(speed, own)
        speed = np.maximum(speed, 1e-9 * size / abs(h))
        moved = np.linalg.norm(ours.x[m] - theirs.x[m], axis=1) / size
        turned = np.abs(ours.q[m] - theirs.q[m]).reshape(m.size, -1).max(axis=1)
        fast = np.linalg.norm(ours.v[m] - theirs.v[m], axis=1)
        spin = size * np.linalg.norm(ours.w[m] - theirs.w[m], axis=1)
        rounding = 4 * np.finfo(float).eps * (np.linalg.norm(theirs.x[m], axis=1) + size) / abs(h)
        self.compiled += 1
        self.position = max(self.position, float(np.max(moved)), float(np.max(turned)))
        self.velocity = max(self.velocity, float(np.max((fast + spin - rounding) / speed)))


@contextmanager
def compared() -> Iterator[Comparison]:
    """Within it, `simulate` takes one compiled step at a time and compares it."""
    found = Comparison()
    original, left = Runner.run, Runner.left

    def run_one(runner: Runner, state: State, _wanted: int, step: int, ends: np.ndarray) -> Any:
        before = Memory(runner.solver).plain()
        out = original(runner, state, 1, step, ends)
        if len(out[2]):
            after = Memory(runner.solver).plain()
            restore(runner.solver, before)
            attempt = runner.solver.step(state, runner.options.step)
            if attempt.solves and not attempt.reason:
                found.add(runner.model, state, out[0], attempt.solves[-1].end, runner.options.step)
            else:
                found.failed += 1
            restore(runner.solver, after)
        return out

    def count_own(runner: Runner) -> None:
        found.own += 1
        left(runner)

    Runner.run, Runner.left = run_one, count_own  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Runner.run, Runner.left = original, left  # type: ignore[method-assign]
