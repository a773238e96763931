"""Closest points of two bodies as equations, the KKT rows [C07, eqs. 9 and 22], with signed gap and normal.

Bodies are intersections {f_i <= 0}, {g_j <= 0} of convex inequalities [C07, eq. 19]. Their closest points
a1, a2 solve argmin |a1 - a2|^2 over both [C07, eq. 7]; its KKT conditions [C07, eqs. 8, 20] in the unknowns
a1, d, n and the multipliers l, k are

    a2 = a1 + d n
    n  =  sum_i l_i grad f_i(a1),    0 <= l_i  _|_ -f_i(a1) >= 0
    n  = -sum_j k_j grad g_j(a2),    0 <= k_j  _|_ -g_j(a2) >= 0
    n . n = 1

Deviation: C07 (9) and (22) divide by |a1 - a2|, which has no derivative at contact; here d keeps its sign
and everything is smooth through d = 0. The gap is d, a length, where C07 (6) and (19) take f(a2). C07 (21)
and (22) keep the active constraints alone, once they are known; here the complementarity rows of (20) find
them. A body of one smooth surface needs none: its closest point lies on the surface, f(a) = 0 [C07, eq. 9].
A half-space knows its normal, so n, d and its multiplier drop out.

Points are unknown as vectors r from the body's centre of mass in world axes: while a body rolls
they barely change, which makes the last step's value a good start for the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca

from implicit_geom.equations import complementarity as cc
from implicit_geom.equations.constraints import single_surface
from implicit_geom.equations.contact_kinematics import end_rotation, velocities
from implicit_geom.equations.unknowns import PairKind, Symbols
from implicit_geom.shapes.shape import ConeConstraint, Shape, Slab

Turned = Callable[[Symbols], ca.SX]


@dataclass(frozen=True)
class ClosestPointRows:
    """Closest points at the end-of-step poses, as expressions, and the KKT rows that they satisfy."""

    r1: ca.SX  # from the centres of mass, world axes, m
    r2: ca.SX
    n: ca.SX
    d: ca.SX  # gap, m
    R: tuple[ca.SX, ca.SX]  # orientations there
    rows: ca.SX  # dimensionless


def closest_point_rows(
    kind: PairKind, s: Symbols, smooth: bool, turned: Turned | None = None
) -> ClosestPointRows:
    """The KKT rows [C07, eqs. 9, 22] at the end-of-step poses x + h v, exp(h omega) R [C07, eq. 2].

    `turned` gives the second body's orientation there in another form.
    """
    dim, at = kind.first.dim, kind.layout.at
    h, L, U = s["h"], s["L"], s["U"]
    length = ca.fabs(h) * U
    eps = s["eps"] * ca.fmin(L, length) if smooth else None
    velocity = velocities(kind, s)
    R = (
        end_rotation(s.matrix("R1"), velocity[0], h),
        end_rotation(s.matrix("R2"), velocity[1], h) if turned is None else turned(s),
    )
    offset = s["offset"] + h * (velocity[1][:dim] - velocity[0][:dim])
    if kind.layout.known_normal:
        r2 = L * s.u[at["r"]]
        n = R[0] @ s["theta1"][:dim]
        height = ca.dot(s["theta1"][:dim], s["com1"]) - s["theta1"][dim]
        d = ca.dot(n, offset + r2) + height
        r1 = offset + r2 - d * n
        body = surface_rows(
            kind.second, R[1].T @ r2 + s["com2"], s["theta2"], R[1], s.u[at["k"]], s["c"], eps
        )
        return ClosestPointRows(r1, r2, n, d, R, ca.vertcat(n + body.normal, body.rows / length))
    r1, n, d = L * s.u[at["r"]], s.u[at["n"]], ca.fabs(h) * s.u[at["D"]]
    r2 = r1 + d * n - offset
    one = surface_rows(kind.first, R[0].T @ r1 + s["com1"], s["theta1"], R[0], s.u[at["l"]], s["c"], eps)
    two = surface_rows(kind.second, R[1].T @ r2 + s["com2"], s["theta2"], R[1], s.u[at["k"]], s["c"], eps)
    rows = ca.vertcat(
        one.normal - n,
        (ca.sumsqr(n) - 1) / 2,
        two.normal + n,
        one.rows / length,
        two.rows / length,
    )
    return ClosestPointRows(r1, r2, n, d, R, rows)


@dataclass(frozen=True)
class SurfaceRows:
    """One body's side of the KKT conditions at a point [C07, eq. 20]."""

    normal: ca.SX  # sum_i l_i grad f_i in world axes
    rows: ca.SX  # complementarity rows in metres, one per multiplier


def surface_rows(
    shape: Shape, y: ca.SX, theta: ca.SX, R_WB: ca.SX, multipliers: ca.SX, c: ca.SX, eps: ca.SX | None
) -> SurfaceRows:
    """The normal sum_i l_i grad f_i and the rows 0 <= l_i _|_ -f_i >= 0 of `shape` at y [C07, eqs. 20, 22].

    y and theta are in the shape's frame.
    The rows are natural maps in metres, with multipliers weighed as c * l; any c > 0 has the same solutions.
    """
    # Derivatives are taken at a fresh symbol and substituted, because y is an expression.
    x = ca.SX.sym("x", shape.dim)
    constraints = shape.constraints(x, theta)
    alone = single_surface(constraints)
    normal_B = ca.SX.zeros(shape.dim)
    rows = []
    used = 0
    for g in constraints:
        if isinstance(g, ConeConstraint):
            count = g.u.numel()
            scale, direction = multipliers[used], multipliers[used + 1 : used + 1 + count]
            # the normal cone at |u| <= t: (scale, direction) in the dual cone, orthogonal to (t, -u)
            normal_B += ca.jacobian(g.u, x).T @ direction - ca.gradient(g.t, x) * scale
            t, u = cc.second_order_cone(c * scale - g.t, c * direction + g.u, eps)
            rows += [c * scale - t, c * direction - u]
            used += 1 + count
            continue
        multiplier = multipliers[used]
        normal_B += multiplier * ca.gradient(g.f, x)
        if isinstance(g, Slab):
            rows.append(g.f - cc.interval(g.f + c * multiplier, g.bound, eps))
        elif alone:
            rows.append(g.f)
        else:
            rows.append(c * multiplier - cc.plus(c * multiplier + g.f, eps))
        used += 1
    normal_B, stacked = ca.substitute([normal_B, ca.vertcat(*rows)], [x], [y])
    return SurfaceRows(R_WB @ normal_B, stacked)
