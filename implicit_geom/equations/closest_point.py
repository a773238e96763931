"""Closest points as equations [C07, eqs. 9 and 22], with signed gap and common normal.

For bodies {f_i <= 0} and {g_j <= 0}, unknowns a1, d, n and the multipliers l, k:

    a2 = a1 + d n
    n  =  sum_i l_i grad f_i(a1),    0 <= l_i  _|_ -f_i(a1) >= 0
    n  = -sum_j k_j grad g_j(a2),    0 <= k_j  _|_ -g_j(a2) >= 0
    n . n = 1

Deviation: C07 (9) divides by |a1 - a2|, which has no derivative at contact; here d keeps its sign
and everything is smooth through d = 0. A body of one smooth surface needs no complementarity row:
its closest point lies on the surface, f(a) = 0. A half-space knows its normal, so n, d and its
multiplier drop out.

Points are unknown as vectors r from the body's centre of mass in world axes: while a body rolls
they barely change, which makes the last step's value a good start for the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from implicit_geom.equations import complementarity as cc
from implicit_geom.shapes.shape import Cone, Constraint, Inequality, Shape, Slab


@dataclass(frozen=True)
class SurfaceRows:
    """One body's side of the closest-point conditions at a point."""

    normal: ca.SX  # sum_i l_i grad f_i in world axes
    rows: ca.SX  # complementarity rows in metres, one per multiplier


def is_halfspace(shape: Shape) -> bool:
    return shape.kind in ("halfspace", "halfplane")


def single_surface(constraints: list[Constraint]) -> bool:
    return len(constraints) == 1 and isinstance(constraints[0], Inequality)


def multiplier_count(shape: Shape) -> int:
    """How many multipliers the shape's constraints carry."""
    x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
    return sum(1 + c.u.numel() if isinstance(c, Cone) else 1 for c in shape.constraints(x, theta))


def sign_mask(shape: Shape) -> np.ndarray:
    """1 where a multiplier must not be negative, 0 where its sign is free."""
    x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
    mask: list[float] = []
    for c in shape.constraints(x, theta):
        if isinstance(c, Cone):
            mask += [1.0] + [0.0] * c.u.numel()
        else:
            mask.append(0.0 if isinstance(c, Slab) else 1.0)
    return np.array(mask)


def surface_rows(
    shape: Shape, y: ca.SX, theta: ca.SX, R_WB: ca.SX, multipliers: ca.SX, c: ca.SX, eps: ca.SX | None
) -> SurfaceRows:
    """The normal and the rows of `shape` at the point y (shape's frame).

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
        if isinstance(g, Cone):
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
