"""The friction law of every closed contact, recomputed for the certificate: slip, frame and projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.check.motion_arrays import (
    AFTER,
    BEFORE,
    DURING,
    END,
    START,
    MotionArrays,
    apply,
    cross,
    dot,
    exponential,
    rotational_velocity,
)
from implicit_geom.model.model import Model
from implicit_geom.model.records import EULER, IMPACT, LAGGED, POSITION, VELOCITY


@dataclass(frozen=True)
class FrictionParameters:
    """The friction law of each contact's pair, (C,) or (C, 3)."""

    m_c: np.ndarray
    mu: np.ndarray
    e: np.ndarray  # e_t, e_o, e_r; zero where there is no friction
    given: np.ndarray  # (C,) whether `direction` gives t, otherwise t is carried along
    direction: np.ndarray  # (C, dim)
    frame: np.ndarray  # (C,) the body to whose axes that is attached, -1 for the world

    @staticmethod
    def of(model: Model, c: np.ndarray) -> FrictionParameters:
        numbers, row = np.unique(c["pair"], return_inverse=True)
        pairs = [model.pairs[i] for i in numbers]
        laws = [p.law for p in pairs]
        mass = np.array([(model.mass[p.first], model.mass[p.second]) for p in pairs])
        e = np.array([(law.e_t, law.e_o, law.e_r) for law in laws])
        mu = np.array([law.mu for law in laws])
        e[:, model.dim - 1 :] *= model.dim == 3
        given = np.array([model.dim == 3 and law.mu > 0 and law.e_t != law.e_o for law in laws])
        direction = np.array([law.direction or (0.0,) * model.dim for law in laws])
        frame = np.array([-1 if law.frame is None else model.names.index(law.frame) for law in laws])
        every = (1 / np.sum(1 / mass, axis=1), mu, e * (mu > 0)[:, None], given, direction, frame)
        return FrictionParameters(*(values[row] for values in every))


def slips(motion: MotionArrays, c: np.ndarray, laws: FrictionParameters) -> tuple[np.ndarray, np.ndarray]:
    """Relative velocity (C, dim) and slip (C, 3) that each contact's stage names.

    Velocity stage and impacts: at the end. Euler: the velocities that moved the bodies, at the end, or at
    the start for a LAGGED contact. Stage 1 of RATTLE: at the start where friction lags, otherwise the mean
    of the stage's slips at its start and at its end (NaN where no record of the velocity stage tells the
    normal there); that at its start in a short part, see `short_parts`.
    """
    stage = c["stage"]
    own = (stage == POSITION) & ~c["lagged"]
    mean = own & ~short_parts(c)
    moved = (stage == EULER) | (stage == LAGGED) | own
    at_end = (stage == VELOCITY) | (stage == IMPACT)
    velocity = np.where(at_end, AFTER, np.where(moved, DURING, BEFORE))
    pose = np.where((stage == POSITION) | (stage == LAGGED), START, END)
    frame = (c["normal"], c["tangent"], c["binormal"])
    relative, slip = _slip(motion, c, c["point"], frame, pose, velocity)
    if np.any(mean):
        rows = c[mean]
        last, found = _stage_two(rows, c)
        arrived = _arrived_frame(motion, rows, last, laws, mean)
        _, late = _slip(motion, rows, rows["end_point"], arrived, END, DURING)
        slip[mean] = np.where(found[:, None], (slip[mean] + late) / 2, np.nan)
    return relative, slip


def short_parts(c: np.ndarray) -> np.ndarray:
    """(C,) contacts of stage 1 whose law took the gap at the start: those of a part that leads to an impact.

    It is so short that gaps follow from velocities: its laws are those of velocities, at its start.
    """
    at_start = np.sum(np.nan_to_num(c["gap_normal"]) ** 2, axis=1) > 0
    return np.asarray((c["stage"] == POSITION) & at_start)


