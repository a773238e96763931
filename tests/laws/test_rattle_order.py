"""The order of `implicit-rattle` and `implicit-rattle-4`, what they keep, and what they solve exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from law_scenes import G, measured_order, on_ground, turned

from implicit_geom import Scene, Trajectory, distance, shapes, simulate
from implicit_geom.rotation import matrix

REFERENCES = Path(__file__).parents[2] / "experiments" / "references"
ORDERS = {"implicit-rattle": 1.9, "implicit-rattle-4": 3.7}
FORMS = {"implicit-rattle": {"rattle"}, "implicit-rattle-4": {"rattle-4"}}


def ran(scene: Scene, duration: float, h: float, stepper: str = "implicit-rattle") -> Trajectory:
    """A run of which every step was taken by the stepper's own form, unguarded."""
    run = simulate(scene, duration=duration, step=h, stepper=stepper, progress=False)
    assert set(run.steps["form"]) == FORMS[stepper]
    assert set(run.steps["guard"]) == {"none"}
    assert run.max_penetration < 1e-10
    return run


def end(run: Trajectory, name: str = "body") -> np.ndarray:
    """Position, rotation, velocity and spin of a body at the end."""
    b = run[name]
    q = b.orientation[-1] * np.sign(b.orientation[-1][0]) if run.scene.dim == 3 else b.orientation[-1:]
    return np.concatenate([b.position[-1], q, b.velocity[-1], np.atleast_1d(b.angular_velocity[-1])])


def self_order(
    make: Callable[[], Scene],
    duration: float,
    steps: Sequence[float],
    finest: float,
    stepper: str = "implicit-rattle",
    reference: str = "implicit-rattle-4",
) -> float:
    """Order of the state at the end, against a run at the finest step."""
    exact = end(ran(make(), duration, finest, reference))
    return measured_order(
        steps, lambda h: float(np.max(np.abs(end(ran(make(), duration, h, stepper)) - exact)))
    )


# -- rolling ---------------------------------------------------------------------------------------


def rolling_ellipsoid(after: Trajectory | None = None) -> Scene:
    """The ellipsoid of references/ellipsoid_rolling.json, or as a run left it, its velocities reversed."""
    given = json.loads((REFERENCES / "ellipsoid_rolling.json").read_text())["inputs"]
    start: dict[str, Any] = {"position": given["x0"], "orientation": given["q0"]}
    if after is not None:
        b = after["body"]
        start = {"position": b.position[-1], "orientation": b.orientation[-1]}
        start |= {"velocity": -b.velocity[-1], "angular_velocity": -b.angular_velocity[-1]}
    scene = on_ground(shapes.ellipsoid(*given["semi_axes"]), mass=given["m"], **start)
    scene.friction(mu=1.0)
    return scene


@pytest.mark.parametrize(
    ("stepper", "steps", "least"),
    [("implicit-rattle", (0.02, 0.01, 0.005), 1e-4), ("implicit-rattle-4", (0.1, 0.05, 0.025), 1e-6)],
)
def test_order_of_the_rolling_ellipsoid(stepper: str, steps: Sequence[float], least: float) -> None:
    """Position and spin after 1 s against an independent integration; energy on the way: order 2 and 4."""
    states = json.loads((REFERENCES / "ellipsoid_rolling.json").read_text())["states"]
    k = states["t"].index(1.0)
    errors: dict[str, list[float]] = {"x": [], "omega": [], "energy": []}
    for h in steps:
        run = ran(rolling_ellipsoid(), 1.0, h, stepper)
        assert set(run.contacts["mode"]) == {"stick"}
        errors["x"].append(float(np.linalg.norm(run["body"].position[-1] - states["x"][k])))
        errors["omega"].append(float(np.linalg.norm(run["body"].angular_velocity[-1] - states["omega"][k])))
        errors["energy"].append(float(np.max(np.abs(run.energy - run.energy[0]))))
    for name, found in errors.items():
        slope = float(np.polyfit(np.log(steps), np.log(found), 1)[0])
        assert slope >= ORDERS[stepper], (name, found)
    assert errors["x"][-1] < least


