"""Scene files: TOML with the same names as the Python calls, read and written.

dim, gravity
[bodies.NAME]        shape = { kind = ..., ... }, mass, position, orientation, velocity,
                     angular_velocity, com, inertia, fixed
[friction]           mu, e_t, e_o, e_r, restitution, direction, frame
[[friction.pairs]]   bodies = [A, B] and any of the above
[applied.NAME]       force, torque
[simulation]         duration, step, stepper, friction_residual, tolerance, on_failure, energy_guard,
                     friction_tolerance, record, impacts, impact_law, max_impacts
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.interface.choices import name_of
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.text_files import read_toml
from implicit_geom.interface.words import shown
from implicit_geom.scene.options import SimulationOptions, hint
from implicit_geom.scene.scene import FRICTION_FIELDS, Friction, Scene

TOP = ("dim", "gravity", "bodies", "friction", "applied", "simulation")
BODY = ("mass", "position", "orientation", "velocity", "angular_velocity", "com", "inertia", "fixed")
SIMULATION = tuple(f.name for f in fields(SimulationOptions))
FUNCTION = "function"  # stands for a load that is a Python function, which no file can hold


class UnknownLoad:
    """A load that was a function when the run was saved; asking for its value is an error."""

    def __init__(self, field: str) -> None:
        self.field = field

    def __call__(self, _time: float) -> Any:
        raise SceneError(f"{self.field}: was a function when the run was saved; pass the scene again")


def read_scene(source: str | Path | dict[str, Any]) -> tuple[Scene, dict[str, Any]]:
    """A scene and its simulation options from a scene file.

    source   path of a TOML file, or its tables as a dict

    The Scene, and the [simulation] table as keyword arguments of `simulate` (perhaps none). SceneError or
    ShapeError names the field that is wrong.

    >>> scene, options = read_scene({
    ...     "bodies": {
    ...         "ground": {"shape": {"kind": "halfspace", "normal": [0, 0, 1]}, "fixed": True},
    ...         "ball": {"shape": {"kind": "sphere", "r": 0.1}, "mass": 1.0, "position": [0, 0, 0.1]},
    ...     },
    ...     "friction": {"mu": 0.4},
    ...     "simulation": {"duration": 0.5, "step": 0.01},
    ... })
    >>> simulate(scene, **options)
    <Trajectory of 'ground', 'ball': 0.5 s in 50 steps, implicit-rattle, 50 converged>
    """
    if isinstance(source, dict):
        return _scene(source)
    if not isinstance(source, str | Path):
        raise SceneError(f"scene = {shown(source)} must be the path of a scene file, or its tables")
    data = read_toml(source)
    try:
        return _scene(data)
    except (SceneError, shapes.ShapeError) as error:
        raise type(error)(f"{source}: {error}") from None


def scene_of(source: Any, options: dict[str, Any]) -> tuple[Scene, dict[str, Any]]:
    """A scene, or that of a scene file, and options: those given before those of the file."""
    if isinstance(source, str | Path):
        source, own = read_scene(source)
        options = {**own, **{name: value for name, value in options.items() if value is not None}}
    if not isinstance(source, Scene):
        raise SceneError(f"scene = {shown(source)} must be a Scene, or the path of a scene file")
    return source, options


def to_dict(scene: Scene) -> dict[str, Any]:
    """The scene as a scene file's structure; reading it back gives the same scene to the last bit."""
    bodies = {}
    for body in scene.bodies.values():
        entry: dict[str, Any] = {"shape": shapes.to_dict(body.shape)}
        entry["position"] = body.position.tolist()
        entry["orientation"] = body.orientation.tolist()
        if body.fixed:
            entry["fixed"] = True
        else:
            entry["mass"] = body.mass
            entry["velocity"] = body.velocity.tolist()
            entry["angular_velocity"] = body.angular_velocity.tolist()
            entry["com"] = body.com.tolist()
            entry["inertia"] = body.inertia.tolist()
        bodies[body.name] = entry
    order = list(scene.bodies)
    friction = _without_none(asdict(scene._default_friction))
    pairs = [
        {"bodies": sorted(pair, key=order.index), **_lists(law)} for pair, law in scene._pair_friction.items()
    ]
    if pairs:
        friction["pairs"] = pairs
    out: dict[str, Any] = {
        "dim": scene.dim,
        "gravity": scene.gravity.tolist(),
        "bodies": bodies,
        "friction": friction,
    }
    applied = {
        name: {label: _load(value) for label, value in zip(("force", "torque"), loads, strict=True)}
        for name, loads in scene._applied.items()
    }
    if applied:
        out["applied"] = applied
    return out


