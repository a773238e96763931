"""Momentum balance of a rigid body, Newton and Euler's equations [C07, eq. 1] over a step [C07, eq. 4].

Over one implicit Euler step, or over a stage of RATTLE.

With J_W = R J R^T at the start of the step (J_W+ at its end), world axes:

    euler      m (v+ - v) = h F + contact impulses
               J_W+ w+ - J_W w = h tau + contact impulse moments,      R+ = exp(h w+) R
    position   m (v_half - v) = h/2 F + ...
               D(h w_half)^T J_W w_half - J_W w = h/2 tau + ...,       R+ = exp(h w_half) R
    velocity   m (v+ - v_half) = h/2 F+ + ...
               J_W+ w+ - D(-h w_half)^T J_W+ w_half = h/2 tau+ + ...

with D the inverse of the exponential map's tangent (`rotation.tangent_inverse`): it holds the gyroscopic
term, and with it the two stages are a variational integrator.

Deviation: C07 writes the angular rows with an explicit gyroscopic impulse, which gains energy and
diverges for fast, thin bodies; the balance of world angular momentum above never gains.

Rows are scaled to velocities in the metric of the kinetic energy: linear rows by 1/m, angular rows by
K = (m J_W)^(-1/2), and both by 1/U.
"""

from __future__ import annotations

import casadi as ca

from implicit_geom.process.building import built_once
from implicit_geom.rotation import exp_symbolic, tangent_inverse_symbolic

SCHEMES = ("euler", "position", "velocity")
# Where each input of the momentum rows sits in the parameter vector.
SPATIAL = {"h": 1, "U": 1, "R": 9, "J": 9, "K": 9, "v_free": 3, "momentum": 3}
PLANAR = {"U": 1, "v_free": 2, "w_free": 1, "gyration": 1}


@built_once
def momentum_rows(dim: int, scheme: str) -> tuple[ca.Function, dict[str, slice]]:
    """The rows of [C07, eq. 4], contact impulses apart, and their Jacobian by nu = (v, w), for one body.

    A function of (nu, parameters), and where the parameters sit. Contacts add their impulses in
    `contact_ncp`.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme = {scheme!r} must be one of {SCHEMES}")
    at, start = {}, 0
    for name, size in (SPATIAL if dim == 3 else PLANAR).items():
        at[name] = slice(start, start + size)
        start += size
    p = ca.SX.sym("p", start)
    nu = ca.SX.sym("nu", 6 if dim == 3 else 3)
    U = p[at["U"]]
    linear = (nu[:dim] - p[at["v_free"]]) / U
    if dim == 3:
        h, w = p[at["h"]], nu[3:]
        R, J = ca.reshape(p[at["R"]], 3, 3), ca.reshape(p[at["J"]], 3, 3)
        if scheme == "euler":
            R = exp_symbolic(h * w) @ R
        momentum = R @ J @ R.T @ w
        if scheme == "position":
            momentum = tangent_inverse_symbolic(h * w).T @ momentum
        angular = ca.reshape(p[at["K"]], 3, 3) @ (momentum - p[at["momentum"]]) / U
    else:
        angular = p[at["gyration"]] * (nu[2] - p[at["w_free"]]) / U
    rows = ca.vertcat(linear, angular)
    return ca.Function("momentum", [nu, p], [rows, ca.densify(ca.jacobian(rows, nu))]), at
