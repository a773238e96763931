"""Faces and edges on planes and on each other, one contact a pair: no penetration, no gain, right rest."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from law_scenes import TWO, G, assert_at_rest, assert_lawful, on_ground, turned

from implicit_geom import Scene, shapes, simulate
from implicit_geom.rotation import matrix, unit

HALF_EGG = shapes.intersection(shapes.ellipsoid(0.3, 0.25, 0.2), shapes.halfspace((0, 0, 1)))
SIDE = (np.sqrt(0.5), np.sqrt(0.5), 0, 0)
# what is dropped, how it starts, the height of its centre and its own axis that points down at rest
DROPS: dict[str, tuple[Any, dict[str, Any], float, tuple[float, float, float] | None]] = {
    "box flat": (shapes.box(0.3, 0.2, 0.1), {"position": (0, 0, 0.15)}, 0.1, (0, 0, 1)),
    "box over an edge": (
        shapes.box(0.3, 0.2, 0.1),
        {"position": (0, 0, 0.5), "orientation": turned((1, 2, 0.3), 35)},
        0.1,
        (0, 0, 1),
    ),
    "cylinder on its side": (
        shapes.cylinder(0.1, 0.5),
        {"position": (0, 0, 0.2), "orientation": SIDE},
        0.1,
        None,
    ),
    "cylinder tilted": (
        shapes.cylinder(0.1, 0.5),
        {"position": (0, 0, 0.4), "orientation": turned((1, 0, 0), 65)},
        0.1,
        None,
    ),
    "capsule on its side": (
        shapes.capsule(0.1, 0.5),
        {"position": (0, 0, 0.3), "orientation": turned((1, 0, 0), 75)},
        0.1,
        None,
    ),
    "coin": (
        shapes.cylinder(0.1, 0.01),
        {"position": (0, 0, 0.2), "orientation": turned((1, 0, 0), 20)},
        0.005,
        (0, 0, 1),
    ),
    "thin disc": (
        shapes.cylinder(0.1, 0.0),
        {"position": (0, 0, 0.2), "orientation": turned((1, 0.5, 0), 20), "inertia": (0.0025, 0.0025, 0.005)},
        0.0,
        (0, 0, 1),
    ),
    "cone on its base": (
        shapes.cone(0.2, 0.3),
        {"position": (0, 0, 0.2), "orientation": turned((1, 0, 0), 15)},
        0.075,
        (0, 0, 1),
    ),
    "cone on its side": (
        shapes.cone(0.2, 0.5),
        {"position": (0, 0, 0.4), "orientation": turned((0, 1, 0), 80)},
        # the centre of mass is 3/4 of the axis from the apex; the axis rises by the half angle
        0.375 * 0.2 / np.hypot(0.2, 0.5),
        None,
    ),
    "half ellipsoid on its lid": (
        HALF_EGG,
        {"position": (0, 0, 0.3), "orientation": turned((1, 0, 0), 150)},
        0.2 * 3 / 8,
        (0, 0, -1),
    ),
}


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("name", DROPS)
@pytest.mark.parametrize("h", [0.01, 0.05])
def test_dropped_body_comes_to_rest(name: str, h: float, stepper: str) -> None:
    """A dropped body lands on its face or side and stays there: lawful at every step, at its height."""
    shape, start, height, up = DROPS[name]
    scene = on_ground(shape, **start)
    scene.friction(mu=0.5, e_r=0.01)
    run = simulate(scene, duration=1.5, step=h, stepper=stepper)
    assert_lawful(run, shape.size)
    assert_at_rest(run, speed=1e-6)
    assert abs(run["body"].position[-1, 2] - height) < 1e-9
    if up is not None:
        np.testing.assert_allclose(matrix(run["body"].orientation[-1]).T @ (0, 0, 1), up, atol=1e-9)
    # at rest the contact carries the weight under the centre of mass
    last = run.contacts[-1]
    assert abs(last["p_n"] - h * G) < 1e-9
    np.testing.assert_allclose(last["point"][:2], run["body"].position[-1, :2], atol=1e-7)


@pytest.mark.parametrize("stepper", TWO)
def test_stack_of_boxes_stands(stepper: str) -> None:
    """Three boxes put on each other, off centre, stand still; each carries the weight above it."""
    scene = on_ground(shapes.box(0.3, 0.3, 0.1), mass=3.0, position=(0, 0, 0.1))
    scene.add("middle", shapes.box(0.2, 0.2, 0.1), mass=2.0, position=(0.1, 0.05, 0.3))
    scene.add("top", shapes.box(0.1, 0.1, 0.1), mass=1.0, position=(0.05, 0.1, 0.5))
    scene.friction(mu=0.5)
    run = simulate(scene, duration=0.5, step=0.01, stepper=stepper)
    assert_lawful(run, 0.1)
    for name in ("body", "middle", "top"):
        np.testing.assert_allclose(run[name].position[-1], run[name].position[0], rtol=0, atol=1e-9)
        assert_at_rest(run, name)
    last = run.contacts[run.contacts["time"] == run.time[-1]]
    np.testing.assert_allclose(np.sort(last["p_n"]), 0.01 * G * np.array([1, 3, 6]), rtol=1e-8)


@pytest.mark.parametrize("stepper", TWO)
def test_box_lands_on_a_box(stepper: str) -> None:
    """A tilted box dropped on a lying one comes to rest flat on top of it."""
    scene = on_ground(shapes.box(0.4, 0.4, 0.1), mass=3.0, position=(0, 0, 0.1))
    scene.add(
        "top", shapes.box(0.2, 0.1, 0.1), mass=1.0, position=(0, 0, 0.45), orientation=turned((1, 2, 0), 20)
    )
    scene.friction(mu=0.5, e_r=0.01)
    run = simulate(scene, duration=1.0, step=0.01, stepper=stepper)
    assert_lawful(run, 0.1)
    assert_at_rest(run, "top")
    assert abs(run["top"].position[-1, 2] - 0.3) < 1e-9


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize(("offset", "stays"), [(0.19, True), (0.21, False)])
def test_box_over_a_ledge(offset: float, stays: bool, stepper: str) -> None:
    """A box whose centre is inside the edge of a fixed table stays, beyond it tips over the edge."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("table", shapes.box(0.2, 0.2, 0.1), fixed=True, position=(0, 0, -0.1))
    scene.add("body", shapes.box(0.3, 0.1, 0.05), mass=1.0, position=(offset, 0, 0.05))
    scene.friction(mu=0.8)
    run = simulate(scene, duration=0.4, step=0.01, stepper=stepper)
    assert_lawful(run, 0.1)
    if stays:
        assert_at_rest(run)
        np.testing.assert_allclose(run.contacts["point"][-1], (offset, 0, 0), atol=1e-7)
    else:
        assert run["body"].angular_velocity[-1, 1] > 0.3
        np.testing.assert_allclose(run.contacts["point"][5], (0.2, 0, 0), atol=1e-3)


