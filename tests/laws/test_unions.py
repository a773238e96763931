"""Bodies made of several convex pieces obey the laws: statics, momentum, energy, hooks, symmetry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from law_scenes import STEPPERS, TWO, G, on_ground

from implicit_geom import Scene, distance, shapes, simulate
from implicit_geom.check.certificate import NAMES
from implicit_geom.rotation import unit


def dumbbell(r: float = 0.1, d: float = 0.6) -> Any:
    return shapes.union(*(shapes.sphere(r).moved((s * d / 2, 0, 0)) for s in (-1, 1)))


def certified(run: Any) -> None:
    """Every step of a run obeys its own equations."""
    for name in NAMES:
        assert np.max(run.steps[name]) < 1e-9, name
    assert run.max_penetration < 1e-12


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_dumbbell_rests_on_two_points(stepper: str) -> None:
    """Forces under a dumbbell whose centre of mass is off the middle are those of statics."""
    scene = on_ground(dumbbell(), mass=2.0, position=(0, 0, 0.1), com=(0.1, 0, 0))
    scene.friction(mu=0.4)
    run = simulate(scene, duration=0.1, step=0.01, stepper=stepper)
    certified(run)
    last = run.contacts[run.contacts["time"] == run.time[-1]]
    assert last["second"].tolist() == ["body", "body"]
    order = np.argsort(last["point"][:, 0])
    np.testing.assert_allclose(last["point"][order, 0], [-0.4, 0.2], atol=1e-12)
    np.testing.assert_allclose(last["p_n"][order] / 0.01, [2 * G / 3, 4 * G / 3], rtol=1e-9)


@pytest.mark.parametrize("stepper", TWO)
def test_a_dumbbell_rolls_as_its_hull(stepper: str) -> None:
    """Rolling down a slope across its axis, a dumbbell moves as a capsule of its mass and inertia."""
    slope, inertia = 0.1, dumbbell().inertia(1.0)
    ends = []
    for shape in (dumbbell(), shapes.capsule(0.1, 0.6).moved(None, unit((1, 0, 1, 0)))):
        scene = on_ground(shape, slope=slope, inertia=inertia, com=(0, 0, 0), position=(0, 0, 0.1),
                          orientation=unit((1, 0, 0, 1)))  # fmt: skip
        scene.friction(mu=0.5)
        run = simulate(scene, duration=0.5, step=0.01, stepper=stepper)
        certified(run)
        ends.append(run["body"].position[-1])
    rolling = G * np.sin(slope) / (1 + inertia[0, 0] / 0.1**2)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-10)
    if stepper == "implicit-rattle":
        assert ends[0][0] == pytest.approx(rolling * 0.5**2 / 2, rel=1e-6)


def hooked(velocity: float, mu: float = 0.0, at: float = -0.3) -> Scene:
    """An L whose arm lies on a fixed block and whose leg hangs beside it; planar."""
    scene = Scene(dim=2)
    scene.add("block", shapes.rectangle(1, 1), fixed=True, position=(-1, -1))  # its edge is at the origin
    L = shapes.union(
        shapes.rectangle(0.5, 0.05).moved((0, 0.05)), shapes.rectangle(0.05, 0.5).moved((0.45, -0.4))
    )
    scene.add("L", L, mass=1.0, position=L.com + (at, 0.0), velocity=(velocity, 0))
    scene.friction(mu=mu)
    scene.applied("L", torque=2.0)  # keeps the arm flat on the block
    return scene


@pytest.mark.parametrize("stepper", TWO)
def test_an_L_hooks_on_an_edge(stepper: str) -> None:
    """The leg of an L stops at the side of the block that the arm slides over; its hull starts inside it."""
    scene = hooked(-1.0)
    run = simulate(scene, duration=0.3, step=0.01, stepper=stepper)
    certified(run)
    start, x = run["L"].position[0, 0], run["L"].position[:, 0]
    # the leg is 0.1 m from the side
    assert np.min(x) == pytest.approx(start - 0.1, abs=1e-9)
    early = run.time <= 0.095
    np.testing.assert_allclose(x[early], start - run.time[early], atol=1e-9)
    np.testing.assert_allclose(run["L"].velocity[-1], 0, atol=1e-9)
    np.testing.assert_allclose(run["L"].orientation, 0, atol=1e-9)
    assert np.max(np.abs(run.contacts["normal"][:, 0])) == pytest.approx(1.0)
    hull = shapes.polygon(
        run.scene.bodies["L"].shape.support(np.array([(1, 1), (-1, 1), (-1, -1), (1, -1.0)]))
    )
    assert distance(scene.bodies["block"].shape, ((-1, -1), 0.0), hull, ((-0.3, 0.0), 0.0)).gap < -0.01


@pytest.mark.parametrize("stepper", TWO)
def test_a_hook_hangs_by_its_corner(stepper: str) -> None:
    """An L swinging on an edge with friction turns about it like a pendulum: energy kept, edge in contact."""
    scene = hooked(0.0, mu=1.0, at=-0.1)
    scene.applied("L", torque=0.0)
    run = simulate(scene, duration=0.35, step=0.005, stepper=stepper)
    certified(run)
    assert np.ptp(run["L"].orientation) > 0.05
    late = run.contacts[run.contacts["time"] > 0.1]
    np.testing.assert_allclose(late["point"], 0, atol=1e-9)
    bound = 2e-5 if stepper == "implicit-rattle" else 2e-2  # (second order, first order)
    assert abs(np.ptp(run.energy)) < bound


@pytest.mark.parametrize("stepper", TWO)
def test_momentum_of_two_dumbbells(stepper: str) -> None:
    """Two dumbbells that collide in free space keep their momentum; energy is lost, never gained."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("one", dumbbell(), mass=1.0, velocity=(0, 0, 1), angular_velocity=(0, 1, 2))
    scene.add("two", dumbbell(), mass=2.0, position=(0.2, 0.15, 1), orientation=unit((1, 0.5, 0.3, 0.8)))
    scene.friction(mu=0.3)
    run = simulate(scene, duration=1.5, step=0.01, stepper=stepper)
    certified(run)
    assert len(run.contacts) > 0
    total = run["one"].velocity + 2 * run["two"].velocity
    np.testing.assert_allclose(total, np.broadcast_to((0, 0, 1), total.shape), atol=1e-12)
    assert np.max(np.diff(run.energy)) < 1e-4 * run.energy[0]
    assert run.energy[-1] < 0.9 * run.energy[0]


