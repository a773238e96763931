"""`repr` of a scene: its bodies, a line each, and its friction."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from implicit_geom.interface.words import shown

BODIES = 8  # that are listed, the others are counted
PAIRS = 4  # with friction of their own, likewise


def describe(scene: Any) -> str:
    """A line on the scene, one on each of the first bodies, one on each contact law that was set."""
    try:
        return "\n".join([_head(scene), *_bodies(scene), *_friction(scene)])
    except Exception:  # (a debugger may show one that is only half made)
        return "<Scene>"


def _head(scene: Any) -> str:
    count = len(scene.bodies)
    bodies = "1 body" if count == 1 else f"{count} bodies"
    gravity = ", ".join(f"{g:g}" for g in scene.gravity)
    return f"Scene: {bodies}, dim = {scene.dim}, gravity = ({gravity}) m/s^2"


def _bodies(scene: Any) -> list[str]:
    bodies = list(scene.bodies.values())
    names = [body.name for body in bodies[:BODIES]]
    width = max(map(len, names), default=0)
    lines = []
    for name, body in zip(names, bodies):
        kind = "fixed" if body.fixed else f"{body.mass:g} kg"
        place = ", ".join(f"{x:g}" for x in body.position)
        lines.append(f"  {name:{width}}  {body.shape!r}, {kind}, at ({place}) m")
    more = len(bodies) - BODIES
    return [*lines, f"  ... {more} more bodies"] if more > 0 else lines


def _friction(scene: Any) -> list[str]:
    law = scene._default_friction
    given = {f.name: getattr(law, f.name) for f in fields(law)}
    told = {f.name: given[f.name] for f in fields(law) if f.name == "mu" or given[f.name] != f.default}
    lines = [f"  friction: {_law(told)}"]
    pairs = list(scene._pair_friction.items())
    order = list(scene.bodies)
    for pair, own in pairs[:PAIRS]:
        names = " and ".join(sorted(pair, key=order.index))
        lines.append(f"  friction of {names}: {_law(own) or 'as above'}")
    more = len(pairs) - PAIRS
    return [*lines, f"  ... {more} more pairs with friction of their own"] if more > 0 else lines


def _law(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} = {f'{v:g}' if isinstance(v, int | float) else shown(v)}" for name, v in values.items()
    )
