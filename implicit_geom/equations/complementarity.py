"""Complementarity as equations: natural maps z - Proj_K(z - w) = 0, exact and smoothed.

Each function returns the projection; a law is then `z - projection(z - w) = 0`. With a smoothing
length eps the projections are smooth and tend to the exact ones as eps -> 0 (Chen-Harker-Kanzow-
Smale smoothing of max, applied to the spectral values where the set is a cone). The Newton core
uses eps = 0; the smoothing path is only a way to find a start.
"""

from __future__ import annotations

import casadi as ca

TINY = 1e-30  # guards square roots at zero: sqrt(fmax(y, TINY)) has a finite derivative


def length(y: ca.SX) -> ca.SX:
    """|y| with a derivative at zero."""
    return ca.sqrt(ca.fmax(ca.sumsqr(y), TINY))


def plus(x: ca.SX, eps: ca.SX | None) -> ca.SX:
    """max(x, 0), the projection on the half-line."""
    if eps is None:
        return ca.fmax(x, 0)
    return (x + ca.sqrt(x**2 + 4 * eps**2)) / 2


def interval(x: ca.SX, bound: ca.SX, eps: ca.SX | None) -> ca.SX:
    """The projection on [-bound, bound]."""
    if eps is None:
        return ca.fmin(ca.fmax(x, -bound), bound)
    return plus(x + bound, eps) - plus(x - bound, eps) - bound


def ball(y: ca.SX, radius: ca.SX, eps: ca.SX | None) -> ca.SX:
    """The projection on the ball of the given radius >= 0."""
    if eps is None:
        inside = ca.sumsqr(y) < radius**2
        return ca.if_else(inside, y, radius / length(y) * y)
    norm = ca.sqrt(ca.sumsqr(y) + eps**2)
    return radius / (radius + plus(norm - radius, eps)) * y


def second_order_cone(t: ca.SX, u: ca.SX, eps: ca.SX | None) -> tuple[ca.SX, ca.SX]:
    """The projection of (t, u) on the cone |u| <= t, by its spectral values t -+ |u|."""
    norm = length(u) if eps is None else ca.sqrt(ca.sumsqr(u) + eps**2)
    low, high = plus(t - norm, eps), plus(t + norm, eps)
    return (low + high) / 2, (high - low) / (2 * norm) * u
