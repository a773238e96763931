"""What every run must show, whatever its stepper: no step failed, and its own laws hold in every step."""

from __future__ import annotations

import numpy as np

from implicit_geom.experiments.check import Check, at_most
from implicit_geom.run.trajectory import Trajectory

# column of `run.steps`: unit, bound (speeds reach 10 m/s, sizes 10 m); `residual` is the solver's
BOUNDS = {
    "residual": ("", 1e-10),
    "dynamics": ("m/s", 1e-9),
    "gap": ("m", 1e-9),
    "complementarity": ("m/s", 1e-9),
    "friction": ("m/s", 1e-9),
}


def laws(runs: dict[str, Trajectory]) -> dict[str, np.ndarray]:
    """One row a run: its steps, those that failed or were halved, and the largest of each residual."""
    steps = [run.steps for run in runs.values()]
    return {
        "run": np.array(list(runs)),
        "steps": np.array([len(s) for s in steps]),
        "failed": np.array([int(np.sum(s["status"] == "failed")) for s in steps]),
        "halved": np.array([int(np.sum(s["status"] == "substepped")) for s in steps]),
        **{name: np.array([np.nanmax(s[name], initial=0.0) for s in steps]) for name in BOUNDS},
        "penetration": np.array([run.max_penetration for run in runs.values()]),
    }


def law_checks(table: dict[str, np.ndarray]) -> list[Check]:
    """No failed step, and the largest of each residual over all runs."""
    checks = [at_most("steps that failed", np.sum(table["failed"]), 0)]
    for name, (unit, bound) in BOUNDS.items():
        what = "of the solver" if name == "residual" else f"of {name}"
        checks.append(at_most(f"own laws, largest residual {what}", np.max(table[name]), bound, unit))
    return checks
