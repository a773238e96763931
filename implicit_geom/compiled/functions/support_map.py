"""Closest points to a half-space [C07, eq. 9] in closed form, as SX, for shapes whose support map is known.

The point of a body that is deepest in a half-space depends on the body's pose alone. Where it has a closed
form with a derivative everywhere, a compiled step need not have it among its unknowns.
"""

from __future__ import annotations

from collections.abc import Hashable

import casadi as ca

from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.shapes.shape import Inequality, Shape

AXES = {"ellipsoid": (0, 1, 2), "sphere": (0, 0, 0), "ellipse": (0, 1), "disc": (0, 0)}  # places in theta


def is_known(kind: PairKind) -> bool:
    """Whether closest points of a kind of pair are known: a quadric that moves over a fixed half-space."""
    return is_halfspace(kind.first) and kind.moves == (False, True) and kind.second.structure in AXES


def support(shape: Shape, theta: ca.SX, direction: ca.SX) -> ca.SX:
    """The point of the shape farthest along a direction d: x_i = a_i^2 d_i / |a d|, shape's frame."""
    axes = _axes(shape, theta)
    return axes**2 * direction * (1 / ca.sqrt(ca.sumsqr(axes * direction)))


def derivative(shape: Shape, theta: ca.SX, direction: ca.SX, g: ca.SX) -> ca.SX:
    """g S', (n, dim), S' = (diag(a^2) - x x^T) / |a d| the derivative of the support point x by d."""
    axes, x = _axes(shape, theta), support(shape, theta, direction)
    length = ca.sqrt(ca.sumsqr(axes * direction))
    rows = [(row.T * axes**2 - (row @ x) * x).T * (1 / length) for row in ca.vertsplit(ca.densify(g))]
    return ca.vertcat(*rows)


def _axes(shape: Shape, theta: ca.SX) -> ca.SX:
    return ca.vertcat(*[theta[i] for i in AXES[shape.kind]])


def support_value(shape: Shape, theta: ca.SX, direction: ca.SX) -> ca.SX:
    """The support function |a d|: the multiplier k of the surface, k grad f = d, is in proportion to it."""
    return ca.sqrt(ca.sumsqr(_axes(shape, theta) * direction))


_FACTORS: dict[Hashable, ca.Function] = {}  # by kind of shape


def multiplier_factor(shape: Shape) -> float:
    """k over |a d|: a constant of the shape, in 1/m."""
    factor = _FACTORS.get(shape.structure)
    if factor is None:
        x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
        (constraint,) = shape.constraints(x, theta)
        assert isinstance(constraint, Inequality)
        along = ca.SX.eye(shape.dim)[:, 0]
        point = ca.densify(support(shape, theta, along))
        (slope,) = ca.substitute([ca.gradient(constraint.f, x)], [x], [point])
        value = 1 / ca.dot(slope, along) / support_value(shape, theta, along)
        factor = _FACTORS[shape.structure] = ca.Function("factor", [theta], [value])
    return float(factor(shape.values))
