"""RLM: the Levenberg-Marquardt method damped by the ratio of actual to predicted decrease [MJ14, RLM].

    (J^T J + lambda I) dx = -J^T phi
    r = (psi(x + dx) - psi(x)) / (q(x + dx) - q(x)),    q(x + dx) = |phi + J dx|^2 / 2
    r < 0.3: lambda times 20;   r > 0: the step is taken;   r > 0.8: lambda over 20

Deviations: the step has the minus that is missing in print. Damping from nothing begins at lambda_min, and
ends there. psi < 1e-30 is below rounding for large impulses: a method whose steps gain nothing stops as well.
Where the damped matrix is not positive definite in rounding, the step is the shortest least-squares one.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from implicit_geom.solvers.contact.mj14.minimum import (
    EPSILON,
    STATIONARY,
    Equations,
    Minimum,
    largest,
    merit,
    stalled,
)

LAMBDA, STEP, LAMBDA_MIN = 1e-3, 20.0, 1e-25
LOW, HIGH = 0.3, 0.8
LAMBDA_MAX = 1e15  # over the largest diagonal entry of J^T J: steps have no length any more


def regular(
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
    psi, lam = merit(phi), damping
    history = [largest(phi)]
    status, iterations = "limit", 0
    J = equations.jacobian(x)
    gradient, hessian = J.T @ phi, J.T @ J
    while True:
        if psi < epsilon:
            status = "solved"
            break
        if iterations == limit:
            break
        dx = _step(J, hessian, gradient, phi, lam)
        iterations += 1
        expected = phi + J @ dx
        predicted = 0.5 * float(expected @ expected) - psi
        if not predicted < -STATIONARY * psi:
            status = stalled(phi, tolerance)
            break
        new = x + dx
        phi_new = equations.phi(new)
        psi_new = merit(phi_new)
        r = (psi_new - psi) / predicted
        if not r >= LOW:
            lam = max(STEP * lam, LAMBDA_MIN)
        if r > HIGH:
            lam = lam / STEP if lam / STEP >= LAMBDA_MIN else 0.0
        if r > 0:
            x, phi, psi = new, phi_new, psi_new
            J = equations.jacobian(x)
            gradient, hessian = J.T @ phi, J.T @ J
        elif largest(phi) <= tolerance or lam > LAMBDA_MAX * np.max(np.diagonal(hessian)):
            status = stalled(phi, tolerance)
            break
        history.append(largest(phi))
    return Minimum(x, psi, largest(phi), status, iterations, iterations, history)


def _step(
    J: np.ndarray, hessian: np.ndarray, gradient: np.ndarray, phi: np.ndarray, lam: float
) -> np.ndarray:
    damped = hessian.copy()
    damped[np.diag_indices_from(damped)] += lam
    try:
        return np.asarray(-cho_solve(cho_factor(damped, check_finite=False), gradient, check_finite=False))
    except LinAlgError:
        return np.asarray(-np.linalg.lstsq(J, phi, rcond=1e-14)[0])
