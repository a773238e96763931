"""Points of flat patches: extreme points, each on both bodies' surfaces, the same seen from either body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from implicit_geom import rotation, shapes
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.patch_points import Patch, patch_points
from implicit_geom.geometry.round_bars import round_closest
from implicit_geom.geometry.supporting_features import RIM, supporting_feature
from implicit_geom.model.placed_shape import PlacedShape

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
LYING = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)  # the z axis along -y
EDGE = (np.cos(np.pi / 8), np.sin(np.pi / 8), 0.0, 0.0)  # a box on its edge along x
ASKEW = (np.cos(0.3), np.sin(0.3), 0.0, 0.0)
GROUND = shapes.halfspace(normal=(0, 0, 1))
BOX, BAR, PILL = shapes.box(0.1, 0.1, 0.1), shapes.cylinder(0.05, 0.4), shapes.capsule(0.05, 0.4)
CONE = shapes.cone(0.1, 0.4)
CUT = shapes.intersection(shapes.sphere(0.2), shapes.halfspace(normal=(0, 0, -1), offset=0.1))


def place(shape: Any, x: Any, q: Any = UPRIGHT) -> PlacedShape:
    R = rotation.matrix(np.array(q)) if shape.dim == 3 else rotation.planar(float(q))
    return PlacedShape(shape, np.array(x, float), R, np.zeros(shape.dim))


def check(a: PlacedShape, b: PlacedShape, patch: Patch) -> None:
    """Points on the surfaces (or within), the gap along the normal between them."""
    assert np.linalg.norm(patch.normal) == pytest.approx(1)
    np.testing.assert_allclose(patch.point_b - patch.point_a, patch.gap[:, None] * patch.normal, atol=1e-12)
    for body, points in ((a, patch.point_a), (b, patch.point_b)):
        assert all(body.violation(p) < 1e-7 for p in points)


ON_PLANE = {
    "box on a face": (BOX, 0.1, UPRIGHT, 4),
    "box on an edge": (BOX, 0.1 * np.sqrt(2), EDGE, 2),
    "polyhedron on a face": (shapes.polyhedron([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]), 0, UPRIGHT, 3),
    "standing cylinder": (BAR, 0.2, UPRIGHT, RIM),
    "lying cylinder": (BAR, 0.05, LYING, 2),
    "lying capsule": (PILL, 0.05, LYING, 2),
    "standing capsule": (PILL, 0.25, UPRIGHT, 1),
    "standing cone": (CONE, 0.0, UPRIGHT, RIM),
    "cone on its apex": (CONE, 0.4, (0, 1, 0, 0), 1),
    "thin disc on its edge": (shapes.cylinder(0.1, 0), 0.1, LYING, 1),
    "ball": (shapes.sphere(0.1), 0.1, UPRIGHT, 1),
    "ellipsoid": (shapes.ellipsoid(0.1, 0.2, 0.3), 0.3, UPRIGHT, 1),
    "ball cut flat": (CUT, 0.1, UPRIGHT, RIM + 1),
}


@pytest.mark.parametrize("name", ON_PLANE)
def test_on_a_plane(name: str) -> None:
    shape, height, q, count = ON_PLANE[name]
    a, b = place(GROUND, (0, 0, 0)), place(shape, (1, 2, height), q)
    patch = patch_points(a, b, 1e-3)
    assert len(patch.gap) == count
    np.testing.assert_allclose(patch.gap, 0, atol=1e-9)
    check(a, b, patch)


def test_cone_on_its_side() -> None:
    """The line from the rim to the apex, both ends on the plane."""
    lean = np.pi / 2 + np.arctan2(0.1, 0.4)
    b = place(CONE, (0, 0, 0), (np.cos(lean / 2), np.sin(lean / 2), 0, 0))
    lowest = supporting_feature(CONE, b.R.T @ np.array([0, 0, -1.0])) @ b.R.T
    b = place(CONE, (0, 0, -lowest[:, 2].min()), (np.cos(lean / 2), np.sin(lean / 2), 0, 0))
    patch = patch_points(place(GROUND, (0, 0, 0)), b, 1e-6)
    assert len(patch.gap) == 2
    assert np.linalg.norm(patch.point_b[1] - patch.point_b[0]) == pytest.approx(np.hypot(0.1, 0.4))


def test_tilted_box_keeps_its_corners() -> None:
    """A tilt changes gaps, not which points there are, as long as they are within reach."""
    for tilt in (1e-9, 1e-5, 1e-2):
        q = (np.cos(tilt / 2), np.sin(tilt / 2), 0, 0)
        for floor in (GROUND, shapes.box(1, 1, 1)):
            a = place(floor, (0, 0, 0 if floor is GROUND else -1.0))
            patch = patch_points(a, place(BOX, (0, 0, 0.102), q), 0.01)
            assert len(patch.gap) == 4
            assert np.ptp(patch.gap) == pytest.approx(0.2 * np.sin(tilt), abs=1e-12)
    assert len(patch_points(a, place(BOX, (0, 0, 0.102), q), 0.0015).gap) == 2


QUARTER = [(x, y, 0.1) for x in (-0.05, 0.1) for y in (-0.05, 0.1)]
BETWEEN = {
    "box over half a box": (BOX, BOX, (0.05, 0.05, 0.2), UPRIGHT, QUARTER),
    "edge on a box": (BOX, BOX, (0.0, 0.0, 0.1 + 0.1 * np.sqrt(2)), EDGE, [(-0.1, 0, 0.1), (0.1, 0, 0.1)]),
    "lying bar on a box": (BOX, BAR, (0, 0, 0.15), LYING, [(0, -0.1, 0.1), (0, 0.1, 0.1)]),
    "lying pill that ends over a box": (BOX, PILL, (0, 0.2, 0.15), LYING, [(0, 0, 0.1), (0, 0.1, 0.1)]),
    "two pills side by side": (PILL, PILL, (0.1, 0, 0.1), UPRIGHT, [(0.05, 0, -0.1), (0.05, 0, 0.2)]),
    "two pills askew": (PILL, PILL, (0.1, 0, 0), ASKEW, [(0.05, 0, 0)]),
    "two balls": (shapes.sphere(0.1), shapes.sphere(0.2), (0, 0.3, 0), UPRIGHT, [(0, 0.1, 0)]),
    "two pills across": (PILL, PILL, (0.1, 0, 0), LYING, [(0.05, 0, 0)]),
    "ball on a box": (BOX, shapes.sphere(0.1), (0.03, 0, 0.2), UPRIGHT, [(0.03, 0, 0.1)]),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_between_bodies(name: str) -> None:
    """The points expected; the same, and the normal turned, for the bodies in the other order."""
    one, two, x, q, expected = BETWEEN[name]
    a, b = place(one, (0, 0, 0)), place(two, x, q)
    patch, other = patch_points(a, b, 1e-6), patch_points(b, a, 1e-6)
    check(a, b, patch)
    check(b, a, other)
    for points in (patch.point_b, other.point_b):
        assert sorted(map(tuple, points.round(6) + 0.0)) == sorted(
            tuple(np.round(p, 6) + 0.0) for p in expected
        )
    np.testing.assert_allclose(patch.normal, -other.normal, atol=1e-9)
    assert patch.normal @ (b.centre - a.centre) > 0


@pytest.mark.parametrize("low", [BOX, shapes.sphere(0.1), GROUND.moved(position=(0, 0, 0.1))])
def test_gap(low: Any) -> None:
    """Each point is on its own body."""
    patch = patch_points(place(low, (0, 0, 0)), place(shapes.sphere(0.2), (0, 0, 0.31)), 0.1)
    np.testing.assert_allclose(patch.point_a, [(0, 0, 0.1)], atol=1e-12)
    np.testing.assert_allclose(patch.point_b, [(0, 0, 0.11)], atol=1e-12)
    np.testing.assert_allclose(patch.gap, 0.01)


def test_rims_and_turned_faces() -> None:
    """A cylinder's end on a box: its rim; a box turned by 45 degrees on another: an octagon."""
    turned = (np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8))
    assert len(patch_points(place(BOX, (0, 0, 0)), place(BAR, (0, 0, 0.3)), 1e-6).gap) == RIM
    octagon = patch_points(place(BOX, (0, 0, 0)), place(BOX, (0, 0, 0.2), turned), 1e-6)
    radius = np.linalg.norm(octagon.point_b[:, :2], axis=1)
    assert len(radius) == 8
    np.testing.assert_allclose(radius, 0.1 / np.cos(np.pi / 8))


