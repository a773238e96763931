"""Grazing contact: bodies that slide without friction and leave the surface."""

from __future__ import annotations

import numpy as np
import pytest
from law_scenes import STEPPERS, TWO, G, assert_lawful, on_ground

from implicit_geom import Scene, Trajectory, shapes, simulate


def off_a_ball(h: float, stepper: str) -> Trajectory:
    """A small ball at the top of a large fixed one, without friction, pushed to a slow start."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("large", shapes.sphere(1.0), fixed=True)
    start = 0.2
    distance = 1.25
    scene.add(
        "ball",
        shapes.sphere(0.25),
        mass=1.0,
        position=(distance * np.sin(start), 0, distance * np.cos(start)),
    )
    return simulate(scene, duration=1.2, step=h, stepper=stepper)


@pytest.mark.parametrize("stepper", TWO)
def test_ball_leaves_a_ball(stepper: str) -> None:
    """A ball sliding off a ball from rest at angle a leaves at cos = 2/3 cos(a), to within 2 h."""

    def error(h: float) -> float:
        run = off_a_ball(h, stepper)
        assert_lawful(run, 0.25)
        last = run.contacts["time"][-1]
        x = run["ball"].position[np.argmin(np.abs(run.time - last))]
        return float(abs(x[2] / 1.25 - 2 / 3 * np.cos(0.2)))

    # known only to within a step, in which the height changes by h |v_z| = 2.6 h
    for h in (0.016, 0.008, 0.004):
        assert error(h) < 2 * h


@pytest.mark.parametrize("stepper", TWO)
def test_spinning_egg_lifts_off(stepper: str) -> None:
    """An egg tumbling fast without friction leaves the plane and comes back: no sticking, no side force."""
    scene = on_ground(
        shapes.ellipsoid(0.5, 0.2, 0.2), position=(0, 0, 0.2), velocity=(1, 0, 0), angular_velocity=(0, 15, 0)
    )
    run = simulate(scene, duration=1.0, step=0.002, stepper=stepper)
    assert_lawful(run, 0.5)
    closed = np.isin(run.time[1:], run.contacts["time"])
    assert np.sum(np.diff(closed.astype(int)) == -1) >= 1  # leaves
    assert np.sum(np.diff(closed.astype(int)) == 1) >= 1  # comes back
    np.testing.assert_allclose(run["body"].velocity[:, 0], 1.0, atol=1e-12)
    # in the air only gravity acts
    flying = np.flatnonzero(~closed)
    dv = np.diff(run["body"].velocity[:, 2])[flying]
    np.testing.assert_allclose(dv, -0.002 * G, atol=1e-12)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_egg_slides_and_stays_in_grazing_contact(stepper: str) -> None:
    """A slowly rocking egg without friction keeps its contact: gap 0 and p_n > 0 at every step."""
    scene = on_ground(
        shapes.ellipsoid(0.5, 0.4, 0.3),
        position=(0, 0, 0.3),
        velocity=(1, 0, 0),
        angular_velocity=(0.3, 0.3, 0.5),
    )
    run = simulate(scene, duration=1.0, step=0.01, stepper=stepper)
    assert_lawful(run, 0.5)
    assert len(run.contacts) == len(run.steps)
    assert np.all(run.contacts["p_n"] > 0)
    assert np.abs(run.contacts["gap"]).max() < 1e-12
