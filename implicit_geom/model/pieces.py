"""The convex pieces of a scene's bodies: what pairs are made of.

A convex body is its own only piece; a union has several, all in the frame of the body's shape, so that a
piece moves with the pose and the centre of mass of its body. Pieces are numbered in the order of the bodies:
without unions the number of a piece is that of its body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.scene.scene import Body
from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.planar import Polygon, Rectangle
from implicit_geom.shapes.polyhedra import Polyhedron
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.spatial import Box


class Pieces:
    """Shapes and lengths of all pieces, and the bodies they belong to.

    owner    (P,) number of the body
    after    (P,) number of the first piece of the next body
    fixed, half, bounded    (P,) whether the body is fixed, the piece a half-space, the piece bounded
    flat                    (P,) whether the piece is bounded by planes: what slides on one feels none of it
    many, cornered          (P,) whether the body is a union, and whether the piece may have edges or corners
    size, thickness         (P,) half of the bounding box's longest and shortest edge, m
    """

    def __init__(self, bodies: Sequence[Body]) -> None:
        own = [b.shape.pieces for b in bodies]
        self.shapes: list[Shape] = [shape for pieces in own for shape in pieces]
        count = np.array([len(pieces) for pieces in own], int)
        self.owner = np.repeat(np.arange(len(own)), count)
        self.after = np.cumsum(count)[self.owner]
        self.fixed = np.array([b.fixed for b in bodies])[self.owner]
        self.half = np.array([is_halfspace(s) for s in self.shapes])
        self.flat = self.half | np.array([is_polytope(s) for s in self.shapes])
        self.bounded = np.array([s.bounded for s in self.shapes])
        self.many = (count > 1)[self.owner]
        self.cornered = np.array([not s.strictly_convex for s in self.shapes]) & ~self.half
        self.size = np.array([s.size for s in self.shapes])
        self.thickness = np.array([thickness_of(s) for s in self.shapes])

    def __len__(self) -> int:
        return len(self.shapes)

    def of(self, body: int) -> np.ndarray:
        """The numbers of a body's pieces."""
        return np.flatnonzero(self.owner == body)

    def of_pairs(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All pairs of pieces (i, j) of pairs of bodies (a, b); (K,) each."""
        count = np.bincount(self.owner)
        first = np.concatenate([[0], np.cumsum(count)])
        each = count[a] * count[b]
        k = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
        a, b = np.repeat(a, each), np.repeat(b, each)
        return first[a] + k // count[b], first[b] + k % count[b]


def is_polytope(shape: Shape) -> bool:
    """Whether the shape is a polygon or a polyhedron."""
    if isinstance(shape, Moved):
        return is_polytope(shape.shape)
    return isinstance(shape, Polygon | Rectangle | Box | Polyhedron)


def thickness_of(shape: Shape) -> float:
    if not shape.bounded:
        return np.inf
    lower, upper = shape.bounds
    return float(np.min(upper - lower) / 2)
