"""distance(): against 15-digit references, against brute force on every pair of kinds, and its symmetries."""

from __future__ import annotations

import json
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import brute_force
import numpy as np
import pytest

from implicit_geom import SceneError, distance, shapes
from implicit_geom.rotation import matrix, planar, unit

REFERENCES = Path(__file__).parents[1] / "references"
ELLIPSOIDS = json.loads((REFERENCES / "ellipsoid_distance.json").read_text())["cases"]
SUPERELLIPSOIDS = json.loads((REFERENCES / "superellipsoid_distance.json").read_text())
ORIGIN = ((0, 0, 0), (1, 0, 0, 0))
PENTAGON = [(0, 0), (2, 0), (2.5, 1), (1, 2), (-0.5, 0.8)]

# each kind: the shape and a support function of the same set that does not come from `shapes`
SPATIAL: dict[str, tuple[Any, Any]] = {
    "sphere": (shapes.sphere(0.7), brute_force.ellipsoid(0.7, 0.7, 0.7)),
    "ellipsoid": (shapes.ellipsoid(0.9, 0.4, 0.3), brute_force.ellipsoid(0.9, 0.4, 0.3)),
    "superellipsoid": (shapes.superellipsoid(0.5, 1.0, 0.8, 5), brute_force.superellipsoid(0.5, 1.0, 0.8, 5)),
    "cylinder": (shapes.cylinder(0.4, 1.5), brute_force.cylinder(0.4, 1.5)),
    "thin disc": (shapes.cylinder(0.8, 0), brute_force.cylinder(0.8, 0)),
    "capsule": (shapes.capsule(0.3, 1.2), brute_force.capsule(0.3, 1.2)),
    "cone": (shapes.cone(0.6, 1.1), brute_force.cone(0.6, 1.1)),
    "box": (shapes.box(0.3, 0.5, 0.9), brute_force.box(0.3, 0.5, 0.9)),
    "intersection": (
        shapes.intersection(shapes.ellipsoid(0.7, 0.5, 0.6), shapes.halfspace((0, 0, 1))),
        brute_force.half_ellipsoid(0.7, 0.5, 0.6),
    ),
    "surface": (
        shapes.surface("(x/a)**2 + (y/b)**4 + z**2 - 1", a=1, b=0.6),
        brute_force.text_surface(1, 0.6),
    ),
    "halfspace": (shapes.halfspace((0, 0.6, 0.8), 0.3), None),
}
PLANAR: dict[str, tuple[Any, Any]] = {
    "disc": (shapes.disc(0.7), brute_force.ellipsoid(0.7, 0.7)),
    "ellipse": (shapes.ellipse(0.5, 1.3), brute_force.ellipsoid(0.5, 1.3)),
    "superellipse": (shapes.superellipse(0.5, 1.0, 5), brute_force.superellipsoid(0.5, 1.0, 5)),
    "polygon": (shapes.polygon(PENTAGON), brute_force.polytope(np.array(PENTAGON))),
    "regular_polygon": (
        shapes.regular_polygon(7, 0.8),
        brute_force.polytope([(0.8 * np.cos(a), 0.8 * np.sin(a)) for a in 2 * np.pi * np.arange(7) / 7]),
    ),
    "rectangle": (shapes.rectangle(0.3, 0.9), brute_force.box(0.3, 0.9)),
    "halfplane": (shapes.halfplane((0.6, 0.8), 0.3), None),
}
UNBOUNDED = ("halfspace", "halfplane")


def pairs(kinds: dict[str, tuple[Any, Any]]) -> list[tuple[str, str]]:
    both = combinations_with_replacement(kinds, 2)
    return [p for p in both if not (p[0] in UNBOUNDED and p[1] in UNBOUNDED)]


def random_pose(rng: np.random.Generator, dim: int) -> tuple[np.ndarray, Any]:
    if dim == 2:
        return rng.normal(size=2), float(rng.uniform(-np.pi, np.pi))
    q = rng.normal(size=4)
    return rng.normal(size=3), q / np.linalg.norm(q)


