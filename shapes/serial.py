"""Shapes to and from plain dictionaries, as in a scene file: {"kind": "ellipsoid", "a": 0.5, ...}."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from implicit_geom.interface.words import hint, shown
from implicit_geom.shapes import planar, polyhedra, spatial
from implicit_geom.shapes.combine import Intersection
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.union import Union

PRIMITIVES: dict[str, type[Shape]] = {
    c.kind: c
    for c in (
        spatial.Sphere,
        spatial.Ellipsoid,
        spatial.Superellipsoid,
        spatial.Cylinder,
        spatial.Capsule,
        spatial.Cone,
        spatial.Box,
        spatial.Halfspace,
        polyhedra.Polyhedron,
        planar.Disc,
        planar.Ellipse,
        planar.Superellipse,
        planar.Polygon,
        planar.RegularPolygon,
        planar.Rectangle,
        planar.Halfplane,
    )
}
KINDS = (*PRIMITIVES, "moved", "intersection", "union", "surface")
MAX_DEPTH = 16  # shapes within shapes; every level is walked again and again
COMBINED: dict[str, type[Shape]] = {"intersection": Intersection, "union": Union}


def to_dict(shape: Shape) -> dict[str, Any]:
    """A shape as a plain dictionary: its kind and parameters, as in a scene file.

    Nested for moved shapes, intersections and unions; dictionaries, lists, texts and numbers only.
    `from_dict` reads it back.

    >>> shapes.to_dict(shapes.sphere(0.1))
    {'kind': 'sphere', 'r': 0.1}
    """
    return {"kind": shape.kind, **{k: _plain(v) for k, v in shape.parameters.items()}}


def from_dict(data: Mapping[str, Any]) -> Shape:
    """The shape of a plain dictionary, such as `to_dict` gives or a scene file holds.

    ShapeError where kind or key is not known (with the nearest one) or a value is not right.

    >>> shapes.from_dict({"kind": "box", "a": 0.5, "b": 0.4, "c": 0.3})
    box(a=0.5, b=0.4, c=0.3)
    """
    return _shape(data, 0)


def _shape(data: Any, depth: int) -> Shape:
    if depth > MAX_DEPTH:
        raise ShapeError(f"shape: more than {MAX_DEPTH} shapes are within each other; put them side by side")
    if not isinstance(data, Mapping):
        raise ShapeError(f"shape = {shown(data)} must be a table such as {{kind = 'sphere', r = 1}}")
    if "kind" not in data:
        raise ShapeError(f"shape: the key 'kind' is missing; it must be one of {', '.join(KINDS)}")
    kind = data["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ShapeError(f"shape: kind = {shown(kind)} is not known{hint(kind, KINDS)}")
    given = {k: v for k, v in data.items() if k != "kind"}
    if kind == "surface":
        from implicit_geom.shapes.formula.surface import Surface

        _check_keys(kind, given, required=["text"], allowed=None)
        return Surface(given.pop("text"), **given)
    if kind in COMBINED:
        _check_keys(kind, given, required=["shapes"], allowed=["shapes"])
        if isinstance(given["shapes"], str | Mapping) or not isinstance(given["shapes"], Iterable):
            raise ShapeError(f"{kind}: shapes = {shown(given['shapes'])} must be a list of shapes")
        return COMBINED[kind](*[_shape(s, depth + 1) for s in given["shapes"]])
    if kind == "moved":
        _check_keys(kind, given, required=["shape"], allowed=["shape", "position", "orientation"])
        return _shape(given.pop("shape"), depth + 1).moved(**given)
    arguments = inspect.signature(PRIMITIVES[kind]).parameters
    required = [k for k, p in arguments.items() if p.default is inspect.Parameter.empty]
    _check_keys(kind, given, required=required, allowed=list(arguments))
    return PRIMITIVES[kind](**given)


def _check_keys(
    kind: str, given: Mapping[str, Any], *, required: list[str], allowed: list[str] | None
) -> None:
    for key in given:
        if not isinstance(key, str) or (allowed is not None and key not in allowed):
            raise ShapeError(f"{kind}: the key {shown(key)} is not known{hint(key, allowed or [])}")
    for key in required:
        if key not in given:
            raise ShapeError(f"{kind}: the key {key!r} is missing")


def _plain(value: Any) -> Any:
    if isinstance(value, Shape):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value
