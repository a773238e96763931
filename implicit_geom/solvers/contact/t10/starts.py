"""Where the minimisation starts [T10, III-F], and the scaling of x."""

from __future__ import annotations

import numpy as np

from implicit_geom.solvers.contact.t10.maps import TINY, System, impulse

SWEEPS = 1000  # projected steps of the start `swept`
RANK = 1e-10  # eigenvalues of A below this part of the largest are zero


def sticking(system: System) -> np.ndarray:
    """x = v - A^+ (v - v0) with v = (b, 0, 0): all contacts stick [T10, III-F]."""
    v = zero(system)
    values, vectors = np.linalg.eigh(system.A)
    whole = values > RANK * values[-1]
    vectors = vectors[:, whole]
    f = vectors @ ((vectors.T @ (v - system.v0).ravel()) / values[whole])
    return v - f.reshape(v.shape)


def free(system: System) -> np.ndarray:
    """x = v0: the velocities without contact."""
    return system.v0.copy()


def zero(system: System) -> np.ndarray:
    """x = (b, 0, 0): neither impulse nor velocity."""
    x = np.zeros_like(system.v0)
    x[:, 0] = system.b
    return x


def swept(system: System) -> np.ndarray:
    """x after SWEEPS projected steps f <- P(f - v / L) from zero, L the largest eigenvalue of A."""
    f = np.zeros_like(system.v0)
    L = max(float(np.linalg.eigvalsh(system.A)[-1]), TINY)
    v = system.v0
    for _ in range(SWEEPS):
        # f(x) of x = v/L - f, b over L as well: the projection of f - v/L
        f = impulse((v - L * f) / L, system.b / L, system.mu)
        v = (system.A @ f.ravel()).reshape(f.shape) + system.v0
    return v - f


STARTS = {"stick": sticking, "free": free, "zero": zero, "swept": swept}


def from_impulses(system: System, f: np.ndarray, v: np.ndarray | None = None) -> np.ndarray:
    """x = v - f of given impulses f (n, d) and velocities, or those that follow from the impulses."""
    if v is None:
        v = (system.A @ f.ravel()).reshape(f.shape) + system.v0
    return v - f


def unit_diagonal(system: System) -> np.ndarray:
    """Factors c (n, 1) such that the blocks of c A c have the mean diagonal one."""
    n, d = system.v0.shape
    mean = np.einsum("kk->k", system.A).reshape(n, d).mean(axis=1)
    return np.asarray(1 / np.sqrt(np.maximum(mean, TINY)))[:, None]


def scaled(system: System, c: np.ndarray) -> System:
    """The system of impulses f / c and velocities c v, c (n, 1): friction cones stay as they are."""
    rows = np.broadcast_to(c, system.v0.shape).ravel()
    return System(rows[:, None] * system.A * rows, c * system.v0, c[:, 0] * system.b, system.mu)


def row_sums(system: System) -> np.ndarray:
    """D of D r = 0, (n, d): one over the row sums of |A| [T10, V-A]."""
    sums = np.abs(system.A).sum(axis=1)
    return np.asarray(1 / np.maximum(sums, 1e-12 * np.max(sums, initial=TINY))).reshape(system.v0.shape)
