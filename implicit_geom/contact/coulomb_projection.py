"""Coulomb's law as a projection, P = proj(P - u): on P_n >= 0, then of friction on the ball |S| <= mu P_n.

Rows of z (n, 1 + components) are the contacts' P_n and S, over effective mass, m/s; mu (n,). The same law as
the natural map of `equations.friction_law` with the form "projection" [C07, eq. 5], on arrays.
"""

from __future__ import annotations

import numpy as np

NO_LENGTH = 1e-300  # keeps a division by |S| = 0 finite


def project(z: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """proj(z), (n, 1 + components)."""
    length, d = _directions(z)
    P = z.copy()
    P[:, 0] = np.maximum(z[:, 0], 0.0)
    stick = (length <= mu * P[:, 0]) & (z[:, 0] > 0)
    P[:, 1:] = np.where(stick[:, None], z[:, 1:], (mu * P[:, 0])[:, None] * d)
    return P


def projection_derivative(z: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """An element of the generalised Jacobian of proj at z, (n, 1 + components, 1 + components)."""
    n, k = z.shape
    length, d = _directions(z)
    radius = mu * np.maximum(z[:, 0], 0.0)
    closed = z[:, 0] > 0
    stick = (length <= radius) & closed
    slip = ~stick & closed
    D = np.zeros((n, k, k))
    D[:, 0, 0] = stick | slip
    eye = np.eye(k - 1)
    shrunk = (radius / np.maximum(length, NO_LENGTH))[:, None, None]
    across = shrunk * (eye - d[:, :, None] * d[:, None, :])
    D[:, 1:, 1:] = np.where(stick[:, None, None], eye, across)
    D[slip, 1:, 0] = mu[slip, None] * d[slip]
    D[~(stick | slip)] = 0.0
    return D


def project_in_place(z: np.ndarray, mu: np.ndarray) -> None:
    """`project` for sweeps, which make thousands of calls: equal but for the last bit, and quicker."""
    z[:, 0] = np.maximum(z[:, 0], 0.0)
    friction = z[:, 1:]
    length = np.sqrt(np.einsum("ni,ni->n", friction, friction))
    friction *= np.minimum(1.0, mu * z[:, 0] / np.maximum(length, NO_LENGTH))[:, None]


def _directions(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """|S| and S / |S|."""
    length = np.sqrt(np.einsum("ni,ni->n", z[:, 1:], z[:, 1:]))
    return length, z[:, 1:] / np.maximum(length, NO_LENGTH)[:, None]
