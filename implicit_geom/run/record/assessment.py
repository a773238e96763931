"""The columns of `run.steps` that follow from the solves: residuals and energies, when they are asked for."""

from __future__ import annotations

import numpy as np

from implicit_geom.check.certificate import residuals
from implicit_geom.model.ledger import entries
from implicit_geom.model.model import Model, State
from implicit_geom.model.solve_arrays import ENTRIES, KNOWN, RESIDUALS, SolveArrays
from implicit_geom.run.record.solve_log import SolveLog
from implicit_geom.scene.switches import Stepper

BLOCK = 20_000  # bodies times solves that are computed at once: bounds the memory, not the result


def assess(
    model: Model,
    initial: State,
    solves: SolveArrays | SolveLog,
    steps: int,
    known: int = 0,
    stepper: Stepper | None = None,
    block: int = BLOCK,
) -> np.ndarray:
    """The assessed columns of all `steps` but the first `known`, rows of `KNOWN`.

    A residual is the largest over a step's solves, an energy the sum over them. A step without solves,
    one that failed, keeps its NaN. Residuals are those of the laws of `stepper`, exact ones without it.
    `block` bodies times solves are computed at once.
    """
    out = np.full(steps - known, np.nan, KNOWN)
    number = (
        solves.column("table", "step") if isinstance(solves, SolveLog) else solves.table["step"]
    ) - known
    first = int(np.searchsorted(number, 0))
    if first == len(solves):
        return out
    out[np.unique(number[first:])] = 0.0
    size = max(1, block // len(initial.x))
    for begin in range(first, len(solves), size):
        end = min(begin + size, len(solves))
        start = solves.end(begin - 1) if begin else initial
        part = solves.part(begin, end)
        found, booked = residuals(model, start, part, stepper), entries(model, start, part)
        for name in RESIDUALS:
            np.maximum.at(out[name], number[begin:end], found[name])
        for name in ENTRIES:
            np.add.at(out[f"{name}_energy"], number[begin:end], booked[name])
    return out
