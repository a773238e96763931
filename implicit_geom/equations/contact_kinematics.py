"""Kinematics of a contact: poses at the end of the step [C07, eq. 2], velocities of points, slip W^T nu."""

from __future__ import annotations

import casadi as ca

from implicit_geom.equations.unknowns import PairKind, Symbols
from implicit_geom.rotation import exp_symbolic, planar_symbolic


def velocities(kind: PairKind, s: Symbols) -> list[ca.SX]:
    """Velocities of the two bodies; zero where one is fixed."""
    return [nu if move else ca.SX.zeros(nu.shape) for nu, move in zip(s.nu, kind.moves, strict=True)]


def slip(kind: PairKind, nu: list[ca.SX], points: tuple[ca.SX, ca.SX], frame: tuple[ca.SX, ...]) -> ca.SX:
    """(v_t, v_o, v_r) = (W_t, W_o, W_r)^T nu [C07, eq. 5] of the kept components; frame (n, t, o).

    `points` are those of the two bodies from their centres of mass.
    """
    n, t, o = frame
    dim = kind.first.dim
    relative = point_velocity(nu[1], points[1]) - point_velocity(nu[0], points[0])
    spin = ca.dot(n, nu[1][dim:] - nu[0][dim:]) if dim == 3 else ca.SX(0)
    values = {"t": ca.dot(t, relative), "o": ca.dot(o, relative), "r": spin}
    return ca.vertcat(ca.SX(0, 1), *[values[c] for c in kind.components])


def cross(r: ca.SX, f: ca.SX) -> ca.SX:
    """r x f, the moment of a force; a number in the plane."""
    return ca.cross(r, f) if r.numel() == 3 else r[0] * f[1] - r[1] * f[0]


def point_velocity(nu: ca.SX, r: ca.SX) -> ca.SX:
    """v + omega x r."""
    if r.numel() == 3:
        return nu[:3] + ca.cross(nu[3:], r)
    return nu[:2] + nu[2] * ca.vertcat(-r[1], r[0])


def end_rotation(R: ca.SX, nu: ca.SX, h: ca.SX) -> ca.SX:
    """R+ = exp(h omega) R, the orientation at the end of the step [C07, eqs. 2, 4].

    Deviation: C07 adds h G nu to a quaternion, which leaves the unit sphere; this is a rotation to rounding.
    """
    if nu.numel() == 6:
        return exp_symbolic(h * nu[3:]) @ R
    return planar_symbolic(h * nu[2]) @ R
