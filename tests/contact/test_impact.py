"""Impacts by the three laws, and stage 1 of RATTLE by rounds, against what is known of them."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom import Scene, shapes
from implicit_geom.contact.decompression import decompression
from implicit_geom.contact.impact import ImpactProblem
from implicit_geom.contact.position_rounds import position_rounds
from implicit_geom.model.model import Model
from implicit_geom.model.records import Solve
from implicit_geom.steppers.events.stepper import EventStepper
from implicit_geom.steppers.events.touching_points import touching_points


def on_ground(shape: shapes.Shape, height: float, **start: object) -> Scene:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("body", shape, mass=2.0, position=(0, 0, height), **start)
    return scene


def impact_at_start(scene: Scene) -> ImpactProblem:
    """Of all points that touch at the start of a scene."""
    model = Model(scene)
    state = model.initial_state()
    points = touching_points(model, state, 0, np.zeros(2))
    return ImpactProblem(model, state, [points.chosen(points.closed)])


@pytest.mark.parametrize("law", ["newton", "poisson", "energetic"])
def test_a_flat_box_bounces_off_its_face(law: str) -> None:
    """Four corners at once: e of the speed before, no turn, the impulse of the whole mass."""
    scene = on_ground(shapes.box(0.3, 0.2, 0.1), 0.1, velocity=(0, 0, -1.0))
    scene.friction(mu=0.5, restitution=0.6)
    impact = impact_at_start(scene).solve(law)
    assert impact is not None
    np.testing.assert_allclose(impact.velocity, [0, 0, 0.6, 0, 0, 0], atol=1e-9)
    assert np.sum(impact.impulse[:, 0]) == pytest.approx(2.0 * 1.6, rel=1e-9)
    assert impact.gain == pytest.approx(-(1 - 0.36), rel=1e-9)


def test_friction_obeys_coulombs_law_for_the_whole_impulse() -> None:
    """A sliding sphere that strikes: p_t = mu p_n against the slip after."""
    scene = on_ground(shapes.sphere(0.1), 0.1, velocity=(5.0, 0, -1.0))
    scene.friction(mu=0.2, restitution=0.5)
    impact = impact_at_start(scene).solve("newton")
    assert impact is not None
    p_n = 2.0 * 1.5
    assert impact.impulse[0, 0] == pytest.approx(p_n, rel=1e-12)
    assert impact.velocity[0] == pytest.approx(5.0 - 0.2 * p_n / 2.0, rel=1e-12)


def test_decompression_of_one_contact() -> None:
    """At least the given impulse; more only where the contact would close; friction within its disc."""
    W = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 1.5]])
    u = np.array([[0.0, 0.4, -0.2]])
    for least, mu in ((1.0, 0.1), (1.0, 5.0), (0.0, 0.3)):
        p, change = decompression(W, u, np.array([least]), np.array([mu]), np.ones((1, 2)), 1.0)
        after = u[0] + W @ p
        assert change < 1e-12
        assert p[0] >= least - 1e-12
        assert after[0] >= -1e-12
        assert (p[0] - least) * after[0] == pytest.approx(0.0, abs=1e-12)
        assert np.hypot(*p[1:]) <= mu * p[0] + 1e-12
        np.testing.assert_allclose(p[1:] * np.hypot(*after[1:]), -mu * p[0] * after[1:], atol=1e-9)


@pytest.mark.parametrize(("mu", "spin"), [(0.5, (0.3, 3, 0.3)), (0.5, (0, 2, 0)), (0.0, (1, 2, 3))])
def test_rounds_find_the_solution_of_newtons_method(mu: float, spin: tuple[float, ...]) -> None:
    """Sliding, rolling and frictionless: stage 1 by rounds is that of the equations, to rounding."""
    scene = on_ground(shapes.ellipsoid(0.5, 0.4, 0.3), 0.3, velocity=(0.6, 0.2, 0), angular_velocity=spin)
    scene.friction(mu=mu)
    model, h = Model(scene), 0.01
    state = model.initial_state()
    points = touching_points(model, state, 0, np.zeros(2))
    whole = EventStepper(model, tolerance=1e-13).solve(state, h, [0])
    assert isinstance(whole, Solve)
    found = [points.chosen(points.closed)]
    rounds = position_rounds(model, state, h, h / 2 * model.loads(0.0), found)
    assert rounds is not None
    np.testing.assert_allclose(rounds.nu, whole.half, atol=1e-10)
