"""Scenes on which ways of solving a step are compared: each with another kind of contact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from implicit_geom import Scene, shapes
from implicit_geom.experiments import ellipsoid_rolling, sliding_spinning_ball
from implicit_geom.experiments.references import reference

GRAVITY = (0, 0, -9.81)
PLANE = (0, 0, 1)


def sliding_ball() -> Scene:
    """A ball that slides and spins, with friction against both."""
    return sliding_spinning_ball.scene(reference("torsional_friction")["cases"][1]["inputs"])


def box_landing() -> Scene:
    """A box that falls flat on the plane while it moves along it: a face in contact."""
    s = Scene(gravity=GRAVITY)
    s.add("plane", shapes.halfspace(normal=PLANE), fixed=True)
    s.add("box", shapes.box(0.3, 0.2, 0.1), mass=1.0, position=(0, 0, 0.15), velocity=(1, 0.3, 0))
    s.friction(mu=0.4, e_r=0.05)
    return s


def colliding_ellipsoids() -> Scene:
    """Two ellipsoids that meet in flight, off centre, and bounce."""
    s = Scene(gravity=(0, 0, 0))
    spin = (0, 1.0, 2.0)
    s.add("left", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(-0.8, 0, 0), velocity=(1, 0, 0))
    s.add(
        "right",
        shapes.ellipsoid(0.3, 0.5, 0.4),
        mass=2.0,
        position=(0.5, 0.1, 0.05),
        velocity=(-1, 0, 0),
        angular_velocity=spin,
    )
    s.friction(mu=0.3, restitution=0.5)
    return s


def stacked_spheres() -> Scene:
    """Three spheres on top of each other on the plane, slightly off the vertical: they topple."""
    s = Scene(gravity=GRAVITY)
    s.add("plane", shapes.halfspace(normal=PLANE), fixed=True)
    for i, shift in enumerate((0.0, 0.01, -0.005)):
        s.add(f"sphere {i}", shapes.sphere(0.5), mass=1.0, position=(shift, 0.5 * shift, 0.5 + 1.0001 * i))
    s.friction(mu=0.5, e_r=0.02)
    return s


def disc_pile() -> Scene:
    """Six discs in the plane that fall into a heap of three rows."""
    s = Scene(dim=2, gravity=(0, -9.81))
    s.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    for row, count in enumerate((3, 2, 1)):
        for i in range(count):
            at = (0.51 * (i - (count - 1) / 2), 0.252 + 0.45 * row)
            s.add(f"disc {row}{i}", shapes.disc(0.25), mass=1.0, position=at)
    s.friction(mu=0.5)
    return s


SCENES: dict[str, Callable[[], Scene]] = {
    "ellipsoid rolling": ellipsoid_rolling.scene,
    "ball sliding, spinning": sliding_ball,
    "box landing flat": box_landing,
    "ellipsoids colliding": colliding_ellipsoids,
    "three spheres stacked": stacked_spheres,
    "pile of six discs": disc_pile,
}


def moving(scene: Scene) -> np.ndarray:
    """Names of the bodies that move."""
    return np.array([name for name, body in scene.bodies.items() if not body.fixed])
