"""Flat parts of two bodies that face each other: what they share, by its extreme points.

A part is a face (three points or more, in order), a line (two), or the rim of a round face: its points then
stand for a circle, which is clipped as one. The prism over the one part, along its normal, cuts out of the
other what is opposite. Polygons are clipped by Sutherland and Hodgman's method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.geometry.supporting_features import RIM
from implicit_geom.process.lazy import cached_property

LEVEL = 1e-2  # rad between two faces that lie on each other; one that is steeper has its rim's points alone


@dataclass(frozen=True)
class Flat:
    """A flat part of a body.

    points   (k, dim) extreme points in order, world axes, m; of a circle first `RIM` in order, then any
    n        (dim,) direction that it faces
    round    whether the points are on the rim of a circle
    """

    points: np.ndarray
    n: np.ndarray
    round: bool

    @cached_property
    def normal(self) -> np.ndarray:
        """Unit normal of a face, on the side that it faces."""
        face = self.points[:RIM] if self.round else self.points
        if self.n.size == 2:
            along = face[1] - face[0]
            m = np.array([along[1], -along[0]])
        else:
            m = np.sum(np.cross(face - face[0], np.roll(face, -1, axis=0) - face[0]), axis=0)
        m = m / max(float(np.linalg.norm(m)), 1e-300)
        return m if m @ self.n >= 0 else -m

    @cached_property
    def centre(self) -> np.ndarray:
        return np.asarray((self.points[:RIM] if self.round else self.points).mean(axis=0))

    @cached_property
    def radius(self) -> float:
        """Of the circle, where it is one."""
        return float(np.linalg.norm(self.points[0] - self.centre))

    @cached_property
    def sides(self) -> list[tuple[np.ndarray, float]]:
        """Outward normals and offsets of the prism over a face."""
        face, m, centre = self.points, self.normal, self.centre
        if m.size == 2:
            outward = (face - centre) / np.linalg.norm(face - centre, axis=1)[:, None]
        else:
            outward = np.cross(np.roll(face, -1, axis=0) - face, m)
            outward /= np.linalg.norm(outward, axis=1)[:, None]
            outward *= np.sign(np.sum(outward * (face - centre), axis=1))[:, None]
        return [(side, float(side @ corner)) for side, corner in zip(outward, face, strict=True)]

    def holds(self, points: np.ndarray, slack: float) -> np.ndarray:
        """Which points are in the prism over it, or out of it by no more than `slack`."""
        if self.round:
            return np.asarray(np.linalg.norm(self.across(points), axis=1) <= self.radius + slack)
        return np.all([points @ side <= offset + slack for side, offset in self.sides], axis=0)

    def across(self, points: np.ndarray) -> np.ndarray:
        """From the axis through its centre to points, along the plane."""
        away = points - self.centre
        return np.asarray(away - (away @ self.normal)[:, None] * self.normal)

    def lifted(self, points: np.ndarray, m: np.ndarray) -> np.ndarray:
        """Points moved along m into its plane."""
        return np.asarray(points + ((self.points[0] - points) @ self.normal / (m @ self.normal))[:, None] * m)


def opposite(own: Flat, other: Flat, slack: float) -> np.ndarray:
    """(k, dim) extreme points of the part of `other` that is in the prism over the face `own`.

    slack   m by which sides that lie on each other may miss each other
    """
    if not (own.round or other.round):
        points = other.points
        for side, offset in own.sides:
            points = _clipped(points, side, offset, slack)
        return points
    found = [other.points[own.holds(other.points, slack)]]
    level = len(other.points) > 2 and float(np.linalg.norm(own.normal + other.normal)) < LEVEL
    if level:
        found.append(other.lifted(own.points[other.holds(own.points, slack)], own.normal))
    if not other.round:
        found.append(_crossings(other.points, own))
    elif level and own.round:
        found.append(other.lifted(_two_circles(own, other), own.normal))
    elif level:
        found.append(other.lifted(_crossings(own.points, other), own.normal))
    return np.vstack(found)


def _crossings(polygon: np.ndarray, circle: Flat) -> np.ndarray:
    """Where the sides of a polygon, or a line, cross the cylinder over a circle."""
    start = np.roll(polygon, 1, axis=0) if len(polygon) > 2 else polygon[:1]
    end = polygon if len(polygon) > 2 else polygon[1:]
    p = circle.across(start)
    d = circle.across(end) - p
    a, b = np.sum(d * d, axis=1), np.sum(p * d, axis=1)
    c = np.sum(p * p, axis=1) - circle.radius**2
    root = b * b - a * c
    out = []
    for sign in (-1.0, 1.0):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (-b + sign * np.sqrt(root)) / a
        met = (root >= 0) & (t >= 0) & (t <= 1)
        out.append(start[met] + t[met, None] * (end - start)[met])
    return np.vstack(out)


def _two_circles(own: Flat, other: Flat) -> np.ndarray:
    """Where two circles in nearly one plane cross, in the plane of the first."""
    between = own.across(other.centre[None])[0]
    length = float(np.linalg.norm(between))
    if not abs(own.radius - other.radius) <= length <= own.radius + other.radius or length == 0:
        return np.zeros((0, 3))
    along = (length**2 + own.radius**2 - other.radius**2) / (2 * length)
    half = np.sqrt(max(own.radius**2 - along**2, 0.0))
    u = between / length
    v = np.cross(own.normal, u)
    return np.array([own.centre + along * u + half * v, own.centre + along * u - half * v])


def _clipped(points: np.ndarray, n: np.ndarray, offset: float, slack: float) -> np.ndarray:
    """The part of a convex polygon, or of a line, with n . p <= offset; what is out by `slack` is on it."""
    out = []
    height = points @ n - offset
    height = np.where(np.abs(height) <= slack, 0.0, height)
    for k in range(len(points)):
        here, there = height[k - 1], height[k]
        if here * there < 0:
            out.append(points[k - 1] + here / (here - there) * (points[k] - points[k - 1]))
        if there <= 0:
            out.append(points[k])
    return np.array(out).reshape(-1, n.size)