def test_order_of_bodies_and_pieces() -> None:
    """Swapping the bodies, or the pieces of a body, changes nothing but the order of the names."""
    ends = []
    for order in (1, -1):
        scene = Scene()
        shape = shapes.union(*dumbbell().pieces[::order])
        bodies: dict[str, dict[str, Any]] = {
            "a": {"position": (0, 0, 0.3), "orientation": unit((1, 0.1, 0.3, 0))},
            "b": {"position": (0.1, 0, 0.8), "orientation": unit((1, 0, 0.2, 1))},
        }
        for name, start in list(bodies.items())[::order]:
            scene.add(name, shape, mass=1.0, **start)
        scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
        scene.friction(mu=0.3)
        run = simulate(scene, duration=0.4, step=0.01)
        certified(run)
        ends.append(np.concatenate([run[name].position[-1] for name in ("a", "b")]))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-9)


@pytest.mark.parametrize(("x", "speed"), [(0.1, 0.0), (-0.1, 0.0), (0.1, -1.0), (-0.3, 2.0)])
def test_box_flush_with_a_seam(x: float, speed: float) -> None:
    """A box over two boxes that are a floor, its side over the seam, rests or slides as on one."""
    half = shapes.box(0.5, 0.5, 0.1)
    floor = shapes.union(half.moved(position=(-0.5, 0, -0.1)), half.moved(position=(0.5, 0, -0.1)))
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("floor", floor, fixed=True)
    scene.add("box", shapes.box(0.1, 0.1, 0.1), mass=1.0, position=(x, 0, 0.1), velocity=(speed, 0, 0))
    scene.friction(mu=0.3)
    end = simulate(scene, duration=0.2, step=0.01)["box"].position[-1]
    t = min(0.2, abs(speed) / (0.3 * 9.81))
    way = np.sign(speed) * (abs(speed) * t - 0.3 * 9.81 * t**2 / 2)
    np.testing.assert_allclose(end, (x + way, 0, 0.1), atol=1e-6)