PLANAR: dict[str, tuple[Any, float, float]] = {
    # shape, tilt at the start, height of the centre at rest
    "rectangle": (shapes.rectangle(0.3, 0.1), 0.3, 0.1),
    "hexagon": (shapes.regular_polygon(6, 0.3), 0.2, 0.3 * np.sqrt(3) / 2),
    "triangle": (shapes.polygon([(-0.3, 0), (0.3, 0), (0, 0.4)]), 0.3, 0.4 / 3),
}


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("name", PLANAR)
def test_planar_body_comes_to_rest(name: str, stepper: str) -> None:
    """A polygon dropped on a half-plane comes to rest on an edge."""
    shape, tilt, height = PLANAR[name]
    scene = Scene(dim=2, gravity=(0, -G))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("body", shape, mass=1.0, position=(0, 0.5), orientation=tilt)
    scene.friction(mu=0.5)
    # with RATTLE, which loses energy in impacts alone, a hexagon rocks for 2.3 s
    run = simulate(scene, duration=2.0 if stepper == "implicit-euler" else 3.0, step=0.01, stepper=stepper)
    assert_lawful(run, shape.size)
    assert_at_rest(run)
    assert abs(run["body"].position[-1, 1] - height) < 1e-9


@pytest.mark.parametrize("stepper", TWO)
def test_rectangle_on_rectangle(stepper: str) -> None:
    """A rectangle dropped at an angle on a lying one comes to rest on it."""
    scene = Scene(dim=2, gravity=(0, -G))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("low", shapes.rectangle(0.4, 0.1), mass=3.0, position=(0, 0.1))
    scene.add("body", shapes.rectangle(0.2, 0.1), mass=1.0, position=(0.05, 0.5), orientation=0.3)
    scene.friction(mu=0.5)
    run = simulate(scene, duration=1.5, step=0.01, stepper=stepper)
    assert_lawful(run, 0.1)
    assert_at_rest(run)
    assert abs(run["body"].position[-1, 1] - 0.3) < 1e-9


@pytest.mark.parametrize("stepper", TWO)
def test_thin_discs_land_on_each_other(stepper: str) -> None:
    """Two discs without thickness dropped on the plane and on each other: solved, and never through."""
    rng = np.random.default_rng(1)
    disc, inertia = shapes.cylinder(0.1, 0), (0.0025, 0.0025, 0.005)
    scene = on_ground(disc, position=(0, 0, 0.12), orientation=unit(rng.normal(size=4)), inertia=inertia)
    scene.add(
        "top", disc, mass=1.0, position=(0, 0, 0.34), orientation=unit(rng.normal(size=4)), inertia=inertia
    )
    scene.friction(mu=0.3)
    run = simulate(scene, duration=0.5, step=0.01, stepper=stepper)
    assert_lawful(run, 0.1, resolved=False)
    assert {"body", "top"} <= set(run.contacts["second"])
    assert np.any(run.contacts["first"] == "body")
