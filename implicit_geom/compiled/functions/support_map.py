"""Closest points to a half-space [C07, eq. 9] in closed form, as SX, for shapes whose support map is known.

The point of a body that is deepest in a half-space depends on the body's pose alone. Where it has a closed
form with a derivative everywhere, a compiled step need not have it among its unknowns.
"""

from __future__ import annotations

import casadi as ca

from implicit_geom.shapes.shape import Shape

AXES = {"ellipsoid": (0, 1, 2), "sphere": (0, 0, 0), "ellipse": (0, 1), "disc": (0, 0)}  # places in theta


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
