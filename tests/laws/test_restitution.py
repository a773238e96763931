"""Newton's law of restitution: heights of bounces, coming to rest, momentum, and energy that never grows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from law_scenes import G, on_ground, turned

from implicit_geom import Scene, Trajectory, shapes, simulate

STEPPERS = ("implicit-euler", "implicit-rattle", "implicit-rattle-4")


def bouncing_ball(e: float, height: float) -> Scene:
    scene = on_ground(shapes.sphere(0.1), position=(0, 0, 0.1 + height))
    scene.friction(mu=0.3, restitution=e)
    return scene


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("e", [0.3, 0.8, 1.0])
def test_apex_is_e_squared(stepper: str, e: float) -> None:
    """A dropped ball rises to e^2 of its height, to 1e-3 at h = 1e-3; `implicit-rattle` to rounding."""
    height = 0.02
    fall = np.sqrt(2 * height / G)
    run = simulate(
        bouncing_ball(e, height), duration=round(fall * (1 + e) + 0.005, 3), step=1e-3, stepper=stepper,
        progress=False,
    )  # fmt: skip
    z = run["body"].position[:, 2] - 0.1
    k = int(np.argmax(z * (run.time > fall)))
    assert 0 < k < len(z) - 1
    before, top, after = z[k - 1 : k + 2]
    apex = top + (before - after) ** 2 / (
        8 * (2 * top - before - after)
    )  # of the parabola through three points
    assert abs(apex / height - e**2) < 1e-3 * e**2
    if stepper != "implicit-euler":
        assert abs(apex / height - e**2) < 1e-10


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("e", [0.3, 0.6])
def test_comes_to_rest_without_chatter(stepper: str, e: float) -> None:
    """A bouncing ball comes to rest: closed in every one of the last steps, still, and touching."""
    run = simulate(bouncing_ball(e, 0.05), duration=0.8, step=0.01, stepper=stepper, progress=False)
    last = run.steps[-20:]
    assert np.sum(run.steps["contacts"] == 0) > 5
    assert np.all(last["contacts"] == 1)
    assert np.max(np.abs(run["body"].velocity[-20:])) < 1e-9
    assert np.max(np.abs(run["body"].position[-20:, 2] - 0.1)) < 1e-10
    assert np.max(run.energy - run.energy[0]) < 1e-12
    if (
        stepper != "implicit-euler"
    ):  # whose velocities belong to half a step earlier, before and after a bounce
        assert np.max(np.diff(run.energy)) < 1e-12


SHAPES: dict[str, tuple[Any, float]] = {
    "box": (shapes.box(0.2, 0.15, 0.1), 0.25),
    "ellipsoid": (shapes.ellipsoid(0.25, 0.2, 0.15), 0.25),
    "cylinder": (shapes.cylinder(0.15, 0.3), 0.25),
}


@pytest.mark.parametrize("stepper", ["implicit-euler", "implicit-rattle"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_bouncing_body_never_gains_energy(name: str, stepper: str) -> None:
    """Dropped askew with e = 0.7 and friction: it bounces, never exceeds its first energy, never enters."""
    shape, height = SHAPES[name]
    scene = on_ground(
        shape, position=(0, 0, height + 0.2), orientation=turned((1, 2, 0.5), 40), velocity=(0.5, 0, 0),
        angular_velocity=(1, -2, 0.5),
    )  # fmt: skip
    scene.friction(mu=0.3, restitution=0.7)
    run = simulate(scene, duration=0.6, step=0.005, stepper=stepper, progress=False)
    struck = run.ledger["impact"] > 1e-6
    scale = run.energy[0]
    assert struck.sum() >= 2
    assert np.max(run.energy - run.energy[0]) < 1e-9 * scale
    if (
        stepper != "implicit-euler"
    ):  # whose velocities belong to half a step earlier, before and after a bounce
        assert np.all(run.ledger["impact"] > -1e-12 * scale)
        assert np.max(np.diff(run.energy)) < 1e-6 * scale
    assert run.max_penetration < 1e-10


def bounced(scene: Scene, stepper: str, duration: float = 0.1) -> Trajectory:
    run = simulate(scene, duration=duration, step=0.01, stepper=stepper, progress=False)
    assert not run.failed
    return run


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("e", [0.0, 0.5, 1.0])
def test_two_balls_collide_head_on(stepper: str, e: float) -> None:
    """Two balls of different mass: momentum is kept, the relative velocity becomes -e times what it was."""
    scene = Scene(gravity=(0, 0, 0))
    n = np.array([1.0, 2.0, 2.0]) / 3
    scene.add("one", shapes.sphere(0.1), mass=1.0, position=-0.16 * n, velocity=1.3 * n)
    scene.add("two", shapes.sphere(0.1), mass=3.0, position=0.16 * n, velocity=-0.7 * n)
    scene.friction(mu=0.5, restitution=e)
    run = bounced(scene, stepper)
    one, two = run["one"].velocity, run["two"].velocity
    momentum = one + 3 * two
    assert np.max(np.abs(momentum - momentum[0])) < 1e-12
    assert np.max(np.abs((two - one)[-1] + e * (two - one)[0])) < 1e-10
    assert np.max(np.abs(run["one"].angular_velocity)) < 1e-10


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("dim", [2, 3])
def test_oblique_impact(stepper: str, dim: int) -> None:
    """Oblique, with friction: normal velocity -e u_n; the tangential impulse is mu times the normal one."""
    e, mu, u = 0.6, 0.1, np.array([2.0, -1.5])
    if dim == 3:
        scene = Scene(gravity=(0, 0, 0))
        scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
        scene.add("body", shapes.sphere(0.1), mass=2.0, position=(0, 0, 0.16), velocity=(u[0], 0, u[1]))
    else:
        scene = Scene(dim=2, gravity=(0, 0))
        scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
        scene.add("body", shapes.disc(0.1), mass=2.0, position=(0, 0.16), velocity=u)
    scene.friction(mu=mu, restitution=e)
    run = bounced(scene, stepper)
    v = run["body"].velocity[-1]
    assert abs(v[-1] + e * u[1]) < 1e-10
    assert abs(v[0] - (u[0] - mu * (1 + e) * abs(u[1]))) < 1e-10
    contact = run.contacts
    assert abs(np.sum(contact["p_n"]) - 2.0 * (1 + e) * 1.5) < 1e-9


@pytest.mark.parametrize("stepper", STEPPERS)
def test_restitution_belongs_to_the_pair(stepper: str) -> None:
    """Each pair has its own restitution: of two balls dropped alike one rebounds, the other stays down."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    for name, x in (("soft", -1.0), ("hard", 1.0), ("middle", 0.0)):
        scene.add(name, shapes.sphere(0.1), mass=1.0, position=(x, 0, 0.13), velocity=(0, 0, -1))
    scene.friction(restitution=0.5)
    scene.friction("ground", "soft", restitution=0.0)
    scene.friction("hard", "ground", restitution=1.0)
    run = bounced(scene, stepper)
    for name, e in (("soft", 0.0), ("middle", 0.5), ("hard", 1.0)):
        assert abs(run[name].velocity[-1][2] - e) < 1e-10, name
