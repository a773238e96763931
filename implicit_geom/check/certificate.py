"""Independent check of solved steps: the NCP [C07, eqs. 3 to 5] recomputed with NumPy and SciPy.

Nothing here is used by the solver, and nothing of the solver's is used here. From the states at the start
and the end, the velocities that moved the bodies and the table of contacts of every solve it recomputes,
stage by stage,

    dynamics          m/s   momentum balance, linear rows over m, angular rows over sqrt(m J), and the
                            pose that follows from the velocities
    gap               m     largest penetration, or distance left between bodies that press
    complementarity   m/s   min(p_n / m_c, gap / h), and any negative p_n / m_c; in a velocity stage
                            and in an impact min(p_n / m_c, normal velocity + bounce)
    friction          m/s   |s - Proj(s - w)| for the friction ellipsoid, w the slip its stage names; in an
                            impact s is of the whole impulse and w the slip after, where the law has phases
                            each has its own

with 1/m_c = 1/m_1 + 1/m_2. A classical stepper is held to its own laws: its gap and its pyramid
(`classical_laws`), its wrenches where it takes them.

All solves of a run are checked at once, as arrays; each row depends on its own
solve alone, to the last bit. `geometry_residual` goes further: it proves each closed contact from the
shapes, and asks `distance()` for every other pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.check.classical_laws import law_gap, pyramid_residual, relaxation_separation
from implicit_geom.check.friction_check import (
    FrictionParameters,
    friction_residual,
    short_parts,
    slips,
    velocities_at,
)
from implicit_geom.check.geometry_proof import geometry_residual as geometry_residual
from implicit_geom.check.impact_check import after_impulses, compressed, decompressed, two_phases
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
    momentum,
    planar,
    tangent,
    transposed,
)
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import IMPACT, LAGGED, POSITION, VELOCITY, takes_part
from implicit_geom.model.solve_arrays import SolveArrays, solve_arrays
from implicit_geom.scene.switches import Stepper

ROUNDING = 16 * np.finfo(float).eps  # of a pose, over the numbers in it
NAMES = ("dynamics", "gap", "complementarity", "friction")


def residuals(
    model: Model, initial: State, solves: SolveArrays, stepper: Stepper | None = None
) -> dict[str, np.ndarray]:
    """The residuals of [C07, eqs. 3 to 5] of every solve, (S,) each, largest over bodies and contacts.

    A solve starts where the one before it ended, the first one at `initial`. Without `stepper` the laws
    are exact.
    """
    stepper = stepper or Stepper()
    out = {name: np.zeros(len(solves)) for name in NAMES}
    if not len(solves):
        return out
    motion = MotionArrays.of(model, initial, solves)
    c = solves.contacts
    out["dynamics"] = _dynamics(motion, c)
    c = c[(c["p_n"] != 0) | (c["stage"] == VELOCITY)] if stepper.approximated else c
    if not len(c):
        return out
    at = c["solve"]
    h, impact = motion.lengths[at], c["stage"] == IMPACT
    laws = FrictionParameters.of(model, c)
    # a step that runs backwards has the same forces, and so impulses of the other sign
    m_c = np.where(motion.h[at] < 0, -1.0, 1.0) * laws.m_c
    relative, slip = slips(motion, c, laws)
    gap = law_gap(motion, c, stepper) - h * relaxation_separation(motion, c, laws, slip, stepper)
    of_velocities = impact | (c["stage"] == VELOCITY) | short_parts(c)
    distance = np.where(of_velocities, dot(c["normal"], relative) + c["bounce"], gap / h)
    pressed = c["p_n"] / m_c
    natural = np.maximum(np.abs(np.minimum(pressed, distance)), -pressed)
    np.maximum.at(out["gap"], at, np.where(impact & (c["p_n"] == 0), np.maximum(-gap, 0.0), np.abs(gap)))
    phases = two_phases(motion, c)
    if np.any(phases):
        early, late, slip_early = _phases(motion, c)
        done = early["p_n"] / m_c, dot(c["normal"], slip_early[0])
        both = np.maximum(np.maximum(np.abs(np.minimum(*done)), -done[0]), -np.minimum(pressed, distance))
        natural = np.where(phases, np.maximum(both, 0.0), natural)
    np.maximum.at(out["complementarity"], at, natural)
    if stepper.friction == "pyramid" and model.dim == 3:
        friction = pyramid_residual(motion, c, laws, m_c, slip, stepper)
    else:
        friction = friction_residual(c, laws, m_c, slip)
        if np.any(phases):
            parts = [(early, slip_early[1][:, 1:]), (late, slip)]
            each = [friction_residual(rows, laws, m_c, against) for rows, against in parts]
            friction = np.where(phases, np.maximum(*each), friction)
    np.maximum.at(out["friction"], at, friction)
    return out


def _phases(motion: MotionArrays, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]:
    """Contacts in the compression and in the decompression of impacts, and velocities between them."""
    early = compressed(c)
    between = after_impulses(motion, early[two_phases(motion, c)])
    return early, decompressed(c), velocities_at(motion, c, END, between)


def step_residuals(model: Model, solve: Any) -> dict[str, float]:
    """The four residuals of one solve, a `model.records.Solve`."""
    found = residuals(model, solve.start, solve_arrays(model, [solve]))
    return {name: float(values[0]) for name, values in found.items()}


def _dynamics(motion: MotionArrays, c: np.ndarray) -> np.ndarray:
    """(S,) residual of the momentum balance [C07, eq. 4] over each kick, and of the pose [C07, eq. 2].

    A body that a solve does not move keeps its pose and its velocities to the last bit, one in an impact
    its pose; where it does not, the residual is infinite.
    """
    model, dim, h = motion.model, motion.model.dim, motion.h[:, None, None]
    moving = model.moving
    m, J = model.mass[moving, None], model.inertia[moving]
    moved = motion.moved[:, moving]
    impulse = (_impulses(motion, c) + _loads(motion))[:, :, moving]
    x, R, nu = (a[:, :, moving] for a in (motion.x, motion.R, motion.nu))
    v, w = nu[..., :dim], nu[..., dim:]
    rows = [v[1:] - v[:-1] - impulse[..., :dim] / m]
    if dim == 2:
        change = J[:, 0] * (w[1:] - w[:-1]) - impulse[..., 2:]
        rows.append(change / np.sqrt(m * J[:, 0]))
        turn = planar((h * w[DURING])[..., 0])
    else:
        left = right = momentum(R[END], J, w[DURING])
        rattle = motion.rattle[:, None] & moved
        if np.any(rattle):
            left, right = left.copy(), right.copy()
            T = tangent((h * w[DURING])[rattle])
            start = momentum(R[START, rattle], J[np.nonzero(rattle)[1]], w[DURING, rattle])
            left[rattle] = np.linalg.solve(transposed(T), start[..., None])[..., 0]
            right[rattle] = np.linalg.solve(T, right[rattle][..., None])[..., 0]
        change = np.stack([left - momentum(R[START], J, w[BEFORE]), momentum(R[END], J, w[AFTER]) - right])
        values, axes = np.linalg.eigh(J)
        along = apply(transposed(axes), apply(transposed(R), change - impulse[..., dim:]))
        rows.append(along / np.sqrt(m * values))
        turn = exponential(h * w[DURING])
    travels = moved & ~motion.impact[:, None]
    # (poses are rounded: over a time that is very short they say little of a velocity)
    span = motion.lengths[:, None, None]
    resolved = ROUNDING * np.max(np.abs(x), axis=(0, 3), initial=1e-300)[..., None] / span
    off = np.maximum(np.abs(x[END] - x[START] - h * v[DURING]) / span - resolved, 0.0)
    rows.append(np.where(travels[..., None], off, 0.0)[None])
    turned = np.max(np.abs(R[END] - turn @ R[START]), axis=(-2, -1))
    turned = np.maximum(turned - ROUNDING, 0.0) / motion.lengths[:, None]
    gyration = np.sqrt(np.max(np.diagonal(J, axis1=1, axis2=2), axis=1) / m[:, 0])
    rows.append(np.where(travels, turned * gyration, 0.0)[None, ..., None])
    largest = np.max([np.max(np.abs(row), axis=(0, 2, 3)) for row in rows], axis=0)
    stays = np.all(x[END] == x[START], axis=-1) & np.all(R[END] == R[START], axis=(-2, -1))
    stays &= moved | np.all(nu[AFTER] == nu[BEFORE], axis=-1)
    return np.where(np.all(travels | stays, axis=1), largest, np.inf)


def _impulses(motion: MotionArrays, c: np.ndarray) -> np.ndarray:
    """Contact impulses and moments of both kicks on every body, (2, S, B, dim + spins).

    The first kick is Euler's or that of stage 1, the second one that of the velocity stage.
    """
    dim = motion.model.dim
    out = np.zeros((2, *motion.nu.shape[1:]))
    c = c[takes_part(motion.form[c["solve"]], c["stage"])]
    kick, at, n = np.where(c["stage"] == VELOCITY, 1, 0), c["solve"], c["normal"]
    pose = np.where((c["stage"] == POSITION) | (c["stage"] == LAGGED), START, END)
    force = c["p_n"][:, None] * n + c["p_t"][:, None] * c["tangent"]
    if dim == 3:
        force = force + c["p_o"][:, None] * c["binormal"]
    for sign, body in ((-1.0, c["first"]), (1.0, c["second"])):
        moment = cross(c["point"] - motion.x[pose, at, body], force)
        if dim == 3:
            moment = moment + c["p_r"][:, None] * n
        np.add.at(out, (kick, at, body), sign * np.concatenate([force, moment], axis=1))
    return out


def _loads(motion: MotionArrays) -> np.ndarray:
    """Impulses of gravity and applied loads in both kicks, (2, S, B, dim + spins)."""
    rattle, h = motion.rattle[:, None, None], motion.h[:, None, None]
    late = np.where(motion.rattle, motion.time + motion.h, motion.time)
    first, second = motion.model.loads_at(np.stack([motion.time, late]))
    share = np.stack([np.where(rattle, h / 2, h), np.where(rattle, h / 2, 0.0)])
    return np.asarray(share * motion.moved[:, :, None] * np.stack([first, second]))
