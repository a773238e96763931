"""Rotations: quaternions (w, x, y, z, body to world) for numbers, matrices for CasADi."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

# Added to a squared angle so that sin(a)/a has a value and a derivative at zero; far below
# anything that changes a result.
NO_ANGLE = 1e-60
# c(x) = sum_k |B_2k| / (2k)! x^(k-1) of `tangent_inverse`, x the squared angle, B_2k Bernoulli's numbers;
# below SERIES the first terms are exact to rounding, above it the closed form is.
SERIES = 0.25
_COEFFICIENTS = (
    1 / 12,
    1 / 720,
    1 / 30240,
    1 / 1209600,
    1 / 47900160,
    691 / 1307674368000,
    1 / 74724249600,
    3617 / 10670622842880000,
    43867 / 5109094217170944000,
)


def exp_symbolic(theta: ca.SX) -> ca.SX:
    """Rotation matrix of the rotation vector theta: I + A [theta]x + B [theta]x^2 (Rodrigues)."""
    angle = ca.sqrt(ca.sumsqr(theta) + NO_ANGLE)
    half_sinc = ca.sin(angle / 2) / angle
    cross = ca.skew(theta)
    return ca.SX.eye(3) + ca.sin(angle) / angle * cross + 2 * half_sinc**2 * cross @ cross


def tangent_inverse_symbolic(theta: ca.SX) -> ca.SX:
    """D(theta) = I - [theta]x / 2 + c [theta]x^2, c = (1 - (a/2) cot(a/2)) / a^2, a = |theta|.

    The inverse of the exponential map's tangent: exp(theta + D(theta) eps) = exp(eps) exp(theta) to
    first order in eps. Singular at a = 2 pi.
    """
    square = ca.sumsqr(theta)
    series = sum(b * square**k for k, b in enumerate(_COEFFICIENTS))
    large = ca.fmax(square, SERIES)
    half = ca.sqrt(large) / 2
    c = ca.if_else(square < SERIES, series, (1 - half / ca.tan(half)) / large)
    cross = ca.skew(theta)
    return ca.SX.eye(3) - cross / 2 + c * cross @ cross


def tangent_inverse(theta: np.ndarray) -> np.ndarray:
    """`tangent_inverse_symbolic` for numbers; (..., 3) -> (..., 3, 3)."""
    theta = np.asarray(theta, float)
    square = np.sum(theta**2, axis=-1)
    series = sum(b * square**k for k, b in enumerate(_COEFFICIENTS))
    large = np.maximum(square, SERIES)
    half = np.sqrt(large) / 2
    c = np.where(square < SERIES, series, (1 - half / np.tan(half)) / large)
    skewed = skew(theta)
    return np.eye(3) - skewed / 2 + c[..., None, None] * (skewed @ skewed)


def skew(a: np.ndarray) -> np.ndarray:
    """[a]x with [a]x b = a x b; (..., 3) -> (..., 3, 3)."""
    out = np.zeros((*a.shape, 3))
    out[..., 2, 1] = a[..., 0]
    out[..., 0, 2] = a[..., 1]
    out[..., 1, 0] = a[..., 2]
    return out - np.swapaxes(out, -1, -2)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b, (..., 3); several times quicker than numpy.cross on few vectors."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    out[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    out[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return out


def rotational_velocity(w: np.ndarray, r: np.ndarray) -> np.ndarray:
    """The velocity w x r of a point; (..., dim), with w (..., 1) in the plane."""
    if r.shape[-1] == 3:
        return cross(w, r)
    out = np.empty(np.broadcast_shapes(w.shape, r.shape))
    out[..., 0] = -w[..., 0] * r[..., 1]
    out[..., 1] = w[..., 0] * r[..., 0]
    return out


def planar_symbolic(angle: ca.SX) -> ca.SX:
    """Rotation matrix of a planar angle."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))


def planar(angle: float) -> np.ndarray:
    """Rotation matrix of a planar angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def unit(q: Sequence[float] | np.ndarray) -> np.ndarray:
    """A vector over its length; a unit vector is kept to the last bit, so that a saved scene is unchanged."""
    v = np.asarray(q, float)
    norm = np.linalg.norm(v)
    return v if abs(norm - 1) < 1e-15 else np.asarray(v / norm)


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
    """q (+) h omega: rotate by the world-frame rotation vector h omega [C07, eqs. 2, 4]."""
    return multiply(exp(h * np.asarray(omega_W)), q)
