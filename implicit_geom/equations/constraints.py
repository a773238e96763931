"""The constraints {f_i <= 0} of a shape [C07, eq. 19]: how many multipliers they carry, of which sign."""

from __future__ import annotations

import casadi as ca
import numpy as np

from implicit_geom.shapes.shape import ConeConstraint, Constraint, Inequality, Shape, Slab


def is_halfspace(shape: Shape) -> bool:
    return shape.kind in ("halfspace", "halfplane")


def single_surface(constraints: list[Constraint]) -> bool:
    return len(constraints) == 1 and isinstance(constraints[0], Inequality)


def multiplier_count(shape: Shape) -> int:
    """How many multipliers the shape's constraints carry."""
    x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
    return sum(1 + c.u.numel() if isinstance(c, ConeConstraint) else 1 for c in shape.constraints(x, theta))


def sign_mask(shape: Shape) -> np.ndarray:
    """1 where a multiplier must not be negative, 0 where its sign is free."""
    x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
    mask: list[float] = []
    for c in shape.constraints(x, theta):
        if isinstance(c, ConeConstraint):
            mask += [1.0] + [0.0] * c.u.numel()
        else:
            mask.append(0.0 if isinstance(c, Slab) else 1.0)
    return np.array(mask)