def placed(support: Any, pose: tuple[np.ndarray, Any]) -> brute_force.Placed:
    x, turn = pose
    return brute_force.Placed(support, x, planar(turn) if x.size == 2 else matrix(turn))


def scenes(kind_a: str, kind_b: str, kinds: dict[str, tuple[Any, Any]], seed: int, apart: bool):
    """Random poses: B touches A's support plane across a random direction, then moves out or in."""
    rng = np.random.default_rng([seed, *kind_a.encode(), 0, *kind_b.encode()])
    (shape_a, support_a), (_, support_b) = kinds[kind_a], kinds[kind_b]
    dim = shape_a.dim
    while True:
        pose_a, (_, turn_b) = random_pose(rng, dim), random_pose(rng, dim)
        a, b = placed(support_a, pose_a), placed(support_b, (np.zeros(dim), turn_b))
        n = rng.normal(size=(1, dim))
        n /= np.linalg.norm(n)
        touch = float(np.sum(n * (a(n) - a.x - b(-n))))
        move = 10 ** rng.uniform(-3, 0.5) if apart else -touch * rng.uniform(0.02, 0.6)
        # also sideways, so that n is not simply the line of centres
        side = rng.normal(size=dim) * (0.3 if apart else 0.05)
        side -= (n[0] @ side) * n[0]
        pose_b = (pose_a[0] + (touch + move) * n[0] + side, turn_b)
        a, b = placed(support_a, pose_a), placed(support_b, pose_b)
        # where they are apart by construction there is no need to look
        sampled = move if apart else brute_force.sampled_separation(a, b, rng)
        if (sampled > 0) == apart:
            yield a, pose_a, b, pose_b, sampled


def against_brute_force(kind_a: str, kind_b: str, kinds: dict[str, tuple[Any, Any]], count: int) -> None:
    shape_a, shape_b = kinds[kind_a][0], kinds[kind_b][0]
    for _, (a, pose_a, b, pose_b, _) in zip(range(count), scenes(kind_a, kind_b, kinds, 1, apart=True)):
        c = distance(shape_a, pose_a, shape_b, pose_b)
        lower, upper = brute_force.brute_distance(a, b)
        assert upper - lower < 1e-7  # brute force has converged
        assert lower - 1e-9 < c.gap < upper + 1e-9
        check_points(c, shape_a, pose_a, shape_b, pose_b)


def against_samples(kind_a: str, kind_b: str, kinds: dict[str, tuple[Any, Any]], count: int) -> None:
    shape_a, shape_b = kinds[kind_a][0], kinds[kind_b][0]
    for _, (a, pose_a, b, pose_b, sampled) in zip(
        range(count), scenes(kind_a, kind_b, kinds, 2, apart=False)
    ):
        c = distance(shape_a, pose_a, shape_b, pose_b)
        assert c.gap > sampled - 1e-9  # no direction separates better
        assert c.gap < sampled + 1e-3
        # and the gap is the separation in the direction it claims
        assert abs(brute_force.separation(a, b, c.normal[None])[0] - c.gap) < 1e-9
        check_points(c, shape_a, pose_a, shape_b, pose_b)


def check_points(c: Any, shape_a: Any, pose_a: Any, shape_b: Any, pose_b: Any) -> None:
    """The points lie on the two surfaces and the gap is their distance along the normal."""
    for shape, (x, turn), point in ((shape_a, pose_a, c.point_a), (shape_b, pose_b, c.point_b)):
        R = planar(turn) if shape.dim == 2 else matrix(turn)
        assert abs(shape.violation(((point - x) @ R)[None])[0]) < 1e-9
    assert abs(np.linalg.norm(c.normal) - 1) < 1e-12
    np.testing.assert_allclose(c.point_b - c.point_a, c.gap * c.normal, atol=1e-12)


