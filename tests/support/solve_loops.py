"""Residuals and ledger of one solve as plain loops over bodies and contacts: what the array forms must equal.

Matrix exponentials for rotations and their tangents; nothing is shared with `check.certificate` and
`implicit_geom.model.ledger`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from implicit_geom.model.model import Model, State
from implicit_geom.model.records import EULER, IMPACT, POSITION, VELOCITY, ContactRecord, Solve
from implicit_geom.model.solve_arrays import SolveArrays


def each_solve(initial: State, solves: SolveArrays) -> Iterator[Solve]:
    """The rows of `solves` as the steppers return them."""
    start = initial
    for i, row in enumerate(solves.table):
        start, end = start.at_time(float(row["time"])), solves.end(i)
        records = [_record(c) for c in solves.contacts if c["solve"] == i]
        yield Solve(
            start,
            end,
            float(row["h"]),
            solves.half[i],
            str(row["form"]),
            records,
            1,
            "converged",
            0.0,
            bodies=solves.bodies[i],
        )
        start = end


def _record(c: np.void) -> ContactRecord:
    frame = [c[name].copy() for name in ("point", "normal", "tangent", "binormal")]
    p_f, slip = (np.array([c[f"{k}_{axis}"] for axis in "tor"]) for k in "pv")
    record = ContactRecord(
        int(c["pair"]), *frame, float(c["gap"]), float(c["p_n"]), p_f, slip, int(c["stage"])
    )
    record.impact, record.lagged, record.slid = (bool(c[k]) for k in ("impact", "lagged", "slid"))
    record.bounce, record.end_point = float(c["bounce"]), c["end_point"].copy()
    record.approach, record.feature = float(c["approach"]), int(c["feature"])
    record.compression = np.array([c[f"c_{axis}"] for axis in "ntor"])
    return record


def loop_residuals(model: Model, solve: Solve) -> dict[str, float]:
    """The four residuals of `implicit_geom.check.certificate`."""
    solve = replace(solve, half=np.where(solve.bodies[:, None], solve.half, _nu(solve.end)))  # (others stay)
    found = {name: [0.0] for name in ("gap", "complementarity", "friction")}
    for c in solve.contacts:
        m_c = (-1 if solve.h < 0 else 1) / sum(1 / model.mass[b] for b in _bodies(model, c))
        distance = c.gap / abs(solve.h or 1.0)
        if _short(c):
            distance = c.normal @ _relative(model, solve.start, solve.half, c)
        elif c.stage in (VELOCITY, IMPACT):
            distance = c.normal @ _relative(model, solve.end, _nu(solve.end), c) + c.bounce
        found["gap"].append(abs(c.gap))
        found["complementarity"] += [abs(min(c.p_n / m_c, distance)), -c.p_n / m_c]
        found["friction"].append(_friction(model, solve, c, m_c))
    return {"dynamics": _dynamics(model, solve), **{name: max(values) for name, values in found.items()}}


def loop_ledger(model: Model, solve: Solve) -> dict[str, float]:
    """The entries of `implicit_geom.model.ledger`."""
    work = friction = impact = 0.0
    losses: dict[int, np.ndarray] = {}
    sense = -1.0 if solve.h < 0 else 1.0
    pulled = np.zeros_like(solve.start.x)
    for pose, before, after, stage, time, share in _kicks(model, solve):
        mean = (before + after) / 2
        for b in model.moving[solve.bodies[model.moving]]:
            force, torque = model.scene.load(model.names[b], time)
            work += share * (force @ mean[b, : model.dim] + torque @ mean[b, model.dim :])
        pulled += share * mean[:, : model.dim]
        for c in (c for c in solve.contacts if c.stage == stage):
            relative, first, second = _relative(model, pose, mean, c), *_bodies(model, c)
            normal, tangential = c.p_n * (c.normal @ relative), c.p_f[0] * (c.tangent @ relative)
            if model.dim == 3:
                spin = c.normal @ (mean[second, 3:] - mean[first, 3:])
                tangential += c.p_f[1] * (c.binormal @ relative) + c.p_f[2] * spin
            if c.impact or c.stage == IMPACT:
                impact -= normal + tangential
                continue
            slides = np.linalg.norm(c.slip) > 1e-9 * max(1.0, np.abs(mean).max())
            law = max(-sense * np.dot(c.p_f, c.slip), 0.0) * slides
            mean_loss = -sense * tangential * (slides or c.slid)
            losses[c.pair] = losses.get(c.pair, np.zeros(2)) + (mean_loss, law)
    friction += sense * sum(loss if loss >= 0 else law for loss, law in losses.values())
    for b in {b for c in solve.contacts if c.impact and solve.h for b in _bodies(model, c)} & set(
        model.moving.tolist()
    ):
        way = solve.end.x[b] - solve.start.x[b]
        impact -= model.mass[b] * (model.scene.gravity @ (pulled[b] - way))
    change = _energy(model, solve.end) - _energy(model, solve.start)
    entry = {"change": change, "work": work, "friction": friction, "impact": impact}
    return {**entry, "remainder": change - work + friction + impact}


def _kicks(model: Model, solve: Solve) -> list[tuple[Any, ...]]:
    """Pose, velocities before and after, stage, time and share of the step of every kick."""
    start, end, h, half = solve.start, solve.end, solve.h, solve.half
    if solve.form == "impact":
        return [(end, _nu(start), _nu(end), IMPACT, start.time, 0.0)]
    if solve.form == "euler":
        first = (end, _nu(start), half, EULER, start.time, h)
        return [first, (end, half, _nu(end), VELOCITY, start.time, 0.0)]
    left, right = half.copy(), half.copy()
    for b in model.moving if model.dim == 3 else ():
        J_0, J_1 = (R(s, b) @ model.inertia[b] @ R(s, b).T for s in (start, end))
        left[b, 3:] = np.linalg.solve(J_0, _tangent_inverse(h * half[b, 3:]).T @ J_0 @ half[b, 3:])
        right[b, 3:] = np.linalg.solve(J_1, _tangent_inverse(-h * half[b, 3:]).T @ J_1 @ half[b, 3:])
    return [
        (start, _nu(start), left, POSITION, start.time, h / 2),
        (end, right, _nu(end), VELOCITY, start.time + h, h / 2),
    ]


def _energy(model: Model, state: State) -> float:
    total = 0.0
    for b in model.moving:
        w = R(state, b).T @ state.w[b] if model.dim == 3 else state.w[b]
        total += model.mass[b] * (state.v[b] @ state.v[b] / 2 - model.scene.gravity @ state.x[b])
        total += w @ model.inertia[b] @ w / 2
    return float(total)


def _dynamics(model: Model, solve: Solve) -> float:
    start, end, h, dim, half = solve.start, solve.end, solve.h, model.dim, solve.half
    before, after = _nu(start), _nu(end)
    if solve.form == "impact":
        first, second, half = _impulse(model, end, solve, IMPACT), np.zeros_like(half), after
    elif solve.form == "euler":
        first = _impulse(model, end, solve, EULER) + h * model.loads(start.time)
        second = _impulse(model, end, solve, VELOCITY)
    else:
        first = _impulse(model, start, solve, POSITION) + h / 2 * model.loads(start.time)
        second = _impulse(model, end, solve, VELOCITY) + h / 2 * model.loads(start.time + h)
    rows = [np.zeros(1)]
    for b in model.moving[~solve.bodies[model.moving]]:
        if any(not np.array_equal(getattr(start, part)[b], getattr(end, part)[b]) for part in "xqvw"):
            return float("inf")
    for b in model.moving[solve.bodies[model.moving]]:
        m, J = model.mass[b], model.inertia[b]
        rows += [half[b, :dim] - before[b, :dim] - first[b, :dim] / m]
        rows += [after[b, :dim] - half[b, :dim] - second[b, :dim] / m]
        w = half[b, dim:]
        R_0, R_1 = (R(s, b) if dim == 3 else np.eye(1) for s in (start, end))
        J_0, J_1 = R_0 @ J @ R_0.T, R_1 @ J @ R_1.T
        left = right = J_1 @ w
        if solve.form == "rattle" and dim == 3:
            left, right = _tangent_inverse(h * w).T @ J_0 @ w, _tangent_inverse(-h * w).T @ J_1 @ w
        values, axes = np.linalg.eigh(J)
        for turned, change in (
            (R_0, left - J_0 @ before[b, dim:] - first[b, dim:]),
            (R_1, J_1 @ after[b, dim:] - right - second[b, dim:]),
        ):
            rows.append(axes.T @ turned.T @ change / np.sqrt(m * values))
        if not h:
            stays = np.array_equal(end.x[b], start.x[b]) and np.array_equal(end.q[b], start.q[b])
            rows.append(np.array([0.0 if stays else np.inf]))
            continue
        rows.append((end.x[b] - start.x[b]) / h - half[b, :dim])
        miss = R(end, b) - expm(h * _skew(w)) @ R(start, b)
        rows.append(miss.ravel() * np.sqrt(np.max(np.diag(J)) / m) / h)
    return float(max(np.max(np.abs(row)) for row in rows))


def _impulse(model: Model, pose: State, solve: Solve, stage: int) -> np.ndarray:
    dim = model.dim
    impulse = np.zeros((len(model.bodies), dim + model.spins))
    for c in (c for c in solve.contacts if c.stage == stage):
        force = c.p_n * c.normal + c.p_f[0] * c.tangent + (c.p_f[1] * c.binormal if dim == 3 else 0.0)
        for sign, b in zip((-1.0, 1.0), _bodies(model, c)):
            r = c.point - pose.x[b]
            moment = (
                np.cross(r, force) + c.p_f[2] * c.normal if dim == 3 else [r[0] * force[1] - r[1] * force[0]]
            )
            impulse[b] += sign * np.concatenate([force, moment])
    return impulse


def _friction(model: Model, solve: Solve, c: ContactRecord, m_c: float) -> float:
    law = model.pairs[c.pair].law
    e = np.array([law.e_t, law.e_o, law.e_r]) if model.dim == 3 else np.array([law.e_t, 0.0, 0.0])
    kept = (e > 0) & (law.mu > 0)
    s, w = c.p_f[kept] / (e[kept] * m_c), e[kept] * _law_slip(model, solve, c)[kept]
    y, radius = s - w, law.mu * max(c.p_n / m_c, 0.0)
    norm = float(np.linalg.norm(y))
    projected = y if norm <= radius else radius / norm * y
    return float(max(np.linalg.norm(s - projected), np.abs(c.p_f[~kept]).max(initial=0.0) / abs(m_c)))


def _law_slip(model: Model, solve: Solve, c: ContactRecord) -> np.ndarray:
    if c.stage in (VELOCITY, IMPACT):
        return _slip(model, solve.end, _nu(solve.end), c)
    if c.stage == EULER:
        return _slip(model, solve.end, solve.half, c)
    if c.lagged:
        return _slip(model, solve.start, _nu(solve.start), c)
    if _short(c):
        return _slip(model, solve.start, solve.half, c)
    last = next(k for k in solve.contacts if k.stage == VELOCITY and k.pair == c.pair)
    arrived = replace(last, point=c.end_point)
    if model.dim == 3:
        arrived.tangent, arrived.binormal = _carried(model, solve, c, last.normal)
    return (_slip(model, solve.start, solve.half, c) + _slip(model, solve.end, solve.half, arrived)) / 2


def _short(c: ContactRecord) -> bool:
    """Of a part of a step that only leads to an impact: its law took the gap at the start."""
    return c.stage == POSITION and c.gap_normal is not None and bool(np.any(c.gap_normal))


def _carried(model: Model, solve: Solve, c: ContactRecord, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    law = model.pairs[c.pair].law
    if law.e_t == law.e_o or law.mu == 0:
        axis = np.cross(c.normal, n)
        sine = np.linalg.norm(axis)
        turn = expm(np.arctan2(sine, c.normal @ n) * _skew(axis / sine)) if sine > 0 else np.eye(3)
        return turn @ c.tangent, turn @ c.binormal
    reference = np.array(law.direction)
    if law.frame is not None:
        reference = R(solve.end, model.names.index(law.frame)) @ reference
    across = reference - (reference @ n) * n
    t = across / np.linalg.norm(across)
    return t, np.cross(n, t)


def _slip(model: Model, pose: State, nu: np.ndarray, c: ContactRecord) -> np.ndarray:
    relative, (first, second) = _relative(model, pose, nu, c), _bodies(model, c)
    if model.dim == 2:
        return np.array([c.tangent @ relative, 0.0, 0.0])
    spin = c.normal @ (nu[second, 3:] - nu[first, 3:])
    return np.array([c.tangent @ relative, c.binormal @ relative, spin])


def _relative(model: Model, pose: State, nu: np.ndarray, c: ContactRecord) -> np.ndarray:
    """Velocity of the second body's point relative to the first's."""
    dim = model.dim
    one, two = (nu[b, :dim] + _skew(nu[b, dim:]) @ (c.point - pose.x[b]) for b in _bodies(model, c))
    return two - one


def _bodies(model: Model, c: ContactRecord) -> tuple[int, int]:
    """In the order of the scene."""
    p = model.pairs[c.pair]
    return (p.second, p.first) if p.swapped else (p.first, p.second)


def _nu(state: State) -> np.ndarray:
    return np.column_stack([state.v, state.w])


def R(state: State, b: int) -> np.ndarray:
    if state.x.shape[1] == 2:
        c, s = np.cos(state.q[b]), np.sin(state.q[b])
        return np.array([[c, -s], [s, c]])
    w, x, y, z = state.q[b]
    return np.asarray(Rotation.from_quat([x, y, z, w]).as_matrix())


def _skew(w: np.ndarray) -> np.ndarray:
    if w.size == 1:
        return np.array([[0.0, -w[0]], [w[0], 0.0]])
    x, y, z = w.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _tangent_inverse(theta: np.ndarray) -> np.ndarray:
    """The inverse of the integral of exp(s [theta]x) over 0 <= s <= 1, read off a block exponential."""
    block = np.zeros((6, 6))
    block[:3, :3], block[:3, 3:] = _skew(theta), np.eye(3)
    return np.linalg.inv(expm(block)[:3, 3:])
