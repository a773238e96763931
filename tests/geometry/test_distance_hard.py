"""distance() where it is hard: nearly parallel, concentric, thin bodies, sizes of 1e-3 and 1e3 together."""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import brute_force
import numpy as np
import pytest
from expanding_hull import depth_bounds

from implicit_geom import distance, shapes
from implicit_geom.geometry.distance import _directions, find_closest_points, place_shape
from implicit_geom.geometry.gap.expanding_hull import Differences, hull_gap
from implicit_geom.rotation import matrix, planar

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
HALF_ROOT = np.sqrt(0.5)
QUARTERS = [
    UPRIGHT,
    (HALF_ROOT, HALF_ROOT, 0, 0),
    (HALF_ROOT, 0, HALF_ROOT, 0),
    (0, 1, 0, 0),
    (0.5, 0.5, 0.5, 0.5),
]


def spatial(s: float) -> dict[str, tuple[Any, Any]]:
    """Each kind, s times its size: the shape, and a support function that does not come from `shapes`."""
    return {
        "sphere": (shapes.sphere(0.7 * s), brute_force.ellipsoid(0.7 * s, 0.7 * s, 0.7 * s)),
        "thin ellipsoid": (
            shapes.ellipsoid(0.05 * s, 0.05 * s, s),
            brute_force.ellipsoid(0.05 * s, 0.05 * s, s),
        ),
        "superellipsoid": (
            shapes.superellipsoid(0.5 * s, s, 0.8 * s, 10),
            brute_force.superellipsoid(0.5 * s, s, 0.8 * s, 10),
        ),
        "cylinder": (shapes.cylinder(0.4 * s, 1.5 * s), brute_force.cylinder(0.4 * s, 1.5 * s)),
        "needle": (shapes.cylinder(0.005 * s, 2 * s), brute_force.cylinder(0.005 * s, 2 * s)),
        "coin": (shapes.cylinder(s, 0.01 * s), brute_force.cylinder(s, 0.01 * s)),
        "thin disc": (shapes.cylinder(0.8 * s, 0), brute_force.cylinder(0.8 * s, 0)),
        "capsule": (shapes.capsule(0.3 * s, 1.2 * s), brute_force.capsule(0.3 * s, 1.2 * s)),
        "cone": (shapes.cone(0.6 * s, 1.1 * s), brute_force.cone(0.6 * s, 1.1 * s)),
        "box": (shapes.box(0.3 * s, 0.5 * s, 0.9 * s), brute_force.box(0.3 * s, 0.5 * s, 0.9 * s)),
    }


def flat(s: float) -> dict[str, tuple[Any, Any]]:
    """The same in the plane."""
    corners = s * np.array([(0, 0), (2, 0), (2.5, 1), (1, 2), (-0.5, 0.8)])
    return {
        "disc": (shapes.disc(0.7 * s), brute_force.ellipsoid(0.7 * s, 0.7 * s)),
        "thin ellipse": (shapes.ellipse(0.05 * s, s), brute_force.ellipsoid(0.05 * s, s)),
        "superellipse": (
            shapes.superellipse(0.5 * s, s, 10),
            brute_force.superellipsoid(0.5 * s, s, 10),
        ),
        "polygon": (shapes.polygon(corners), brute_force.polytope(corners)),
        "rectangle": (shapes.rectangle(0.3 * s, 0.9 * s), brute_force.box(0.3 * s, 0.9 * s)),
    }


HALF = (
    shapes.intersection(shapes.ellipsoid(0.7, 0.5, 0.6), shapes.halfspace((0, 0, 1))),
    brute_force.half_ellipsoid(0.7, 0.5, 0.6),
)
SCALES = {s: {3: spatial(s), 2: flat(s)} for s in (1e-3, 1.0, 1e3)}


