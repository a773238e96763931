"""Momentum balance of a free rigid body over one implicit Euler step [C07, eq. 4].

    m (v+ - v) = h F + contact impulses
    R+ J R+^T w+ - R J R^T w = h tau + contact impulse moments,      R+ = exp(h w+) R

Deviation: C07 writes the angular rows with an explicit gyroscopic impulse, which gains energy and
diverges for fast, thin bodies; the balance of world angular momentum above never gains.

Rows are scaled to velocities in the metric of the kinetic energy: linear rows by 1/m, angular rows by
K = (m J_W)^(-1/2), and both by 1/U.
"""

from __future__ import annotations

from functools import lru_cache

import casadi as ca
import numpy as np

from implicit_geom.rotation import exp_symbolic

# Where each input of the momentum rows sits in the parameter vector.
SPATIAL = {"h": 1, "U": 1, "R": 9, "J": 9, "K": 9, "v_free": 3, "momentum": 3}


@lru_cache
def momentum_rows(dim: int) -> tuple[ca.Function, dict[str, slice]]:
    """Rows and their Jacobian by nu = (v, w) for one body, as a function of (nu, parameters)."""
    sizes = SPATIAL if dim == 3 else {"U": 1, "v_free": 2, "w_free": 1, "gyration": 1}
    at, start = {}, 0
    for name, size in sizes.items():
        at[name] = slice(start, start + size)
        start += size
    p = ca.SX.sym("p", start)
    nu = ca.SX.sym("nu", 6 if dim == 3 else 3)
    U = p[at["U"]]
    linear = (nu[:dim] - p[at["v_free"]]) / U
    if dim == 3:
        R = exp_symbolic(p[at["h"]] * nu[3:]) @ ca.reshape(p[at["R"]], 3, 3)
        J_W = R @ ca.reshape(p[at["J"]], 3, 3) @ R.T
        angular = ca.reshape(p[at["K"]], 3, 3) @ (J_W @ nu[3:] - p[at["momentum"]]) / U
    else:
        angular = p[at["gyration"]] * (nu[2] - p[at["w_free"]]) / U
    rows = ca.vertcat(linear, angular)
    return ca.Function("momentum", [nu, p], [rows, ca.densify(ca.jacobian(rows, nu))]), at


def angular_scaling(J_W: np.ndarray, mass: float) -> np.ndarray:
    """K = (m J_W)^(-1/2): turns an angular impulse into a velocity of the gyration radius."""
    values, vectors = np.linalg.eigh(J_W)
    return np.asarray((vectors / np.sqrt(mass * values)) @ vectors.T)
