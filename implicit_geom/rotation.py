"""Rotations: quaternions (w, x, y, z, body to world) for numbers, matrices for CasADi."""

from __future__ import annotations

import casadi as ca
import numpy as np

# Added to a squared angle so that sin(a)/a has a value and a derivative at zero; far below
# anything that changes a result.
NO_ANGLE = 1e-60


def exp_symbolic(theta: ca.SX) -> ca.SX:
    """Rotation matrix of the rotation vector theta: I + A [theta]x + B [theta]x^2 (Rodrigues)."""
    angle = ca.sqrt(ca.sumsqr(theta) + NO_ANGLE)
    half_sinc = ca.sin(angle / 2) / angle
    cross = ca.skew(theta)
    return ca.SX.eye(3) + ca.sin(angle) / angle * cross + 2 * half_sinc**2 * cross @ cross


def planar_symbolic(angle: ca.SX) -> ca.SX:
    """Rotation matrix of a planar angle."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))


def planar(angle: float) -> np.ndarray:
    """Rotation matrix of a planar angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrices of unit quaternions; (..., 4) -> (..., 3, 3)."""
    q = np.asarray(q, float)
    w, v = q[..., 0], q[..., 1:]
    R = 2 * v[..., :, None] * v[..., None, :]
    scaled = (2 * w)[..., None] * v
    R[..., 0, 1] -= scaled[..., 2]
    R[..., 1, 0] += scaled[..., 2]
    R[..., 0, 2] += scaled[..., 1]
    R[..., 2, 0] -= scaled[..., 1]
    R[..., 1, 2] -= scaled[..., 0]
    R[..., 2, 1] += scaled[..., 0]
    diagonal = 1 - 2 * np.sum(v * v, axis=-1)
    for i in range(3):
        R[..., i, i] += diagonal
    return R


def exp(theta: np.ndarray) -> np.ndarray:
    """Unit quaternions of rotation vectors; (..., 3) -> (..., 4)."""
    theta = np.asarray(theta, float)
    half = np.linalg.norm(theta, axis=-1, keepdims=True) / 2
    return np.concatenate([np.cos(half), np.sinc(half / np.pi) / 2 * theta], axis=-1)


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Quaternion product p q, made a unit quaternion."""
    pw, px, py, pz = np.moveaxis(p, -1, 0)
    qw, qx, qy, qz = np.moveaxis(q, -1, 0)
    r = np.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ],
        axis=-1,
    )
    return r / np.linalg.norm(r, axis=-1, keepdims=True)


def advance(q: np.ndarray, omega_W: np.ndarray, h: float) -> np.ndarray:
    """q (+) h omega: rotate by the world-frame rotation vector h omega."""
    return multiply(exp(h * np.asarray(omega_W)), q)