def nearly_parallel(rng: np.random.Generator, dim: int) -> tuple[Any, Any]:
    """Two orientations that are quarter turns apart but for 1e-12 to 1e-2 rad."""
    angle = 10 ** rng.uniform(-12, -2) * (rng.random() < 0.85)
    if dim == 2:
        turn = rng.uniform(-np.pi, np.pi)
        return turn, turn + np.pi / 2 * rng.integers(4) + angle
    q = rng.normal(size=4)
    q /= np.linalg.norm(q)
    axis = rng.normal(size=3)
    tilt = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis / np.linalg.norm(axis))])
    return q, product(product(q, np.array(QUARTERS[rng.integers(5)])), tilt)


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    v = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.array([p[0] * q[0] - p[1:] @ q[1:], *v])


def check(a: tuple[Any, Any], pose_a: Any, b: tuple[Any, Any], pose_b: Any) -> None:
    """The gap to 1e-9 of the smaller body (and rounding of the larger one), proved from both sides."""
    found = distance(a[0], pose_a, b[0], pose_b)
    dim, n = a[0].dim, found.normal
    small, large = sorted([a[0].size, b[0].size])
    slack = 1e-9 * small + 1e-14 * (large + float(np.abs(pose_a[0]).max() + np.abs(pose_b[0]).max()))
    R = [planar(turn) if dim == 2 else matrix(turn) for turn in (pose_a[1], pose_b[1])]
    own = [brute_force.Placed(body[1], np.zeros(dim), turn) for body, turn in zip((a, b), R, strict=True)]
    offset = pose_b[0] - pose_a[0]

    def differences(d: np.ndarray) -> np.ndarray:
        return own[0](d) - own[1](-d) - offset

    assert abs(np.linalg.norm(n) - 1) < 1e-9
    # the normal separates the bodies by the gap, so that it is not too large
    assert abs(float(n @ differences(n[None])[0]) + found.gap) < slack
    np.testing.assert_allclose(found.point_b - found.point_a, found.gap * n, rtol=0, atol=slack)
    places = ((a[0], pose_a[0], found.point_a), (b[0], pose_b[0], found.point_b))
    for (shape, x, point), turn in zip(places, R, strict=True):
        assert shape.violation(((point - x) @ turn)[None])[0] < 10 * slack
    # apart, the points prove that it is not too small; overlapping, the hull of the differences
    if found.gap < slack:
        start = np.vstack([brute_force._unit(np.random.default_rng(0).normal(size=(300, dim))), n])
        tolerance = max(1e-7 * small, slack)
        lower, upper, _ = depth_bounds(differences, start, tolerance, rounds=12, most=60)
        assert -found.gap < upper + slack
        assert -found.gap > lower - tolerance


def pairs(dim: int) -> list[tuple[str, str]]:
    return list(combinations_with_replacement(SCALES[1.0][dim], 2))


@pytest.mark.parametrize("dim", [3, 2])
@pytest.mark.parametrize("seed", [1, 2])
def test_concentric(dim: int, seed: int) -> None:
    """All pairs of kinds at one place, nearly parallel or not."""
    for k, (one, two) in enumerate(pairs(dim)):
        rng = np.random.default_rng([seed, k])
        turns = nearly_parallel(rng, dim)
        if k % 2:
            turns = (turns[0], rng.normal(size=4) if dim == 3 else rng.normal())
            turns = (turns[0], turns[1] / np.linalg.norm(turns[1]))
        x = rng.normal(size=dim)
        check(SCALES[1.0][dim][one], (x, turns[0]), SCALES[1.0][dim][two], (x.copy(), turns[1]))


@pytest.mark.parametrize("dim", [3, 2])
@pytest.mark.parametrize("move", [0.3, 0.0, -0.2])
def test_nearly_parallel(dim: int, move: float) -> None:
    """All pairs of kinds side by side: apart, touching, overlapping."""
    kinds = SCALES[1.0][dim]
    for k, (one, two) in enumerate(pairs(dim)):
        rng = np.random.default_rng([3, k])
        turns = nearly_parallel(rng, dim)
        R = planar(turns[0]) if dim == 2 else matrix(turns[0])
        beside(kinds[one], kinds[two], turns, R[:, rng.integers(dim)], move, rng)


