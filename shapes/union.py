"""The union of convex shapes: a body that is not convex.

A union is a list of convex pieces, all in one frame. It has no constraints of its own: whoever needs them
asks each of its `pieces`. Pieces may overlap; mass properties are those of the union, every point counted
once, by inclusion and exclusion over the intersections of its pieces:

    integral over the union = sum over sets S of pieces of (-1)^(|S| + 1) integral over the intersection of S

Sets whose pieces do not all overlap each other are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.process.lazy import cached_property
from implicit_geom.shapes.combine import Intersection, member
from implicit_geom.shapes.errors import EmptyShape, ShapeError
from implicit_geom.shapes.sampled.mass import Moments
from implicit_geom.shapes.shape import Constraint, Shape
from implicit_geom.shapes.validate import most_of

MOST_PIECES = 256  # of one body: pairs of pieces are looked at one by one
MOST = 200  # intersections for the mass properties
TOUCH = 1e-9  # overlap of bounding boxes, over the smaller piece, that counts as none


class Union(Shape):
    """All points of at least one of several convex shapes; unions of unions are made one.

    shapes   one or more convex shapes of the same dimension, all in one frame; they may overlap

    Every point counts once in volume, centre of mass and inertia. In contact each piece is taken by itself.
    theta = (theta of the first piece, theta of the second, ...).

    >>> ball = shapes.sphere(0.1)
    >>> dumbbell = shapes.union(ball, ball.moved(position=(0.3, 0, 0)))
    >>> dumbbell.com.round(6), len(dumbbell.pieces)
    (array([0.15, 0.  , 0.  ]), 2)
    """

    kind = "union"

    def __init__(self, *shapes: Shape) -> None:
        if not shapes:
            raise ShapeError("union: give at least one shape")
        members: list[Shape] = []
        self.shapes: tuple[Shape, ...]
        for i, shape in enumerate(shapes):
            members += (
                shape.shapes if isinstance(shape, Union) else [member(self.kind, f"shapes[{i}]", shape)]
            )
        most_of(self.kind, "shapes", members, MOST_PIECES, "pieces")
        self.shapes = tuple(members)
        self.dim = members[0].dim
        if any(s.dim != self.dim for s in members):
            dims = ", ".join(f"{s.kind} is in {s.dim}-D" for s in members)
            raise ShapeError(f"union: all shapes must have one dimension, but {dims}")
        self.bounded = all(s.bounded for s in members)
        self.support_exact = all(s.support_exact for s in members)
        self.strictly_convex = len(members) == 1 and members[0].strictly_convex

    @property
    def parameters(self) -> dict[str, Any]:
        return {"shapes": self.shapes}

    @property
    def structure(self) -> Hashable:
        return (self.kind, tuple((s.structure, s.values.size) for s in self.shapes))

    @cached_property
    def values(self) -> np.ndarray:
        return np.concatenate([s.values for s in self.shapes])

    @property
    def pieces(self) -> tuple[Shape, ...]:
        return self.shapes

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        """Those of its only piece; a union of several has none, for it is not convex."""
        if len(self.shapes) == 1:
            return self.shapes[0].constraints(x, theta)
        raise ShapeError("union: has no constraints of its own; ask each of its pieces")

    def violation(self, points: np.ndarray) -> np.ndarray:
        """The smallest of the pieces' violations at each point; <= 0 inside."""
        return np.asarray(np.min([s.violation(points) for s in self.shapes], axis=0))

    def support(self, directions: np.ndarray) -> np.ndarray:
        """Points of the union farthest along each direction: those of its convex hull."""
        points = np.array([s.support(directions) for s in self.shapes])
        best = np.argmax(np.einsum("sij,ij->si", points, directions), axis=0)
        return np.asarray(points[best, np.arange(len(directions))])

    def support_value(self, directions: np.ndarray) -> np.ndarray:
        return np.asarray(np.max([s.support_value(directions) for s in self.shapes], axis=0))

    @property
    def support_error(self) -> float:
        return max(s.support_error for s in self.shapes)

    @property
    def interior(self) -> np.ndarray:
        """A point inside the first piece; the centre of mass may be outside all of them."""
        return self.shapes[0].interior

    def moved(self, position: Sequence[float] | None = None, orientation: Any = None) -> Shape:
        return Union(*[s.moved(position, orientation) for s in self.shapes])

    def faceted(self, n: int) -> Shape:
        """The union of the pieces' inscribed polygons or polyhedra, of n vertices each."""
        return Union(*[s.faceted(n) for s in self.shapes])

    @cached_property
    def moments(self) -> Moments:
        """Volume, centre of mass and second moments of the union at uniform density."""
        if not self.bounded:
            raise ShapeError(
                "union: an unbounded shape has no mass properties; "
                "give mass=, com= and inertia= or fix the body"
            )
        volume, first, second = 0.0, np.zeros(self.dim), np.zeros((self.dim, self.dim))
        for sign, shape in self._terms():
            V, c = shape.volume, shape.com
            volume += sign * V
            first += sign * V * c
            second += sign * V * (_mean_square(shape) + np.outer(c, c))
        if volume <= 0:
            raise ShapeError(
                "union: pieces without thickness have no mass properties; give com= and inertia="
            )
        mean = first / volume
        return Moments(volume, mean, second / volume - np.outer(mean, mean))

    def _terms(self) -> Iterator[tuple[float, Shape]]:
        """Sign and shape of every term of the sum over intersections of pieces."""
        level: dict[tuple[int, ...], Shape] = {(i,): s for i, s in enumerate(self.shapes) if s.volume > 0}
        sign, left = 1.0, MOST
        while level:
            yield from ((sign, shape) for shape in level.values())
            wanted = self._larger(level)
            left -= len(wanted)
            if left < 0:
                raise ShapeError(
                    f"union: more than {MOST} of its pieces' intersections are needed for its mass "
                    "properties; give com= and inertia=, or pieces that overlap less"
                )
            common = {chosen: _overlap([self.shapes[k] for k in chosen]) for chosen in wanted}
            sign, level = -sign, {chosen: shape for chosen, shape in common.items() if shape is not None}

    def _larger(self, level: dict[tuple[int, ...], Shape]) -> list[tuple[int, ...]]:
        """Sets of one more piece, all of whose parts are in `level` and whose boxes overlap each other."""
        found = []
        for chosen in level:
            for i in range(chosen[-1] + 1, len(self.shapes)):
                wanted = (*chosen, i)
                known = all(part in level for part in combinations(wanted, len(chosen)))
                if known and _boxes_overlap([self.shapes[k] for k in wanted]):
                    found.append(wanted)
        return found

    @property
    def volume(self) -> float:
        return self.moments.volume if self.bounded else np.inf

    @property
    def com(self) -> np.ndarray:
        return self.moments.com

    def inertia(self, mass: float) -> Any:
        return self.moments.inertia(mass)


def _mean_square(shape: Shape) -> np.ndarray:
    """Mean of (x - com)(x - com)^T; in the plane a matrix with the right trace, which is all that counts."""
    J = shape.inertia(1.0)
    if shape.dim == 2:
        return np.eye(2) * J / 2
    return np.asarray(np.trace(J) / 2 * np.eye(3) - J)


def _boxes_overlap(shapes: list[Shape]) -> bool:
    bounds = [s.bounds for s in shapes]
    lower = np.max([b[0] for b in bounds], axis=0)
    upper = np.min([b[1] for b in bounds], axis=0)
    return bool(np.all(upper - lower > TOUCH * min(s.size for s in shapes)))


def _overlap(shapes: list[Shape]) -> Shape | None:
    """What shapes have in common, or None where that has no volume."""
    try:
        return Intersection(*shapes)
    except EmptyShape:
        return None
