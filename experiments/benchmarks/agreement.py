"""Compiled steps against the steppers they stand for: every step of the experiments, from the same state.

Each step that compiled code takes is taken again by the stepper itself, from the same state with the same
warm starts. The differences at its end are relative: positions to the body's size, velocities and spins
(times size) to the larger of the body's speed at both ends and what gravity adds in the step, after
4 roundings of its position over the step, to which no velocity is known: gaps are differences of
positions. The runs go on from the compiled result, so that differences do not add up.

Then each experiment runs without compiled code. None of its checks may come out otherwise, and in those of
STEADY, whose motions do not magnify rounding, whole runs may not part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from implicit_geom import Trajectory, experiments
from implicit_geom.compiled.runner import Runner
from implicit_geom.experiments.benchmarks.timing import uncompiled
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.model.model import Model, State
from implicit_geom.run.march import March
from implicit_geom.run.storage.solver_state import Memory, restore

TITLE = "compiled steps against the steppers' own, step by step over the experiments"
LARGE = "more than 160 unknowns: no step is compiled"
CLASSICAL = "classical steppers alone: no step is compiled"
CONTACT = "contact problems alone: no step of ours is taken"
LEFT_OUT = {
    "ah02-136": LARGE,
    "ah02-21": LARGE,
    "ah02-pyramid": "a problem at rest: no step is taken",
    "ah02-table1": LARGE,
    "mj14-sphere": CONTACT,
    "mj14-sphere-45": CONTACT,
    "nt12-peg": CLASSICAL,
    "nt12-ramp": CLASSICAL,
    "solver-profile": CONTACT,
    "t10-ablation": CONTACT,
    "t10-ball-drop": CONTACT,
    "t10-chattering": CONTACT,
    "t10-table1": CONTACT,
    "work-precision": "the runs of ellipsoid-rolling and rattleback again, with peers beside them",
}
STEADY = (
    "c07-attribution",
    "c07-fig1a",
    "c07-fig1b",
    "c07-spin",
    "c07-two-spheres",
    "disc-on-edge",
    "ellipse-rolling",
    "ellipsoid-on-ellipsoid",
    "ellipsoid-rolling",
    "euler-disc",
    "friction-pyramid",
    "landing",
    "rattleback",
    "shape-loss",
    "sliding-spinning-ball",
    "spinning-egg",
)
NATIVE = ("disc-on-edge",)  # stepped by the native engine: whole runs alone are compared
UNSTEADY = {"c07-disc": "polygons turn over their vertices like a pendulum upside down"}
# with impacts as events, whose steps between impacts are compiled; velocities of rocking-block differ by more
# than BOUND
STRIKING = ("bouncing-ellipsoid", "corner-impact", "dropped-rod", "newtons-cradle", "rocking-block")
HERE = {"workers": 1}  # steps in other processes are not seen
SHORTER = {"c07-attribution": {"cases": ((10, 0.005), (64, 0.01))}}  # quick forms: sixteen runs a case
PARAMS: dict[str, Any] = {"quick": False, "names": None}
QUICK: dict[str, Any] = {"quick": True}
BOUND = 1e-12
WHOLE_BOUND = 1e-9  # m


def names() -> list[str]:
    """The experiments that are compared: all whose steps are taken by compiled code, but STRIKING ones."""
    return [name for name in experiments.REGISTRY if name not in LEFT_OUT and name not in STRIKING]


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows = []
    for name in params["names"] or names():
        module = experiments.REGISTRY[name]
        chosen = {**module.PARAMS, **(module.QUICK if params["quick"] else {})}
        chosen |= {key: value for key, value in HERE.items() if key in chosen}
        chosen |= SHORTER.get(name, {}) if params["quick"] else {}
        with compared() as found, recorded() as ours:
            tables = module.run(chosen)
        with recorded() as theirs, uncompiled():
            others = module.run(chosen)
        steps = (found.compiled, found.own, found.position, found.velocity, found.failed)
        verdicts = [
            (a.passed, b.passed) for a, b in zip(module.check(tables), module.check(others), strict=True)
        ]
        changed = sum(a != b for a, b in verdicts)
        rows.append((name, *steps, len(ours), _apart(ours, theirs), len(verdicts), changed))
    kinds = ("compiled", "own", "position", "velocity", "not_repeated", "runs", "apart", "checks", "changed")
    return {"agreement": columns(("experiment", *kinds), rows)}


def _apart(ours: list[Trajectory], theirs: list[Trajectory]) -> float:
    """Largest distance of a body in runs with and without compiled code, m."""
    return max(float(np.max(np.abs(a.states.x - b.states.x))) for a, b in zip(ours, theirs, strict=True))


@contextmanager
def recorded() -> Iterator[list[Trajectory]]:
    """Collects the runs that `simulate` makes within it."""
    runs: list[Trajectory] = []
    march = March.run

    def run(self: March, progress: Any) -> Trajectory:
        runs.append(march(self, progress))
        return runs[-1]

    March.run = run  # type: ignore[method-assign]
    try:
        yield runs
    finally:
        March.run = march  # type: ignore[method-assign]


def report(tables: dict[str, Table]) -> str:
    """Worst differences by experiment, then which experiments are not there, and why."""
    t = tables["agreement"]
    lines = [
        f"  {'':24}{'compiled':>10}{'own':>8}{'not repeated':>14}{'position':>10}{'velocity':>10}"
        f"{'runs':>7}{'apart, m':>10}{'checks':>8}{'changed':>9}"
    ]
    for i, name in enumerate(t["experiment"].tolist()):
        counts = f"{t['compiled'][i]:10d}{t['own'][i]:8d}{t['not_repeated'][i]:14d}"
        worst = f"{t['position'][i]:10.1e}{t['velocity'][i]:10.1e}"
        whole = f"{t['runs'][i]:7d}{t['apart'][i]:10.1e}{t['checks'][i]:8d}{t['changed'][i]:9d}"
        lines.append(f"  {name:24}{counts}{worst}{whole}")
    lines += [f"  {name}, whole runs are not judged: {why}" for name, why in UNSTEADY.items()]
    lines += [f"  {name} is stepped by the native engine: whole runs alone are compared" for name in NATIVE]
    return "\n".join(lines + [f"  {name} is left out: {why}" for name, why in LEFT_OUT.items()])


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["agreement"]
    steady, native = (np.isin(t["experiment"], names) for names in (STEADY, NATIVE))
    compiled = t["compiled"][~native]
    return [
        at_most("position after a step / size", float(np.max(t["position"])), BOUND),
        at_most("velocity after a step / speed", float(np.max(t["velocity"])), BOUND),
        at_most("compiled steps that the stepper takes otherwise", float(np.sum(t["not_repeated"])), 0),
        at_least("steps in compiled code, any experiment", float(np.min(compiled, initial=1)), 1),
        at_most("position in whole runs", float(np.max(t["apart"][steady], initial=0.0)), WHOLE_BOUND, "m"),
        at_most("checks of experiments that come out otherwise", float(np.sum(t["changed"])), 0),
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
    original, invalidate = Runner.run, Runner.invalidate

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
        invalidate(runner)

    Runner.run, Runner.invalidate = run_one, count_own  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Runner.run, Runner.invalidate = original, invalidate  # type: ignore[method-assign]
