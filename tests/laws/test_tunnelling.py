"""Nothing passes through anything: where a step's motion crosses a body, the step is taken in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from law_scenes import STEPPERS, TWO, assert_lawful

from implicit_geom import Scene, Trajectory, distance, shapes, simulate


def assert_apart(run: Trajectory) -> None:
    """No pair of bodies overlaps at any recorded time, by `distance` (1e-9 m)."""
    names = run.names
    for k in range(len(run.time)):
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                pose = [(run[n].position[k], run[n].orientation[k]) for n in (a, b)]
                shape = [run.scene.bodies[n].shape for n in (a, b)]
                assert distance(shape[0], pose[0], shape[1], pose[1]).gap > -1e-9


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("h", [0.01, 0.1])
@pytest.mark.parametrize(
    "bullet", [shapes.sphere(0.01), shapes.ellipsoid(0.03, 0.005, 0.005)], ids=["ball", "slug"]
)
def test_bullet_stops_at_a_thin_plate(bullet: Any, h: float, stepper: str) -> None:
    """At 1000 m/s and h = 0.01 or 0.1 s a bullet does not pass a 2 mm plate; the step says so."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("plate", shapes.box(0.001, 1, 1), fixed=True)
    scene.add("bullet", bullet, mass=0.01, position=(-1.3, 0.02, 0.1), velocity=(1000, 0, 0))
    scene.friction(mu=0.3)
    run = simulate(scene, duration=2 * h, step=h, stepper=stepper)
    assert_lawful(run, 0.01)
    assert run.steps["status"][0] == "substepped" or run.steps["impacts"][0] > 0
    assert np.all(run["bullet"].position[:, 0] < 0)
    # a slug that lands on its tip is an unstable equilibrium: it may fall over instead of standing
    assert abs(run["bullet"].velocity[-1, 0]) < (1e-6 if bullet.kind == "sphere" else 1.0)
    assert len(run.contacts) > 0
    assert_apart(run)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_bullet_carries_a_free_plate_along(stepper: str) -> None:
    """A free plate hit by a bullet moves on with it: momentum kept, no crossing."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("plate", shapes.box(0.001, 0.3, 0.3), mass=1.0)
    scene.add("bullet", shapes.sphere(0.01), mass=0.1, position=(-1.3, 0, 0), velocity=(1000, 0, 0))
    run = simulate(scene, duration=0.02, step=0.01, stepper=stepper)
    assert_lawful(run, 0.001)
    assert run.steps["status"][0] == "substepped" or run.steps["impacts"][0] > 0
    np.testing.assert_allclose(run["plate"].velocity[-1, 0], 1000 * 0.1 / 1.1, rtol=1e-6)
    assert run["bullet"].position[-1, 0] < run["plate"].position[-1, 0]


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("aim", [0.0, 0.06, 0.105])
def test_fast_ball_meets_a_ball(aim: float, stepper: str) -> None:
    """A small fast ball meets a free ball centrally, off centre and glancing: it hits, never crosses."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("target", shapes.sphere(0.1), mass=1.0)
    scene.add("ball", shapes.sphere(0.01), mass=0.1, position=(-0.5, aim, 0), velocity=(300, 0, 0))
    scene.friction(mu=0.2)
    run = simulate(scene, duration=0.02, step=0.01, stepper=stepper)
    assert_lawful(run, 0.01)
    assert run.steps["status"][0] == "substepped" or run.steps["impacts"][0] > 0
    p = 0.1 * run["ball"].velocity + run["target"].velocity
    np.testing.assert_allclose(p, np.tile((30, 0, 0), (3, 1)), atol=1e-8)
    assert run["target"].velocity[-1, 0] > 0.1
    assert_apart(run)


@pytest.mark.parametrize("stepper", TWO)
def test_near_miss_is_no_hit(stepper: str) -> None:
    """A fast ball that passes a ball by a millimetre flies on undisturbed."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("target", shapes.sphere(0.1), mass=1.0)
    scene.add("ball", shapes.sphere(0.01), mass=0.1, position=(-0.5, 0.111, 0), velocity=(300, 0, 0))
    run = simulate(scene, duration=0.02, step=0.01, stepper=stepper)
    np.testing.assert_allclose(run["ball"].velocity[-1], (300, 0, 0), atol=1e-9)
    assert len(run.contacts) == 0


@pytest.mark.parametrize("stepper", STEPPERS)
def test_fast_spinning_blade_does_not_pass_a_rod(stepper: str) -> None:
    """A blade that sweeps half a turn within a step does not pass through a fixed rod in its way."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("rod", shapes.cylinder(0.02, 1.0), fixed=True, position=(0.2, 0.2, 0))
    scene.add("blade", shapes.box(0.4, 0.02, 0.05), mass=1.0, angular_velocity=(0, 0, 200))
    scene.friction(mu=0.2)
    run = simulate(scene, duration=0.02, step=0.01, stepper=stepper)
    assert_lawful(run, 0.02)
    assert run.steps["status"][0] == "substepped" or run.steps["impacts"][0] > 0
    assert run.kinetic_energy[-1] < 0.9 * run.kinetic_energy[0]
    assert_apart(run)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_planar_bullet(stepper: str) -> None:
    """In the plane a fast disc does not pass a thin wall."""
    scene = Scene(dim=2, gravity=(0, 0))
    scene.add("wall", shapes.rectangle(0.001, 1), fixed=True)
    scene.add("disc", shapes.disc(0.01), mass=0.1, position=(-0.7, 0.1), velocity=(500, 20))
    run = simulate(scene, duration=0.02, step=0.01, stepper=stepper)
    assert_lawful(run, 0.01)
    assert run.steps["status"][0] == "substepped" or run.steps["impacts"][0] > 0
    assert np.all(run["disc"].position[:, 0] < 0)
