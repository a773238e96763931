"""Volume, centre of mass and inertia: closed forms against quadrature and against each other."""

from typing import Any

import numpy as np
import pytest
from shape_tables import CLOSED_FORM, name

from implicit_geom import shapes
from implicit_geom.rotation import unit
from implicit_geom.shapes.sampled.mass import moments
from implicit_geom.shapes.sampled.rays import Rays

HALF = shapes.halfspace((0, 0, 1))
EQUAL = {
    "ellipsoid as text": (
        shapes.ellipsoid(0.5, 0.4, 0.3),
        shapes.surface("(x/a)**2 + (y/b)**2 + (z/c)**2 - 1", a=0.5, b=0.4, c=0.3),
    ),
    "superellipsoid as text": (
        shapes.superellipsoid(1, 2, 1.5, 6),
        shapes.surface("abs(x)**p + abs(y/2)**p + abs(z/1.5)**p - 1", p=6),
    ),
    "cylinder as tube and slab": (
        shapes.cylinder(0.4, 1.5),
        shapes.intersection(shapes.surface("x**2 + y**2 - 0.16"), shapes.box(1, 1, 0.75)),
    ),
    "cone as text": (
        shapes.cone(0.6, 1.1),
        shapes.intersection(
            shapes.surface("sqrt(x**2 + y**2)/0.6 + z/1.1 - 1"), shapes.halfspace((0, 0, -1), 0)
        ),
    ),
    "box as half-spaces": (
        shapes.box(0.3, 0.5, 0.9),
        shapes.intersection(
            *[
                shapes.halfspace(s * axis, half)
                for axis, half in zip(np.eye(3), (0.3, 0.5, 0.9), strict=True)
                for s in (1, -1)
            ]
        ),
    ),
    "rectangle as polygon": (
        shapes.rectangle(0.3, 0.9),
        shapes.polygon([(-0.3, -0.9), (-0.3, 0.9), (0.3, 0.9), (0.3, -0.9)]),
    ),
    "ellipse as text": (shapes.ellipse(0.5, 1.3), shapes.surface("(x/0.5)**2 + (y/1.3)**2 - 1", dim=2)),
    "box as polyhedron": (shapes.box(0.3, 0.5, 0.9), shapes.box(0.3, 0.5, 0.9).faceted(8)),
}


def same_mass(a: Any, b: Any, tolerance: float = 1e-8) -> None:
    assert b.volume == pytest.approx(a.volume, rel=tolerance)
    np.testing.assert_allclose(b.com, a.com, atol=tolerance * a.size)
    size = float(np.max(np.abs(a.inertia(2.0))))
    np.testing.assert_allclose(b.inertia(2.0), a.inertia(2.0), atol=tolerance * size)


@pytest.mark.parametrize("shape", CLOSED_FORM, ids=name)
def test_closed_form_equals_quadrature(shape: Any) -> None:
    """Closed-form volume, com and inertia agree with the radial quadrature to 1e-8."""
    # off the centre, so that no symmetry hides an error
    origin = shape.interior + 0.05 * shape.size * np.arange(1, shape.dim + 1) / 3
    assert shape.violation(origin)[0] < 0
    m = moments(Rays(shape, origin, shape.size))
    assert m.volume == pytest.approx(shape.volume, rel=1e-8)
    np.testing.assert_allclose(m.com, shape.com, atol=1e-8 * shape.size)
    np.testing.assert_allclose(
        m.inertia(2.0), shape.inertia(2.0), atol=1e-8 * np.max(np.abs(shape.inertia(2.0)))
    )


@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL.keys())
def test_one_body_written_twice(pair: Any) -> None:
    """The same body given in two ways has the same mass properties to 1e-8."""
    same_mass(*pair)


def test_half_ellipsoid() -> None:
    """Half an ellipsoid: V/2, centre of mass at 3c/8, second moments of the whole."""
    whole = shapes.ellipsoid(0.5, 0.4, 0.3)
    half = shapes.intersection(whole, HALF)
    assert half.volume == pytest.approx(whole.volume / 2, rel=1e-9)
    np.testing.assert_allclose(half.com, [0, 0, -0.3 * 3 / 8], atol=1e-10)
    shift = half.com @ half.com * np.eye(3) - np.outer(half.com, half.com)
    np.testing.assert_allclose(half.inertia(1.0) + shift, whole.inertia(1.0), atol=1e-10)


def test_ball_cap_with_tilted_lid() -> None:
    """A ball cut by a tilted plane has the volume pi h^2 (3 - h) / 3 of its cap."""
    cap = shapes.intersection(shapes.sphere(1), shapes.halfspace((1, 2, -1), -0.4))
    assert cap.volume == pytest.approx(np.pi * 0.6**2 * 2.4 / 3, rel=1e-8)


def test_slivers_at_corners_are_seen() -> None:
    """A box turned against the quadrature's meridians, three facets meeting at corners, to 1e-9."""
    box = shapes.box(1, 2, 3).moved((0.3, 0, 1), unit((1, 0.2, 0.3, 0.4)))
    m = moments(Rays(box, box.interior, box.size))
    assert m.volume == pytest.approx(box.volume, rel=1e-9)
    np.testing.assert_allclose(m.inertia(1.0), box.inertia(1.0), atol=1e-9 * np.max(box.inertia(1.0)))


def test_monte_carlo() -> None:
    """Quadrature over three constraints agrees with counting random points, within four sigma."""
    body = shapes.intersection(
        shapes.ellipsoid(1, 0.8, 0.6),
        shapes.cone(0.9, 1.2).moved((0, 0, -0.4)),
        shapes.halfspace((1, 0, 1), 0.3),
    )
    lower, upper = body.bounds
    x = np.random.default_rng(0).uniform(lower, upper, (200_000, 3))
    inside = body.violation(x) <= 0
    box, p = np.prod(upper - lower), np.mean(inside)
    assert abs(body.volume - box * p) < 4 * box * np.sqrt(p * (1 - p) / len(x))
    np.testing.assert_allclose(body.com, x[inside].mean(axis=0), atol=4 * body.size / np.sqrt(inside.sum()))


def test_moved_inertia_follows_parallel_axes() -> None:
    """Moving a body leaves volume and principal moments, and takes its centre of mass along."""
    body = shapes.box(0.3, 0.5, 0.9)
    moved = body.moved((1, 2, 3), unit((1, 1, 0, 0)))
    assert moved.volume == body.volume
    np.testing.assert_allclose(moved.com, [1, 2, 3])
    # a quarter turn about x exchanges y and z
    expected = np.diag(body.inertia(1.0))[[0, 2, 1]]
    np.testing.assert_allclose(moved.inertia(1.0), np.diag(expected), atol=1e-15)


@pytest.mark.parametrize("kind", ["sphere", "intersection"])
def test_scales_over_sizes(kind: Any) -> None:
    """Volume scales as the cube of the size from a micrometre to a kilometre."""
    for size in (1e-6, 1e3):
        body = shapes.sphere(size)
        if kind == "intersection":
            body = shapes.intersection(body, shapes.halfspace((0, 0.6, 0.8), 0.0))
        factor = 1 if kind == "sphere" else 0.5
        assert body.volume == pytest.approx(factor * 4 / 3 * np.pi * size**3, rel=1e-8)
