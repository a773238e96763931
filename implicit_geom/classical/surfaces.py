"""The surfaces that a classical stepper uses: shapes as they are, or inscribed polygons and polyhedra.

Mass and inertia stay those of the true shape. Polygons, boxes and polyhedra are their own facets, so that
their vertices are contacts in either case.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.geometry.polytopes import is_polytope, polytope
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Model
from implicit_geom.scene.scene import Scene
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.planar import Disc
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.spatial import Sphere

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