def friction_laws(scene: Scene) -> Iterable[tuple[str, Friction]]:
    """The contact law of every pair and of each pair that has its own, with the field's name."""
    yield "friction", scene._default_friction
    order = list(scene.bodies)
    for pair in scene._pair_friction:
        first, second = sorted(pair, key=order.index)
        yield f"friction({first}, {second})", scene.pair_friction(first, second)


def _scene(data: dict[str, Any]) -> tuple[Scene, dict[str, Any]]:
    _known(data, TOP, "the scene")
    scene = Scene(dim=data.get("dim", 3), gravity=data.get("gravity"))
    for name, body in _table(data, "bodies").items():
        _add_body(scene, name_of("bodies", name), body)
    friction = dict(_table(data, "friction"))
    pairs = friction.pop("pairs", [])
    _known(friction, FRICTION_FIELDS, "friction", ("pairs",))
    if friction:
        scene.friction(**friction)
    if "frame" in friction:
        scene.require(friction["frame"], "friction.frame")
    if not isinstance(pairs, list):
        raise SceneError(f"friction.pairs = {shown(pairs)} must be a list of tables: [[friction.pairs]]")
    for i, pair in enumerate(pairs):
        _add_pair(scene, f"friction.pairs[{i}]", pair)
    for name, loads in _table(data, "applied").items():
        loads = _a_table(f"applied.{name}", loads)
        _known(loads, ("force", "torque"), f"applied.{name}")
        scene.applied(name, **{k: _read_load(f"applied.{name}.{k}", v) for k, v in loads.items()})
    simulation = _table(data, "simulation")
    _known(simulation, SIMULATION, "simulation")
    return scene, dict(simulation)


def _add_body(scene: Scene, name: str, body: Any) -> None:
    field = f"bodies.{name}"
    body = dict(_a_table(field, body))
    if "shape" not in body:
        _known(body, BODY, field, ("shape",))
        raise SceneError(f'{field}.shape is missing: give one, such as {{ kind = "sphere", r = 0.1 }}')
    shape = _a_table(f"{field}.shape", body.pop("shape"))
    _known(body, BODY, field, ("shape",))
    try:
        made = shapes.from_dict(shape)
    except shapes.ShapeError as error:
        raise shapes.ShapeError(f"{field}.shape: {error}") from None
    scene.add(name, made, **body)


def _add_pair(scene: Scene, field: str, pair: Any) -> None:
    pair = dict(_a_table(field, pair))
    _known(pair, FRICTION_FIELDS, field, ("bodies",))
    bodies = pair.pop("bodies", None)
    if not isinstance(bodies, list) or len(bodies) != 2 or not all(isinstance(b, str) for b in bodies):
        raise SceneError(f"{field}.bodies = {shown(bodies)} must name two bodies")
    for name in bodies:
        scene.require(name, f"{field}.bodies")
    scene.friction(*bodies, **pair)


def _known(table: dict[str, Any], known: tuple[str, ...], where: str, also: tuple[str, ...] = ()) -> None:
    for key in table:
        if key not in known and key not in also:
            raise SceneError(f"{where}: key {shown(key)} is not known{hint(key, (*known, *also))}")


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    return _a_table(key, data.get(key, {}))


def _a_table(field: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SceneError(f"{field} = {shown(value)} must be a table of keys and values")
    return value


def _read_load(field: str, value: Any) -> Any:
    return UnknownLoad(field) if isinstance(value, str) and value == FUNCTION else value


def _load(value: Any) -> Any:
    return FUNCTION if callable(value) else np.asarray(value).tolist()


def _lists(law: dict[str, Any]) -> dict[str, Any]:
    return {k: list(v) if isinstance(v, tuple) else v for k, v in law.items()}


def _without_none(law: dict[str, Any]) -> dict[str, Any]:
    return _lists({k: v for k, v in law.items() if v is not None})
