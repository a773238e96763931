"""Unions of convex shapes: mass properties of the union, extents, files, and what is refused."""

from typing import Any

import numpy as np
import pytest

from implicit_geom import shapes
from implicit_geom.rotation import unit
from implicit_geom.shapes import ShapeError


def block(lower: tuple[float, ...], upper: tuple[float, ...]) -> Any:
    """A box or rectangle given by two corners."""
    low, high = np.array(lower), np.array(upper)
    half = (high - low) / 2
    made = shapes.box(*half) if len(half) == 3 else shapes.rectangle(*half)
    return made.moved(((low + high) / 2).tolist())


def sphere_pair(r: float, d: float) -> Any:
    """Two spheres at x = -d/2 and d/2."""
    return shapes.union(*(shapes.sphere(r).moved((s * d / 2, 0, 0)) for s in (-1, 1)))


def overlapping_spheres(r: float, d: float) -> tuple[float, np.ndarray]:
    """Volume and inertia per density: the two spheres less the lens |x| <= r - d/2, integrated in x."""
    volume, along, across = 0.0, 0.0, 0.0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    half = (r + d / 2) / 2
    x, w = half * (nodes + 1), 2 * half * weights  # 0 <= x <= r + d/2, both halves
    square = r**2 - (x - d / 2) ** 2  # radius of the cross section, squared
    volume = float(np.sum(w * np.pi * square))
    along = float(np.sum(w * np.pi * square**2 / 2))
    across = along / 2 + float(np.sum(w * np.pi * square * x**2))
    return volume, np.diag([along, across, across])


