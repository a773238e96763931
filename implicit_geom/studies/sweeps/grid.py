"""The points of a sweep: every combination of the values that are given, named as in a scene file."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.interface import choices
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.text_files import MOST_NAMES
from implicit_geom.interface.words import shown
from implicit_geom.scene.options import SimulationOptions, hint
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import SIMULATION, read_scene
from implicit_geom.scene.switches import Stepper
from implicit_geom.scene.values import placed, template
from implicit_geom.shapes.errors import ShapeError

SPAN = ("start", "stop", "count")
# a row is written when its run ends and all are kept: at a second a run this is a day on one processor
MOST_RUNS = 100_000
SET_BY_SWEEP = ("on_failure",)  # a failed run is a row, never an end


@dataclass(frozen=True)
class Point:
    """One run of a sweep: its number, the values that make it, and its scene and options in full."""

    number: int
    values: dict[str, Any]
    scene: dict[str, Any]  # as a scene file's structure
    options: dict[str, Any]  # of `simulate`

    def digest(self, summary: Mapping[str, str]) -> str:
        """A text that changes with anything the run or its summary depends on; never read as a number."""
        text = json.dumps([self.scene, self.options, dict(summary)], sort_keys=True)
        return f"x{hashlib.sha256(text.encode()).hexdigest()[:15]}"


def grid(scene: Scene, values: Any, options: Mapping[str, Any]) -> list[Point]:
    """Every combination of the lists in `values`, the last one varying fastest; all checked.

    A name is a path of a scene file ("bodies.egg.shape.a", "friction.mu", "simulation.step",
    "simulation.stepper", "simulation.stepper.facets"). A name of several paths with commas between them,
    with lists of as many values, varies them together. {"start": a, "stop": b, "count": n} stands for n
    numbers at equal distances.
    """
    if not scene.constant_loads:
        raise SceneError("scene: loads that are functions of time cannot be swept: runs are other processes")
    axes = [_axis(name, given) for name, given in _flat(values).items()]
    _check_count([len(rows) for _, rows in axes])
    paths = [path for names, _ in axes for path in names]
    for path, count in Counter(paths).items():
        if count > 1:
            raise SceneError(f"values[{shown(path)}] is given twice; name each field once")
    plain = template(scene, [path for path in paths if not path.startswith("simulation.")])
    points = []
    for number, rows in enumerate(itertools.product(*(rows for _, rows in axes))):
        row = {path: value for (names, _), r in zip(axes, rows) for path, value in zip(names, r)}
        try:
            points.append(_point(number, row, plain, options))
        except (SceneError, ShapeError) as error:
            told = ", ".join(f"{path} = {shown(value)}" for path, value in row.items())
            raise type(error)(f"values, run {number} ({told}): {error}") from None
    return points


def _check_count(lengths: list[int]) -> None:
    """Refuse a grid of more runs than anybody would wait for, before the first is made."""
    runs = math.prod(lengths)
    if runs > MOST_RUNS:
        raise SceneError(
            f"values: the grid has {shown(runs)} runs, at most {MOST_RUNS} are made in one sweep; take fewer "
            "values, split the longest list over several sweeps, or raise "
            "implicit_geom.studies.sweeps.grid.MOST_RUNS"
        )


def _point(number: int, row: dict[str, Any], plain: dict[str, Any], options: Mapping[str, Any]) -> Point:
    own = {path: value for path, value in row.items() if not path.startswith("simulation.")}
    changed = placed(plain, own)
    read_scene(changed)
    simulation = {**options, "on_failure": "record"}
    parts: dict[str, Any] = {}
    for path in sorted(row.keys() - own.keys(), key=lambda p: p.count(".")):
        _, field, *rest = path.split(".")
        if rest:
            parts[".".join(rest)] = row[path]
        else:
            simulation[field] = row[path]
    for name in ("duration", "step"):
        if name not in simulation:
            raise SceneError(f"simulation.{name} is missing: give {name}= in seconds")
    if parts:
        stepper = Stepper.of(simulation.get("stepper", "implicit-rattle"))
        simulation["stepper"] = {**stepper.as_dict(), **parts}
    chosen = SimulationOptions(**simulation)
    chosen.check_step()
    return Point(number, row, changed, chosen.as_dict())


def _flat(values: Any, before: str = "") -> dict[str, Any]:
    """Names and lists of values; tables within tables, as TOML makes them of dotted keys, are joined."""
    if not isinstance(values, Mapping) or not values or before.count(".") > MOST_NAMES:
        raise SceneError('values must name at least one field, such as {"friction.mu": [0.2, 0.4]}')
    flat: dict[str, Any] = {}
    for name, given in values.items():
        if not isinstance(name, str):
            raise SceneError(f"values: {shown(name)} must be a text such as 'bodies.egg.mass'")
        if isinstance(given, Mapping) and not set(given) & set(SPAN):
            flat |= _flat(given, f"{before}{name}.")
        else:
            flat[before + name] = given
    return flat


def _axis(name: str, given: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The paths of one axis of the grid and its rows, one value a path."""
    names = [part.strip() for part in name.split(",")]
    for path in names:
        _check_option(path)
    if isinstance(given, Mapping):
        given = _span(name, given)
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, list | tuple) or not given:
        raise SceneError(f"values[{shown(name)}] = {shown(given)} must be a list of at least one value")
    rows = [_plain(value) for value in given]
    if len(names) == 1:
        return names, [(value,) for value in rows]
    for value in rows:
        if not isinstance(value, list) or len(value) != len(names):
            raise SceneError(
                f"values[{shown(name)}]: {shown(value)} must hold {len(names)} values, one for each name"
            )
    return names, [tuple(value) for value in rows]


def _check_option(path: str) -> None:
    head, *rest = path.split(".")
    if head != "simulation":
        return
    known = [name for name in SIMULATION if name not in SET_BY_SWEEP]
    if not rest or rest[0] not in known or (len(rest) > 1 and rest[0] != "stepper") or len(rest) > 2:
        raise SceneError(
            f"values[{shown(path)}]: simulation has no such field that can vary{hint('.'.join(rest), known)}"
        )


def _span(name: str, given: Mapping[str, Any]) -> list[float]:
    count: Any = given.get("count")
    whole = isinstance(count, int) and not isinstance(count, bool)
    if set(given) != set(SPAN) or not whole or count < 1:
        raise SceneError(
            f"values[{shown(name)}] = {shown(dict(given))} must be a list, or start, stop and count"
        )
    _check_count([count])
    start, stop = (choices.number(f"values[{shown(name)}].{end}", given[end]) for end in ("start", "stop"))
    return np.linspace(start, stop, count).tolist()


def _plain(value: Any) -> Any:
    """Numbers, texts, lists and tables only: what JSON can hold."""
    if isinstance(value, Stepper):
        return value.name or value.as_dict()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
