"""PLM: Levenberg-Marquardt with a non-monotone search and a watchdog [MJ14, PLM; Kanzow and Petra 2004].

    dx = argmin |[J; sqrt(lambda) I] dx - [-phi; 0]|,   lambda = 1e-16
    x + t dx with the first t = 1, beta, beta^2, ... for which psi(x + t dx) <= R + sigma t (grad psi . dx)

R is the largest psi of the last ten points, of this point alone during the first five iterations (as in the
public codes of Kanzow and Petra) and after the watchdog: where the best psi is 20 iterations old, the search
goes back to its point and is monotone until a better one is found. MJ14 gives lambda alone; beta, sigma,
memory and watchdog are those of the public codes.

Deviation: nothing is projected, as in MJ14: unknowns have no bounds. A direction along which no t is found is
replaced by the negative gradient once.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from implicit_geom.solvers.contact.mj14.minimum import (
    EPSILON,
    STATIONARY,
    Equations,
    Minimum,
    largest,
    merit,
    stalled,
)

LAMBDA = 1e-16
BETA, SIGMA, SHORTEST = 0.55, 1e-4, 1e-12
MEMORY, MONOTONE, WATCHDOG = 10, 5, 20
PATIENCE = 3  # iterations without half the best psi, once within the tolerance: what is left is rounding


def projected(
    equations: Equations,
    x: np.ndarray,
    *,
    tolerance: float,
    epsilon: float = EPSILON,
    limit: int = 100,
    damping: float = LAMBDA,
) -> Minimum:
    """Minimise |phi|^2 / 2 from x; `tolerance` of |phi| decides what a stall is called."""
    phi = equations.phi(x)
    psi = merit(phi)
    recent, history = [psi], [largest(phi)]
    best, best_at, monotone = (psi, x, phi), 0, False
    halved, halved_at = psi, 0
    status, iterations = "limit", 0
    while True:
        if psi < epsilon:
            status = "solved"
            break
        if iterations == limit:
            break
        J = equations.jacobian(x)
        gradient = J.T @ phi
        dx = direction(J, phi, damping)
        iterations += 1
        expected = phi + J @ dx
        if not 0.5 * float(expected @ expected) - psi < -STATIONARY * psi:
            status = stalled(phi, tolerance)
            break
        bound = psi if monotone or iterations <= MONOTONE else max(recent)
        found = search(equations, x, dx, bound, float(gradient @ dx))
        if found is None and largest(phi) > tolerance:
            found = search(equations, x, -gradient, bound, -float(gradient @ gradient))
        if found is None:
            status = stalled(phi, tolerance)
            break
        x, phi, psi = found
        if psi < best[0]:
            best, best_at, monotone = (psi, x, phi), iterations, False
        elif iterations - best_at >= WATCHDOG:
            psi, x, phi = best
            best_at, monotone, recent = iterations, True, []
        recent = [*recent, psi][-MEMORY:]
        history.append(largest(phi))
        if best[0] < 0.5 * halved:
            halved, halved_at = best[0], iterations
        elif iterations - halved_at >= PATIENCE and largest(best[2]) <= tolerance:
            status = "rounding"
            break
    psi, x, phi = best
    return Minimum(x, psi, largest(phi), status, iterations, iterations, history)


def direction(J: np.ndarray, phi: np.ndarray, damping: float) -> np.ndarray:
    """The least-squares step of the appended Jacobian, by QR with column pivoting."""
    n = J.shape[1]
    H = np.concatenate([J, np.sqrt(damping) * np.eye(n)])
    B = np.concatenate([-phi, np.zeros(n)])
    return np.asarray(lstsq(H, B, lapack_driver="gelsy", check_finite=False)[0])


def search(
    equations: Equations, x: np.ndarray, dx: np.ndarray, bound: float, slope: float
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """The first point x + t dx, its phi and psi, that meets Armijo's condition; None where none does."""
    t = 1.0
    while t > SHORTEST:
        new = x + t * dx
        phi = equations.phi(new)
        psi = merit(phi)
        if psi <= bound + SIGMA * t * slope:
            return new, phi, psi
        t *= BETA
    return None
