"""Coulomb's law for all contacts at once: projections, and the residuals that certify a solution.

Arrays are (n_c, d) with the normal first, in the scaled rows in which friction ellipsoids are balls.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.solvers.contact.problem import ContactProblem

Discs = list[tuple[slice, np.ndarray]]  # rows of each friction disc of a contact, and its radius over p_n
RESIDUALS = ("signorini", "cone", "dissipation", "momentum", "bilateral")


def on_disc(y: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The rows of y projected on balls of the given radii >= 0; (N, k), (N,)."""
    length = np.sqrt(np.einsum("ni,ni->n", y, y))
    return y * np.where(length > radius, radius / np.maximum(length, 1e-300), 1.0)[:, None]


def alart_curnier(z: np.ndarray, discs: Discs) -> np.ndarray:
    """max(z_n, 0), then friction on the discs that belong to it [Alart and Curnier 1991]."""
    out = np.empty_like(z)
    out[:, 0] = np.maximum(z[:, 0], 0.0)
    for rows, mu in discs:
        out[:, rows] = on_disc(z[:, rows], mu * out[:, 0])
    return out


def on_cone(z: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """The rows (z_n, z_f) projected on the friction cones |z_f| <= mu z_n; one disc a contact."""
    n, f = z[:, 0], z[:, 1:]
    length = np.sqrt(np.einsum("ni,ni->n", f, f))
    out = z.copy()
    outside = length > mu * n
    polar = mu * length <= -n
    new_n = (n + mu * length) / (1 + mu**2)
    slid = outside & ~polar
    out[slid, 0] = new_n[slid]
    out[slid, 1:] = f[slid] * (mu * new_n / np.maximum(length, 1e-300))[slid, None]
    out[outside & polar] = 0.0
    return out


def residuals(
    problem: ContactProblem, v: np.ndarray, p: np.ndarray, multiplier: np.ndarray
) -> dict[str, float]:
    """What is left of each law, m/s, for velocities v and impulses p; one definition for all solvers.

    signorini     |min(u_n, p_n / m)|, m = 1 / W_nn of the contact
    cone          how far p is outside its friction discs, and p_n below zero, over m
    dissipation   |s - P(s - m e u_f)| / m with s = p_f / e and P the projection on its disc mu p_n
    momentum      M^-1 (M (v - v_free) - H p - G l) of a body, in the norm of its kinetic energy
    bilateral     |G^T v + b|
    """
    d, m = problem.dim, problem.effective_mass
    u = problem.contact_velocity(v).reshape(-1, d)
    scaling = problem.scaling.reshape(-1, d)
    p = p.reshape(-1, d)
    s = np.where(scaling > 0, p / np.where(scaling > 0, scaling, 1.0), 0.0)
    u_ball = u * scaling
    p_n = p[:, 0]
    signorini = np.abs(np.minimum(u[:, 0], p_n / m))
    cone = np.maximum(-p_n, 0.0) / m
    dissipation = np.zeros(problem.contacts)
    for rows, mu in problem.coefficients:
        radius = mu * np.maximum(p_n, 0.0)
        own = s[:, rows]
        cone = np.maximum(cone, (np.linalg.norm(own, axis=1) - radius) / m)
        rest = own - on_disc(own - m[:, None] * u_ball[:, rows], radius)
        dissipation = np.maximum(dissipation, np.linalg.norm(rest, axis=1) / m)
    if np.any((scaling == 0) & (p != 0)):
        cone = np.maximum(cone, np.max(np.where(scaling == 0, np.abs(p), 0.0), axis=1) / m)
    f = problem.M @ (v - problem.v_free) - problem.H @ p.ravel() - problem.G @ multiplier
    return {
        "signorini": _largest(signorini),
        "cone": _largest(cone),
        "dissipation": _largest(dissipation),
        "momentum": momentum_norm(problem, f),
        "bilateral": _largest(np.abs(problem.G.T @ v + problem.b)),
    }


def momentum_norm(problem: ContactProblem, f: np.ndarray) -> float:
    """The largest sqrt(f^T M^-1 f / m) of a body (a block of M), m its largest diagonal entry."""
    count, label = problem.bodies
    square = np.bincount(label, f * (problem.M_inverse @ f), count)
    mass = np.zeros(count)
    np.maximum.at(mass, label, problem.M.diagonal())
    return _largest(np.sqrt(np.maximum(square, 0.0) / np.maximum(mass, 1e-300)))


def _largest(values: np.ndarray) -> float:
    return float(np.max(values)) if values.size else 0.0
