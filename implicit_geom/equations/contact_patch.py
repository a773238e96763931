"""Contact patches: the directions in which two touching bodies are flat, along a line or a face.

With the multipliers l, k of the closest-point conditions, the gap between the bodies a small step y away
from the contact point, in the tangent plane, is y'C y / 2 with

    C = sum_i l_i (f_i'' + grad f_i grad f_i' / L) + sum_j k_j (g_j'' + grad g_j grad g_j' / L)

(the second terms stand for edges: along their gradients the bodies part at once). C is positive
semi-definite; its null directions in the tangent plane are those of the patch.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from implicit_geom.equations import complementarity as cc
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.equations.unknowns import PairKind, Symbols
from implicit_geom.shapes.shape import ConeConstraint, Shape, Slab

APEX = 1e-9  # distance from a cone's apex, over the smaller body's size, that counts as none
FLAT = 1e-6  # a curvature below this, over the smaller body's size, counts as none


def curvature_form(kind: PairKind) -> ca.Function:
    """C of a kind of pair at the start of the step, world axes, 1/m; a function of (l, k, parameters)."""
    s = Symbols(kind)
    dim = kind.first.dim
    layout = kind.layout
    one, two = ca.SX.sym("l", layout.first), ca.SX.sym("k", layout.second)
    C = ca.SX.zeros(dim, dim)
    for i, shape, multipliers in ((1, kind.first, one), (2, kind.second, two)):
        if is_halfspace(shape):
            continue
        R = s.matrix(f"R{i}")
        local = R.T @ s[f"r{i}"] + s[f"com{i}"]
        C += R @ _form(shape, local, s[f"theta{i}"], multipliers, s["L"]) @ R.T
    return ca.Function("curvature", [ca.vertcat(one, two), s.parameters], [ca.densify(C)])


def _form(shape: Shape, y: ca.SX, theta: ca.SX, multipliers: ca.SX, L: ca.SX) -> ca.SX:
    x = ca.SX.sym("x", shape.dim)
    C = ca.SX.zeros(shape.dim, shape.dim)
    used = 0
    for g in shape.constraints(x, theta):
        weight = multipliers[used]
        if isinstance(g, ConeConstraint):
            f = cc.length(g.u) - g.t
            used += 1 + g.u.numel()
            # at the apex |u| has no second derivative: the body parts in every direction
            across = ca.jacobian(g.u, x)
            C += ca.if_else(ca.sumsqr(g.u) < (APEX * L) ** 2, weight, 0) * across.T @ across / L
        else:
            f = g.f
            if isinstance(g, Slab):
                C += ca.fabs(weight) * ca.gradient(f, x) @ ca.gradient(f, x).T / L
                used += 1
                continue
            used += 1
        gradient = ca.gradient(f, x)
        C += weight * (ca.hessian(f, x)[0] + gradient @ gradient.T / L)
    return ca.substitute(C, x, y)


def patch_projector(C: np.ndarray, n: np.ndarray, L: np.ndarray) -> np.ndarray:
    """Projectors on the flat tangential directions; (N, dim, dim), (N, dim), (N,) -> (N, dim, dim)."""
    dim = n.shape[1]
    tangential = np.eye(dim) - n[:, :, None] * n[:, None, :]
    form = L[:, None, None] * (tangential @ C @ tangential) + n[:, :, None] * n[:, None, :]
    values, vectors = np.linalg.eigh(form)
    kept = vectors * (values < FLAT)[:, None, :]
    return kept @ np.swapaxes(vectors, -1, -2)
