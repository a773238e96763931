"""Bad numbers, polygons, and shapes to and from dictionaries."""

import json
from typing import Any

import numpy as np
import pytest
from shape_tables import BOUNDED, UNBOUNDED, name

from implicit_geom import shapes

CONSTRUCTORS = {
    "sphere": (shapes.sphere, {"r": 1}),
    "ellipsoid": (shapes.ellipsoid, {"a": 1, "b": 1, "c": 1}),
    "superellipsoid": (shapes.superellipsoid, {"a": 1, "b": 1, "c": 1, "p": 4}),
    "cylinder": (shapes.cylinder, {"radius": 1, "length": 1}),
    "capsule": (shapes.capsule, {"radius": 1, "length": 1}),
    "cone": (shapes.cone, {"radius": 1, "height": 1}),
    "box": (shapes.box, {"a": 1, "b": 1, "c": 1}),
    "disc": (shapes.disc, {"r": 1}),
    "ellipse": (shapes.ellipse, {"a": 1, "b": 1}),
    "superellipse": (shapes.superellipse, {"a": 1, "b": 1, "p": 4}),
    "regular_polygon": (shapes.regular_polygon, {"n": 5, "r": 1}),
    "rectangle": (shapes.rectangle, {"a": 1, "b": 1}),
}
FIELDS = [(kind, field) for kind, (_, fields) in CONSTRUCTORS.items() for field in fields]
BAD = [float("nan"), float("inf"), -1.0, -1, True, "1", None, [1], 10**400, 1j]


@pytest.mark.parametrize(("kind", "field"), FIELDS)
def test_bad_numbers_are_refused_by_name(kind: Any, field: Any) -> None:
    """nan, inf, negative, bool, text and the like raise ShapeError naming kind and field."""
    make, good = CONSTRUCTORS[kind]
    make(**good)
    zero = [] if field == "length" else [0, 0.0]
    for bad in BAD + zero:
        with pytest.raises(shapes.ShapeError, match=f"^{kind}: {field} = "):
            make(**{**good, field: bad})


VECTORS = [
    (lambda v: shapes.halfspace(v), "normal"),
    (lambda v: shapes.sphere(1).moved(v), "position"),
    (lambda v: shapes.sphere(1).moved((0, 0, 0), v), "orientation"),
]


@pytest.mark.parametrize(("make", "field"), VECTORS, ids=[f for _, f in VECTORS])
def test_bad_vectors_are_refused_by_name(make: Any, field: Any) -> None:
    """Vectors of the wrong length, with bad entries, or zero where a direction is needed are refused."""
    bad = [(1, 2), (1, float("nan"), 0), "abc", 3, (True, 0, 0)]
    bad += [] if field == "position" else [(0, 0, 0), (0, 0, 0, 0)]
    for v in bad:
        with pytest.raises(shapes.ShapeError, match=field):
            make(v)


def test_directions_of_any_length_are_made_unit() -> None:
    """Very long and very short normals are scaled without loss; a unit normal is kept bit for bit."""
    for scale in (1e-200, 1.0, 1e200):
        np.testing.assert_allclose(
            shapes.halfspace((0, 3 * scale, 4 * scale)).normal, [0, 0.6, 0.8], rtol=1e-15
        )
    for v in np.random.default_rng(0).normal(size=(300, 3)):
        once = shapes.halfspace(v).normal
        assert np.array_equal(shapes.halfspace(once).normal, once)


BAD_POLYGONS = {
    "two vertices": ([(0, 0), (1, 0)], "at least 3 points"),
    "not pairs": ([(0, 0), (1, 0), (1, 1, 1)], r"vertices\[2\]"),
    "repeated": ([(0, 0), (1, 0), (1, 0), (0, 1)], "twice"),
    "notch": ([(0, 0), (2, 0), (1, 0.5), (1, 2)], "not convex"),
    "straight": ([(0, 0), (1, 0), (2, 0), (1, 1)], "on the line"),
    "star": ([(np.cos(4 * np.pi * k / 5), np.sin(4 * np.pi * k / 5)) for k in range(5)], "cross"),
    "flat": ([(0, 0), (1, 1), (2, 2)], "on the line"),
    "text": ("abc", "at least 3 points"),
}