def test_crossing_edges_touch_in_one_point() -> None:
    """No face is across the normal there."""
    low = BOX.moved(orientation=EDGE)
    high = BOX.moved(orientation=(np.cos(np.pi / 8), 0, np.sin(np.pi / 8), 0))
    patch = patch_points(place(low, (0, 0, 0)), place(high, (0.01, 0.02, 0.2 * np.sqrt(2))), 1e-3)
    assert len(patch.gap) == 1
    np.testing.assert_allclose(patch.point_b[0], (0.01, 0, 0.1 * np.sqrt(2)), atol=1e-9)


def test_overhanging_corner() -> None:
    """A tilted box whose lowest corner is beyond the table's edge touches where the edges cross."""
    tilt = 3e-3
    q = (np.cos(tilt / 2), 0.4 * np.sin(tilt / 2), np.sqrt(1 - 0.4**2) * np.sin(tilt / 2), 0)
    table, box = place(shapes.box(1, 1, 1), (0, 0, -1)), place(BOX, (0.98, 0, 0.1 + 5e-4), q)
    patch = patch_points(table, box, 2e-3)
    check(table, box, patch)
    assert len(patch.gap) == 4
    assert patch.point_b[:, 0].max() == pytest.approx(1.0, abs=1e-5)
    assert patch.gap.min() == pytest.approx(find_closest_points(table, box).points.gap, abs=1e-8)


