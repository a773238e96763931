"""The energies of a run at each of its times, and where they went, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.model.solve_arrays import ENTRIES

ROWS = 1 << 16  # rows for which an energy is computed at once


def kinetic_energy(run: Any) -> np.ndarray:
    """Of all bodies, (T+1,) J."""
    total = np.zeros(len(run.time))
    for body in run.scene.bodies.values():
        if body.fixed:
            continue
        motion = run[body.name]
        for rows in _blocks(len(total)):
            v, w = motion.velocity[rows], motion.angular_velocity[rows]
            if run.scene.dim == 3:
                w = np.einsum("tji,tj->ti", rotation.matrix(motion.orientation[rows]), w)  # body axes
            else:
                w = w[:, None]
            total[rows] += (
                body.mass / 2 * np.einsum("ti,ti->t", v, v) + np.einsum("ti,ij,tj->t", w, body.inertia, w) / 2
            )
    return total


def potential_energy(run: Any) -> np.ndarray:
    """-m g . x summed over the bodies, (T+1,) J."""
    total = np.zeros(len(run.time))
    for body in run.scene.bodies.values():
        if not body.fixed:
            total -= body.mass * run[body.name].position @ run.scene.gravity
    return total


def ledger(run: Any) -> np.ndarray:
    """The rows of `run.ledger`, of a run whose steps are assessed."""
    names = ("kinetic", "potential", *ENTRIES)
    rows = np.zeros(len(run.time) - 1, np.dtype([("time", "f8"), *[(name, "f8") for name in names]]))
    rows["time"] = run.time[1:]
    rows["kinetic"], rows["potential"] = run.kinetic_energy[1:], run.potential_energy[1:]
    for name in ENTRIES:
        rows[name] = run.taken[f"{name}_energy"][: len(rows)]
    return rows


def _blocks(rows: int) -> Iterator[slice]:
    """Rows in pieces: bounds the memory that is needed on the way."""
    return (slice(first, first + ROWS) for first in range(0, rows, ROWS))