@pytest.mark.parametrize(("vertices", "message"), BAD_POLYGONS.values(), ids=BAD_POLYGONS.keys())
def test_bad_polygons_are_refused(vertices: Any, message: Any) -> None:
    """A polygon must be convex, with at least three distinct vertices in order."""
    with pytest.raises(shapes.ShapeError, match=message):
        shapes.polygon(vertices)


def test_polygon_orientation_does_not_matter() -> None:
    """Clockwise vertices give the same set as counter-clockwise ones."""
    corners = [(0, 0), (2, 0), (2.5, 1), (1, 2)]
    x = np.random.default_rng(0).normal(size=(50, 2))
    a, b = shapes.polygon(corners), shapes.polygon(corners[::-1])
    np.testing.assert_allclose(a.violation(x), b.violation(x), atol=1e-14)
    assert a.volume > 0
    assert b.volume == pytest.approx(a.volume)
    assert np.array_equal(shapes.regular_polygon(5, 2).vertices[0], [2, 0])


@pytest.mark.parametrize("shape", BOUNDED + UNBOUNDED, ids=name)
def test_round_trip_through_json(shape: Any) -> None:
    """to_dict, JSON and from_dict give an equal shape, bit for bit, with the same hash."""
    back = shapes.from_dict(json.loads(json.dumps(shapes.to_dict(shape))))
    assert back == shape
    assert hash(back) == hash(shape)
    assert np.array_equal(back.values, shape.values)
    assert shapes.to_dict(back) == shapes.to_dict(shape)


BAD_DICTS = [
    ({"kind": "elipsoid", "a": 1}, "did you mean 'ellipsoid'"),
    ({"kind": "sphere", "radius": 1}, "sphere: the key 'radius'"),
    ({"kind": "cylinder", "radus": 1, "length": 1}, "did you mean 'radius'"),
    ({"kind": "sphere"}, "sphere: the key 'r' is missing"),
    ({"r": 1}, "'kind' is missing"),
    ({"kind": 3}, "kind = 3"),
    ({"kind": "moved", "shape": {"kind": "sphere", "r": 1}, "positon": [0, 0, 0]}, "did you mean 'position'"),
    ({"kind": "moved"}, "'shape' is missing"),
    ({"kind": "intersection", "shapes": {"kind": "sphere", "r": 1}}, "list of shapes"),
    ({"kind": "intersection", "shapes": []}, "at least one"),
    ({"kind": "intersection", "shapes": [3]}, "must be a table"),
    ({"kind": "surface", "a": 1}, "'text' is missing"),
    ("sphere", "must be a table"),
]


@pytest.mark.parametrize(("data", "message"), BAD_DICTS, ids=[m for _, m in BAD_DICTS])
def test_bad_dictionaries_are_refused_with_a_hint(data: Any, message: Any) -> None:
    """Unknown kinds and keys name the nearest known one; missing keys are named."""
    with pytest.raises(shapes.ShapeError, match=message):
        shapes.from_dict(data)


def test_equality_is_by_value() -> None:
    """Shapes with equal parameters are equal and hash alike; others are not, whatever their kind."""
    assert shapes.sphere(1) == shapes.sphere(1.0)
    assert hash(shapes.sphere(1)) == hash(shapes.sphere(1.0))
    assert shapes.sphere(1) != shapes.sphere(2)
    assert shapes.sphere(1) != shapes.disc(1)
    assert shapes.ellipsoid(1, 1, 1) != shapes.sphere(1)
    assert shapes.halfspace((0, 0, 1), 0.0) == shapes.halfspace((-0.0, 0, 1), -0.0)
    assert hash(shapes.halfspace((0, 0, 1), 0.0)) == hash(shapes.halfspace((-0.0, 0, 1), -0.0))
