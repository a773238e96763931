"""Edges, where f(x) has no derivative: Jacobians, tangent bases, projection [T10, eq. 25, 26, 28, 29].

A contact is on its plane edge where y = x_N - b = 0 (between break and slip), on its cone edge where
|x_F| = -mu y > 0 (between slip and stick). r^T J d of a contact's normal d depends on the contact's own block
of f' alone, so that contacts on edges are treated one by one, however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.solvers.contact.t10.maps import (
    BREAK,
    SLIP,
    STICK,
    TINY,
    System,
    blocks,
    friction_norm,
    impulse_along,
)

NEAR = 1e-12  # a contact this close to an edge, relative to its x, is on it


@dataclass(frozen=True)
class Edges:
    """Which contacts are on edges; (n,) each. The apex of a cone is on the plane too."""

    plane: np.ndarray
    cone: np.ndarray
    apex: np.ndarray


@dataclass(frozen=True)
class LocalModel:
    """The derivative chosen at x: blocks F of f', blocks B of the basis and which of its columns there are.

    plane, cone: the active edges, (n,). apex: whether a contact was taken as sticking at its apex.
    """

    F: np.ndarray
    B: np.ndarray
    kept: np.ndarray
    plane: np.ndarray
    cone: np.ndarray
    apex: bool


def edges_at(system: System, x: np.ndarray) -> Edges:
    """The edges on which x (n, d) is."""
    y, rho, mu = x[:, 0] - system.b, friction_norm(x), system.mu
    size = NEAR * np.maximum(1.0, np.abs(x[:, 0]) + rho)
    plane = np.abs(y) <= size
    cone = ~plane & (y < 0) & (mu > 0) & (np.abs(rho + mu * y) <= NEAR * (rho + mu * np.abs(y)))
    return Edges(plane, cone, plane & (rho <= size))


def local_model(
    system: System, x: np.ndarray, r: np.ndarray, *, mixed: bool, bases: bool, apex_sticks: bool
) -> LocalModel:
    """Jacobian and basis at x for the (weighted) residual r.

    mixed         (26) on active edges; without it the side of `region` is taken
    bases         (28), (29): active edges are not left
    apex_sticks   contacts at the apex of their cone are taken as sticking, and free to move

    Deviation: T10 does not speak of the apex, where break, stick and slip meet. With `apex_sticks` it is the
    state that T10 starts from; otherwise it is a point of the plane, between break and stick.
    """
    n, d = x.shape
    of = system.region(x)
    F = blocks(x, system.b, system.mu, of)
    B = np.broadcast_to(np.eye(d), (n, d, d))
    kept = np.ones((n, d), bool)
    none = np.zeros(n, bool)
    edges = edges_at(system, x)
    on = edges.plane | edges.cone
    if not np.any(on):
        return LocalModel(F, B, kept, none, none, False)
    tried = apex_sticks and bool(np.any(edges.apex))
    if tried:
        F[edges.apex] = -np.eye(d)
        on &= ~edges.apex
    if not mixed or not np.any(on):
        return LocalModel(F, B, kept, none, none, tried)

    k = np.flatnonzero(on)
    at, b, mu, cone = x[k], system.b[k], system.mu[k], edges.cone[k]
    first = np.where(cone, SLIP, BREAK)
    second = np.where(cone | edges.apex[k], STICK, SLIP)
    normal = edge_normal(at, mu, cone)
    pull, own = system.pulled(r)[k], r[k]

    def slope(side: np.ndarray) -> np.ndarray:
        """r^T J d with the Jacobian of that side."""
        Fd = impulse_along(at, b, mu, side, normal)
        return np.asarray(np.einsum("ni,ni->n", Fd, pull) - np.einsum("ni,ni->n", own, normal))

    delta_1, delta_2 = slope(first), -slope(second)  # 25
    active = (delta_1 >= 0) & (delta_2 >= 0)
    total = delta_1 + delta_2
    share = np.where(active, np.where(total > 0, delta_2 / np.maximum(total, TINY), 0.5), delta_1 < delta_2)
    F_1, F_2 = blocks(at, b, mu, first), blocks(at, b, mu, second)
    F[k] = share[:, None, None] * F_1 + (1 - share)[:, None, None] * F_2  # 26
    plane, cone_active = none.copy(), none.copy()
    plane[k], cone_active[k] = active & ~cone, active & cone
    if bases:
        B = B.copy()
        B[plane] = np.roll(np.eye(d), -1, axis=1)  # 29: the normal comes last, and is left out
        B[cone_active] = cone_basis(x[cone_active], system.mu[cone_active])
        kept[plane | cone_active, -1] = False
    return LocalModel(F, B, kept, plane, cone_active, tried)


def edge_normal(x: np.ndarray, mu: np.ndarray, cone: np.ndarray) -> np.ndarray:
    """Unit normals (n, d): of a plane towards break, of a cone towards slip."""
    rho = np.maximum(friction_norm(x), TINY)
    out = np.zeros_like(x)
    out[:, 0] = np.where(cone, mu, 1.0)
    out[:, 1:] = np.where(cone, 1 / rho, 0.0)[:, None] * x[:, 1:]
    return np.asarray(out / np.sqrt(np.where(cone, 1 + mu**2, 1.0))[:, None])


def cone_basis(x: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """Orthonormal (n, d, d): the cone's generator, the directions across it, the normal last [T10, eq. 29].

    Erratum: (29) prints mu (x_1 - b) in the generator, which is tangent for mu = 1 alone; it is
    (x_1 - b, x_2, x_3), on the cone (-|x_F|/mu, x_F). Columns are orthonormal: (28) projects with B B^T.
    """
    n, d = x.shape
    u = x[:, 1:] / np.maximum(friction_norm(x), TINY)[:, None]
    B = np.zeros((n, d, d))
    B[:, 0, 0], B[:, 1:, 0] = -1.0, mu[:, None] * u
    B[:, 0, -1], B[:, 1:, -1] = mu, u
    B /= np.sqrt(1 + mu**2)[:, None, None]
    if d > 2:
        # a reflection that takes the first axis to -sign u; its other columns are orthogonal to u
        h = u.copy()
        h[:, 0] += np.where(u[:, 0] >= 0, 1.0, -1.0)
        h /= np.linalg.norm(h, axis=1)[:, None]
        reflection = np.eye(d - 1) - 2 * h[:, :, None] * h[:, None, :]
        B[:, 0, 1:-1] = 0.0
        B[:, 1:, 1:-1] = reflection[:, :, 1:]
    return B


def on_cone_edge(x: np.ndarray, b: np.ndarray, mu: np.ndarray, u: np.ndarray | None = None) -> np.ndarray:
    """The points (n, d) of the friction cones |x_F| = -mu (x_N - b) nearest to x [T10, section III-D].

    On the generator (-1, mu u) the distance from the apex is (mu |x_F| - x_N + b) / sqrt(1 + mu^2); where it
    is not positive the apex is nearest. On the cone's axis all u are alike: `u` (n, d - 1) then decides.
    """
    y, rho = x[:, 0] - b, friction_norm(x)
    along = np.maximum(mu * rho - y, 0.0) / (1 + mu**2)
    axis = np.eye(1, x.shape[1] - 1) if u is None else u
    direction = np.where((rho > 0)[:, None], x[:, 1:] / np.maximum(rho, TINY)[:, None], axis)
    out = np.empty_like(x)
    out[:, 0] = b - along
    out[:, 1:] = (mu * along)[:, None] * direction
    return out
