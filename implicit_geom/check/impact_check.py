"""The laws of impacts, recomputed for the certificate: compression, decompression, restitution.

With u = n . (relative velocity) of each contact, before (-), after the compression (c) and after (+), the
impulses p of the impact and c of its compression, and the restitution e that the scene asks for:

    newton      bounce = e min(0, u_-)    (complementarity is checked beside that of other contacts)
    poisson     0 <= p_n - c_n - e c_n  _|_  u_+ >= 0
    energetic   the same with one k in place of e, and the normal work of the decompression is
                s^2 sum e^2 (that of the compression)

s, of the energetic law alone, is one factor for all contacts of an impact, and less than 1 only where the
impact loses nothing: it never gains energy. Velocities before come from the motion, not from what a record
says.

Where less than SLOW of what loads add to the speeds in a step is asked for, e may be zero; so may it
after the first `max_impacts` of a step, and after a part in the end-of-step form. A contact that was open
and is closed within a solve that is no impact keeps to Newton's law with a velocity u on the way: at its
start, at its end without the contact, or in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.check.friction_check import FrictionParameters, velocities_at
from implicit_geom.check.geometry_check import Poses
from implicit_geom.check.motion_arrays import (
    AFTER,
    BEFORE,
    END,
    START,
    MotionArrays,
    apply,
    cross,
    dot,
    transposed,
)
from implicit_geom.model.records import EULER, IMPACT, VELOCITY

SLOW = 2e-3  # of what loads add to the speeds in a step: separation below this that need not be
OPEN = 1e-9  # over the smaller body's size: a gap above this is open
COMPRESSION = {f"p_{axis}": f"c_{axis}" for axis in "ntor"}


def two_phases(motion: MotionArrays, c: np.ndarray) -> np.ndarray:
    """(C,) contacts of impacts in a compression and a decompression."""
    struck = c["stage"] == IMPACT
    phases = np.zeros(len(motion.h), bool)
    some = np.any([c[name] != 0 for name in COMPRESSION.values()], axis=0)
    np.logical_or.at(phases, c["solve"], struck & some)
    return np.asarray(struck & phases[c["solve"]])


def compressed(c: np.ndarray) -> np.ndarray:
    """Contacts with the impulses of the compression alone."""
    out = c.copy()
    for whole, part in COMPRESSION.items():
        out[whole] = c[part]
    return out


def decompressed(c: np.ndarray) -> np.ndarray:
    """Contacts with the impulses of the decompression alone."""
    out = c.copy()
    for whole, part in COMPRESSION.items():
        out[whole] = c[whole] - c[part]
    return out


def after_impulses(motion: MotionArrays, c: np.ndarray) -> np.ndarray:
    """(S, B, dim + spins) velocities BEFORE, and what the impulses of contacts at the END add to them."""
    model = motion.model
    dim, m = model.dim, model.moving
    force = c["p_n"][:, None] * c["normal"] + c["p_t"][:, None] * c["tangent"]
    if dim == 3:
        force = force + c["p_o"][:, None] * c["binormal"]
    impulse = np.zeros_like(motion.nu[BEFORE])
    for sign, body in ((-1.0, c["first"]), (1.0, c["second"])):
        moment = cross(c["point"] - motion.x[END, c["solve"], body], force)
        if dim == 3:
            moment = moment + c["p_r"][:, None] * c["normal"]
        np.add.at(impulse, (c["solve"], body), sign * np.concatenate([force, moment], axis=1))
    out = motion.nu[BEFORE].copy()
    out[:, m, :dim] += impulse[:, m, :dim] / model.mass[m, None]
    R = motion.R[END][:, m] if dim == 3 else np.ones((1, 1, 1, 1))
    turned = apply(transposed(R), impulse[:, m, dim:])
    out[:, m, dim:] += apply(R, np.linalg.solve(model.inertia[m], turned[..., None])[..., 0])
    return out


@dataclass(frozen=True)
class Asked:
    """What a run's options ask of impacts.

    law           newton, poisson or energetic
    max_impacts   in a step
    step          (S,) number of the step of each solve
    length        (S,) its length, s
    """

    law: str
    max_impacts: int
    step: np.ndarray
    length: np.ndarray


def restitution_residual(motion: MotionArrays, c: np.ndarray, asked: Asked) -> np.ndarray:
    """(S,) m/s: distance from the law of restitution, largest over the contacts of each solve."""
    out = np.zeros(len(motion.h))
    if not len(c):
        return out
    spent = _spent(motion, asked)
    pulled = _pulled(motion)
    slow = (
        SLOW * asked.length[c["solve"]] * (pulled[c["solve"], c["first"]] + pulled[c["solve"], c["second"]])
    )
    e = _restitution(motion, c)
    struck = c["stage"] == IMPACT
    if np.any(struck):
        rows = c[struck]
        found = _impacts(motion, rows, e[struck], slow[struck], asked.law)
        none = _impacts(motion, rows, np.zeros(len(rows)), slow[struck], asked.law)
        out = np.where(spent, np.minimum(found, none), found)
    late = np.isin(c["stage"], (EULER, VELOCITY)) & ((e > 0) | (c["bounce"] != 0)) & ~spent[c["solve"]]
    if np.any(late):
        rows = c[late]
        np.maximum.at(out, rows["solve"], _closing(motion, rows, e[late], slow[late], pulled))
    return out


def _impacts(motion: MotionArrays, c: np.ndarray, e: np.ndarray, slow: np.ndarray, law: str) -> np.ndarray:
    """(S,) m/s: of impacts."""
    count, at = len(motion.h), c["solve"]
    before, after = (velocities_at(motion, c, END, motion.nu[k]) for k in (BEFORE, AFTER))
    u0, u1 = dot(c["normal"], before[0]), dot(c["normal"], after[0])
    e = np.where(-e * u0 > slow, e, 0.0)
    pushed = np.bincount(at, np.maximum(c["p_n"], 0.0), count)
    work = np.sum(_impulses(c) * (before[1] + after[1]), axis=1) / 2
    spare = np.maximum(-np.bincount(at, work, count), 0.0) / np.where(pushed > 0, pushed, 1.0)  # m/s
    out = np.zeros(count)
    if law == "newton":
        np.maximum.at(out, at, np.abs(c["bounce"] - e * np.minimum(u0, 0.0)))
        lacking = np.zeros(count)
    else:
        lacking = _phases(motion, c, e, (u0, u1), law, out)
    np.maximum.at(out, at, np.abs(c["approach"] - u0))
    return np.maximum(out, np.where(lacking > 0, np.minimum(lacking, spare), -lacking))


def _phases(
    motion: MotionArrays,
    c: np.ndarray,
    e: np.ndarray,
    u: tuple[np.ndarray, np.ndarray],
    law: str,
    out: np.ndarray,
) -> np.ndarray:
    """(S,) m/s by which the restitution falls short of its law; `out` gets what holds in any case."""
    count, at, m_c = len(out), c["solve"], FrictionParameters.of(motion.model, c).m_c
    # (an impact without a record of its compression has no decompression)
    early, phases = c.copy(), two_phases(motion, c)
    for whole, part in COMPRESSION.items():
        early[whole] = np.where(phases, c[part], c[whole])
    first, second = early["p_n"], c["p_n"] - early["p_n"]
    middle = dot(c["normal"], velocities_at(motion, c, END, after_impulses(motion, early))[0])
    k = e if law == "poisson" else (e > 0).astype(float)
    parting = (u[1] > 1e-9 * np.max(np.abs(u[0]), initial=0.0)) & (k > 0)
    got, wanted = (np.bincount(at, np.where(parting, values, 0.0), count) for values in (second, k * first))
    s = _ratio(got, wanted)
    s = np.ones(count) if law == "poisson" else s
    more = (second - s[at] * k * first) / m_c
    np.maximum.at(out, at, np.maximum(np.abs(np.minimum(more, u[1])), -more))
    if law == "poisson":
        return np.zeros(count)
    taken = np.bincount(at, -(e**2) * first * (u[0] + middle) / 2, count)
    given = np.bincount(at, second * (middle + u[1]) / 2, count)
    pushed = np.bincount(at, np.maximum(c["p_n"], 0.0), count)
    return np.asarray((taken - given) / np.where(pushed > 0, pushed, 1.0))


def _closing(
    motion: MotionArrays, c: np.ndarray, e: np.ndarray, slow: np.ndarray, pulled: np.ndarray
) -> np.ndarray:
    """(C,) m/s: of contacts that were open and are closed at the end of a solve that is no impact."""
    model, at = motion.model, c["solve"]
    open_ = np.zeros(len(c), bool)
    poses = Poses(model, motion.x[START], motion.R[START])
    for pair in np.unique(c["pair"]).tolist():
        rows = np.flatnonzero(c["pair"] == pair)
        open_[rows] = poses.gaps(pair, at[rows], c["normal"][rows]) > OPEN * poses.size(pair)
    u = dot(c["normal"], velocities_at(motion, c, END, motion.nu[BEFORE])[0])
    # what loads and turning may change on the way; twice that, since Euler's velocities lag by half a step
    change = np.zeros(len(c))
    for side in ("first", "second"):
        lever = np.linalg.norm(c["point"] - motion.x[END, at, c[side]], axis=1)
        spin = np.linalg.norm(motion.nu[BEFORE, at, c[side], model.dim :], axis=1)
        change += 2 * np.abs(motion.h[at]) * (pulled[at, c[side]] + np.where(spin > 0, lever * spin**2, 0.0))
    low, high = np.minimum(e * u - change, 0.0), np.minimum(e * u + change, 0.0)
    # the bounce of a pair is that of its velocity stage, if there is one
    _, group = np.unique(at * (int(c["pair"].max()) + 1) + c["pair"], return_inverse=True)
    least = np.zeros(int(group.max()) + 1)
    np.minimum.at(least, group, c["bounce"])
    missed = np.where(open_ & (-high > slow), least[group] - high, 0.0)
    return np.maximum(np.maximum(missed, low - c["bounce"]), 0.0)


def _ratio(got: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """got / wanted, 1 where nothing is wanted."""
    return np.divide(got, wanted, out=np.ones(len(got)), where=wanted != 0)


def _impulses(c: np.ndarray) -> np.ndarray:
    return np.stack([c[name] for name in COMPRESSION], axis=1)


def _restitution(motion: MotionArrays, c: np.ndarray) -> np.ndarray:
    """(C,) what the scene asks for."""
    numbers, row = np.unique(c["pair"], return_inverse=True)
    return np.array([motion.model.pairs[i].law.restitution for i in numbers.tolist()])[row]


def _pulled(motion: MotionArrays) -> np.ndarray:
    """(S, B) m/s^2 by loads."""
    loads = motion.model.loads_at(motion.time)[..., : motion.model.dim]
    return np.asarray(np.linalg.norm(loads, axis=-1) / motion.model.mass)


def _spent(motion: MotionArrays, asked: Asked) -> np.ndarray:
    """(S,) whether a body of the solve may no longer bounce.

    After `max_impacts` impacts in the step before it, or a part in the end-of-step form.
    """
    counts = np.zeros(motion.moved.shape[1], int)
    out = np.zeros(len(motion.h), bool)
    for k in np.flatnonzero(_many(asked, motion)):
        if k == 0 or asked.step[k] != asked.step[k - 1]:
            counts[:] = 0
        out[k] = np.any(counts[motion.moved[k]] >= asked.max_impacts)
        counts[motion.moved[k]] += asked.max_impacts if motion.form[k] == "euler" else motion.impact[k]
    return out


def _many(asked: Asked, motion: MotionArrays) -> np.ndarray:
    """(S,) solves of steps with `max_impacts` impacts or more, or with a part in the end-of-step form."""
    _, row = np.unique(asked.step, return_inverse=True)
    many = np.bincount(row, motion.impact) >= asked.max_impacts
    return np.asarray((many | (np.bincount(row, motion.form == "euler") > 0))[row])
