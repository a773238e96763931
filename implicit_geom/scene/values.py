"""Scenes that differ in values: one scene and arrays for some of its fields, named as in a scene file."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.words import shown
from implicit_geom.scene.options import hint
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import read_scene, to_dict
from implicit_geom.shapes.errors import ShapeError


class Variants:
    """One scene for every row of the arrays, which all have the same length.

    A name is a path in a scene file: "bodies.egg.shape.a", "bodies.egg.mass", "bodies.egg.velocity",
    "friction.mu", "gravity". An inertia or a centre of mass that follows from shape and mass follows the
    new ones.

    base    the scene that varies
    lists   the rows of every array, by path
    plain   the scene file's structure that they are placed in
    """

    def __init__(self, scene: Scene, values: Mapping[str, Any]) -> None:
        if not isinstance(scene, Scene):
            raise SceneError(
                f"scene = {shown(scene)} must be a Scene; read a scene file with read_scene(path)"
            )
        self.base, self.lists = scene, _lists(values)
        if not scene.constant_loads:
            raise SceneError(
                "scene: loads that are functions of time cannot be part of a batch; use simulate"
            )
        self.plain = template(scene, self.lists)

    def __len__(self) -> int:
        return len(next(iter(self.lists.values())))

    def scene(self, i: int) -> Scene:
        """The scene of a row; what is wrong with its values names the row."""
        try:
            return read_scene(placed(self.plain, {path: rows[i] for path, rows in self.lists.items()}))[0]
        except (SceneError, ShapeError) as error:
            raise type(error)(f"values, row {i}: {error}") from None


def variants(scene: Scene, values: Mapping[str, Any]) -> list[Scene]:
    """The scenes of all rows, see `Variants`."""
    rows = Variants(scene, values)
    return [rows.scene(i) for i in range(len(rows))]


def template(scene: Scene, paths: Iterable[str]) -> dict[str, Any]:
    """The scene file's structure in which these fields may be set; an unknown one is an error."""
    plain, paths = to_dict(scene), list(paths)
    for name in {path.split(".")[1] for path in paths if path.startswith("bodies.") and path.count(".") > 1}:
        _forget_derived(scene, plain, name)
    for path in paths:
        _find(plain, path)
    return plain


def placed(plain: dict[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a scene file's structure with other values in some of its fields."""
    changed = copy.deepcopy(plain)
    for path, value in row.items():
        table, key = _find(changed, path)
        table[key] = value
    return changed


def _lists(values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The rows of every array, as many of each; what they hold is looked at by the field they are for."""
    if not isinstance(values, Mapping) or not values:
        raise SceneError('values must name at least one field, such as {"friction.mu": [0.2, 0.4]}')
    lists: dict[str, list[Any]] = {}
    for path, array in values.items():
        if not isinstance(path, str):
            raise SceneError(f"values: {shown(path)} must be a text such as 'bodies.egg.mass'")
        given = array if isinstance(array, list | tuple | np.ndarray) else np.asarray(array, object)
        if isinstance(given, np.ndarray) and given.ndim == 0:
            raise SceneError(f"values[{shown(path)}] = {shown(array)} must be an array, one row a scene")
        lists[path] = given.tolist() if isinstance(given, np.ndarray) else [_plain(row) for row in given]
    lengths = {path: len(rows) for path, rows in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{path} has {n}" for path, n in lengths.items())
        raise SceneError(f"values: all arrays need the same number of rows; {told}")
    if 0 in lengths.values():
        raise SceneError("values: the arrays are empty; give at least one row")
    return lists


def _plain(row: Any) -> Any:
    return row.tolist() if isinstance(row, np.ndarray | np.generic) else row


def _find(plain: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The table that holds a field, and its key there."""
    *tables, key = path.split(".")
    here, walked = plain, ""
    for name in tables:
        if not isinstance(here.get(name), dict):
            known = [k for k, v in here.items() if isinstance(v, dict)]
            raise SceneError(f"values[{shown(path)}]: there is no {shown(walked + name)}{hint(name, known)}")
        here, walked = here[name], f"{walked}{name}."
    allowed = _keys(here, walked)
    if key not in allowed:
        raise SceneError(
            f"values[{shown(path)}]: {walked.rstrip('.') or 'the scene'} has no {shown(key)}"
            + hint(key, allowed)
        )
    return here, key


def _keys(table: dict[str, Any], where: str) -> list[str]:
    """Fields that may vary: numbers and vectors."""
    if where == "friction.":
        return ["mu", "e_t", "e_o", "e_r", "restitution"]
    keys = [k for k, v in table.items() if isinstance(v, int | float | list) and not isinstance(v, bool)]
    if where.startswith("bodies.") and where.count(".") == 2:
        keys += [k for k in ("com", "inertia") if "mass" in table and k not in keys]
    return [k for k in keys if k != "dim"]


def _forget_derived(scene: Scene, plain: dict[str, Any], name: str) -> None:
    """Leave out the mass properties that follow from a body's shape and mass."""
    body = scene.bodies.get(name)
    if body is None or body.fixed:
        return
    shape = body.shape
    derived = np.atleast_2d(shape.inertia(body.mass))
    if np.array_equal(body.com, shape.com) and np.array_equal(body.inertia, derived):
        del plain["bodies"][name]["com"], plain["bodies"][name]["inertia"]
