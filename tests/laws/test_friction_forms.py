"""The three friction residuals have the same solutions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from law_scenes import TWO, on_ground, turned

from implicit_geom import Scene, shapes, simulate


def sliding_box() -> Scene:
    scene = on_ground(shapes.box(0.2, 0.15, 0.1), position=(0, 0, 0.1), velocity=(2, 1, 0))
    scene.friction(mu=0.3, e_r=0.05)
    return scene


def spinning_ball() -> Scene:
    scene = on_ground(
        shapes.sphere(0.5), position=(0, 0, 0.5), velocity=(2, 0, 0), angular_velocity=(0, 3, 8)
    )
    scene.friction(mu=0.3, e_t=1.0, e_o=0.5, e_r=0.1, direction=(1, 1, 0))
    return scene


def dropped_egg() -> Scene:
    scene = on_ground(
        shapes.ellipsoid(0.5, 0.4, 0.3),
        position=(0, 0, 0.6),
        orientation=turned((1, 2, 0), 40),
        velocity=(1, 0, 0),
    )
    scene.friction(mu=0.5)
    return scene


def two_bodies() -> Scene:
    scene = on_ground(shapes.ellipsoid(0.5, 0.4, 0.3), position=(0, 0, 0.31), velocity=(1, 0, 0))
    scene.add("high", shapes.sphere(0.2), mass=0.5, position=(0.1, 0, 0.9), angular_velocity=(5, 0, 3))
    scene.friction(mu=0.4, e_r=0.01)
    return scene


def planar_disc() -> Scene:
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("body", shapes.disc(0.5), mass=1.0, position=(0, 0.6), velocity=(3, 0), angular_velocity=4.0)
    scene.friction(mu=0.2)
    return scene


def frictionless() -> Scene:
    scene = on_ground(shapes.cylinder(0.2, 0.6), position=(0, 0, 0.6), orientation=turned((1, 0, 0), 50))
    scene.friction(mu=0.0)
    return scene


SCENES = [sliding_box, spinning_ball, dropped_egg, two_bodies, planar_disc, frictionless]


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("form", ["fritz-john", "implicit"])
@pytest.mark.parametrize("make", SCENES)
def test_friction_residuals_agree(make: Callable[[], Scene], form: str, stepper: str) -> None:
    """Projection, Fritz-John and implicit give the same motion (1e-8), through impacts and stops."""
    runs = [
        simulate(make(), duration=0.6, step=0.01, friction_residual=f, stepper=stepper)
        for f in ("projection", form)
    ]
    assert len(runs[0].contacts) > 10
    for part in ("x", "q", "v", "w"):
        a, b = (getattr(run.states, part) for run in runs)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)
    for name in ("dynamics", "complementarity", "friction"):
        assert runs[1].steps[name].max() < 1e-8
