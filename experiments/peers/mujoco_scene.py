"""A scene of ours as a model of MuJoCo's: its own geoms where it has them, elsewhere meshes of points.

Contacts, solver and integrator are those MuJoCo comes with; restitution has no counterpart there. Planar
scenes have none either.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from implicit_geom import Scene, rotation
from implicit_geom.geometry.supporting_features import vertices_of
from implicit_geom.shapes.combine import Moved
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.union import Union

RING = 48  # points of a cone's rim
ROUND = 400  # points on a surface that has no geom


@dataclass(frozen=True)
class SceneRun:
    """Times of a run in seconds, how deep bodies sank in, and where those that move were."""

    load: float
    loop: float
    depth: float
    position: np.ndarray  # (steps + 1, bodies, 3) of centres of mass


def simulate(scene: Scene, mu: float, duration: float, step: float, *, watched: bool = False) -> SceneRun:
    """Steps by `mj_step`; `watched`: looked at after each, which costs time."""
    began = clock.perf_counter()
    model = mujoco.MjModel.from_xml_string(mjcf(scene, step, mu))
    data = mujoco.MjData(model)
    moving = [name for name, body in scene.bodies.items() if not body.fixed]
    for k, name in enumerate(moving):
        body = scene.bodies[name]
        data.qvel[6 * k : 6 * k + 3] = body.velocity
        data.qvel[6 * k + 3 : 6 * k + 6] = (
            rotation.matrix(np.array(body.orientation)).T @ body.angular_velocity
        )
    mujoco.mj_forward(model, data)
    loaded = clock.perf_counter()
    depth, places = 0.0, [data.xipos[1:].copy()]
    for _ in range(round(duration / step)):
        mujoco.mj_step(model, data)
        if watched:
            depth = max(depth, -float(data.contact.dist.min(initial=0.0)))
            places.append(data.xipos[1:].copy())
    return SceneRun(loaded - began, clock.perf_counter() - loaded, depth, np.array(places))


def mjcf(scene: Scene, step: float, mu: float) -> str:
    """The scene as text, with one coefficient of friction."""
    meshes: list[str] = []
    fixed, moving = [], []
    for body in scene.bodies.values():
        frame = f'pos="{_text(body.position)}" quat="{_text(body.orientation)}"'
        pieces = body.shape.pieces if isinstance(body.shape, Union) else (body.shape,)
        com = np.zeros(3) if body.fixed else np.asarray(body.shape.com)
        weight = "" if body.fixed else f'mass="{body.mass / len(pieces):.17g}"'
        geoms = [_geom(p, com, meshes, f'friction="{mu:.17g} 0 0" condim="3" {weight}') for p in pieces]
        joint = "" if body.fixed else "<freejoint/>"
        (fixed if body.fixed else moving).append(f"<body {frame}>{joint}{''.join(geoms)}</body>")
    return (
        f'<mujoco><option timestep="{step:.17g}" gravity="{_text(scene.gravity)}"/>'
        f"<asset>{''.join(meshes)}</asset><worldbody>{''.join(moving + fixed)}</worldbody></mujoco>"
    )


def _geom(shape: Shape, com: np.ndarray, meshes: list[str], more: str) -> str:
    R, place, own = np.eye(3), np.zeros(3), shape
    while isinstance(own, Moved):
        place, R, own = place + R @ own.position, R @ own.R, own.shape
    quat = np.roll(Rotation.from_matrix(R).as_quat(), 1)  # (w first)
    p = own.parameters
    kind, size = own.kind, None
    if kind == "halfspace":
        n = np.asarray(p["normal"])
        return f'<geom type="plane" size="0 0 1" pos="{_text(n * p["offset"])}" zaxis="{_text(n)}" {more}/>'
    if kind == "sphere":
        size = (p["r"],)
    elif kind in ("ellipsoid", "box"):
        size = (p["a"], p["b"], p["c"])
    elif kind in ("cylinder", "capsule"):
        size = (p["radius"], p["length"] / 2)
    where = f'pos="{_text(place - com)}" quat="{_text(quat)}"'
    if size is not None:
        return f'<geom type="{kind}" size="{_text(size)}" {where} {more}/>'
    name = f"mesh{len(meshes)}"
    meshes.append(f'<mesh name="{name}" vertex="{_text((points_on(own) @ R.T + place - com).ravel())}"/>')
    return f'<geom type="mesh" mesh="{name}" {more}/>'


def points_on(shape: Shape) -> np.ndarray:
    """(n, 3) points whose hull stands for a shape."""
    if shape.kind == "cone":
        angle = 2 * np.pi * np.arange(RING) / RING
        r, height = shape.parameters["radius"], shape.parameters["height"]
        rim = np.column_stack([r * np.cos(angle), r * np.sin(angle), np.zeros(RING)])
        return np.vstack([rim, (0, 0, height)])
    if shape.kind == "polyhedron":
        return vertices_of(shape)
    k = np.arange(ROUND) + 0.5  # directions along a spiral
    z, angle = 1 - 2 * k / ROUND, np.pi * (1 + np.sqrt(5)) * k
    across = np.sqrt(1 - z**2)
    return shape.support(np.column_stack([across * np.cos(angle), across * np.sin(angle), z]))


def _text(numbers: object) -> str:
    return " ".join(f"{n:.17g}" for n in np.asarray(numbers, float).ravel())
