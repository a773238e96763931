"""Scenes for tests of the compiled path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from implicit_geom import Scene, shapes
from implicit_geom.rotation import unit

EULER, RATTLE, RATTLE_4 = "implicit-euler", "implicit-rattle", "implicit-rattle-4"
TILTED = unit((1, 0.1, 0.2, 0.3))
Build = Callable[[], Scene]


def on_ground(
    shape: Any,
    *,
    gravity: float = 9.81,
    friction: dict[str, Any] | None = None,
    mass: float = 1.0,
    **start: Any,
) -> Scene:
    """A body over a half-space."""
    dim = shape.dim
    down = (0.0,) * (dim - 1) + (-gravity,)
    scene = Scene(dim=dim, gravity=down)
    up = (0.0,) * (dim - 1) + (1.0,)
    scene.add("ground", (shapes.halfspace if dim == 3 else shapes.halfplane)(normal=up), fixed=True)
    scene.add("body", shape, mass=mass, **start)
    scene.friction(**({"mu": 0.4} | (friction or {})))
    return scene


def egg(size: float = 1.0, **more: Any) -> Scene:
    """An ellipsoid that lands, slides and rolls; everything in proportion to its size, gravity too."""
    return on_ground(
        shapes.ellipsoid(0.5 * size, 0.4 * size, 0.3 * size),
        gravity=9.81 * size,
        **{
            "position": (0, 0, 0.45 * size),
            "orientation": TILTED,
            "velocity": (1.0 * size, 0.3 * size, 0),
            "angular_velocity": (1, 2, 3),
            **more,
        },
    )


def two_eggs() -> Scene:
    scene = egg()
    scene.add(
        "upper", shapes.ellipsoid(0.3, 0.3, 0.2), mass=0.5, position=(0.05, 0, 1.15), orientation=TILTED
    )
    return scene


def on_spheres() -> Scene:
    """A sphere that comes to lie on three fixed ones, with nothing below."""
    scene = Scene()
    for i, angle in enumerate(2 * np.pi * np.arange(3) / 3):
        at = (0.6 * np.cos(angle), 0.6 * np.sin(angle), 0.0)
        scene.add(f"support{i}", shapes.sphere(0.5), position=at, fixed=True)
    scene.add("ball", shapes.sphere(0.4), mass=1.0, position=(0.02, 0.01, 0.75), angular_velocity=(0.3, 0, 1))
    scene.friction(mu=0.3)
    return scene


def pushed() -> Scene:
    scene = egg()
    scene.applied("body", force=(2.0, -1.0, 0.5), torque=(0.1, 0.2, -0.3))
    return scene


def several() -> Scene:
    """Four bodies in space and a plate, all pairs of other kinds."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("plate", shapes.box(1, 1, 0.1), position=(2, 0, 0.1), fixed=True)
    scene.add("ball", shapes.sphere(0.3), mass=1.0, position=(2, 0, 0.55), velocity=(-0.5, 0, 0))
    scene.add("egg", shapes.ellipsoid(0.4, 0.3, 0.3), mass=2.0, position=(0, 0, 0.35), velocity=(1, 0, 0))
    scene.add(
        "pill", shapes.capsule(0.2, 0.5), mass=1.5, position=(0, 1.0, 0.45), orientation=unit((1, 1, 0, 0))
    )
    scene.friction(mu=0.5)
    return scene


def floating() -> Scene:
    """Two bodies that meet without gravity."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("one", shapes.ellipsoid(0.5, 0.3, 0.3), mass=1.0, angular_velocity=(0.5, 1, 2))
    scene.add("two", shapes.sphere(0.3), mass=2.0, position=(1.2, 0.1, 0), velocity=(-2, 0, 0))
    scene.friction(mu=0.3)
    return scene


def planar(shape: Any, y: float) -> Scene:
    return on_ground(shape, position=(0, y), orientation=0.3, velocity=(-2, 0), angular_velocity=1.5)


def framed() -> Scene:
    """Two kinds of anisotropic friction at once: across the world, and fixed to a body."""
    scene = egg(friction={"mu": 0.5, "e_t": 1.0, "e_o": 0.3, "e_r": 0.02, "direction": (1, 2, 0.3)})
    scene.add("block", shapes.ellipsoid(0.6, 0.6, 0.3), mass=3.0, position=(3, 0, 0.3), velocity=(-1, 0.5, 0))
    scene.friction("ground", "block", mu=0.4, e_t=1.0, e_o=0.5, e_r=0.1, direction=(1, 0.2, 0), frame="block")
    return scene