def two_ellipsoids(*, both: bool) -> Scene:
    """One ellipsoid rolling on another, which is fixed or moves too; friction enough to stick."""
    below, above = shapes.ellipsoid(1.0, 0.8, 0.6), shapes.ellipsoid(0.3, 0.25, 0.2)
    q = np.array(turned((1, 2, 3), 70))
    normal = np.array([0.2, 0.12, 0.97])
    normal /= np.linalg.norm(normal)
    place = below.support(normal[None])[0] + 0.6 * normal
    for _ in range(50):  # along the normal of the closest points until they touch
        found = distance(below, (np.zeros(3), (1, 0, 0, 0)), above, (place, q))
        place = place - found.gap * found.normal
    scene = Scene(gravity=(0, 0, 0) if both else (0, 0, -G))
    n, arm = found.normal, found.point_b - place
    w = np.array([0.8, -0.5, 1.0])
    v = -np.cross(w, arm)  # rolls without slip at the start
    if both:
        scene.add("other", below, mass=3.0)
        scene.applied("other", force=(40 * n).tolist())
    else:
        scene.add("other", below, fixed=True)
    scene.add("body", above, mass=1.0, position=place, orientation=q, velocity=v, angular_velocity=w)
    if both:
        scene.applied("body", force=(-40 * n).tolist())
    scene.friction(mu=1.0)
    return scene


@pytest.mark.parametrize("both", [False, True])
def test_order_of_two_rolling_ellipsoids(both: bool) -> None:
    """Rolling on a fixed ellipsoid and on one that moves: state and energy balance of second order."""
    duration, steps = 0.4, (0.02, 0.01, 0.005)
    exact = end(ran(two_ellipsoids(both=both), duration, steps[-1], "implicit-rattle-4"))
    states, balance = [], []
    for h in steps:
        run = ran(two_ellipsoids(both=both), duration, h)
        assert set(run.contacts["mode"]) == {"stick"}
        assert len(run.contacts) == len(run.steps)
        states.append(float(np.max(np.abs(end(run) - exact))))
        kept = run.energy[1:] - run.energy[0] - np.cumsum(run.ledger["work"])
        balance.append(float(np.max(np.abs(kept))))
    for found in (states, balance):
        slope = float(np.polyfit(np.log(steps), np.log(found), 1)[0])
        assert slope >= 1.9, found


def test_order_of_an_ellipsoid_sliding_on_another() -> None:
    """Without friction on a fixed ellipsoid: `implicit-rattle-4` has order four."""

    def make() -> Scene:
        scene = two_ellipsoids(both=False)
        scene.friction(mu=0.0)
        return scene

    slope = self_order(make, 0.4, (0.08, 0.04, 0.02), 0.005, "implicit-rattle-4")
    assert slope >= 3.7


@pytest.mark.parametrize(("stepper", "order"), [("implicit-rattle", 2), ("implicit-rattle-4", 4)])
def test_order_of_free_tumbling(stepper: str, order: int) -> None:
    """An asymmetric body tumbles freely with order 2 and 4; its angular momentum is kept to rounding."""

    def make() -> Scene:
        scene = Scene(gravity=(0, 0, -G))
        scene.add("body", shapes.box(0.1, 0.2, 0.35), mass=1.0, angular_velocity=(0.2, 5.0, 0.3))
        return scene

    steps, finest = ((0.02, 0.01, 0.005), 0.02) if order == 2 else ((0.08, 0.04, 0.02), 0.005)
    slope = self_order(make, 0.8, steps, finest, stepper)
    assert order - 0.1 < slope < order + 0.3
    run = ran(make(), 0.8, 0.02, stepper)
    J = run.scene.bodies["body"].inertia
    R, w = matrix(run["body"].orientation), run["body"].angular_velocity
    momentum = np.einsum("tij,jk,tlk,tl->ti", R, J, R, w)
    assert np.max(np.abs(momentum - momentum[0])) < 1e-12


