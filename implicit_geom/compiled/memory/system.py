"""The system of equations of a stage in the memory of compiled code: unknowns, rows, matrix, parameters."""

from __future__ import annotations

import numpy as np

from implicit_geom.compiled.functions.body import body_functions
from implicit_geom.compiled.memory.arrays import LaneArrays
from implicit_geom.compiled.memory.contacts import CandidateGroup
from implicit_geom.compiled.tables import GroupSlot, SystemSlot
from implicit_geom.machine.object_cache import LoadedCode
from implicit_geom.model.model import Model

Positions = tuple[np.ndarray, np.ndarray]  # of a group's inputs in z, of its rows in F, a line a contact each


def system_table(
    scheme: str,
    model: Model,
    groups: list[CandidateGroup],
    body: LoadedCode,
    arrays: LaneArrays,
    h: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """The table of `SystemSlot` of a scheme; its unknowns are laid out as in `contact.step_ncp`."""
    nv, nb = model.dim + model.spins, model.moving.size
    positions, N = _positions(scheme, model, groups)
    shift, tolerances = arrays.numbers(N), arrays.numbers(N)
    tolerances[:] = tolerance
    tables = np.zeros((max(len(groups), 1), len(GroupSlot)), np.int64)
    for g, (inputs, rows), table in zip(groups, positions, tables, strict=False):
        g.fill(table, scheme, inputs, rows, N)
        own = inputs[:, inputs.shape[1] - g.layout(scheme).size :]
        shift[own] = g.functions.shift(scheme)[None, :, None]
    stride = body_functions(model.dim).momentum.size
    sizes = [g.notes[f"linear_{scheme}"] for g in groups]
    entries = {
        SystemSlot.BODIES: nb,
        SystemSlot.SIZE: N,
        SystemSlot.GROUPS: len(groups),
        SystemSlot.GROUP_TABLES: arrays.integers(tables),
        SystemSlot.MOMENTUM: body.address(f"momentum_{scheme}"),
        SystemSlot.MOMENTUM_PARAMETERS: arrays.numbers(nb, stride),
        SystemSlot.MOMENTUM_STRIDE: stride,
        SystemSlot.PREPARE: body.address(f"prepare_{scheme}"),
        SystemSlot.Z: arrays.numbers(N),
        SystemSlot.F: arrays.numbers(N),
        SystemSlot.J: arrays.numbers(N, N),
        SystemSlot.DZ: arrays.numbers(N),
        SystemSlot.TRIAL: arrays.numbers(N),
        SystemSlot.SHIFT: shift,
        SystemSlot.TOLERANCE: tolerances,
        SystemSlot.INPUTS: arrays.numbers(max([nv, *(s["inputs"] for s in sizes)])),
        SystemSlot.ROWS: arrays.numbers(max([nv, *(s["rows"] for s in sizes)])),
        SystemSlot.ENTRIES: arrays.numbers(max([nv * nv, *(len(s["row"]) for s in sizes)])),
        SystemSlot.REPORT: arrays.numbers(3),
        SystemSlot.H: h,
        SystemSlot.MOMENTUM_ROWS: body.address(f"momentum_rows_{scheme}"),
        SystemSlot.PIVOTS: arrays.integers(np.zeros(N)),
        SystemSlot.SWAPS: arrays.numbers(N, N) if arrays.lanes > 1 else arrays.numbers(1),
    }
    return arrays.table(len(SystemSlot), entries)


def _positions(scheme: str, model: Model, groups: list[CandidateGroup]) -> tuple[list[Positions], int]:
    """Positions by group, and the number of unknowns: velocities of moving bodies first, then contacts."""
    nv = model.dim + model.spins
    slot = {int(b): i for i, b in enumerate(model.moving)}
    start = nv * model.moving.size
    positions = []
    for g in groups:
        size = g.layout(scheme).size
        gather, scatter = [], []
        for pair in g.pairs:
            own = np.arange(start, start + size)
            ends = zip((pair.first, pair.second), g.kind.moves, strict=True)
            bodies = [nv * slot[b] + np.arange(nv) for b, move in ends if move]
            gather.append(np.concatenate([*bodies, own]))
            scatter.append(np.concatenate([own, *bodies]))
            start += size
        positions.append((np.array(gather), np.array(scatter)))
    return positions, start
