"""Scenes that the native engine steps, and its steps beside those of the Python form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.model.model import Model, State
from implicit_geom.rotation import unit
from implicit_geom.run.make_stepper import make_stepper
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.steppers.events.stepper import EventStepper

G = 9.81
TILTED = unit((1, 0.1, 0.2, 0.3))
Build = Callable[[], Scene]


def landing(shape: shapes.Shape, friction: dict[str, Any] | None = None, **start: Any) -> Scene:
    """A body that falls on the ground, askew."""
    dim = shape.dim
    up = (0.0,) * (dim - 1) + (1.0,)
    scene = Scene(dim=dim, gravity=tuple(-G * n for n in up))
    scene.add("ground", (shapes.halfspace if dim == 3 else shapes.halfplane)(normal=up), fixed=True)
    given: dict[str, Any] = {"position": (0, 0, 0.7), "orientation": TILTED, "velocity": (1, 0.2, -1)}
    if dim == 2:
        given = {"position": (0, 0.7), "orientation": 0.3, "velocity": (1, -1), "angular_velocity": 1.0}
    scene.add("body", shape, mass=1.0, **(given | start))
    scene.friction(**({"mu": 0.4} | (friction or {})))
    return scene


def disc_on_disc() -> Scene:
    """A disc falls on a fixed one and rolls off."""
    scene = Scene(dim=2, gravity=(0, -G))
    scene.add("base", shapes.disc(0.5), fixed=True)
    scene.add("disc", shapes.disc(0.3), mass=1.0, position=(0.05, 0.85), angular_velocity=1.0)
    scene.friction(mu=0.3)
    return scene


def two_eggs() -> Scene:
    """One falls on the other."""
    scene = landing(shapes.ellipsoid(0.5, 0.4, 0.3), position=(0, 0, 0.45))
    egg = shapes.ellipsoid(0.3, 0.3, 0.2)
    scene.add("upper", egg, mass=0.5, position=(0.05, 0, 1.15), orientation=TILTED)
    return scene


def stack(count: int = 3) -> Scene:
    """Boxes on each other, the upper ones turned, pushed by the speed of the last."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    for k in range(count):
        start: dict[str, Any] = {"position": (0.02 * k, 0, 0.1 + 0.2 * k)}
        start["orientation"] = unit((1, 0, 0, 0.1 * k))
        velocity = (0.3 if k == count - 1 else 0, 0, 0)
        scene.add(f"box {k}", shapes.box(0.2, 0.15, 0.1), mass=1.0, velocity=velocity, **start)
    scene.friction(mu=0.4)
    return scene


def framed(carried: bool = True) -> Scene:
    """Anisotropic friction across the world, and that of a block, fixed to it or across the world too."""
    law = {"mu": 0.5, "e_t": 1.0, "e_o": 0.3, "e_r": 0.02, "direction": (1, 2, 0.3)}
    scene = landing(shapes.ellipsoid(0.5, 0.4, 0.3), law, position=(0, 0, 0.45))
    block = shapes.ellipsoid(0.6, 0.6, 0.3)
    scene.add("block", block, mass=3.0, position=(3, 0, 0.3), velocity=(-1, 0.5, 0))
    other = {"mu": 0.4, "e_t": 1.0, "e_o": 0.5, "e_r": 0.1, "direction": (1, 0.2, 0)}
    scene.friction("ground", "block", **(other | ({"frame": "block"} if carried else {})))
    return scene


def pair(e: float = 1.0, mu: float = 0.0) -> Scene:
    """Two bodies that meet far from anything else."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("one", shapes.ellipsoid(0.5, 0.3, 0.2), mass=1.0, angular_velocity=(0.5, 1, 2))
    other = shapes.box(0.3, 0.2, 0.1)
    scene.add(
        "two", other, mass=2.0, position=(1.2, 0.1, 0), velocity=(-2, 0, 0.1), angular_velocity=(0, 1, 1)
    )
    scene.friction(mu=mu, restitution=e)
    return scene


def stepper(scene: Scene, h: float, **options: Any) -> EventStepper:
    """The stepper of a scene."""
    made = make_stepper(Model(scene), SimulationOptions(1.0, h, **options))
    assert isinstance(made, EventStepper)
    assert made.native is not None
    return made


def states_of(run: Trajectory) -> list[State]:
    """The state at each recorded time."""
    s = run.states
    return [State(float(t), s.x[k], s.q[k], s.v[k], s.w[k]) for k, t in enumerate(run.time)]


def differences(model: Model, start: State, ours: State, theirs: State, h: float) -> tuple[float, float]:
    """Of positions over sizes, and of velocities over the speeds at hand."""
    m = model.moving
    size = np.where(np.isfinite(model.size[m]), model.size[m], 1.0)
    speed = np.full(m.size, h * float(np.linalg.norm(model.scene.gravity)) + 1e-9 * float(size.max()) / h)
    for s in (start, theirs):
        speed = np.maximum(speed, np.linalg.norm(s.v[m], axis=1) + size * np.linalg.norm(s.w[m], axis=1))
    moved = np.linalg.norm(ours.x[m] - theirs.x[m], axis=1) / size
    turned = np.abs(ours.q[m] - theirs.q[m]).reshape(m.size, -1).max(axis=1)
    fast = np.linalg.norm(ours.v[m] - theirs.v[m], axis=1) + size * np.linalg.norm(
        ours.w[m] - theirs.w[m], axis=1
    )
    return float(max(moved.max(), turned.max())), float(np.max(fast / speed))


def run_native(scene: Scene, steps: int, h: float, **options: Any) -> Trajectory:
    """A run of so many steps."""
    return simulate(scene, duration=steps * h, step=h, progress=False, **options)
