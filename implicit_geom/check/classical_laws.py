"""The laws of classical steppers, recomputed for `implicit_geom.check.certificate` without their solvers.

gap        of a contact that presses: at the end of the step, or the first-order guess from its start,
           start_gap + h n . (velocity of the second body past the first there)
pyramid    with s = E^-1 p_f / m_c, w = E slip and the corners d_j of the unit pyramid, radius = mu p_n / m_c:
           s in radius hull(d_j), and  -s . w = radius max_j(-d_j . w)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.check.motion_arrays import BEFORE, DURING, START, MotionArrays, dot, rotational_velocity
from implicit_geom.model.records import LAGGED
from implicit_geom.scene.switches import Stepper


def law_gap(motion: MotionArrays, c: np.ndarray, stepper: Stepper) -> np.ndarray:
    """(C,) m: the gap that the stepper's law holds at zero where a contact presses."""
    if stepper.gap == "end":
        return np.asarray(c["gap"])
    dim, at = motion.model.dim, c["solve"]
    velocities = []
    for side in ("first", "second"):
        nu = motion.nu[DURING, at, c[side]]
        velocities.append(
            nu[:, :dim] + rotational_velocity(nu[:, dim:], c["gap_point"] - motion.x[START, at, c[side]])
        )
    return np.asarray(c["start_gap"] + motion.h[at] * dot(c["gap_normal"], velocities[1] - velocities[0]))


def pyramid_residual(
    motion: MotionArrays, c: np.ndarray, laws: Any, m_c: np.ndarray, slip: np.ndarray, stepper: Stepper
) -> np.ndarray:
    """(C,) m/s: how far s is from the pyramid, and from dissipating the most that is possible there."""
    k = stepper.directions
    kept = laws.e > 0
    p_f = np.stack([c["p_t"], c["p_o"], c["p_r"]], axis=1)
    s = np.where(kept, p_f, 0.0) / (np.where(kept, laws.e, 1.0) * m_c[:, None])
    w = laws.e * slip
    radius = laws.mu * np.maximum(c["p_n"] / m_c, 0.0)
    corners = _corners(motion, c, laws, stepper)
    sides = corners + np.pi / k
    # gauge of the double pyramid over a regular polygon of circumradius one
    across = s[:, 0, None] * np.cos(sides) + s[:, 1, None] * np.sin(sides)
    gauge = np.max(across, axis=1) / np.cos(np.pi / k) + np.abs(s[:, 2])
    outside = np.maximum(gauge - radius, 0.0)
    fastest = _fastest(w, corners)
    missing = np.abs(radius * fastest + dot(s, w)) / np.maximum(np.maximum(radius, fastest), 1e-300)
    return np.asarray(np.maximum(outside, missing))


def relaxation_separation(
    motion: MotionArrays, c: np.ndarray, laws: Any, slip: np.ndarray, stepper: Stepper
) -> np.ndarray:
    """(C,) m/s: mu Lambda, at which LCP2 lets a pressing contact open [AH02, eq. 12 with Gamma = 0]."""
    if stepper.relaxation != "LCP2":
        return np.zeros(len(c))
    w = laws.e * slip
    speed = np.abs(w[:, 0])
    if motion.model.dim == 3:
        speed = _fastest(w, _corners(motion, c, laws, stepper))
    return np.asarray(laws.mu * speed)


def _corners(motion: MotionArrays, c: np.ndarray, laws: Any, stepper: Stepper) -> np.ndarray:
    """(C, k) angles of the pyramids' corners from t."""
    phase = np.zeros(len(c))
    if stepper.aligned:
        before = laws.e * _slip_before(motion, c)
        phase = np.arctan2(before[:, 1], before[:, 0])
    return np.asarray(phase[:, None] + 2 * np.pi * np.arange(stepper.directions) / stepper.directions)


def _fastest(w: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """(C,) max_j(-d_j . w)."""
    along = w[:, 0, None] * np.cos(corners) + w[:, 1, None] * np.sin(corners)
    return np.asarray(np.maximum(np.max(-along, axis=1), np.abs(w[:, 2])))


def _slip_before(motion: MotionArrays, c: np.ndarray) -> np.ndarray:
    """(C, 3) slip with the velocities at the start, where and in the frame in which the impulses act."""
    at = c["solve"]
    pose = np.where(c["stage"] == LAGGED, START, 1)
    nu = [motion.nu[BEFORE, at, c[side]] for side in ("first", "second")]
    one, two = (
        u[:, :3] + rotational_velocity(u[:, 3:], c["point"] - motion.x[pose, at, c[side]])
        for u, side in zip(nu, ("first", "second"), strict=True)
    )
    spin = dot(c["normal"], nu[1][:, 3:] - nu[0][:, 3:])
    return np.stack([dot(c["tangent"], two - one), dot(c["binormal"], two - one), spin], axis=1)
