"""Records of impacts and of stage 1 by rounds: contacts in the scene's order of bodies."""

from __future__ import annotations

import numpy as np

from implicit_geom.contact.impact import Impact
from implicit_geom.contact.position_rounds import PositionSolution
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import IMPACT, POSITION, ContactRecord, Solve


def jump(model: Model, state: State, impact: Impact, numbers: list[int]) -> Solve:
    """An impact as a solve of no length."""
    end = after(model, state, impact)
    records = impact_records(model, impact, numbers, IMPACT)
    half = np.column_stack([state.v, state.w])
    return Solve(state, end, 0.0, half, "impact", records, impact.iterations, "converged", impact.residual)


def after(model: Model, state: State, impact: Impact) -> State:
    """The state with the velocities after an impact."""
    v, w, dim = state.v.copy(), state.w.copy(), model.dim
    nu = impact.velocity.reshape(model.moving.size, -1)
    v[model.moving], w[model.moving] = nu[:, :dim], nu[:, dim:]
    return State(state.time, state.x, state.q, v, w)


def impact_records(model: Model, impact: Impact, numbers: list[int], stage: int) -> list[ContactRecord]:
    """The contacts of an impact, or of a velocity stage, in the scene's order of bodies."""
    out: list[ContactRecord] = []
    rows = impact.rows
    n, t = rows.axes_W[0], rows.axes_W[1]
    o = rows.axes_W[2] if model.dim == 3 else np.zeros_like(n)
    seen: dict[int, int] = {}
    for k, c in enumerate(numbers):
        p_f, slip = np.zeros(3), np.zeros(3)
        where = [0] if model.dim == 2 else [0, 1, 2][: rows.dim - 1]
        p_f[where], slip[where] = impact.impulse[k, 1:], impact.after[k, 1:]
        record = ContactRecord(
            c,
            rows.point[k],
            n[k],
            t[k],
            o[k],
            float(rows.gap[k]),
            float(impact.impulse[k, 0]),
            p_f,
            slip,
            stage,
        )
        record.feature = seen[c] = seen.get(c, -1) + 1
        if stage == IMPACT:
            record.impact, record.bounce = True, float(impact.bounce[k])
            record.approach = float(impact.before[k, 0])
            if impact.compression is not None:
                record.compression = np.zeros(4)
                record.compression[[0, *(1 + i for i in where)]] = impact.compression[k]
        out.append(record)
    return out


def position_records(model: Model, stage: PositionSolution, order: list[int]) -> list[ContactRecord]:
    """The contacts of stage 1 by rounds; `order` has the pairs' numbers."""
    out: list[ContactRecord] = []
    rows = stage.rows
    seen: dict[int, int] = {}
    for k, pair in enumerate(rows.pairs):
        c = next(c for c in order if model.pairs[c].pieces == pair.pieces)
        p_f, slip = np.zeros(3), np.zeros(3)
        where = [0] if model.dim == 2 else [0, 1, 2][: rows.dim - 1]
        p_f[where], slip[where] = stage.impulse[k, 1:], stage.slip[k]
        o = rows.axes_W[2][k] if model.dim == 3 else np.zeros(model.dim)
        p_n, gap = float(stage.impulse[k, 0]), float(stage.gap[k])
        axes = rows.axes_W[0][k], rows.axes_W[1][k], o
        record = ContactRecord(c, rows.point[k], *axes, gap, p_n, p_f, slip, POSITION)
        record.feature = seen[c] = seen.get(c, -1) + 1
        record.lagged = record.slid = bool(stage.lagged[k])
        record.end_point = stage.end_point[k]
        out.append(record)
    return out
