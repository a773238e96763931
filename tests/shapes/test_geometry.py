"""Support points, scaling of the constraints, moved shapes and intersections."""

from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shape_tables import BOUNDED, CUT, QUATERNION, UNBOUNDED, directions, name

from implicit_geom import shapes
from implicit_geom.rotation import unit
from implicit_geom.shapes.sampled.boundary import farthest
from implicit_geom.shapes.sampled.facets import rays_of
from implicit_geom.shapes.serial import PRIMITIVES


@pytest.mark.parametrize("shape", BOUNDED, ids=name)
def test_support_is_on_the_boundary_and_farthest(shape: Any) -> None:
    """A support point is on the boundary, and no boundary point is farther than support_error."""
    n = directions(shape.dim)
    points = shape.support(n)
    np.testing.assert_allclose(shape.violation(points), 0, atol=1e-9 * shape.size)
    boundary, _ = rays_of(shape).cast(directions(shape.dim, 3000, seed=1))
    reach = np.max(n @ boundary.T, axis=1)
    assert np.all(np.einsum("ij,ij->i", n, points) >= reach - shape.support_error - 1e-12)
    assert shape.support_error < 0.02 * shape.size


@pytest.mark.parametrize("shape", CUT, ids=name)
def test_support_error_bounds_the_true_shortfall(shape: Any) -> None:
    """support_error is not below the true shortfall; optimisation and cutting planes agree on the latter."""
    n = directions(shape.dim, 60, seed=3)
    true = shape.support_value(n)
    short = true - np.einsum("ij,ij->i", n, shape.support(n))
    assert np.all(short >= -1e-9)
    assert np.all(short <= shape.support_error + 1e-9)
    cuts = [farthest(shape.rays, shape.samples, v) for v in n[:4]]
    np.testing.assert_allclose(cuts, true[:4], atol=1e-8 * shape.size)


@pytest.mark.parametrize("shape", BOUNDED, ids=name)
def test_bounds_hold_the_body_and_touch_it(shape: Any) -> None:
    """No boundary point is outside the bounding box, and every face of the box is nearly reached."""
    lower, upper = shape.bounds
    boundary, _ = rays_of(shape).cast(directions(shape.dim, 4000))
    assert np.all(boundary >= lower - 1e-9)
    assert np.all(boundary <= upper + 1e-9)
    reach = shape.support(np.vstack([np.eye(shape.dim), -np.eye(shape.dim)]))
    np.testing.assert_allclose(reach.max(axis=0), upper, atol=shape.support_error + 1e-9)
    np.testing.assert_allclose(reach.min(axis=0), lower, atol=shape.support_error + 1e-9)


def test_bounds_of_half_ellipsoid_are_exact() -> None:
    """The bounding box of an intersection is exact to 1e-9."""
    body = CUT[0]
    np.testing.assert_allclose(body.bounds[0], [-0.5, -0.4, -0.3], atol=1e-9)
    np.testing.assert_allclose(body.bounds[1], [0.5, 0.4, 0.0], atol=1e-9)


@pytest.mark.parametrize("shape", BOUNDED, ids=name)
def test_gradients_are_about_one(shape: Any) -> None:
    """The constraint that is active on the boundary has a gradient of order one."""
    rays = rays_of(shape)
    points, first = rays.cast(directions(shape.dim, 500))
    steep = np.linalg.norm(rays.gradients(points)[np.arange(500), first], axis=1)
    assert np.min(steep) > 0.2
    assert np.max(steep) < 5
    assert 0.5 < np.median(steep) < 2


@pytest.mark.parametrize("shape", BOUNDED + UNBOUNDED, ids=name)
def test_interior_is_inside(shape: Any) -> None:
    """The interior point violates nothing, with room to spare."""
    room = 0.01 * shape.size if shape.bounded else 0.01
    assert shape.violation(shape.interior)[0] < -room


@pytest.mark.parametrize("shape", BOUNDED + UNBOUNDED, ids=name)
def test_constraints_use_theta(shape: Any) -> None:
    """Every entry of theta appears in the symbolic constraints: no number of the shape is frozen in."""
    x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
    parts = [ca.vec(e) for c in shape.constraints(x, theta) for e in vars(c).values()]
    assert np.all(ca.which_depends(ca.vertcat(*parts), theta, 1))


@pytest.mark.parametrize("shape", BOUNDED, ids=name)
def test_moved_violation_is_the_violation_at_the_body_point(shape: Any) -> None:
    """f of a moved shape at p + R y equals f of the shape at y."""
    position = (0.3, -0.7, 0.2)[: shape.dim]
    moved = shape.moved(position, QUATERNION if shape.dim == 3 else 0.6)
    y = shape.size * np.random.default_rng(0).normal(size=(50, shape.dim))
    np.testing.assert_allclose(
        moved.violation(moved.position + y @ moved.R.T), shape.violation(y), rtol=1e-9, atol=1e-12
    )
    n = directions(shape.dim, 20)
    np.testing.assert_allclose(moved.support(n), moved.position + shape.support(n @ moved.R) @ moved.R.T)


