"""Damaged and hostile input in numbers: formulas, scene and sweep files, saved runs, replay files, kills.

Each kind of input is taken, or refused in one clean line; nothing damaged is accepted, nothing crashes or
takes more than two seconds to read. Work that is killed loses nothing and leaves nothing running.
"""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

import numpy as np

from implicit_geom.experiments.benchmarks.robustness import in_processes
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.interface.progress import reporting

TITLE = "formulas, scene files, saved runs, replay files and kills at random: unclean outcomes"
PARAMS: dict[str, Any] = {"cases": 10_000, "kills": 40, "seed": 1, "jobs": 2}
QUICK: dict[str, Any] = {"cases": 40, "kills": 1, "jobs": 1}

KINDS = ("formulas", "scene_files", "saved_runs", "replay_files", "kills")
BLOCK = 250  # cases of one task
Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    tasks = [task for kind in KINDS for task in _tasks(kind, params)]
    total = {kind: np.zeros(3) for kind in KINDS}  # cases, findings, processor time
    findings: list[tuple[str, str, str]] = []
    with reporting(None, len(tasks)) as done:
        for k, (task, outcome) in enumerate(zip(tasks, in_processes(judged, tasks, params["jobs"]))):
            count, found, seconds = outcome
            total[task[0]] += count, len(found), seconds
            findings += [(task[0], *words) for words in found]
            done(k + 1)
    counts = np.array(list(total.values()))
    summary = {
        "kind": np.array(KINDS),
        "cases": counts[:, 0].astype(int),
        "unclean": counts[:, 1].astype(int),
        "time": counts[:, 2],
    }
    columns = zip(*findings, strict=True) if findings else ((), (), ())
    return {
        "summary": summary,
        "findings": {name: np.array(c, str) for name, c in zip(("kind", "case", "found"), columns)},
    }


def _tasks(kind: str, params: dict[str, Any]) -> list[tuple[str, int, int]]:
    """(kind, seed, count) of what is judged in one go."""
    if kind == "kills":
        linux = sys.platform.startswith("linux")  # where processes are seen
        return [(kind, params["seed"], params["kills"])] if linux else []
    left, blocks = params["cases"], []
    while left > 0:
        blocks.append((kind, 1000 * params["seed"] + len(blocks), min(left, BLOCK)))
        left -= BLOCK
    return blocks


def judged(task: tuple[str, int, int]) -> tuple[int, list[tuple[str, str]], float]:
    """How many cases there were, what was unclean, and how long it took, s."""
    kind, seed, count = task
    module = import_module(f"implicit_geom.experiments.fuzz.{kind}")
    started, found, seen = time.perf_counter(), [], 0
    for case in module.cases(seed, count):
        seen += 1
        words = module.check(case)
        if words:
            found.append((f"seed {seed}, case {seen - 1}: {case!r}"[:300], words[:300]))
    return seen, found, time.perf_counter() - started


def check(tables: dict[str, Table]) -> list[Check]:
    s = tables["summary"]
    rows = zip(s["kind"], s["cases"], s["unclean"], strict=True)
    return [at_most(f"{kind}: unclean outcomes of {cases}", int(bad), 0) for kind, cases, bad in rows]
