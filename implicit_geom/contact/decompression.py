"""Poisson's decompression: normal impulses of at least a given size, and friction with them.

    u+ = u + W p,   0 <= p_n - least _|_ u_n+ >= 0,   friction of p_t within mu p_n against u_t+

Block Gauss-Seidel: each contact in turn solves its own law with the others' impulses given, exactly. With the
normal impulse known, maximum dissipation over the ellipsoid is one root: (A + lambda I) s = -b, |s| = mu p_n
in the coordinates s = p_t / e, or lambda = 0 within it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

SWEEPS = 20000
CLOSE = 1e-14  # change of the velocities in a sweep, over the speeds at hand, that ends it


def decompression(
    W: np.ndarray, u: np.ndarray, least: np.ndarray, mu: np.ndarray, axes: np.ndarray, speed: float
) -> tuple[np.ndarray, float]:
    """(d n_c,) impulses and what the last sweep changed, over `speed`; u is (n_c, d)."""
    n, d = u.shape
    scale = np.column_stack([np.ones(n), axes]).ravel()
    A = scale[:, None] * np.asarray(W) * scale
    b = u.ravel() * scale
    s = np.zeros(n * d)
    for k in range(n):
        s[d * k] = least[k]
    velocity = A @ s + b
    change = np.inf
    for _ in range(SWEEPS):
        change = 0.0
        for k in range(n):
            own = slice(d * k, d * k + d)
            block = A[own, own]
            free = velocity[own] - block @ s[own]
            new = _local(block, free, float(least[k]), float(mu[k]))
            step = A[:, own] @ (new - s[own])
            velocity += step
            s[own] = new
            change = max(change, float(np.max(np.abs(step))))
        if change <= CLOSE * speed:
            break
    return s * scale, change / speed


def _local(A: np.ndarray, b: np.ndarray, least: float, mu: float) -> np.ndarray:
    """The law of one contact: A s + b its velocities."""

    def normal_velocity(p: float) -> float:
        return float(A[0] @ _with_friction(A, b, p, mu) + b[0])

    if normal_velocity(least) >= 0:
        return _with_friction(A, b, least, mu)
    high = max(least, -b[0] / A[0, 0]) * 2 + 1e-300
    for _ in range(200):
        if normal_velocity(high) >= 0:
            break
        high *= 2
    p = float(brentq(normal_velocity, least, high, xtol=1e-300, rtol=1e-15, maxiter=200))
    return _with_friction(A, b, p, mu)


def _with_friction(A: np.ndarray, b: np.ndarray, p: float, mu: float) -> np.ndarray:
    """Impulses with the normal one known: friction that dissipates most."""
    radius = mu * p
    out = np.zeros(b.size)
    out[0] = p
    if radius <= 0:
        return out
    values, vectors = np.linalg.eigh(A[1:, 1:])
    c = vectors.T @ (b[1:] + A[1:, 0] * p)
    if np.linalg.norm(c / values) <= radius:
        out[1:] = -vectors @ (c / values)
        return out

    def outside(shift: float) -> float:
        return float(np.linalg.norm(c / (values + shift)) - radius)

    high = float(np.linalg.norm(c)) / radius
    shift = float(brentq(outside, 0.0, high, xtol=1e-300, rtol=1e-15, maxiter=200))
    out[1:] = -vectors @ (c / (values + shift))
    return out
