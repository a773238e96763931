"""The laws of each run's own stepper, whatever it is: `run.steps` has their residuals, step by step."""

from __future__ import annotations

import numpy as np

from experiments.check import Check, at_most
from implicit_geom import Trajectory

# dynamics m/s, gap m, complementarity m/s, friction m/s; speeds are some m/s, sizes about 1 m
BOUND = 1e-10
NAMES = ("dynamics", "gap", "complementarity", "friction")


def laws(runs: dict[str, Trajectory]) -> dict[str, np.ndarray]:
    """One row a run: steps, failed steps, the largest of each residual, the deepest penetration."""
    tables = [run.steps for run in runs.values()]
    return {
        "run": np.array(list(runs)),
        "steps": np.array([len(table) for table in tables]),
        "failed": np.array([int(np.sum(table["status"] == "failed")) for table in tables]),
        **{name: np.array([np.nanmax(table[name]) for table in tables]) for name in NAMES},
        "penetration": np.array([run.max_penetration for run in runs.values()]),
    }


def law_checks(table: dict[str, np.ndarray], bound: float = BOUND) -> list[Check]:
    """No step failed, and all are solved."""
    checks = [at_most("steps that failed", np.sum(table["failed"]), 0)]
    units = dict.fromkeys(NAMES, "m/s") | {"gap": "m"}
    return checks + [
        at_most(f"largest {name} residual of all runs", np.max(table[name]), bound, units[name])
        for name in NAMES
    ]
