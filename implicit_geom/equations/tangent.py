"""The contact frame: tangents t, o along a given reference, or a world axis kept while it is across n.

In space t is the reference without its part along n, o = n x t; in the plane t is n turned by -90 degrees.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from implicit_geom.equations import complementarity as cc
from implicit_geom.equations.thresholds import TANGENT_KEPT


def tangents(
    n: ca.SX, reference: ca.SX, frame: str = "free", R: tuple[ca.SX, ca.SX] | None = None
) -> tuple[ca.SX, ca.SX]:
    """t and o; `frame` says to which body, of orientations R, the reference is attached: first or second."""
    if n.numel() == 2:
        return ca.vertcat(n[1], -n[0]), ca.SX.zeros(2)
    if R is not None and frame in ("first", "second"):
        reference = R[0 if frame == "first" else 1] @ reference
    along = reference - ca.dot(reference, n) * n
    t = along / cc.length(along)
    return t, ca.cross(n, t)


def references(n: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Reference directions for normals n, (N, dim) each: the last ones, or the world axes most across n.

    Rows of zeros in `last` stand for none.
    """
    kept = (np.abs(np.einsum("ni,ni->n", last, n)) < TANGENT_KEPT) & np.any(last != 0, axis=1)
    axes = np.eye(n.shape[1])[np.argmin(np.abs(n), axis=1)]
    return np.where(kept[:, None], last, axes)


def reference_symbolic(n: ca.SX, last: ca.SX) -> ca.SX:
    """`references` of one contact, as an expression."""
    dim = n.numel()
    away = [ca.fabs(n[i]) for i in range(dim)]
    fresh = ca.DM(np.eye(dim)[dim - 1])
    for i in reversed(range(dim - 1)):
        least = away[i] <= away[i + 1]
        for j in range(i + 2, dim):
            least = ca.logic_and(least, away[i] <= away[j])
        fresh = ca.if_else(least, ca.DM(np.eye(dim)[i]), fresh)
    return ca.if_else(ca.fabs(ca.dot(last, n)) < TANGENT_KEPT, last, fresh)
