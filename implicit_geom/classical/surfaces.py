"""The surfaces that a classical stepper uses: shapes as they are, or inscribed polygons and polyhedra.

Mass and inertia stay those of the true shape. Polygons, boxes and polyhedra are their own facets, so that
their vertices are contacts in either case.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Model
from implicit_geom.scene.scene import Scene
from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.planar import Disc, Polygon, Rectangle
from implicit_geom.shapes.polyhedra import Polyhedron
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.spatial import Box, Sphere

HALFSPACE, POLYTOPE, ROUND, OTHER = 0, 1, 2, 3


class Surfaces:
    """What each body of a model is bounded by; `facets` is None for the shapes as they are.

    kind        (B,) HALFSPACE, POLYTOPE, ROUND or OTHER
    vertices    of polytopes, (V, dim) from the centre of mass, body axes
    planes      of half-spaces and polytopes, (F, dim + 1) outward normals and offsets, likewise
    radius      (B,) of round bodies, centred on `centre` (B, dim)
    reach       (B,) of a ball about the centre of mass that holds the body
    """

    def __init__(self, model: Model, facets: int | None = None) -> None:
        self.model, self.facets = model, facets
        B, dim = len(model.bodies), model.dim
        self.kind = np.full(B, OTHER)
        self.vertices = [np.zeros((0, dim)) for _ in range(B)]
        self.planes = [np.zeros((0, dim + 1)) for _ in range(B)]
        self.radius, self.centre = np.zeros(B), np.zeros((B, dim))
        self.reach = model.reach
        known: dict[Shape, tuple[np.ndarray, np.ndarray]] = {}
        for b, body in enumerate(model.bodies):
            shape, com = body.shape, model.com[b]
            if is_halfspace(shape):
                self.kind[b] = HALFSPACE
                n = shape.values[:-1]
                self.planes[b] = np.append(n, shape.values[-1] - n @ com)[None]
                continue
            if facets is not None:
                shape = _faceted(body.name, shape, facets)
            if is_polytope(shape):
                self.kind[b] = POLYTOPE
                if shape not in known:
                    known[shape] = polytope(shape)
                vertices, planes = known[shape]
                self.vertices[b] = vertices - com
                self.planes[b] = np.column_stack([planes[:, :-1], planes[:, -1] - planes[:, :-1] @ com])
            elif isinstance(shape, Disc | Sphere):
                self.kind[b] = ROUND
                self.radius[b], self.centre[b] = shape.values[0], -com


def faceted_scene(scene: Scene, facets: int) -> Scene:
    """The scene with every bounded shape replaced by its inscribed one; mass and inertia are kept."""
    twin = Scene(dim=scene.dim, gravity=scene.gravity)
    twin._default_friction = scene._default_friction
    twin._pair_friction, twin._applied = scene._pair_friction, scene._applied
    twin.bodies = {
        name: body if is_halfspace(body.shape) else replace(body, shape=_faceted(name, body.shape, facets))
        for name, body in scene.bodies.items()
    }
    return twin


def _faceted(name: str, shape: Shape, facets: int) -> Shape:
    if not shape.bounded:
        raise SceneError(
            f"bodies.{name}.shape: an unbounded {shape.kind} has no facets; take a half-space, "
            "or a stepper with surface = 'implicit'"
        )
    try:
        return shape.faceted(facets)
    except ShapeError as error:
        raise SceneError(f"stepper.facets = {facets} does not suit bodies.{name}.shape: {error}") from None


def is_polytope(shape: Shape) -> bool:
    """Whether the shape is a polygon or a polyhedron."""
    if isinstance(shape, Moved):
        return is_polytope(shape.shape)
    return isinstance(shape, Polygon | Rectangle | Box | Polyhedron)


def polytope(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (V, dim) and planes (F, dim + 1), outward normals and offsets, in the shape's frame.

    In the plane counter-clockwise, side i from vertex i to vertex i + 1.
    """
    if isinstance(shape, Moved):
        vertices, planes = polytope(shape.shape)
        n = planes[:, :-1] @ shape.R.T
        return vertices @ shape.R.T + shape.position, np.column_stack([n, planes[:, -1] + n @ shape.position])
    if isinstance(shape, Rectangle | Box):
        shape = shape.faceted(8)
    if isinstance(shape, Polyhedron):
        return shape.vertices, shape.planes
    corners = shape.vertices  # type: ignore[attr-defined]
    edge = np.roll(corners, -1, axis=0) - corners
    n = np.stack([edge[:, 1], -edge[:, 0]], axis=1) / np.linalg.norm(edge, axis=1)[:, None]
    return corners, np.column_stack([n, np.sum(n * corners, axis=1)])
