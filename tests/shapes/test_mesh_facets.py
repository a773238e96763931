"""Meshes and inscribed polyhedra: on the surface, closed, outward, converging from inside."""

from typing import Any

import numpy as np
import pytest
from shape_tables import BOUNDED, name

from implicit_geom import shapes
from implicit_geom.shapes.sampled.mesh import surface_mesh


def enclosed(vertices: Any, cells: Any) -> float:
    """Signed volume (area in the plane) inside an oriented mesh."""
    corners = vertices[cells]
    if vertices.shape[1] == 2:
        return np.sum(np.linalg.det(corners)) / 2
    return np.sum(np.linalg.det(corners)) / 6


@pytest.mark.parametrize("shape", BOUNDED, ids=name)
def test_mesh_converges_from_inside(shape: Any) -> None:
    """Mesh volume is positive (outward), below the body's, and approaches it as it is refined."""
    coarse, fine = (1 - enclosed(*shape.mesh(n)) / shape.volume for n in (16, 64))
    assert -1e-9 < fine < 0.02
    assert fine < coarse / 8 or fine < 1e-9
    vertices, _ = shape.mesh(16)
    np.testing.assert_allclose(shape.violation(vertices), 0, atol=1e-9 * shape.size)


@pytest.mark.parametrize("shape", [*BOUNDED, shapes.cylinder(0.5, 0)], ids=name)
def test_mesh_is_closed(shape: Any) -> None:
    """Every edge is passed once in each direction (every vertex entered and left once in the plane)."""
    vertices, cells = shape.mesh(12)
    if shape.dim == 2:
        assert sorted(cells[:, 0]) == sorted(cells[:, 1]) == list(range(len(vertices)))
        return
    edges = np.vstack([cells[:, [0, 1]], cells[:, [1, 2]], cells[:, [2, 0]]])
    there = {tuple(e) for e in edges.tolist()}
    assert len(there) == len(edges) or shape.volume == 0
    assert there == {(b, a) for a, b in there}


def test_sharp_features_are_in_the_mesh() -> None:
    """Corners of a box and the tip of a cone are vertices; so are the corners of a cut cube."""
    assert enclosed(*shapes.box(1, 2, 3).mesh(8)) == pytest.approx(48, rel=1e-12)
    assert np.max(shapes.cone(1, 2).mesh(8)[0][:, 2]) == 2
    cut = shapes.intersection(shapes.box(1, 1, 1), shapes.halfspace((1, 1, 1), 0.3))
    assert enclosed(*cut.mesh(8)) == pytest.approx(cut.volume, rel=1e-12)


@pytest.mark.parametrize("half", [shapes.halfspace((1, 2, 2), 0.6), shapes.halfplane((3, 4), 0.6)], ids=name)
def test_halfspace_patch(half: Any) -> None:
    """A half-space is drawn as a patch in its plane with the given half-width."""
    vertices, cells = surface_mesh(half, 8, size=3.0)
    np.testing.assert_allclose(half.violation(vertices), 0, atol=1e-12)
    np.testing.assert_allclose(vertices.mean(axis=0), 0.6 * half.normal, atol=1e-12)
    assert np.max(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1)) == pytest.approx(
        3 * np.sqrt(half.dim - 1)
    )
    if half.dim == 3:
        a, b, c = vertices[cells[0]]
        assert np.dot(np.cross(b - a, c - a), half.normal) > 0


@pytest.mark.parametrize("shape", BOUNDED, ids=name)
def test_faceted_is_inscribed(shape: Any) -> None:
    """Vertices of the inscribed polyhedron are on the surface; its volume grows towards the body's."""
    few, many = shape.faceted(16), shape.faceted(120)
    for f in (few, many):
        hull, _ = f.mesh(8)
        np.testing.assert_allclose(shape.violation(hull), 0, atol=1e-9 * shape.size)
    assert few.volume <= many.volume * (1 + 1e-12) <= shape.volume * (1 + 1e-9)
    assert many.volume > 0.9 * shape.volume


def test_faceted_counts() -> None:
    """n is the number of vertices: a disc gives the regular n-gon, a cylinder a prism, a sphere n points."""
    assert shapes.disc(0.5).faceted(9) == shapes.regular_polygon(9, 0.5)
    assert len(shapes.ellipse(1, 2).faceted(11).vertices) == 11
    assert len(shapes.sphere(1).faceted(50).vertices) == 50
    prism = shapes.cylinder(1, 2).faceted(24)
    assert len(prism.vertices) == 24
    assert len(prism.planes) == 14
    cut = shapes.intersection(shapes.sphere(1), shapes.halfspace((0, 0, 1), 0.2)).faceted(40)
    assert 30 <= len(cut.vertices) <= 40


def test_polyhedron_merges_coplanar_facets() -> None:
    """A cube has six facets, and its constraints are those of the box."""
    box = shapes.box(1, 2, 3)
    cube = box.faceted(8)
    assert len(cube.planes) == 6
    assert cube.structure == ("polyhedron", 6)
    x = np.random.default_rng(0).normal(size=(100, 3)) * 3
    np.testing.assert_allclose(cube.violation(x), box.violation(x), atol=1e-12)


def test_what_cannot_be_faceted_says_so() -> None:
    """Half-spaces, thin discs and too few vertices are errors."""
    for make in (
        lambda: shapes.halfspace((0, 0, 1)).faceted(8),
        lambda: shapes.cylinder(1, 0).faceted(8),
        lambda: shapes.disc(1).faceted(2),
        lambda: shapes.sphere(1).faceted(3.5),
    ):
        with pytest.raises(shapes.ShapeError):
            make()