def test_random_polytopes() -> None:
    """Every point is on both bodies within its gap, and one of them is as near as the closest points."""
    rng = np.random.default_rng(5)
    for _ in range(12):
        q = rng.normal(size=(2, 4))
        q /= np.linalg.norm(q, axis=1)[:, None]
        a, b = place(BOX, (0, 0, 0), q[0]), place(shapes.box(0.2, 0.1, 0.05), rng.normal(size=3) * 0.3, q[1])
        near = patch_points(a, b, np.inf)
        check(a, b, near)
        assert near.gap.min() == pytest.approx(find_closest_points(a, b).points.gap, abs=1e-7)


def test_balls_and_capsules() -> None:
    """In closed form: what the closest-point equations say."""
    rng = np.random.default_rng(6)
    bodies = (shapes.sphere(0.1), shapes.capsule(0.05, 0.4), shapes.capsule(0.1, 0.1), shapes.capsule(0.1, 0))
    for k in range(16):
        q = rng.normal(size=(2, 4))
        q /= np.linalg.norm(q, axis=1)[:, None]
        a = place(bodies[k // 4], (0, 0, 0), q[0])
        b = place(bodies[k % 4], rng.normal(size=3) * 0.3, q[1])
        found, expected = round_closest(a, b), find_closest_points(a, b).points
        assert found is not None
        assert found.gap == pytest.approx(expected.gap, abs=1e-9)
        np.testing.assert_allclose(found.normal, expected.normal, atol=1e-6)
        np.testing.assert_allclose(found.point_b, expected.point_b, atol=1e-6)
    assert round_closest(a, a) is None


@pytest.mark.parametrize(("angle", "count"), [(0.0, 2), (0.3, 1)])
def test_in_the_plane(angle: float, count: int) -> None:
    """A side on a side has two points, a corner on a side one."""
    a = place(shapes.rectangle(0.3, 0.1), (0, 0), 0.0)
    height = 0.1 + 0.1 * (np.cos(angle) + np.sin(angle))
    b = place(shapes.rectangle(0.1, 0.1), (0.25, height), angle)
    patch = patch_points(a, b, 1e-6)
    check(a, b, patch)
    assert len(patch.gap) == count
    if count == 2:
        assert sorted(patch.point_b[:, 0].round(6).tolist()) == [0.15, 0.3]


def test_out_of_reach() -> None:
    assert patch_points(place(BOX, (0, 0, 0)), place(BOX, (0, 0, 1.0)), 0.1).gap.size == 0
    assert patch_points(place(GROUND, (0, 0, 0)), place(BOX, (0, 0, 1.0)), 0.1).gap.size == 0


@pytest.mark.parametrize("tilt", [0.0, 1e-13, 1e-11, 1e-9])
@pytest.mark.parametrize("turned", [0.0, 0.3])
def test_points_are_on_both_bodies(tilt: float, turned: float) -> None:
    """Faces, rims and lines over each other's edges: points of both, the least gap exact."""
    for low, high, aside in (
        (BOX, BOX, (0.2, 0.05)),
        (BOX, BAR, (0.08, 0.0)),
        (BAR, BAR, (0.04, 0.03)),
        (CONE.moved(orientation=(0, 1, 0, 0)), CONE, (0.1, 0.0)),
        (BAR, BOX, (0.02, 0.02)),
    ):
        q = np.array([np.cos(turned / 2), tilt / 2, 0.0, np.sin(turned / 2)])
        a = place(low, (0, 0, 0))
        top, bottom = low.bounds[1][2], high.bounds[0][2]
        b = place(high, (*aside, top - bottom), q / np.linalg.norm(q))
        gap = find_closest_points(a, b).points.gap
        patch = patch_points(a, b, max(gap, 0.0) + 1e-8)
        assert patch.gap.min() == pytest.approx(gap, abs=1e-11)
        for body, points in ((a, patch.point_a), (b, patch.point_b)):
            assert max(body.violation(p) for p in points) < 2e-11


def test_corners_within_a_rim() -> None:
    """A box over the end of a cylinder: corners between the rim and the polygon of its points are kept."""
    a, b = (
        place(shapes.cylinder(0.15, 0.2), (0, 0, 0)),
        place(BOX, (0, 0, 0.2), (np.cos(0.2), 0, 0, np.sin(0.2))),
    )
    patch = patch_points(a, b, 1e-9)
    corners = np.sort(np.linalg.norm(patch.point_b[:, :2], axis=1))[-4:]
    np.testing.assert_allclose(corners, 0.1 * np.sqrt(2), atol=1e-12)


def test_two_rims() -> None:
    """Standing cylinders that overlap in a lens: its two tips are points of the patch."""
    a, b = place(BAR, (0, 0, 0)), place(BAR, (0.06, 0, 0.4))
    found = patch_points(a, b, 1e-9).point_b[:, :2]
    for tip in ((0.03, 0.04), (0.03, -0.04)):
        assert np.min(np.linalg.norm(found - tip, axis=1)) < 1e-12


@pytest.mark.parametrize("angle", [1e-8, 1e-6, 1e-5])
def test_bars_that_cross_at_a_small_angle(angle: float) -> None:
    """The ends are w^2 / (2 (r_a + r_b)) farther apart than where the bars cross."""
    c, d = np.sqrt(0.5) * np.cos(angle / 2), np.sqrt(0.5) * np.sin(angle / 2)
    q, other = (np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0), (c, -d, c, d)
    a, b = place(BAR, (0, 0, 0), q), place(BAR, (0, 0, 0.1), other)
    patch = patch_points(a, b, 1e-3)
    assert patch.gap.max() == pytest.approx((0.2 * angle) ** 2 / (2 * 0.1), abs=1e-13)
    assert abs(patch.gap.min()) < 1e-12


@pytest.mark.parametrize("tilt", [1e-12, 1e-9, 1e-7])
def test_pills_that_are_nearly_parallel(tilt: float) -> None:
    """Axes that lean towards each other are nearest at an end."""
    a = place(PILL, (0, 0, 0))
    b = place(PILL, (0.1, 0, 0), (np.cos(tilt / 2), 0, np.sin(tilt / 2), 0))
    found = round_closest(a, b)
    assert found is not None
    assert found.gap == pytest.approx(-0.2 * tilt, abs=1e-15 + tilt**2)
