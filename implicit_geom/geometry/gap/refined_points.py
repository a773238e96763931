"""Closest points to the last digit, by Newton's method on the closest-point equations [C07, eq. 22].

A solution is taken where it is proved: its normal keeps the bodies as far apart as its gap says, and a hull
of support points (`geometry.gap.expanding_hull`) says that no other direction does so better. Where Newton's
method fails (lines and faces that are nearly parallel, depths that are the same all round) the hull's own
points are the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from implicit_geom.geometry.gap.differences import best_across
from implicit_geom.geometry.gap.expanding_hull import HullGap
from implicit_geom.model.closest_point_problem import ClosestPoints, ClosestPointSystem
from implicit_geom.model.placed_shape import halfspace_plane
from implicit_geom.solvers.newton import NewtonOptions, NewtonResult, follow_path, solve_by_newton

ROUNDING = 1e3  # multiple of the tolerance that rounding may leave on the rows
PROVED = 1e-12  # by which a gap may exceed the separation along its normal, over the smaller body's size
ROUNDED = 16  # and over the rounding of coordinates
CLOSE = 1e-10  # between the bounds of a gap, over the smaller body's size
STARTS = 8  # directions that are followed up where support points are samples
OPTIONS = NewtonOptions(damped_steps=30)

Method = Callable[[ClosestPointSystem, np.ndarray, NewtonOptions], NewtonResult]


@dataclass(frozen=True)
class ClosestSolution:
    """Closest points together with the geometry unknowns (`UnknownLayout`, with h = 1) that produced them."""

    points: ClosestPoints
    unknowns: np.ndarray


def separated(system: ClosestPointSystem, n: np.ndarray) -> np.ndarray | None:
    """Closest points at once from a guessed direction: phi has a single maximum where it is positive."""
    s = solve_by_newton(system, next(system.starts(n)), OPTIONS, damped=False)
    if not (s.converged and system.certified(s.z) and system.gap(s.z) >= 0):
        return None
    return s.z if _sampled(system) or _proved(system, s.z) else None


def from_samples(system: ClosestPointSystem, hull: HullGap, short: float) -> np.ndarray | None:
    """The closest points of bodies whose support points are samples, near a hull of those.

    short   m by which support points may fall short of the bodies' surfaces
    """
    normals = _spread(hull.normals)
    for attempt in (solve_by_newton, follow_path):
        solved = [_solved(system, attempt, system.starts(n), hull, short)[0] for n in normals]
        good = [z for z in solved if z is not None]
        if good:
            return max(good, key=system.gap)
    return None


def refined(system: ClosestPointSystem, hull: HullGap) -> ClosestSolution:
    """The digits of closest points that are known between bounds, as far as Newton's method finds them."""
    c, n = hull.points, system.layout.at["n"]
    found, tried = _solved(
        system, solve_by_newton, [_unknowns(system, c), *system.starts(hull.normals[0])], hull
    )
    if found is None and hull.most - hull.least > _slack(system) and not _sampled(system):
        # depths that hardly differ all round an axis: the best of what was met, and of that turned about axes
        for turned in (True, False):
            better = best_across(system.a, system.b, [c.normal, *(z[n] for z in tried)], turned)
            if better.gap > c.gap + PROVED * system.length:
                c = better
            found, tried = _solved(system, solve_by_newton, [_unknowns(system, c)] if turned else [], hull)
            if found is not None:
                break
    z = _unknowns(system, c) if found is None else found
    return ClosestSolution(system.points(z), z)


def _slack(system: ClosestPointSystem) -> float:
    """What may be left between the bounds of a gap, m."""
    return 2 * CLOSE * system.length + ROUNDED * system.rounding


def _unknowns(system: ClosestPointSystem, c: ClosestPoints) -> np.ndarray:
    return system.start(c.normal, c.point_a, c.point_a + c.gap * c.normal)


def _solved(
    system: ClosestPointSystem,
    attempt: Method,
    starts: Iterable[np.ndarray],
    hull: HullGap,
    short: float = 0.0,
) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """The first solution of the closest-point equations within a hull's bounds, and all that were tried."""
    slack = _slack(system)
    tried = []
    for z0 in starts:
        s = attempt(system, z0, OPTIONS)
        tried.append(s.z)
        # rounding may keep the rows of a strongly curved body a little above the tolerance
        if not (s.converged or system.measure(s.z) < ROUNDING) or not system.certified(s.z):
            continue
        gap = system.gap(s.z)
        within = hull.least - slack - short <= gap <= hull.most + slack
        if within and (_sampled(system) or _proved(system, s.z)):
            return s.z, tried
    return None, tried


def _proved(system: ClosestPointSystem, z: np.ndarray) -> bool:
    """Whether the normal of a solution keeps the bodies as far apart as its gap says."""
    n = z[system.layout.at["n"]] if not system.layout.known_normal else halfspace_plane(system.a)[0]
    towards = n @ system.b.from_centre(-n[None])[0] + n @ (system.b.x - system.a.x)
    if system.layout.known_normal:
        reach = halfspace_plane(system.a)[1] - n @ system.a.x
    else:
        reach = n @ system.a.from_centre(n[None])[0]
    return bool(towards - reach >= system.gap(z) - PROVED * system.length - ROUNDED * system.rounding)


def _sampled(system: ClosestPointSystem) -> bool:
    """Whether a body has no support points but samples."""
    return not all(body.shape.support_exact for body in (system.a, system.b) if body.shape.bounded)


def _spread(normals: np.ndarray) -> list[np.ndarray]:
    """The first of some directions, at least 0.35 rad apart."""
    chosen: list[np.ndarray] = []
    for n in normals:
        if all(n @ other < np.cos(0.35) for other in chosen):
            chosen.append(n)
        if len(chosen) == STARTS:
            break
    return chosen