def placed_case(body: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(body["center"]), np.array(body["quat_wxyz"])


@pytest.mark.parametrize("kind", ["separated", "near", "penetrating"])
def test_ellipsoid_references(kind: str) -> None:
    """Two ellipsoids: gap to 1e-10 of the smaller one, points to 1e-6, also with the bodies exchanged."""
    for case in (c for c in ELLIPSOIDS if c["kind"] == kind):
        bodies = [(shapes.ellipsoid(*case[k]["semi_axes"]), placed_case(case[k])) for k in "AB"]
        check_reference(*bodies[0], *bodies[1], case)


def test_superellipsoid_pair_references() -> None:
    """Two superellipsoids, p = 4 to 8: gap to 1e-10 of the smaller one, points to 1e-6, and exchanged."""
    for case in SUPERELLIPSOIDS["pairs"]:
        bodies = [
            (shapes.superellipsoid(*case[k]["semi_axes"], case[k]["p"]), placed_case(case[k])) for k in "AB"
        ]
        check_reference(*bodies[0], *bodies[1], case)


def check_reference(shape_a: Any, pose_a: Any, shape_b: Any, pose_b: Any, case: dict[str, Any]) -> None:
    size = min(shape_a.size, shape_b.size)
    c = distance(shape_a, pose_a, shape_b, pose_b)
    s = distance(shape_b, pose_b, shape_a, pose_a)
    for gap, a, b, n in (
        (c.gap, c.point_a, c.point_b, c.normal),
        (s.gap, s.point_b, s.point_a, -s.normal),
    ):
        assert abs(gap - case["gap"]) < 1e-10 * size
        np.testing.assert_allclose(a, case["a"], rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(b, case["b"], rtol=0, atol=1e-6 * size)
        np.testing.assert_allclose(n, case["normal_A_to_B"], rtol=0, atol=1e-6)


def test_superellipsoid_plane_references() -> None:
    """A superellipsoid and a plane: gap to 1e-10 of its size, points to 1e-6, and exchanged."""
    for case in SUPERELLIPSOIDS["planes"]:
        body = case["body"]
        shape = shapes.superellipsoid(*body["semi_axes"], body["p"])
        plane = shapes.halfspace(case["plane_normal"], case["plane_offset"])
        c = distance(plane, ORIGIN, shape, placed_case(body))
        s = distance(shape, placed_case(body), plane, ORIGIN)
        for gap, on_plane, on_body in ((c.gap, c.point_a, c.point_b), (s.gap, s.point_b, s.point_a)):
            assert abs(gap - case["gap"]) < 1e-10 * shape.size
            np.testing.assert_allclose(on_body, case["closest_on_body"], rtol=0, atol=1e-6 * shape.size)
            np.testing.assert_allclose(on_plane, case["closest_on_plane"], rtol=0, atol=1e-6 * shape.size)
        np.testing.assert_allclose(c.normal, -s.normal, rtol=0, atol=1e-12)


bounded_pairs = [p for p in pairs(SPATIAL) if "halfspace" not in p]
planar_pairs = [p for p in pairs(PLANAR) if "halfplane" not in p]


@pytest.mark.parametrize(("kind_a", "kind_b"), bounded_pairs)
def test_separated_pairs_against_brute_force(kind_a: str, kind_b: str) -> None:
    """20 separated poses of each pair of kinds: the gap lies between brute force's two bounds (1e-9)."""
    against_brute_force(kind_a, kind_b, SPATIAL, 20)


@pytest.mark.parametrize(("kind_a", "kind_b"), bounded_pairs)
def test_overlapping_pairs_against_samples(kind_a: str, kind_b: str) -> None:
    """10 overlapping poses of each pair of kinds: the gap is the largest support separation."""
    against_samples(kind_a, kind_b, SPATIAL, 10)


@pytest.mark.parametrize(("kind_a", "kind_b"), planar_pairs)
def test_planar_pairs(kind_a: str, kind_b: str) -> None:
    """In the plane, 20 separated and 10 overlapping poses of each pair of kinds, against brute force."""
    against_brute_force(kind_a, kind_b, PLANAR, 20)
    against_samples(kind_a, kind_b, PLANAR, 10)


@pytest.mark.parametrize("kinds", [SPATIAL, PLANAR], ids=["spatial", "planar"])
def test_halfspace_pairs(kinds: dict[str, tuple[Any, Any]]) -> None:
    """A half-space and each kind, 20 poses apart and 10 overlapping: gap is the support value (1e-12)."""
    rng = np.random.default_rng(3)
    name = "halfspace" if kinds is SPATIAL else "halfplane"
    plane = kinds[name][0]
    for kind, (shape, support) in kinds.items():
        if kind == name:
            continue
        for k in range(30):
            pose_a, pose_b = random_pose(rng, shape.dim), random_pose(rng, shape.dim)
            b = placed(support, pose_b)
            x, turn = pose_a
            n = (planar(turn) if shape.dim == 2 else matrix(turn)) @ plane.values[:-1]
            level = plane.values[-1] + n @ x
            wanted = 10 ** rng.uniform(-3, 0.5) * (1 if k < 20 else -0.2)
            move = (wanted - (float(n @ b(-n[None])[0]) - level)) * n
            c = distance(plane, pose_a, shape, (pose_b[0] + move, pose_b[1]))
            assert abs(c.gap - wanted) < 1e-12 + 1e-9 * (kind == "surface")
            np.testing.assert_allclose(c.normal, n, atol=1e-12)
            check_points(c, plane, pose_a, shape, (pose_b[0] + move, pose_b[1]))


@pytest.mark.parametrize(("kind_a", "kind_b"), [p for p in bounded_pairs if p[0] != p[1]][::4])
def test_exchange_and_rigid_motion(kind_a: str, kind_b: str) -> None:
    """Exchanging the bodies turns the normal round; moving both moves everything with them (1e-9)."""
    shape_a, shape_b = SPATIAL[kind_a][0], SPATIAL[kind_b][0]
    rng = np.random.default_rng(5)
    for _, (_, pose_a, _, pose_b, _) in zip(range(3), scenes(kind_a, kind_b, SPATIAL, 4, apart=True)):
        c = distance(shape_a, pose_a, shape_b, pose_b)
        s = distance(shape_b, pose_b, shape_a, pose_a)
        assert abs(s.gap - c.gap) < 1e-10
        np.testing.assert_allclose(s.normal, -c.normal, atol=1e-7)
        y, turn = random_pose(rng, 3)
        moved = [(matrix(turn) @ x + y, product(turn, q)) for x, q in (pose_a, pose_b)]
        m = distance(shape_a, moved[0], shape_b, moved[1])
        assert abs(m.gap - c.gap) < 1e-10
        np.testing.assert_allclose(m.normal, matrix(turn) @ c.normal, atol=1e-7)


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Quaternion product."""
    v = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.array([p[0] * q[0] - p[1:] @ q[1:], *v])


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_scale_covariance(size: float) -> None:
    """Everything made larger or smaller by a factor: gap and points grow by that factor (1e-9)."""
    for one, other, pose in (
        (lambda s: shapes.ellipsoid(s, 0.5 * s, 0.3 * s), lambda s: shapes.box(s, s, 0.2 * s), 1.5),
        (lambda s: shapes.cylinder(0.4 * s, s), lambda s: shapes.cone(s, 0.7 * s), 1.2),
        (lambda s: shapes.superellipsoid(s, 0.4 * s, 0.5 * s, 6), lambda s: shapes.capsule(0.2 * s, s), 0.6),
    ):
        q, r = unit([0.8, 0.3, -0.4, 0.1]), unit([0.2, 0.7, 0.1, -0.5])
        c = distance(one(1.0), ((0, 0, 0), q), other(1.0), (pose * np.array([0.3, -0.5, 1.0]), r))
        d = distance(one(size), ((0, 0, 0), q), other(size), (size * pose * np.array([0.3, -0.5, 1.0]), r))
        assert abs(d.gap / size - c.gap) < 1e-9
        np.testing.assert_allclose(d.point_a / size, c.point_a, atol=1e-6)


@pytest.mark.parametrize(
    "pose",
    [
        ((0, 0), (1, 0, 0, 0)),
        ((0, 0, np.nan), (1, 0, 0, 0)),
        ((0, 0, 0), (1, 0, 0)),
        ((0, 0, 0), (0, 0, 0, 0)),
        ((0, 0, 0), (np.inf, 0, 0, 0)),
        ((0, 0, 0), 0.3),
        (0, 0, 0),
        "here",
        None,
    ],
)
def test_bad_poses_raise(pose: Any) -> None:
    """A pose that is none raises SceneError, whichever body it is for."""
    ball = shapes.sphere(1)
    with pytest.raises(SceneError, match=r"pose"):
        distance(ball, pose, ball, ((3, 0, 0), (1, 0, 0, 0)))
    with pytest.raises(SceneError, match=r"pose"):
        distance(ball, ((3, 0, 0), (1, 0, 0, 0)), ball, pose)


def test_pairs_without_closest_points_raise() -> None:
    """Two half-spaces, and a planar with a spatial shape, are refused."""
    with pytest.raises(SceneError, match=r"unbounded|half-spaces"):
        distance(shapes.halfspace((0, 0, 1)), ORIGIN, shapes.halfspace((0, 0, 1)), ORIGIN)
    with pytest.raises(SceneError, match="2-D"):
        distance(shapes.disc(1), ((0, 0), 0.0), shapes.sphere(1), ORIGIN)


THIN_BOXES = [
    (
        (0.0571, 0.0254, 0.9285),
        ((-0.2915, -0.1091, 0.041), (0.4232, 0.3003, 0.3883, -0.8399)),
        (0.0421, 0.0217, 0.1294),
        ((-0.354, -0.2907, 0.1385), (-0.6274, -0.1177, 0.165, -0.1447)),
    ),
    (
        (0.16497, 0.068167, 0.0203),
        ((0.233587, -0.276982, -0.268776), (0.32363, 1.168908, -0.591138, 0.496434)),
        (0.013431, 0.768532, 0.015416),
        ((0.041086, -0.353287, -0.289193), (-0.921683, -0.180415, -0.634266, -2.233321)),
    ),
]


@pytest.mark.parametrize("case", THIN_BOXES)
def test_crossed_edges_of_thin_boxes(case: Any) -> None:
    """Overlapping boxes: the gap is the separating-axis answer over face normals and edge products."""
    sizes_a, pose_a, sizes_b, pose_b = case
    pose_a, pose_b = ((x, unit(q)) for x, q in (pose_a, pose_b))
    A, B = (matrix(q) for _, q in (pose_a, pose_b))
    axes = [*A.T, *B.T, *(np.cross(a, b) for a in A.T for b in B.T)]
    offset = np.array(pose_b[0]) - np.array(pose_a[0])
    best = max(
        abs(n @ offset) - np.abs(A.T @ n) @ sizes_a - np.abs(B.T @ n) @ sizes_b
        for n in (axis / np.linalg.norm(axis) for axis in axes)
    )
    found = distance(shapes.box(*sizes_a), pose_a, shapes.box(*sizes_b), pose_b)
    assert found.gap == pytest.approx(best, abs=1e-12)


def test_what_is_no_shape_is_refused() -> None:
    """`distance` names the argument that is no shape."""
    with pytest.raises(SceneError, match="the second shape is 1"):
        distance(shapes.sphere(1), ((0, 0, 0), (1, 0, 0, 0)), 1, ((0, 0, 0), (1, 0, 0, 0)))  # type: ignore[arg-type]
