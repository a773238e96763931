"""How often a step of `implicit-euler` is hard: 300 random drops, every step of which must be solved.

Counted over solves with at least one closed contact, parts of a halved step each for itself, at
least 50 a drop. Iterations include those of attempts that were given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from implicit_geom.check.certificate import geometry_residual, step_residuals
from implicit_geom.experiments.benchmarks.drops import KINDS, STEPS, Drop, drop
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.interface.progress import reporting
from implicit_geom.model.model import Model
from implicit_geom.model.records import Solve
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.studies.sweeps.workers import processes

TITLE = "random drops: unsolved steps, iterations, continuation and penetration by kind and step"
PARAMS: dict[str, Any] = {"drops": 300, "jobs": 2}
QUICK: dict[str, Any] = {"drops": 30, "jobs": 1}

ENOUGH = 50  # solves with a closed contact
CONTINUED = 0.02  # share of solves by the continuation path
MOST_STEPS = 4000
Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    outcomes = []
    with reporting(None, params["drops"]) as done:
        for outcome in in_processes(measure, range(params["drops"]), params["jobs"]):
            outcomes.append(outcome)
            done(len(outcomes))
    drops = {column: np.array([o[0][column] for o in outcomes]) for column in outcomes[0][0]}
    solves = {column: np.concatenate([o[1][column] for o in outcomes]) for column in outcomes[0][1]}
    return {"summary": summary(drops, solves), "drops": drops, "solves": solves}


def in_processes(work: Callable[[Any], Any], items: Iterable[Any], jobs: int) -> Iterator[Any]:
    """work(item) for each item in order, in so many processes."""
    if jobs == 1:
        yield from map(work, items)
        return
    with processes(jobs) as pool:
        yield from pool.map(work, items)


def measure(number: int) -> tuple[dict[str, Any], Table]:
    """Step one drop until it has had enough contact; its row, and its solves with a closed contact."""
    started = time.perf_counter()
    d = drop(number)
    model = Model(d.scene)
    stepper, state = EulerStepper(model), model.initial_state()
    smallest = float(min(model.size[model.moving]))
    iterations, continued, substepped = [], [], []
    penetration = certificate = 0.0
    reason, steps = "", 0
    while len(iterations) < ENOUGH and steps < MOST_STEPS and not reason:
        attempt = stepper.step(state, d.step)
        steps += 1
        reason = attempt.reason
        for solve in attempt.solves:
            penetration = np.maximum(penetration, _penetration(model, solve) / smallest)
            certificate = np.maximum(certificate, _certificate(model, solve))
            if solve.contacts:
                iterations.append(solve.iterations)
                continued.append(int(solve.status == "continued"))
                substepped.append(int(len(attempt.solves) > 1))
            state = solve.end
    row = {
        **_description(d),
        "steps": steps,
        "contact_solves": len(iterations),
        "unsolved": int(bool(reason)),
        "penetration": float(penetration),
        "certificate": float(certificate),
        "seconds": time.perf_counter() - started,
        "reason": reason or "-",
    }
    columns = {"iterations": iterations, "continued": continued, "substepped": substepped}
    solves = {name: np.array(values, int) for name, values in columns.items()}
    return row, {"drop": np.full(len(iterations), number), **solves}


def _description(d: Drop) -> dict[str, Any]:
    return {
        "drop": d.number,
        "kind": d.kind,
        "onto": d.onto,
        "size": d.size,
        "step": d.step,
        "mu": d.mu,
    }


def _penetration(model: Model, solve: Solve) -> float:
    """Metres: of the closed contacts, and of all other pairs by their distance."""
    closed = max((-c.gap for c in solve.contacts), default=0.0)
    return max(closed, geometry_residual(model, solve).overlap, 0.0)


def _certificate(model: Model, solve: Solve) -> float:
    """The largest independent residual of the step, velocities relative to the fastest body's speed."""
    found = step_residuals(model, solve)
    speed = np.linalg.norm(solve.start.v, axis=1)[model.moving]
    spin = np.linalg.norm(solve.start.w, axis=1)[model.moving]
    fastest = float(np.max(speed + model.size[model.moving] * spin)) + 9.81 * solve.h
    return max(found["dynamics"], found["complementarity"], found["friction"]) / fastest


