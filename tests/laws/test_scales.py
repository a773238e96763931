"""The same laws for large and small bodies, steps, frictions, and far from the origin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from law_scenes import STEPPERS, TWO, G, assert_lawful, on_ground, turned

from implicit_geom import Scene, Trajectory, shapes, simulate


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("h", [1e-4, 1e-2, 0.1])
def test_box_drops_at_every_scale(size: float, h: float, stepper: str) -> None:
    """A box of 1 mm to 1 km, dropped tilted with steps of 1e-4 to 0.1 s, obeys the laws (60 steps)."""
    # the drop is as high as the body falls in about ten steps, but no higher than its size
    high = min(size, G * (10 * h) ** 2 / 2)
    tilt = turned((1, 2, 0), 20)
    shape = shapes.box(size, 0.6 * size, 0.3 * size)
    low = lowest(shape, tilt)
    scene = on_ground(shape, mass=size**3, position=(0, 0, low + high), orientation=tilt)
    scene.friction(mu=0.5, e_r=0.01 * size)
    run = simulate(scene, duration=60 * h, step=h, stepper=stepper)
    assert len(run.contacts) > 20
    # a step in which the body falls by more than a tenth of its size does not resolve the motion
    assert_lawful(run, size, resolved=G * h**2 < 0.1 * size)


def lowest(shape: Any, turn: tuple[float, ...]) -> float:
    """Height of the centre of a body that touches the ground."""
    from implicit_geom import distance

    c = distance(shapes.halfspace((0, 0, 1)), ((0, 0, 0), (1, 0, 0, 0)), shape, ((0, 0, 0), turn))
    return -c.gap


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_similarity(factor: float, stepper: str) -> None:
    """Lengths times c, times sqrt(c): the same motion, scaled (positions to 1e-6 of the size)."""

    def run(c: float) -> Trajectory:
        scene = on_ground(
            shapes.ellipsoid(0.5 * c, 0.4 * c, 0.3 * c),
            mass=2 * c**3,
            position=(0, 0, 0.6 * c),
            orientation=turned((1, 2, 0), 30),
            velocity=(np.sqrt(c), 0, 0),
        )
        scene.friction(mu=0.3)
        return simulate(scene, duration=0.5 * np.sqrt(c), step=0.01 * np.sqrt(c), stepper=stepper)

    np.testing.assert_allclose(
        run(factor)["body"].position / factor, run(1.0)["body"].position, rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("mass", [1e-6, 1e6])
def test_mass_does_not_matter(mass: float, stepper: str) -> None:
    """One body's motion under gravity does not depend on its mass (1e-9)."""

    def run(m: float) -> Trajectory:
        scene = on_ground(
            shapes.cylinder(0.2, 0.5), mass=m, position=(0, 0, 0.5), orientation=turned((1, 2, 0), 40)
        )
        scene.friction(mu=0.4, e_r=0.01)
        return simulate(scene, duration=0.6, step=0.01, stepper=stepper)

    a, b = run(mass)["body"], run(1.0)["body"]
    np.testing.assert_allclose(a.position, b.position, rtol=0, atol=1e-9)
    np.testing.assert_allclose(a.orientation, b.orientation, rtol=0, atol=1e-8)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("ratio", [1e-4, 1e4])
def test_mass_ratio(ratio: float, stepper: str) -> None:
    """A light body on a heavy one and a heavy one on a light one stand still."""
    scene = on_ground(shapes.box(0.2, 0.2, 0.1), position=(0, 0, 0.1))
    scene.add("top", shapes.box(0.2, 0.2, 0.1), mass=ratio, position=(0.01, 0, 0.3))
    scene.friction(mu=0.5)
    run = simulate(scene, duration=0.2, step=0.01, stepper=stepper)
    assert_lawful(run, 0.1)
    for name in ("body", "top"):
        np.testing.assert_allclose(run[name].position[-1], run[name].position[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("mu", [0.0, 1e-3, 0.5, 2.0])
def test_friction_from_none_to_strong(mu: float, stepper: str) -> None:
    """An egg thrown on the ground with mu from 0 to 2: lawful; without friction horizontal speed is kept."""
    scene = on_ground(
        shapes.ellipsoid(0.5, 0.4, 0.3), position=(0, 0, 0.7), orientation=turned((1, 2, 0), 40),
        velocity=(2, 1, -2), angular_velocity=(3, -4, 2),
    )  # fmt: skip
    scene.friction(mu=mu)
    run = simulate(scene, duration=1.0, step=0.01, stepper=stepper)
    assert_lawful(run, 0.5)
    if mu == 0:
        np.testing.assert_allclose(run["body"].velocity[:, :2], np.tile((2, 1), (101, 1)), atol=1e-12)
    impulse = np.hypot(run.contacts["p_t"], run.contacts["p_o"])
    assert np.all(impulse <= mu * run.contacts["p_n"] + 1e-9)


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize(
    "shape", [shapes.ellipsoid(0.5, 0.4, 0.3), shapes.box(0.3, 0.2, 0.2)], ids=["egg", "box"]
)
def test_far_from_the_origin(shape: Any, stepper: str) -> None:
    """At (1e4, -1e4, 1e4) m the motion relative to that place is the same (1e-6; rounding is 2e-12)."""

    def run(place: np.ndarray) -> Trajectory:
        scene = Scene(gravity=(0, 0, -G))
        scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True, position=place)
        scene.add("low", shapes.sphere(0.3), mass=2.0, position=place + (0.2, 0, 0.3))
        scene.add("body", shape, mass=1.0, position=place + (0, 0, 1.2), orientation=turned((1, 2, 0), 30))
        scene.friction(mu=0.4, e_r=0.01)
        return simulate(scene, duration=0.6, step=0.01, stepper=stepper)

    far = np.array([1e4, -1e4, 1e4])
    a, b = run(far), run(np.zeros(3))
    for name in ("low", "body"):
        np.testing.assert_allclose(a[name].position - far, b[name].position, rtol=0, atol=1e-6)
    assert a.max_penetration < 1e-9 * 0.2