@pytest.mark.parametrize(("stepper", "h"), [("implicit-rattle", 0.01), ("implicit-rattle-4", 0.05)])
def test_rolling_is_reversible(stepper: str, h: float) -> None:
    """Rolling for 2 s, 200 steps, velocities reversed, and back: the start again, to 1e-10."""
    there = ran(rolling_ellipsoid(), 2.0, h, stepper)
    back = ran(rolling_ellipsoid(there), 2.0, h, stepper)
    start, last = rolling_ellipsoid().bodies["body"], back["body"]
    assert np.max(np.abs(last.position[-1] - start.position)) < 1e-10
    assert 1 - abs(last.orientation[-1] @ start.orientation) < 1e-12
    assert np.max(np.abs(last.orientation[-1] - start.orientation)) < 1e-10
    assert np.max(np.abs(last.velocity[-1])) < 1e-10
    assert np.max(np.abs(last.angular_velocity[-1])) < 1e-10


@pytest.mark.parametrize("stepper", ["implicit-rattle", "implicit-rattle-4"])
def test_small_fast_sphere_rolls_exactly(stepper: str) -> None:
    """r = 0.01 m at 1 m/s, h = 0.01 s, a radian a step: on the exact path to 1e-9."""
    scene = on_ground(
        shapes.sphere(0.01), position=(0, 0, 0.01), velocity=(0.8, 0.6, 0), angular_velocity=(-60, 80, 0)
    )
    scene.friction(mu=0.3)
    run = simulate(scene, duration=0.5, step=0.01, stepper=stepper, progress=False)
    exact = np.outer(run.time, (0.8, 0.6, 0)) + (0, 0, 0.01)
    assert set(run.steps["guard"]) == {"none"}
    assert np.max(np.abs(run["body"].position - exact)) < 1e-9
    assert np.max(np.abs(run["body"].angular_velocity - (-60, 80, 0))) < 1e-7


@pytest.mark.parametrize("stepper", ["implicit-rattle", "implicit-rattle-4"])
def test_small_fast_disc_rolls_exactly(stepper: str) -> None:
    """The same in the plane, down a slope as well: x = v t + a t^2 / 2 with a = 2/3 g sin(slope)."""
    for slope in (0.0, 0.2):
        scene = Scene(dim=2, gravity=(G * np.sin(slope), -G * np.cos(slope)))
        scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
        start = {"velocity": (1, 0), "angular_velocity": -100.0}
        scene.add("disc", shapes.disc(0.01), mass=1.0, position=(0, 0.01), **start)
        scene.friction(mu=0.3)
        duration = 0.2 if slope else 0.5
        run = simulate(scene, duration=duration, step=0.01, stepper=stepper, progress=False)
        x = run.time + G * np.sin(slope) / 3 * run.time**2
        assert np.max(np.abs(run["disc"].position[:, 0] - x)) < 1e-9
        assert np.max(np.abs(run["disc"].position[:, 1] - 0.01)) < 1e-12


# -- sliding ---------------------------------------------------------------------------------------


def test_order_of_an_anisotropic_slider() -> None:
    """e_t = 1, e_o = 0.5: v_o/v_o0 = (v_t/v_t0)^(e_o^2/e_t^2) and the state at the end, second order."""

    def make() -> Scene:
        scene = on_ground(
            shapes.sphere(0.1), inertia=(1e9, 1e9, 1e9), position=(0, 0, 0.1), velocity=(2, 1.5, 0)
        )
        scene.friction(mu=0.3, e_t=1.0, e_o=0.5, direction=(1, 0, 0))
        return scene

    def curve(h: float) -> float:
        v = ran(make(), 0.4, h)["body"].velocity[-1]
        assert 0.2 < v[0] / 2 < 0.7
        return float(abs(v[1] / 1.5 - (v[0] / 2) ** 0.25))

    steps = (0.04, 0.02, 0.01)
    first, second = measured_order(steps, curve), self_order(make, 0.4, steps, 0.01)
    assert first >= 1.9
    assert second >= 1.9


