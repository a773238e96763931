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
    return on_cones(z, [(slice(1, z.shape[1]), mu)])


def on_cones(z: np.ndarray, discs: Discs) -> np.ndarray:
    """The rows of z projected on the cones of impulses that lie in all discs of their contacts.

    The normal part x is the root of x - z_n - sum over discs of mu max(0, |z_f| - mu x), which is the least
    of the same sums over some of the discs, each of them increasing: so x is the largest of their roots.
    """
    top = np.maximum(z[:, 0], 0.0)
    lengths = [np.sqrt(np.einsum("ni,ni->n", z[:, rows], z[:, rows])) for rows, _ in discs]
    for some in range(1, 1 << len(discs)):
        chosen = [(mu, length) for i, ((_, mu), length) in enumerate(zip(discs, lengths)) if some >> i & 1]
        above = z[:, 0] + sum(mu * length for mu, length in chosen)
        top = np.maximum(top, above / (1 + sum(mu**2 for mu, _ in chosen)))
    out = z.copy()
    out[:, 0] = top
    for rows, mu in discs:
        out[:, rows] = on_disc(z[:, rows], mu * top)
    return out


def residuals(
    problem: ContactProblem, v: np.ndarray, p: np.ndarray, multiplier: np.ndarray
) -> dict[str, float]:
    """What is left of each law, m/s, for velocities v and impulses p; one definition for all solvers.

    signorini     |min(u_n, p_n / m)|, m = 1 / W_nn of the contact
    cone          how far p is outside its friction discs, and p_n below zero, over m
    dissipation   |s - P(s - m e u_f)| / m with s = p_f / e and P the projection on its disc mu p_n
    momentum      sqrt(f^T M^-1 f / m) of a body, f = M (v - v_free) - H p - G l, m of its heaviest contact
    bilateral     |g^T v + b| / sqrt(m g^T M^-1 g) of a row, m the least one of its bodies

    All of them change with the units of mass, length and time as a speed does. Of rolling friction impulses
    are moments: the disc is measured at the radius of gyration r, r^2 = W_nn / (half the trace of W_ff), with
    m r^2 in place of m, over m r.
    """
    d = problem.dim
    u = problem.contact_velocity(v).reshape(-1, d)
    scaling = problem.scaling.reshape(-1, d)
    p = p.reshape(-1, d)
    s = np.where(scaling > 0, p / np.where(scaling > 0, scaling, 1.0), 0.0)
    signorini, cone, dissipation = contact_residuals(problem, u * scaling, s)
    if np.any((scaling == 0) & (p != 0)):
        m = problem.effective_mass
        cone = np.maximum(cone, np.max(np.where(scaling == 0, np.abs(p), 0.0), axis=1) / m)
    f = problem.M @ (v - problem.v_free) - problem.H @ p.ravel() - problem.G @ multiplier
    return {
        "signorini": _largest(signorini),
        "cone": _largest(cone),
        "dissipation": _largest(dissipation),
        "momentum": momentum_norm(problem, f),
        "bilateral": _largest(np.abs(problem.G.T @ v + problem.b) * _row_weights(problem)),
    }


def contact_residuals(
    problem: ContactProblem, u: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signorini's law, cones and maximum dissipation, each (n_c,), for scaled velocities u and impulses s."""
    m, n = problem.effective_mass, s[:, 0]
    signorini = np.abs(np.minimum(u[:, 0], n / m))
    cone = np.maximum(-n, 0.0) / m
    dissipation = np.zeros(problem.contacts)
    for (rows, mu), r in zip(problem.coefficients, radii(problem)):
        radius, scale = mu * np.maximum(n, 0.0), m * r
        own = s[:, rows]
        cone = np.maximum(cone, (np.sqrt(np.einsum("ni,ni->n", own, own)) - radius) / scale)
        rest = own - on_disc(own - (scale * r)[:, None] * u[:, rows], radius)
        dissipation = np.maximum(dissipation, np.sqrt(np.einsum("ni,ni->n", rest, rest)) / scale)
    return signorini, cone, dissipation


def contact_error(problem: ContactProblem, v: np.ndarray, s: np.ndarray) -> float:
    """The largest residual of the contact laws at scaled impulses s and velocities v, m/s; inf for NaN."""
    u = (problem.H_ball.T @ v + problem.w_ball).reshape(-1, problem.dim)
    worst = float(np.max(contact_residuals(problem, u, s.reshape(u.shape)), initial=0.0))
    return worst if np.isfinite(worst) else np.inf


def radii(problem: ContactProblem) -> list[np.ndarray]:
    """Of each friction disc the radius at which its speeds are measured: 1, of moments that of gyration."""
    found = [np.ones(problem.contacts)]
    if problem.mu_r is not None:
        W = problem.W_blocks
        half = 0.5 * (W[:, 3, 3] + W[:, 4, 4])
        known = (half > 0) & (W[:, 0, 0] > 0)  # (a contact that moves nothing has none)
        found.append(np.sqrt(np.where(known, W[:, 0, 0], 1.0) / np.where(known, half, 1.0)))
    return found


def momentum_norm(problem: ContactProblem, f: np.ndarray) -> float:
    """The largest sqrt(f^T M^-1 f / m) of a body, m of its heaviest contact."""
    count, label = problem.bodies
    square = np.bincount(label, f * (problem.M_inverse @ f), count)
    return _largest(np.sqrt(np.maximum(square, 0.0) / body_masses(problem)))


def body_masses(problem: ContactProblem) -> np.ndarray:
    """(bodies,) the largest effective mass of a body's contacts, at most its own mass.

    (A diagonal entry of M would do, were it known which of them are masses and which inertias.) A body
    without contacts has the largest of all.
    """
    blocks = problem.blocks
    mass = np.zeros(blocks.count + 1)
    np.maximum.at(mass, blocks.ends, problem.effective_mass[:, None])
    mass = mass[:-1]
    return np.where(mass > 0, mass, np.max(mass, initial=0.0) or 1.0)


def _row_weights(problem: ContactProblem) -> np.ndarray:
    """1 / sqrt(m g^T M^-1 g) of each bilateral row."""
    G = problem.G
    if not G.shape[1]:
        return np.zeros(0)
    flexibility = np.asarray(G.multiply(problem.M_inverse @ G).sum(axis=0)).ravel()
    mass = np.full(G.shape[1], np.inf)
    entries = G.tocoo()
    np.minimum.at(mass, entries.col, body_masses(problem)[problem.bodies[1][entries.row]])
    weight = mass * flexibility
    return np.where((weight > 0) & np.isfinite(weight), 1 / np.sqrt(np.maximum(weight, 1e-300)), 1.0)


def _largest(values: np.ndarray) -> float:
    return float(np.max(values)) if values.size else 0.0
