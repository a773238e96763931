"""Sweep files: a scene, the values to combine, and what to keep of each run, as TOML.

scene = "egg.toml"             a scene file, seen from the sweep file's folder; or its tables
summary = ["energy_lost"]      quantities of `studies.sweeps.summaries`, or a table of labels
[simulation]                   options that replace the scene file's
[values]
bodies.egg.shape.a = [0.4, 0.5]
friction.mu = { start = 0.1, stop = 0.5, count = 5 }
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.text_files import read_toml
from implicit_geom.interface.words import shown
from implicit_geom.scene.options import hint
from implicit_geom.scene.scene_file import SIMULATION, read_scene
from implicit_geom.shapes.errors import ShapeError

KEYS = ("scene", "summary", "simulation", "values")


def read_sweep(source: Path) -> tuple[Any, dict[str, Any], Any, Any]:
    """Scene, options, values and summary of a sweep file."""
    data = read_toml(source)
    for key in data:
        if key not in KEYS:
            raise SceneError(f"{source}: key {shown(key)} is not known{hint(key, KEYS)}")
    for key in ("scene", "summary", "values"):
        if key not in data:
            raise SceneError(f"{source}: {key} is missing; a sweep file has {', '.join(KEYS)}")
    given = data["scene"]
    if not isinstance(given, str | dict):
        raise SceneError(f"{source}: scene = {shown(given)} must be the name of a scene file, or its tables")
    try:
        scene, options = read_scene(source.parent / given if isinstance(given, str) else given)
    except (SceneError, ShapeError) as error:
        raise type(error)(f"{source}: scene: {error}") from None
    more = data.get("simulation", {})
    if not isinstance(more, dict):
        raise SceneError(f"{source}: simulation = {shown(more)} must be a table of keys and values")
    for key in more:
        if key not in SIMULATION:
            raise SceneError(f"{source}: simulation: key {shown(key)} is not known{hint(key, SIMULATION)}")
    return scene, {**options, **more}, data["values"], data["summary"]