# pieces that overlap, and the same body cut into pieces that do not
SAME = {
    "L in space": (
        [((-0.1, -0.1, -0.1), (1.9, 0.1, 0.1)), ((-0.1, -0.1, -0.1), (0.1, 0.1, 1.9))],
        [((-0.1, -0.1, -0.1), (1.9, 0.1, 0.1)), ((-0.1, -0.1, 0.1), (0.1, 0.1, 1.9))],
    ),
    "three beams": (
        [
            ((-1, -0.1, -0.1), (1, 0.1, 0.1)),
            ((-0.1, -2, -0.1), (0.1, 2, 0.1)),
            ((-0.1, -0.1, 0), (0.1, 0.1, 3)),
        ],
        [
            ((-1, -0.1, -0.1), (1, 0.1, 0.1)),
            ((-0.1, 0.1, -0.1), (0.1, 2, 0.1)),
            ((-0.1, -2, -0.1), (0.1, -0.1, 0.1)),
            ((-0.1, -0.1, 0.1), (0.1, 0.1, 3)),
        ],
    ),
    "cross in the plane": (
        [((-1, -0.2), (1, 0.2)), ((-0.3, -2), (0.3, 2))],
        [((-1, -0.2), (1, 0.2)), ((-0.3, 0.2), (0.3, 2)), ((-0.3, -2), (0.3, -0.2))],
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_overlaps_counts_once(name: str) -> None:
    """A body of overlapping blocks has the mass properties of the same body cut into separate ones."""
    overlapping, separate = ([block(*corners) for corners in way] for way in SAME[name])
    union = shapes.union(*overlapping)
    volume = sum(s.volume for s in separate)
    com = sum(s.volume * s.com for s in separate) / volume
    inertia: Any = 0.0
    for s in separate:
        a = s.com - com
        shift = a @ a * np.eye(3) - np.outer(a, a) if s.dim == 3 else a @ a
        inertia = inertia + s.inertia(s.volume) + s.volume * shift
    assert union.volume == pytest.approx(volume, rel=1e-12)
    np.testing.assert_allclose(union.com, com, atol=1e-12)
    np.testing.assert_allclose(union.inertia(volume), inertia, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("d", [0.6, 0.99])
def test_overlapping_spheres(d: float) -> None:
    """Two spheres that overlap: volume and inertia against the closed form of their cross sections."""
    union = sphere_pair(0.5, d)
    volume, inertia = overlapping_spheres(0.5, d)
    assert union.volume == pytest.approx(volume, rel=1e-8)
    np.testing.assert_allclose(union.inertia(union.volume), inertia, rtol=1e-7, atol=1e-9)


def test_separate_spheres() -> None:
    """A dumbbell: twice a sphere's inertia and the masses' distance from the middle."""
    m, r, d = 3.0, 0.2, 1.0
    J = sphere_pair(r, d).inertia(m)
    own = 2 / 5 * m * r**2
    np.testing.assert_allclose(J, np.diag([own, own + m * d**2 / 4, own + m * d**2 / 4]), rtol=1e-13)


def test_extents_and_points() -> None:
    """Bounds, size and support are those of the hull; a point is inside where it is inside one piece."""
    union = shapes.union(block((0, 0, 0), (2, 1, 1)), block((0, 0, 0), (1, 1, 3)))
    lower, upper = union.bounds
    np.testing.assert_allclose([lower, upper], [(0, 0, 0), (2, 1, 3)], atol=1e-15)
    assert union.size == 1.5
    np.testing.assert_allclose(
        union.support(np.array([[0.1, 0, 1], [1.0, 0, 0.1]]))[:, [0, 2]], [(1, 3), (2, 1)]
    )
    inside = union.violation(np.array([(1.5, 0.5, 0.5), (0.5, 0.5, 2.5), (1.5, 0.5, 1.5)])) < 0
    assert inside.tolist() == [True, True, False]


def test_moved_faceted_and_meshed_piece_by_piece() -> None:
    """A moved union has its mass properties turned; facets and meshes are those of all pieces."""
    union = sphere_pair(0.5, 0.6)
    turn = unit((1, 2, 3, 4))
    moved = union.moved((1, 2, 3), turn)
    single = shapes.sphere(1).moved((1, 2, 3), turn)
    np.testing.assert_allclose(moved.com, (1, 2, 3), atol=1e-9)
    np.testing.assert_allclose(moved.inertia(1.0), single.R @ union.inertia(1.0) @ single.R.T, atol=1e-9)
    facets = union.faceted(30)
    assert [len(p.shape.vertices) for p in facets.pieces] == [30, 30]
    assert facets.volume < union.volume
    vertices, triangles = union.mesh(16)
    assert triangles.max() == len(vertices) - 1
    assert np.min(np.abs([s.violation(vertices) for s in union.pieces]), axis=0).max() < 1e-12


def test_unions_of_unions_and_of_one() -> None:
    """Unions are flattened; a union of one shape is as good as that shape."""
    a, b, c = (shapes.sphere(1).moved((k, 0, 0)) for k in range(3))
    assert shapes.union(shapes.union(a, b), c) == shapes.union(a, b, c)
    assert shapes.union(a, b) != shapes.union(a, c)
    one = shapes.union(shapes.ellipsoid(1, 2, 3))
    assert one.volume == pytest.approx(8 * np.pi)
    assert shapes.intersection(one, shapes.halfspace((0, 0, 1))).volume == pytest.approx(4 * np.pi)


def test_written_and_read() -> None:
    """A union survives a scene file's form to the last bit."""
    union = shapes.union(
        shapes.box(1, 0.1, 0.1), shapes.cone(0.2, 1.1).moved((0.3, 0, 1), unit((1, 2, 3, 4)))
    )
    plain = shapes.to_dict(union)
    assert plain["kind"] == "union"
    assert [s["kind"] for s in plain["shapes"]] == ["box", "moved"]
    again = shapes.from_dict(plain)
    assert again == union
    assert np.array_equal(again.values, union.values)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: shapes.union(), "at least one"),
        (lambda: shapes.union(3), r"union: shapes\[0\] = 3 must be a shape"),
        (lambda: shapes.union(shapes.sphere(1), shapes.disc(1)), "one dimension"),
        (lambda: shapes.intersection(shapes.box(1, 1, 1), sphere_pair(1, 1)), r"shapes\[1\] is a union"),
        (lambda: shapes.Moved(sphere_pair(1, 1)), "is a union"),
        (lambda: shapes.from_dict({"kind": "union", "shapes": 3}), "must be a list"),
        (lambda: shapes.from_dict({"kind": "unions", "shapes": []}), "did you mean 'union'"),
        (lambda: shapes.union(shapes.halfspace((0, 0, 1)), shapes.sphere(1)).com, "unbounded"),
        (lambda: shapes.union(shapes.cylinder(1, 0)).com, "without thickness"),
        (lambda: shapes.union(*[shapes.disc(1).moved((0.01 * k, 0)) for k in range(12)]).com, "overlap less"),
    ],
)
def test_refused(make: Any, words: str) -> None:
    """Every error says what is wrong."""
    with pytest.raises(ShapeError, match=words):
        make()
