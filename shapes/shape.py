"""What a shape is: a convex set in its own frame, given by convex constraints.

A shape is the set of points x that satisfy every one of its constraints. There are three forms:

    Inequality       f(x) <= 0          f convex and differentiable
    Slab             |f(x)| <= bound    f affine; bound = 0 makes it an equation (a thin disc)
    ConeConstraint   |u(x)| <= t(x)     u, t affine; the apex of a cone needs no special case

Every f is scaled to a length: |grad f| is about one on the surface, so that f is close to a signed
distance in metres. Deviation: C07 leaves the scale of f open; without this choice large exponents
and small bodies ruin the conditioning of the step.

The same text serves symbols and numbers: `constraints(x, theta)` takes CasADi expressions, with
`theta` the vector `values` of the shape's parameters, so that one compiled problem serves every
shape of the same `structure`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.interface.arguments import checked_call
from implicit_geom.process.lazy import cached_property
from implicit_geom.process.threads import building
from implicit_geom.shapes.description import describe
from implicit_geom.shapes.errors import ShapeCallError, ShapeError


@dataclass(frozen=True)
class Inequality:
    """The constraint f(x) <= 0, f convex and about a signed distance in metres.

    >>> import casadi as ca
    >>> x = ca.SX.sym("x", 3)
    >>> shapes.sphere(1).constraints(x, ca.SX([1]))[0].__class__.__name__
    'Inequality'
    """

    f: ca.SX


@dataclass(frozen=True)
class Slab:
    """The constraint |f(x)| <= bound, f affine; an equation where the bound is zero.

    >>> import casadi as ca
    >>> x = ca.SX.sym("x", 3)
    >>> shapes.box(1, 2, 3).constraints(x, ca.SX([1, 2, 3]))[2]
    Slab(f=SX(x_2), bound=SX(3))
    """

    f: ca.SX
    bound: ca.SX


@dataclass(frozen=True)
class ConeConstraint:
    """The constraint |u(x)| <= t(x), u and t affine."""

    u: ca.SX
    t: ca.SX


Constraint = Inequality | Slab | ConeConstraint

# What is made of any shape by modules that know several kinds: each enters its function here, since it
# imports this module and not the other way round.
DERIVED: dict[str, Callable[..., Any]] = {}


class Shape(ABC):
    """A convex set (a union: several) in its own frame. Immutable; equal parameters mean equal shapes.

    kind              its name in a scene file
    dim               3, or 2 in the plane
    bounded           False of half-spaces and the like, which have no mass
    strictly_convex   known to have no straight line in its surface
    support_exact     False: `support` answers from sampled boundary points

    Made by the functions of `shapes`: sphere, ellipsoid, superellipsoid, cylinder, capsule, cone, box,
    halfspace, polyhedron; in the plane disc, ellipse, superellipse, polygon, regular_polygon, rectangle,
    halfplane; surface (of a formula), intersection, union. Lengths in metres.

    >>> egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    >>> egg == shapes.ellipsoid(0.5, 0.4, 0.3)
    True
    >>> egg.bounds
    (array([-0.5, -0.4, -0.3]), array([0.5, 0.4, 0.3]))
    """

    kind: str
    dim: int
    bounded: bool = True
    strictly_convex: bool = False
    support_exact: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        """A constructor called with wrong arguments names the right ones."""
        super().__init_subclass__(**options)
        for method, name in (("__init__", ""), ("moved", "shape.moved")):
            if method in vars(cls):
                setattr(cls, method, checked_call(ShapeCallError, name, within=building)(vars(cls)[method]))

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments by name: lengths in m, nested shapes as they are.

        >>> shapes.cylinder(0.1, 0.4).parameters
        {'radius': 0.1, 'length': 0.4}
        """

    @property
    def structure(self) -> Hashable:
        """What the symbolic constraints depend on apart from `values`."""
        return self.kind

    @cached_property
    def values(self) -> np.ndarray:
        """Numerical parameters, flattened in order: the `theta` of `constraints`."""
        return np.concatenate([np.ravel(np.asarray(v, float)) for v in self.parameters.values()])

    @abstractmethod
    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        """The constraints at the point x (shape's frame) for the parameters theta."""

    @abstractmethod
    def support(self, directions: np.ndarray) -> np.ndarray:
        """Points of the shape farthest along each direction; (N, dim) -> (N, dim), shape's frame, m.

        directions   rows of any length but zero

        ShapeError where the shape is unbounded.

        >>> shapes.box(0.5, 0.4, 0.3).support(np.array([[1.0, -1.0, 1.0]]))
        array([[ 0.5, -0.4,  0.3]])
        """

    def support_value(self, directions: np.ndarray) -> np.ndarray:
        """max n . x over the shape for each direction n, to 1e-9 of its size; (N, dim) -> (N,).

        >>> shapes.sphere(0.1).support_value(np.array([[0.0, 0.0, 1.0]]))
        array([0.1])
        """
        return np.einsum("ij,ij->i", self.support(directions), directions)

    def farthest_points(self, directions: np.ndarray) -> np.ndarray:
        """`support` to 1e-9 of the size of shapes whose support points are samples, but 3 ms a direction."""
        return self.support(directions)

    @property
    def support_error(self) -> float:
        """Metres by which n . support(n), |n| = 1, may fall short of the true maximum."""
        return 0.0

    @property
    def interior(self) -> np.ndarray:
        """A point inside every constraint, shape's frame."""
        return self.com

    @property
    def pieces(self) -> tuple[Shape, ...]:
        """The convex shapes that make up this one, in its frame: itself, unless it is a union."""
        return (self,)

    @property
    @abstractmethod
    def volume(self) -> float:
        """Volume in m^3 (area in m^2 in the plane); inf where the shape is unbounded."""

    @property
    @abstractmethod
    def com(self) -> np.ndarray:
        """Centre of mass at uniform density, (dim,) m, shape's frame; ShapeError where it is unbounded."""

    @abstractmethod
    def inertia(self, mass: float) -> Any:
        """Inertia at uniform density about the centre of mass, in the shape's axes, kg m^2.

        mass   kg

        (3, 3); a number in the plane. ShapeError where the shape is unbounded.

        >>> shapes.box(0.5, 0.4, 0.3).inertia(mass=3.0).diagonal().round(6)
        array([0.25, 0.34, 0.41])
        """

    @cached_property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner of the bounding box, (dim,) m each, shape's frame."""
        if not self.bounded:
            raise ShapeError(f"{self.kind}: an unbounded shape has no bounding box")
        axes = np.eye(self.dim)
        return -self.support_value(-axes), self.support_value(axes)

    @property
    def size(self) -> float:
        """Half of the bounding box's longest edge, m: the length that tolerances refer to."""
        if not self.bounded:
            return np.inf
        lower, upper = self.bounds
        return float(np.max(upper - lower) / 2)

    @cached_property
    def numeric(self) -> ca.Function:
        """x -> the largest violation of any constraint (negative inside), for numbers."""
        x, theta = ca.SX.sym("x", self.dim), ca.SX.sym("theta", self.values.size)
        worst = ca.SX(-ca.inf)
        for c in self.constraints(x, theta):
            worst = ca.fmax(worst, _violation(c))
        return ca.Function("violation", [x, theta], [worst])

    def violation(self, points: np.ndarray) -> np.ndarray:
        """The largest constraint value at each point, about its distance from the surface in m; <= 0 inside.

        points   (N, dim), shape's frame, m

        (N,).

        >>> shapes.sphere(1).violation(np.array([[0, 0, 0], [0, 0, 1], [0, 0, 2]]))
        array([-0.5,  0. ,  1.5])
        """
        points = np.atleast_2d(points)
        numeric = self.numeric
        with building():
            return np.asarray(numeric(points.T, self.values)).ravel()

    @checked_call(ShapeCallError, "shape.moved", within=building)
    def moved(self, position: Sequence[float] | None = None, orientation: Any = None) -> Shape:
        """This shape at another pose: a shape in the frame in which the pose is given.

        position      of this shape's origin, m; the origin if left out
        orientation   a unit quaternion w, x, y, z; in the plane an angle in rad; not turned if left out

        >>> shapes.box(1, 1, 1).moved(position=(0, 0, 2)).com
        array([0., 0., 2.])
        """
        shape: Shape = DERIVED["moved"](self, position, orientation)
        return shape

    @checked_call(ShapeCallError, "shape.faceted", within=building)
    def faceted(self, n: int) -> Shape:
        """The polygon or polyhedron inscribed in this shape, all vertices on its surface.

        n   vertices at most, and at least dim + 1; a smooth planar shape gets exactly n

        Polygons, boxes and polyhedra are their own facets whatever n is. ShapeError where the shape is
        unbounded.

        >>> shapes.disc(1.0).faceted(64)
        regular_polygon(n=64, r=1.0)
        >>> len(shapes.sphere(1.0).faceted(100).vertices)
        100
        """
        shape: Shape = DERIVED["faceted"](self, n)
        return shape

    def mesh(self, resolution: int = 32) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and triangles (segments in the plane) of the surface, for drawing.

        resolution   points round the body

        Vertices (V, dim) in m, shape's frame, and their numbers in each triangle (T, 3), outward oriented, or
        in each segment (S, 2). A half-space is a square patch with edges of 20 m.

        >>> vertices, triangles = shapes.box(1, 1, 1).mesh()
        >>> vertices.shape, triangles.shape
        ((8, 3), (12, 3))
        """
        mesh: tuple[np.ndarray, np.ndarray] = DERIVED["mesh"](self, resolution)
        return mesh

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Shape)
            and self.structure == other.structure
            and np.array_equal(self.values, other.values)
        )

    def __hash__(self) -> int:
        return hash((self.structure, (self.values + 0.0).tobytes()))  # + 0.0: equal zeros have one sign

    def __repr__(self) -> str:
        return describe(self)


def _violation(c: Constraint) -> ca.SX:
    if isinstance(c, Inequality):
        return c.f
    if isinstance(c, Slab):
        return ca.fabs(c.f) - c.bound
    return ca.sqrt(ca.sumsqr(c.u)) - c.t
