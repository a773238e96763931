"""Shapes made of shapes: a shape at another pose, and the intersection of several."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.interface.words import shown
from implicit_geom.process.lazy import cached_property
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.sampled.sampled_shape import SampledShape
from implicit_geom.shapes.shape import DERIVED, Constraint, Shape
from implicit_geom.shapes.validate import finite, most_of, quaternion, vector

MOST_MEMBERS = 500  # shapes of one intersection, located within two seconds


class Moved(Shape):
    """A shape at another pose: {x : R^T (x - position) in shape}. Made by `shape.moved(...)`.

    shape         any convex shape
    position      of its origin in the new frame, m
    orientation   a unit quaternion w, x, y, z; an angle in rad in the plane

    theta = (theta of the shape, position, orientation).

    >>> shapes.sphere(0.1).moved(position=(0.3, 0, 0))
    sphere(r=0.1).moved(position=(0.3, 0.0, 0.0))
    """

    kind = "moved"

    def __init__(
        self, shape: Shape, position: Sequence[float] | None = None, orientation: Any = None
    ) -> None:
        self.shape = member(self.kind, "shape", shape)
        self.dim = shape.dim
        self.bounded = shape.bounded
        self.strictly_convex = shape.strictly_convex
        self.support_exact = shape.support_exact
        self.position, self.orientation, self.R = pose(self.kind, self.dim, position, orientation)

    @property
    def parameters(self) -> dict[str, Any]:
        orientation = tuple(self.orientation.tolist()) if self.dim == 3 else float(self.orientation[0])
        return {"shape": self.shape, "position": tuple(self.position.tolist()), "orientation": orientation}

    @property
    def structure(self) -> Hashable:
        return (self.kind, self.shape.structure)

    @cached_property
    def values(self) -> np.ndarray:
        return np.concatenate([self.shape.values, self.position, self.orientation])

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        n = self.shape.values.size
        position, orientation = theta[n : n + self.dim], theta[n + self.dim :]
        R = rotation_symbolic(orientation) if self.dim == 3 else rotation_symbolic_planar(orientation)
        return self.shape.constraints(R.T @ (x - position), theta[:n])

    def support(self, directions: np.ndarray) -> np.ndarray:
        return self.position + self.shape.support(directions @ self.R) @ self.R.T

    def farthest_points(self, directions: np.ndarray) -> np.ndarray:
        return np.asarray(self.position + self.shape.farthest_points(directions @ self.R) @ self.R.T)

    def support_value(self, directions: np.ndarray) -> np.ndarray:
        return np.asarray(self.shape.support_value(directions @ self.R) + directions @ self.position)

    @property
    def support_error(self) -> float:
        return self.shape.support_error

    @property
    def interior(self) -> np.ndarray:
        return np.asarray(self.position + self.R @ self.shape.interior)

    @property
    def volume(self) -> float:
        return self.shape.volume

    @property
    def com(self) -> np.ndarray:
        return np.asarray(self.position + self.R @ self.shape.com)

    def inertia(self, mass: float) -> Any:
        """R I R^T: the axes stay those of the outer frame."""
        own = self.shape.inertia(mass)
        return self.R @ own @ self.R.T if self.dim == 3 else own


DERIVED["moved"] = Moved


class Intersection(SampledShape):
    """What several convex shapes have in common; intersections of intersections are made one.

    shapes   one or more convex shapes of the same dimension, all in one frame; place them with `moved`

    Volume, centre of mass and inertia are computed when first asked for. ShapeError where nothing is inside
    all of them. theta = (theta of the first shape, theta of the second, ...).

    >>> lens = shapes.intersection(
    ...     shapes.sphere(1).moved(position=(0, 0, -0.8)), shapes.sphere(1).moved(position=(0, 0, 0.8))
    ... )
    >>> round(lens.volume, 4)
    0.2346
    """

    kind = "intersection"

    def __init__(self, *shapes: Shape) -> None:
        if not shapes:
            raise ShapeError("intersection: give at least one shape")
        self.shapes: tuple[Shape, ...]
        members: list[Shape] = []
        for i, shape in enumerate(shapes):
            member(self.kind, f"shapes[{i}]", shape)
            members += shape.shapes if isinstance(shape, Intersection) else [shape]
        most_of(self.kind, "shapes", members, MOST_MEMBERS, "shapes")
        self.shapes = tuple(members)
        self.dim = members[0].dim
        if any(s.dim != self.dim for s in members):
            dims = ", ".join(f"{s.kind} is in {s.dim}-D" for s in members)
            raise ShapeError(f"intersection: all shapes must have one dimension, but {dims}")
        self.locate(scale=min((s.size for s in members), default=np.inf))

    @property
    def parameters(self) -> dict[str, Any]:
        return {"shapes": self.shapes}

    @property
    def structure(self) -> Hashable:
        return (self.kind, tuple(s.structure for s in self.shapes))

    @cached_property
    def values(self) -> np.ndarray:
        return np.concatenate([s.values for s in self.shapes])

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        found: list[Constraint] = []
        start = 0
        for s in self.shapes:
            found += s.constraints(x, theta[start : start + s.values.size])
            start += s.values.size
        return found


def member(kind: str, name: str, shape: Any) -> Shape:
    """A convex shape, or an error."""
    if not isinstance(shape, Shape):
        raise ShapeError(f"{kind}: {name} = {shown(shape)} must be a shape, such as shapes.sphere(1)")
    if len(shape.pieces) > 1:
        raise ShapeError(
            f"{kind}: {name} is a union, which is not convex; use the {kind} of each of its pieces"
        )
    return shape


def pose(kind: str, dim: int, position: Any, orientation: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Checked position (dim,), orientation (4,) or (1,), and the rotation matrix R (dim, dim)."""
    p = np.zeros(dim) if position is None else np.array(vector(kind, "position", position, dim))
    if dim == 2:
        angle = 0.0 if orientation is None else finite(kind, "orientation", orientation)
        c, s = np.cos(angle), np.sin(angle)
        return p, np.array([angle]), np.array([[c, -s], [s, c]])
    q = np.array([1.0, 0, 0, 0] if orientation is None else quaternion(kind, "orientation", orientation))
    return p, q, np.array([[float(e) for e in row] for row in rotation_entries(*q)])


def rotation_entries(w: Any, x: Any, y: Any, z: Any) -> list[list[Any]]:
    """Rotation matrix of the unit quaternion (w, x, y, z), row by row, for numbers or symbols."""
    return [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]


def rotation_symbolic(q: ca.SX) -> ca.SX:
    return ca.vertcat(*[ca.horzcat(*row) for row in rotation_entries(q[0], q[1], q[2], q[3])])


def rotation_symbolic_planar(angle: ca.SX) -> ca.SX:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s), ca.horzcat(s, c))
