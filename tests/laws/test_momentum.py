"""Momentum of two bodies that collide with friction and nothing else around."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from law_scenes import RATTLE, STEPPERS, TWO, measured_order, reference, turned

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.rotation import matrix

PAIRS: dict[str, tuple[Any, Any]] = {
    "ellipsoids": (shapes.ellipsoid(0.5, 0.4, 0.3), shapes.ellipsoid(0.3, 0.6, 0.2)),
    "box-cylinder": (shapes.box(0.3, 0.4, 0.2), shapes.cylinder(0.2, 0.8)),
    "cone-superellipsoid": (shapes.cone(0.4, 0.6), shapes.superellipsoid(0.3, 0.3, 0.4, 4)),
}


@cache
def collision(pair: str, h: float, stepper: str) -> Trajectory:
    shape_a, shape_b = PAIRS[pair]
    scene = Scene(gravity=(0, 0, 0))
    scene.add(
        "a", shape_a, mass=1.5, position=(-0.8, 0, 0), velocity=(2, 0.3, 0), angular_velocity=(1, -2, 3)
    )
    scene.add(
        "b",
        shape_b,
        mass=0.7,
        position=(0.5, 0.15, 0.1),
        orientation=turned((1, 2, 3), 70),
        velocity=(-1, 0, 0.1),
        angular_velocity=(0, 4, -1),
    )
    scene.friction(mu=0.6, e_r=0.02)
    return simulate(scene, duration=0.6, step=h, stepper=stepper)


def momenta(run: Trajectory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Total linear momentum, orbital and spin angular momentum about the world's origin; (T+1, 3)."""
    linear = orbital = spin = np.zeros(1)
    for name in "ab":
        body, motion = run.scene.bodies[name], run[name]
        p = body.mass * motion.velocity
        R = matrix(motion.orientation)
        linear = linear + p
        orbital = orbital + np.cross(motion.position, p)
        spin = spin + np.einsum("tij,jk,tlk,tl->ti", R, body.inertia, R, motion.angular_velocity)
    return linear, orbital, spin


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("pair", PAIRS)
def test_collision_keeps_linear_momentum(pair: str, stepper: str) -> None:
    """Linear momentum of two bodies that collide with friction is kept to 1e-9."""
    run = collision(pair, 0.01, stepper)
    assert len(run.contacts) > 0
    linear, _, _ = momenta(run)
    np.testing.assert_allclose(linear, np.tile(linear[0], (len(linear), 1)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("stepper", RATTLE)
@pytest.mark.parametrize("pair", PAIRS)
def test_collision_keeps_total_angular_momentum(pair: str, stepper: str) -> None:
    """RATTLE keeps the total angular momentum to 1e-12, through impact, sliding and sticking.

    Five solves a step leave the composition of order four ten times what the solver's tolerance leaves.
    """
    run = collision(pair, 0.01, stepper)
    assert len(run.contacts) > 0
    friction = np.hypot(run.contacts["p_t"], run.contacts["p_o"])
    assert friction.max() > 0.1 * run.contacts["p_n"].max()
    assert "euler" not in run.steps["form"]
    _, orbital, spin = momenta(run)
    total = orbital + spin
    assert np.abs(np.diff(spin, axis=0)).max() > 1e-2  # it is exchanged
    tolerance = 1e-12 if stepper == "implicit-rattle" else 1e-11
    np.testing.assert_allclose(total, np.tile(total[0], (len(total), 1)), rtol=0, atol=tolerance)


@pytest.mark.parametrize("pair", PAIRS)
def test_euler_balances_angular_momentum_about_the_end_of_a_step(pair: str) -> None:
    """Implicit Euler: each step's balance of angular momentum about the end-of-step pose, to 1e-9."""
    run = collision(pair, 0.01, "implicit-euler")
    assert len(run.contacts) > 0
    _, _, spin = momenta(run)
    # the impulses act at the end-of-step points: their moments about the origin cancel exactly
    change = np.diff(spin, axis=0)
    for name in "ab":
        motion = run[name]
        change = change + run.scene.bodies[name].mass * np.cross(
            motion.position[1:], np.diff(motion.velocity, axis=0)
        )
    whole = run.steps["status"] != "substepped"
    assert np.sum(whole) > 50
    np.testing.assert_allclose(change[whole], 0, rtol=0, atol=1e-9)


def test_total_angular_momentum_of_euler_is_first_order() -> None:
    """In implicit Euler it changes only by the step's own h v x p: measured order above 0.8."""

    def error(h: float) -> float:
        _, orbital, spin = momenta(collision("ellipsoids", h, "implicit-euler"))
        total = orbital + spin
        return float(np.abs(total - total[0]).max())

    assert measured_order([0.008, 0.004, 0.002, 0.001], error) > 0.8
    assert error(0.001) < 5e-3


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("case", reference("disc_impact")["cases"], ids=lambda c: c["name"])
def test_disc_impact(case: dict[str, Any], stepper: str) -> None:
    """Two discs, plastic impact with friction: the closed form's velocities, sticking and sliding."""
    given = case["inputs"]
    h = 1e-5
    # from shortly before the impact, which falls within a step: what is left is the turn of the
    # line of centres in that step, of the order h |v|
    before = 20.5 * h
    scene = Scene(dim=2, gravity=(0, 0))
    for i, side in (("1", -1), ("2", 1)):
        at_impact = np.array([side * given[f"R{i}"], 0.0])
        v = np.array(given[f"v{i}"], float)
        scene.add(
            i,
            shapes.disc(given[f"R{i}"]),
            mass=given[f"m{i}"],
            inertia=given[f"I{i}"],
            position=at_impact - before * v,
            velocity=v,
            angular_velocity=given[f"w{i}"],
        )
    scene.friction(mu=given["mu"])
    run = simulate(scene, duration=40 * h, step=h, stepper=stepper)
    for i in ("1", "2"):
        np.testing.assert_allclose(run[i].velocity[-1], case[f"v{i}_after"], rtol=0, atol=5 * h)
        np.testing.assert_allclose(run[i].angular_velocity[-1], case[f"w{i}_after"], rtol=0, atol=5 * h)
    hit = run.contacts[0]
    assert hit["mode"] == case["mode"]
    total = run.contacts["p_n"].sum()
    assert abs(total - case["pn"]) < 5 * h