# -- lines and faces -------------------------------------------------------------------------------


def sliding_box(yaw: float = 0.0) -> Scene:
    scene = on_ground(
        shapes.box(0.2, 0.15, 0.05),
        position=(0, 0, 0.05),
        velocity=(1.5, 0.5, 0),
        angular_velocity=(0, 0, yaw),
    )
    scene.friction(mu=0.2)
    return scene


def test_box_slides_flat_exactly() -> None:
    """A box slides flat without turning as x = v t - mu g t^2 / 2, exactly, until it stops."""
    run = ran(sliding_box(), 0.4, 0.02)
    v = np.array([1.5, 0.5, 0])
    exact = np.outer(run.time, v) - np.outer(0.2 * G * run.time**2 / 2, v / np.linalg.norm(v)) + (0, 0, 0.05)
    assert np.max(np.abs(run["body"].position - exact)) < 1e-9


def rolling_cylinder(turn: float = 0.0, slope: float = 0.0) -> tuple[Scene, float]:
    """A cylinder on its side, axis along y, and its speed along x, so that it rolls steadily.

    With the spins w about its axis and `turn` about the vertical it is carried by the point at b of its
    line, m (r^2 + J/m) w turn = -b m (g + turn^2 r), which sticks: v = r w + turn b.
    """
    r, w = 0.1, 10.0
    b = -turn * w * (r**2 + r**2 / 2) / (G + turn**2 * r)
    v = r * w + turn * b
    scene = on_ground(
        shapes.cylinder(r, 0.4), slope=slope, position=(0, 0, r), orientation=turned((1, 0, 0), 90),
        velocity=(v, 0, 0), angular_velocity=(0, w, turn),
    )  # fmt: skip
    scene.friction(mu=0.6)
    return scene, v


def test_cylinder_rolls_down_on_its_side_exactly() -> None:
    """Line contact down a slope: x = v t + a t^2 / 2 with a = 2/3 g sin(slope), to 1e-9."""
    scene, v = rolling_cylinder(slope=0.3)
    run = ran(scene, 0.2, 0.01)
    x = v * run.time + G * np.sin(0.3) / 3 * run.time**2
    assert np.max(np.abs(run["body"].position[:, 0] - x)) < 1e-9
    assert np.max(np.abs(run["body"].position[:, 2] - 0.1)) < 1e-12


def test_order_of_a_cylinder_that_pivots_as_it_rolls() -> None:
    """Line contact with yaw: circle and spin of the steady motion are approached with second order."""
    turn, steps = 3.0, (0.02, 0.01, 0.005)
    places, spins = [], []
    for h in steps:
        scene, v = rolling_cylinder(turn)
        run = ran(scene, 0.3, h)
        angle = turn * run.time
        exact = v / turn * np.column_stack([np.sin(angle), 1 - np.cos(angle)])
        places.append(float(np.max(np.abs(run["body"].position[:, :2] - exact))))
        axis = np.array([-10 * np.sin(angle[-1]), 10 * np.cos(angle[-1]), turn])
        spins.append(float(np.max(np.abs(run["body"].angular_velocity[-1] - axis))))
        assert set(run.contacts["mode"]) == {"stick"}
    for found in (places, spins):
        slope = float(np.polyfit(np.log(steps), np.log(found), 1)[0])
        assert slope >= 1.9, found


def test_order_of_a_box_that_slides_and_turns() -> None:
    """Face contact: a box that turns as it slides; the friction law holds, and the order is two or better."""
    ends = []
    for h in (0.02, 0.01, 0.005):
        run = ran(sliding_box(2.0), 0.2, h)
        ends.append(end(run))
        assert run.steps["friction"].max() < 1e-9
    first, second = (float(np.max(np.abs(a - b))) for a, b in pairwise(ends))
    assert second < max(first / 2**1.9, 1e-12), (first, second)
