"""What the guard of `implicit-rattle` costs: the random drops of `robustness`, 50 steps each.

No step may fail or penetrate, no closed contact may approach at the end of a step that was not taken in
Euler's form, and no step may gain more energy than the guard allows. Energies are relative to that
above the lowest configuration; h |w| is the turn of the fastest body in a step.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from implicit_geom import Trajectory, simulate
from implicit_geom.experiments.approach import fastest_approach
from implicit_geom.experiments.benchmarks.drops import KINDS, STEPS, drop
from implicit_geom.experiments.benchmarks.robustness import in_processes
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.interface.progress import reporting
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model, State

TITLE = "random drops under implicit-rattle: guarded steps, gains of energy, penetration"
PARAMS: dict[str, Any] = {"drops": 300, "jobs": 2, "stepper": "implicit-rattle"}
QUICK: dict[str, Any] = {"drops": 15, "jobs": 1}

STEPS_EACH = 50
MANY = 100  # drops that make a share
SLOW, MODERATE = 0.1, 0.2  # rad a step
COMPACT = 3.0  # longest to shortest edge of the bounding box
Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows = []
    jobs = [(number, params["stepper"]) for number in range(params["drops"])]
    with reporting(None, len(jobs)) as done:
        for row in in_processes(measure, jobs, params["jobs"]):
            rows.append(row)
            done(len(rows))
    drops = {column: np.array([row[column] for row in rows]) for column in rows[0]}
    return {"summary": summary(drops), "drops": drops}


def measure(job: tuple[int, str]) -> dict[str, Any]:
    """One drop; counts of steps by kind, and the largest gain, penetration and approach."""
    number, stepper = job
    started = time.perf_counter()
    d = drop(number)
    result = simulate(
        d.scene,
        duration=STEPS_EACH * d.step,
        step=d.step,
        stepper=stepper,
        on_failure="record",
        progress=False,
    )
    gain, turn = _gains(result), d.step * _spins(result)
    guarded = result.good_steps["guard"] != "none"
    euler = result.good_steps["form"] == "euler"
    bodies = [b for b in d.scene.bodies.values() if not b.fixed]
    compact = max(_slenderness(b.shape) for b in bodies) <= COMPACT
    moderate = turn < MODERATE
    speed = np.linalg.norm(result.states.v, axis=2).max() + d.size * _spins(result).max(initial=0.0)
    return {
        "drop": number,
        "kind": d.kind,
        "onto": d.onto,
        "size": d.size,
        "step": d.step,
        "mu": d.mu,
        "compact": int(compact),
        "steps": len(result.good_steps),
        "unsolved": int(result.failed),
        "guarded": int(np.sum(guarded)),
        "euler": int(np.sum(euler)),
        "moderate": int(np.sum(moderate)),
        "moderate_guarded": int(np.sum(moderate & guarded)),
        "gain_slow": float(gain[turn < SLOW].max(initial=0.0)),
        "gain": float(gain.max(initial=0.0)),
        "penetration": result.max_penetration / min(b.shape.size for b in bodies),
        "approach": fastest_approach(result) / speed,
        "seconds": time.perf_counter() - started,
    }


def _gains(run: Trajectory) -> np.ndarray:
    """Gain of energy in each step over the energy above the lowest configuration."""
    scale, s = EnergyScale(Model(run.scene), run.options.tolerance), run.states
    states = [State(0.0, s.x[k], s.q[k], s.v[k], s.w[k]) for k in range(len(run.time))]
    above = np.array([scale.above_lowest(state) for state in states])
    # a body at rest has no energy: what rounding makes of it is no gain
    rounding = max(float(scale.rounding(state, run.options.step).sum()) for state in states)
    gained = np.maximum(np.diff(run.energy) - rounding, 0.0)
    return gained / np.maximum(np.maximum(above[1:], above[:-1]), 1e-300)


def _spins(run: Trajectory) -> np.ndarray:
    """|w| of the fastest body at the start of each step, rad/s."""
    return np.linalg.norm(run.states.w[:-1], axis=2).max(axis=1)


def _slenderness(shape: Any) -> float:
    lower, upper = shape.bounds
    return float(np.max(upper - lower) / np.min(upper - lower))


def summary(drops: Table) -> Table:
    """One row a kind and step, and a last one for all."""
    rows = []
    for kind in KINDS:
        for step in STEPS:
            rows.append(_row(kind, step, drops, (drops["kind"] == kind) & (drops["step"] == step)))
    rows.append(_row("all", 0.0, drops, np.ones(len(drops["drop"]), bool)))
    rows = [row for row in rows if row["drops"]]
    return {column: np.array([row[column] for row in rows]) for column in rows[0]}


def _row(kind: str, step: float, drops: Table, chosen: np.ndarray) -> dict[str, Any]:
    total = {
        name: int(drops[name][chosen].sum()) for name in ("steps", "unsolved", "guarded", "euler", "moderate")
    }
    largest = {
        name: float(drops[name][chosen].max(initial=0.0))
        for name in ("gain_slow", "gain", "penetration", "approach")
    }
    row = {"kind": kind, "step": step, "drops": int(np.sum(chosen)), **total}
    row["moderate_guarded"] = int(drops["moderate_guarded"][chosen].sum())
    return {**row, **largest, "seconds": float(drops["seconds"][chosen].sum())}


def report(tables: dict[str, Table]) -> str:
    """The summary as text."""
    table = tables["summary"]
    lines = [
        f"  {'kind':15}{'h, s':>7}{'drops':>7}{'steps':>7}{'unsolved':>10}{'guarded':>9}{'Euler':>8}"
        f"{'h|w| < 0.2':>12}{'gain, slow':>12}{'any':>9}{'penetration':>13}{'approach':>10}{'time, s':>9}"
    ]
    for i in range(len(table["kind"])):
        r = {column: values[i] for column, values in table.items()}
        step = f"{r['step']:g}" if r["step"] > 0 else ""
        share = r["moderate_guarded"] / max(r["moderate"], 1)
        lines.append(
            f"  {r['kind']:15}{step:>7}{r['drops']:7d}{r['steps']:7d}{r['unsolved']:10d}"
            f"{100 * r['guarded'] / r['steps']:7.1f} %{100 * r['euler'] / r['steps']:6.1f} %"
            f"{100 * share:10.1f} %"
            f"{r['gain_slow']:12.1e}{r['gain']:9.1e}{r['penetration']:13.1e}{r['approach']:10.1e}"
            f"{r['seconds']:9.1f}"
        )
    return "\n".join(lines)


def check(tables: dict[str, Table]) -> list[Check]:
    drops = tables["drops"]
    compact = drops["compact"] == 1
    share = drops["moderate_guarded"][compact].sum() / max(drops["moderate"][compact].sum(), 1)
    # a share of a few drops says little: one that rocks on its edge may be guarded in most steps
    shares = [at_most("share of guarded steps, bodies up to 1:1:3, h |w| < 0.2", share, 0.05)]
    return [
        at_most("unsolved steps", np.sum(drops["unsolved"]), 0),
        at_most("penetration / size", np.max(drops["penetration"]), 1e-10),
        at_most("approach at a closed contact / speed", np.max(drops["approach"]), 1e-9),
        at_most("gain of energy in a step, h |w| < 0.1", np.max(drops["gain_slow"]), 1e-3),
        at_most("gain of energy in a step", np.max(drops["gain"]), 1e-2),
        *(shares if len(drops["drop"]) >= MANY else []),
    ]