def test_quaternion_convention() -> None:
    """A quarter turn about z by the quaternion w, x, y, z takes x to y; so does the angle pi/2."""
    s = np.sqrt(0.5)
    np.testing.assert_allclose(
        shapes.box(1, 2, 3).moved((0, 0, 0), (s, 0, 0, s)).R @ [1, 0, 0], [0, 1, 0], atol=1e-15
    )
    np.testing.assert_allclose(shapes.disc(1).moved((0, 0), np.pi / 2).R @ [1, 0], [0, 1], atol=1e-15)


def test_moved_halfspace_is_a_halfspace() -> None:
    """A moved half-space is a half-space with the turned normal and the new offset."""
    half = shapes.halfspace((0, 0, 1), 0.2).moved((5, 0, 1), unit((1, 1, 0, 0)))
    assert half.kind == "halfspace"
    np.testing.assert_allclose(half.normal, [0, -1, 0], atol=1e-15)
    assert half.offset == pytest.approx(0.2)
    assert shapes.halfplane((0, 1)).moved((0, 2)).parameters == {"normal": (0.0, 1.0), "offset": 2.0}


def test_intersection_is_the_worst_of_its_shapes() -> None:
    """The violation of an intersection is the largest of its shapes'; nesting makes no difference."""
    a, b, c = shapes.sphere(1), shapes.box(0.8, 0.9, 2), shapes.halfspace((1, 1, 0), 0.4)
    both = shapes.intersection(a, b, c)
    x = np.random.default_rng(0).normal(size=(100, 3))
    expected = np.max([s.violation(x) for s in (a, b, c)], axis=0)
    np.testing.assert_allclose(both.violation(x), expected)
    assert shapes.intersection(shapes.intersection(a, b), c) == both


def test_polytope_intersection_is_exact() -> None:
    """A cube with one corner cut off: exact support, volume 8 - 1/6."""
    cut = shapes.intersection(shapes.box(1, 1, 1), shapes.halfspace((1, 1, 1), 2 / np.sqrt(3)))
    assert cut.support_exact
    assert cut.support_error == 0
    assert cut.volume == pytest.approx(8 - 1 / 6, rel=1e-12)
    assert len(cut.samples) == 10


EMPTY = {
    "apart": (shapes.sphere(1), shapes.sphere(1).moved((3, 0, 0))),
    "flat": (shapes.sphere(1), shapes.cylinder(0.2, 0)),
    "half-spaces": (shapes.halfspace((0, 0, 1), -1), shapes.halfspace((0, 0, -1), -1)),
}


@pytest.mark.parametrize("parts", EMPTY.values(), ids=EMPTY.keys())
def test_empty_intersection_is_refused(parts: Any) -> None:
    """An intersection without interior is an error that says so."""
    with pytest.raises(shapes.ShapeError, match="empty"):
        shapes.intersection(*parts)


def test_mixed_dimensions_are_refused() -> None:
    """Planar and spatial shapes do not intersect."""
    with pytest.raises(shapes.ShapeError, match="dimension"):
        shapes.intersection(shapes.sphere(1), shapes.disc(1))


@pytest.mark.parametrize("shape", UNBOUNDED, ids=name)
def test_unbounded_shapes_say_so(shape: Any) -> None:
    """An unbounded shape has infinite volume and no support, bounds, mass or mesh of a solid."""
    assert not shape.bounded
    assert shape.volume == np.inf
    assert shape.size == np.inf
    for ask in (lambda: shape.support(np.eye(shape.dim)), lambda: shape.bounds, lambda: shape.com):
        with pytest.raises(shapes.ShapeError, match="unbounded"):
            ask()


def test_thin_tube_is_found_unbounded() -> None:
    """A tube open along one single line of directions is unbounded; closed by a far lid it is not."""
    tube = shapes.surface("x**2 + y**2 - 1").moved((0, 0, 0), QUATERNION)
    assert not shapes.intersection(tube, shapes.halfspace((0, 0, 1), 3)).bounded
    assert shapes.intersection(tube, shapes.box(500, 500, 500)).bounded


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.05, 20), min_size=3, max_size=3),
    st.floats(2, 30),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(lambda v: np.linalg.norm(v) > 0.1),
)
def test_superellipsoid_support_satisfies_its_equations(axes: Any, p: Any, n: Any) -> None:
    """The support point for any axes, exponent and direction is on the surface and farthest."""
    shape = shapes.superellipsoid(a=axes[0], b=axes[1], c=axes[2], p=p)
    point = shape.support(np.array([n]))
    assert abs(shape.violation(point)[0]) < 1e-9 * max(axes)
    others = shape.support(directions(3, 50))
    assert np.all(others @ n <= point @ n + 1e-9 * max(axes))


def test_every_kind_is_in_the_tables() -> None:
    """A new kind of shape is tested like the others."""
    tested = {shape.kind for shape in (*BOUNDED, *UNBOUNDED)}
    assert set(PRIMITIVES) - tested == set()