def beside(a: Any, b: Any, turns: Any, n: np.ndarray, move: float, rng: np.random.Generator) -> None:
    """b beside a along n, `move` of the smaller size away, and a little aside."""
    dim = n.size
    R = [planar(turn) if dim == 2 else matrix(turn) for turn in turns]
    own = [brute_force.Placed(body[1], np.zeros(dim), turn) for body, turn in zip((a, b), R, strict=True)]
    small = min(a[0].size, b[0].size)
    aside = 0.1 * small * rng.normal(size=dim)
    x = own[0](n[None])[0] - own[1](-n[None])[0] + move * small * n + aside - (n @ aside) * n
    check(a, (np.zeros(dim), turns[0]), b, (x, turns[1]))


@pytest.mark.parametrize("dim", [3, 2])
@pytest.mark.parametrize("move", [0.3, 0.0, -0.2])
def test_small_beside_large(dim: int, move: float) -> None:
    """A body of millimetres beside one of kilometres, of any two kinds."""
    for k, (one, two) in enumerate(pairs(dim)):
        rng = np.random.default_rng([4, k])
        n = rng.normal(size=dim)
        turns = nearly_parallel(rng, dim)
        large, small = SCALES[1e3][dim][one], SCALES[1e-3][dim][two]
        beside(large, small, turns, n / np.linalg.norm(n), move, rng)


@pytest.mark.parametrize("kind", ["sphere", "needle", "cone", "box"])
def test_sampled_support(kind: str) -> None:
    """An intersection, whose support points are samples, concentric and nearly parallel."""
    for k in range(4):
        rng = np.random.default_rng([5, k])
        turns = nearly_parallel(rng, 3)
        x = 0.2 * (k % 2) * rng.normal(size=3)
        check(HALF, (np.zeros(3), turns[0]), SCALES[1.0][3][kind], (x, turns[1]))


@pytest.mark.parametrize("tilt", [1e-12, 2e-8, 1e-5])
@pytest.mark.parametrize("apart", [0.9, 0.8, 0.7])
def test_cylinders_nearly_parallel(tilt: float, apart: float) -> None:
    """Leaning towards each other by a small angle: the gap of the ends, exact to the angle's square."""
    bar = shapes.cylinder(0.4, 1.5)
    turn = (np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0)
    found = distance(bar, ((0, 0, 0), UPRIGHT), bar, ((apart, 0, 0), turn))
    assert found.gap == pytest.approx(apart - 0.8 - 0.75 * tilt, abs=1e-11 + tilt**2)


def test_needle_in_a_coin() -> None:
    """Both at the origin, one axis: they part sideways or along it, 1.005 either way."""
    needle, coin = shapes.cylinder(0.005, 2), shapes.cylinder(1, 0.01)
    for one, two in ((needle, coin), (coin, needle)):
        assert distance(one, ((0, 0, 0), UPRIGHT), two, ((0, 0, 0), UPRIGHT)).gap == pytest.approx(-1.005)


def test_discs_in_one_plane() -> None:
    """Thin discs that overlap in their plane are moved apart by nothing, across it."""
    disc = shapes.cylinder(0.8, 0)
    found = distance(disc, ((0, 0, 0), UPRIGHT), disc, ((0.5, 0, 0), UPRIGHT))
    assert abs(found.gap) < 1e-12
    assert abs(found.normal[2]) == pytest.approx(1)


def test_bounds_of_the_hull_meet() -> None:
    """The hull's bounds enclose the gap that Newton's method finds, apart and overlapping, to 1e-9."""
    for move in (0.3, -0.2):
        a = place_shape(shapes.ellipsoid(0.5, 0.4, 0.3), ((0, 0, 0), UPRIGHT))
        b = place_shape(shapes.cone(0.5, 0.8), ((0.1, 0.2, 0.3 + move), (1, 0.2, 0, 0)))
        hull = hull_gap(Differences.along(a, b, _directions(a, b)), 1e-9)
        gap = find_closest_points(a, b).points.gap
        assert hull.least - 1e-12 <= gap <= hull.most + 1e-12
        assert hull.most - hull.least <= 1e-9