def summary(drops: Table, solves: Table) -> Table:
    """One row a kind and step, and a last one for all."""
    rows = []
    for kind in KINDS:
        for step in STEPS:
            rows.append(_row(kind, step, (drops["kind"] == kind) & (drops["step"] == step), drops, solves))
    rows.append(_row("all", 0.0, np.ones(len(drops["drop"]), bool), drops, solves))
    rows = [row for row in rows if row["drops"]]
    return {column: np.array([row[column] for row in rows]) for column in rows[0]}


def _row(kind: str, step: float, chosen: np.ndarray, drops: Table, solves: Table) -> dict[str, Any]:
    here = np.isin(solves["drop"], drops["drop"][chosen])
    iterations = solves["iterations"][here]
    any_solves = iterations.size > 0
    return {
        "kind": kind,
        "step": step,
        "drops": int(np.sum(chosen)),
        "contact_solves": int(np.sum(here)),
        "unsolved": int(np.sum(drops["unsolved"][chosen])),
        "median": float(np.median(iterations)) if any_solves else np.nan,
        "p95": float(np.percentile(iterations, 95)) if any_solves else np.nan,
        "most": int(iterations.max(initial=0)),
        "continued": float(np.mean(solves["continued"][here])) if any_solves else np.nan,
        "substepped": float(np.mean(solves["substepped"][here])) if any_solves else np.nan,
        "penetration": float(drops["penetration"][chosen].max(initial=0.0)),
        "certificate": float(drops["certificate"][chosen].max(initial=0.0)),
        "seconds": float(drops["seconds"][chosen].sum()),
    }


def report(tables: dict[str, Table]) -> str:
    """The summary as text."""
    table = tables["summary"]
    head = (
        f"  {'kind':15}{'h, s':>7}{'drops':>7}{'solves':>8}{'unsolved':>10}{'median':>8}{'95 %':>7}"
        f"{'most':>6}{'continued':>11}{'halved':>9}{'penetration':>13}{'certificate':>13}{'time, s':>9}"
    )
    lines = [head]
    for i in range(len(table["kind"])):
        r = {column: values[i] for column, values in table.items()}
        step = f"{r['step']:g}" if r["step"] > 0 else ""
        lines.append(
            f"  {r['kind']:15}{step:>7}{r['drops']:7d}{r['contact_solves']:8d}{r['unsolved']:10d}"
            f"{r['median']:8.1f}{r['p95']:7.1f}{r['most']:6d}"
            f"{100 * r['continued']:9.2f} %{100 * r['substepped']:7.2f} %"
            f"{r['penetration']:13.1e}{r['certificate']:13.1e}{r['seconds']:9.1f}"
        )
    return "\n".join(lines)


def check(tables: dict[str, Table]) -> list[Check]:
    drops, solves = tables["drops"], tables["solves"]
    # the first impact of a drop is one solve in fifty: a few drops alone scatter by about a percent
    continued = CONTINUED if len(drops["drop"]) >= PARAMS["drops"] else 2 * CONTINUED
    return [
        at_most("unsolved steps", np.sum(drops["unsolved"]), 0),
        at_least("fewest solves with a closed contact in a drop", np.min(drops["contact_solves"]), ENOUGH),
        at_most("penetration / size", np.max(drops["penetration"]), 1e-9),
        at_most("median iterations", np.median(solves["iterations"]), 4),
        at_most("share of solves by the continuation path", np.mean(solves["continued"]), continued),
        at_most("certificate, relative to the speeds", np.max(drops["certificate"]), 1e-8),
    ]