def _slip(
    motion: MotionArrays,
    c: np.ndarray,
    point: np.ndarray,
    frame: tuple[np.ndarray, ...],
    pose: Any,
    velocity: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Velocity of the second body's point relative to the first's (C, dim), and (v_t, v_o, v_r) (C, 3)."""
    dim, at = motion.model.dim, c["solve"]
    n, t, o = frame
    nu = [motion.nu[velocity, at, c[side]] for side in ("first", "second")]
    r = [point - motion.x[pose, at, c[side]] for side in ("first", "second")]
    one, two = (u[:, :dim] + rotational_velocity(u[:, dim:], lever) for u, lever in zip(nu, r, strict=True))
    relative = two - one
    if dim == 2:
        nothing = np.zeros(len(c))
        return relative, np.stack([dot(t, relative), nothing, nothing], axis=1)
    spin = dot(n, nu[1][:, dim:] - nu[0][:, dim:])
    return relative, np.stack([dot(t, relative), dot(o, relative), spin], axis=1)


def velocities_at(
    motion: MotionArrays, c: np.ndarray, pose: int, nu: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Relative velocity (C, dim) and (u_n, v_t, v_o, v_r) (C, 4) of contacts, for velocities (S, B, ...)."""
    dim, at = motion.model.dim, c["solve"]
    own = [nu[at, c[side]] for side in ("first", "second")]
    r = [c["point"] - motion.x[pose, at, c[side]] for side in ("first", "second")]
    one, two = (u[:, :dim] + rotational_velocity(u[:, dim:], lever) for u, lever in zip(own, r, strict=True))
    relative = two - one
    spin = dot(c["normal"], own[1][:, dim:] - own[0][:, dim:]) if dim == 3 else np.zeros(len(c))
    axes = (c["normal"], c["tangent"], c["binormal"])
    return relative, np.stack([*(dot(axis, relative) for axis in axes), spin], axis=1)


def _stage_two(rows: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The velocity stage's record of the same solve and pair, and whether there is one."""
    last = c[c["stage"] == VELOCITY]
    if not len(last):
        return rows, np.zeros(len(rows), bool)
    count = int(c["pair"].max()) + 1
    keys, wanted = (a["solve"] * count + a["pair"] for a in (last, rows))
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    match = order[place]
    return last[match], keys[match] == wanted


def _arrived_frame(
    motion: MotionArrays, rows: np.ndarray, last: np.ndarray, laws: FrictionParameters, mean: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal and tangents of stage 1 at the end: turned with the normal, or as `direction` says."""
    n = last["normal"]
    if motion.model.dim == 2:
        return n, last["tangent"], last["binormal"]
    axis = cross(rows["normal"], n)
    sine = np.linalg.norm(axis, axis=1)
    angle = np.arctan2(sine, dot(rows["normal"], n))
    turn = exponential(axis * (angle / np.where(sine > 0, sine, 1.0))[:, None])
    t, o = apply(turn, rows["tangent"]), apply(turn, rows["binormal"])
    given = laws.given[mean]
    if np.any(given):
        reference, frame = laws.direction[mean], laws.frame[mean]
        attached = apply(motion.R[END, rows["solve"], frame], reference)
        reference = np.where((frame >= 0)[:, None], attached, reference)
        across = (reference - dot(reference, n)[:, None] * n)[given]
        t[given] = across / np.linalg.norm(across, axis=1)[:, None]
        o[given] = cross(n[given], t[given])
    return n, t, o


def friction_residual(
    c: np.ndarray, laws: FrictionParameters, m_c: np.ndarray, slip: np.ndarray
) -> np.ndarray:
    """(C,) m/s: |s - Proj(s - w)| [C07, eq. 5], and any impulse over m_c in a component without friction.

    Infinite where the slip is not known.
    """
    known = np.all(np.isfinite(slip), axis=1)
    p_f = np.stack([c["p_t"], c["p_o"], c["p_r"]], axis=1)
    kept = laws.e > 0
    s = np.where(kept, p_f, 0.0) / (np.where(kept, laws.e, 1.0) * m_c[:, None])
    y = s - np.where(kept, laws.e * np.where(known[:, None], slip, 0.0), 0.0)
    radius, norm = laws.mu * np.maximum(c["p_n"] / m_c, 0.0), np.linalg.norm(y, axis=1)
    inside = norm <= radius
    projected = y * np.where(inside, 1.0, radius / np.where(inside, 1.0, norm))[:, None]
    lost = np.max(np.where(kept, 0.0, np.abs(p_f)), axis=1) / np.abs(m_c)
    return np.where(known, np.maximum(np.linalg.norm(s - projected, axis=1), lost), np.inf)
