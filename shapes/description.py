"""`repr` of a shape: its kind and sizes as they would be typed, of bounded length."""

from __future__ import annotations

from typing import Any

MEMBERS = 4  # of an intersection or a union that are shown
POINTS = 6  # vertices up to which all are shown
DEPTH = 3  # shapes within shapes
LONGEST = 300  # characters


def describe(shape: Any) -> str:
    """`ellipsoid(a=0.5, b=0.4, c=0.3)`; of a shape that is not complete only its kind."""
    try:
        text = _shape(shape, DEPTH)
    except Exception:  # (an error about a shape may have to show one that is only half made)
        text = f"<{getattr(shape, 'kind', type(shape).__name__)}>"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _shape(shape: Any, depth: int) -> str:
    kind, given = shape.kind, dict(shape.parameters)
    if depth == 0:
        return f"{kind}(...)"
    if kind == "moved":
        where = [f"position={given['position']!r}"]
        if given["orientation"] not in ((1.0, 0.0, 0.0, 0.0), 0.0):
            where.append(f"orientation={given['orientation']!r}")
        return f"{_shape(shape.shape, depth - 1)}.moved({', '.join(where)})"
    if "shapes" in given:
        members, more = given["shapes"], len(given["shapes"]) - MEMBERS
        told = [_shape(member, depth - 1) for member in members[:MEMBERS]]
        return f"{kind}({', '.join(told)}{f', ... {more} more' if more > 0 else ''})"
    return f"{kind}({', '.join(_argument(name, value) for name, value in given.items())})"


def _argument(name: str, value: Any) -> str:
    if name == "text":
        return repr(value)
    if name == "vertices":
        more = len(value) - POINTS
        told = ", ".join(map(repr, value[:POINTS]))
        return f"[{told}, ... {more} more]" if more > 0 else f"[{told}]"
    return f"{name}={value!r}"
