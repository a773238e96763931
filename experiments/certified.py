"""The independent certificate of a whole run: `implicit_geom.check.certificate` over each of its solves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from implicit_geom.check.certificate import geometry_residual, residuals
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.model.model import Model
from implicit_geom.model.records import ContactRecord, Solve
from implicit_geom.run.trajectory import Trajectory

# residual: unit, and what every experiment must keep (speeds reach 10 m/s, sizes 10 m)
BOUNDS = {
    "dynamics": ("m/s", 1e-9),
    "gap": ("m", 1e-9),
    "complementarity": ("m/s", 1e-9),
    "friction": ("m/s", 1e-9),
    "contact": ("m", 1e-9),
    "normal": ("rad", 1e-7),
    "overlap": ("m", 1e-9),
}


def solves_of(run: Trajectory) -> Iterator[Solve]:
    """The accepted solves of a run, as the certificate takes them."""
    solves, start = run.solves, run.initial
    rows = np.split(solves.contacts, np.searchsorted(solves.contacts["solve"], np.arange(1, len(solves))))
    for i, row in enumerate(solves.table):
        start = start.at_time(float(row["time"]))
        end = solves.end(i)
        records = [_record(c) for c in rows[i]]
        yield Solve(
            start,
            end,
            float(row["h"]),
            solves.half[i],
            str(row["form"]),
            records,
            int(row["iterations"]),
            row["status"],
            float(row["residual"]),
            bodies=solves.bodies[i],
        )
        start = end


def _record(c: np.void) -> ContactRecord:
    return ContactRecord(
        int(c["pair"]),
        c["point"],
        c["normal"],
        c["tangent"],
        c["binormal"],
        float(c["gap"]),
        float(c["p_n"]),
        np.array([c["p_t"], c["p_o"], c["p_r"]]),
        np.array([c["v_t"], c["v_o"], c["v_r"]]),
        int(c["stage"]),
        impact=bool(c["impact"]),
        bounce=float(c["bounce"]),
        approach=float(c["approach"]),
        compression=np.array([c["c_n"], c["c_t"], c["c_o"], c["c_r"]]),
        lagged=bool(c["lagged"]),
        end_point=c["end_point"],
        slid=bool(c["slid"]),
        feature=int(c["feature"]),
    )


def largest_residuals(run: Trajectory) -> dict[str, float]:
    """The largest of each residual over all solves of a run."""
    model = Model(run.scene, run.options.friction_residual)
    proofs = [geometry_residual(model, solve) for solve in solves_of(run)]
    found = {
        **residuals(model, run.initial, run.solves),
        **{name: np.array([getattr(p, name) for p in proofs]) for name in ("contact", "normal", "overlap")},
    }
    return {name: float(np.max(found[name], initial=0.0)) for name in BOUNDS}


def certificate(runs: dict[str, Trajectory]) -> dict[str, np.ndarray]:
    """One row a run: its solves, the largest of each residual, and its deepest penetration."""
    largest = [largest_residuals(run) for run in runs.values()]
    return {
        "run": np.array(list(runs)),
        "solves": np.array([len(run.solves) for run in runs.values()]),
        **{name: np.array([r[name] for r in largest]) for name in BOUNDS},
    }


def certificate_checks(table: dict[str, np.ndarray]) -> list[Check]:
    """The largest of each residual over all runs, against its bound."""
    return [
        at_most(f"certificate, largest {name} residual", np.max(table[name]), bound, unit)
        for name, (unit, bound) in BOUNDS.items()
    ]
