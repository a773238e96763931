"""Convex shapes given by implicit surfaces, and unions of them.

Lengths in metres, z up (y up in the plane), quaternions w, x, y, z. Every constructor checks its
arguments and raises ShapeError with the field, its value and what would be right.

    >>> from implicit_geom import shapes
    >>> head = shapes.cylinder(0.2, 0.1).moved(position=(0, 0, 0.35))
    >>> bolt = shapes.union(shapes.cylinder(0.1, 0.6), head)
    >>> bolt.com.round(3)
    array([0.  , 0.  , 0.14])
"""

from typing import TYPE_CHECKING, Any

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.words import hint, shown
from implicit_geom.process.threads import building
from implicit_geom.shapes.combine import Intersection, Moved
from implicit_geom.shapes.errors import ShapeCallError, ShapeError
from implicit_geom.shapes.planar import (
    Disc,
    Ellipse,
    Halfplane,
    Polygon,
    Rectangle,
    RegularPolygon,
    Superellipse,
)
from implicit_geom.shapes.polyhedra import Polyhedron
from implicit_geom.shapes.sampled import facets as _facets  # noqa: F401 (they enter `faceted` and `mesh`)
from implicit_geom.shapes.sampled import mesh as _mesh  # noqa: F401
from implicit_geom.shapes.serial import from_dict, to_dict
from implicit_geom.shapes.shape import Constraint, Inequality, Shape, Slab
from implicit_geom.shapes.spatial import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    Halfspace,
    Sphere,
    Superellipsoid,
)
from implicit_geom.shapes.union import Union

if TYPE_CHECKING:
    from implicit_geom.shapes.formula.surface import Surface

__all__ = [
    "Box", "Capsule", "Cone", "Constraint", "Cylinder", "Disc", "Ellipse", "Ellipsoid", "Halfplane",
    "Halfspace", "Inequality", "Intersection", "Moved", "Polygon", "Polyhedron", "Rectangle",
    "RegularPolygon", "Shape", "ShapeError", "Slab", "Sphere", "Superellipse", "Superellipsoid", "Union",
    "box", "capsule", "cone", "cylinder", "disc", "ellipse", "ellipsoid", "from_dict", "halfplane",
    "halfspace", "intersection", "polygon", "polyhedron", "rectangle", "regular_polygon", "sphere",
    "superellipse", "superellipsoid", "surface", "to_dict", "union",
]  # fmt: skip

sphere = Sphere
ellipsoid = Ellipsoid
superellipsoid = Superellipsoid
cylinder = Cylinder
capsule = Capsule
cone = Cone
box = Box
halfspace = Halfspace
polyhedron = Polyhedron
intersection = Intersection
union = Union
disc = Disc
ellipse = Ellipse
superellipse = Superellipse
polygon = Polygon
regular_polygon = RegularPolygon
rectangle = Rectangle
halfplane = Halfplane


@checked_call(ShapeCallError, "surface", within=building)
def surface(text: str, *, dim: int = 3, **parameters: float) -> "Surface":
    """A convex body given by a formula: {f <= 0}, f a text in x, y, z (x, y in the plane).

    text         the function f, convex, its coordinates in m: numbers, + - * / **, pi and the functions abs,
                 cos, cosh, exp, log, sin, sinh, sqrt. It is parsed, never executed
    dim          3, or 2 for a planar body
    parameters   numbers by the names that the text uses for them

    ShapeError where the text is not understood, takes too long to check, or has no points inside, several
    pieces or a surface that is not convex.

    >>> shapes.surface("(x/a)**2 + (y/b)**4 + z**2 - 1", a=1, b=2)
    surface('(x/a)**2 + (y/b)**4 + z**2 - 1', a=1.0, b=2.0)
    """
    from implicit_geom.shapes.formula.surface import (
        Surface,  # SymPy takes half a second to load; few scenes need it
    )

    return Surface(text, dim=dim, **parameters)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"shapes has no {shown(name)}{hint(name, [n for n in __all__ if n.islower()])}")


def __dir__() -> list[str]:
    return sorted(__all__)
