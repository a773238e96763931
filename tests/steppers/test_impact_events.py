"""Impacts as events: the law of the whole impulse at the instant, whatever the phase of the step."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.rotation import unit

G = 9.81


def rocking(tilt: float, ratio: float = 0.4) -> Scene:
    """A block of half-height 1 m at rest on its left corner."""
    turn = np.array([[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]])
    scene = Scene(dim=2, gravity=(0, -G))
    scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    scene.add("block", shapes.rectangle(ratio, 1), mass=1.0, position=turn @ (ratio, 1), orientation=tilt)
    scene.friction(mu=3.0)
    return scene


def dropped(shape: shapes.Shape, e: float, mu: float, **start: object) -> Scene:
    """A body over the ground."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("body", shape, mass=1.0, **start)
    scene.friction(mu=mu, restitution=e)
    return scene


def run_of(scene: Scene, duration: float, h: float, **options: object) -> Trajectory:
    return simulate(scene, duration=duration, step=h, impacts="events", progress=False, **options)


@pytest.mark.parametrize("stepper", ["implicit-rattle", "implicit-rattle-4"])
def test_rocking_block_keeps_housners_share(stepper: str) -> None:
    """(1 - 3/2 sin^2 alpha)^2 of the energy, to the error of the flights, at any phase of the step."""
    exact = (1 - 1.5 * np.sin(np.arctan(0.4)) ** 2) ** 2
    for tilt in (0.02, 0.0203, 0.0207):
        energy = run_of(rocking(tilt), 0.2, 0.005, stepper=stepper).energy - G
        assert energy[-1] / energy[0] == pytest.approx(exact, rel=1e-4)


def test_impacts_of_a_box_without_loss_lose_nothing() -> None:
    """e = 1 without friction: also where a second corner strikes while the first parts."""
    scene = dropped(
        shapes.box(0.3, 0.2, 0.1), 1.0, 0.0, position=(0, 0, 0.6), orientation=(0.9, 0.3, 0.2, 0.1),
        angular_velocity=(1, 2, 0.5),
    )  # fmt: skip
    run = run_of(scene, 1.0, 0.01)
    assert len(np.unique(run.impacts["time"])) >= 2
    assert run.energy[-1] == pytest.approx(run.energy[0], rel=1e-4)
    assert np.max(np.abs(run.impacts["loss"])) < 1e-9 * run.energy[0]
    assert run.max_penetration < 1e-9


@pytest.mark.parametrize("law", ["newton", "poisson", "energetic"])
def test_a_ball_bounces_by_every_law(law: str) -> None:
    """Without friction the three laws are one: the speed after is e times that before."""
    run = run_of(dropped(shapes.sphere(0.1), 0.8, 0.3, position=(0, 0, 0.5)), 0.4, 0.01, impact_law=law)
    first = run.impacts[0]
    assert first["approach"] == pytest.approx(-np.sqrt(2 * G * 0.4), rel=1e-9)
    assert first["separation"] == pytest.approx(0.8 * np.sqrt(2 * G * 0.4), rel=1e-9)


def test_the_energetic_law_gains_no_energy() -> None:
    """Oblique blows with friction, for which Newton's law gains: it is taken at its word."""
    for law in ("newton", "energetic"):
        least = np.inf
        for seed in range(8):
            rng = np.random.default_rng(seed)
            scene = dropped(
                shapes.ellipsoid(0.05, 0.1, 0.4), 1.0, 0.5, position=(0, 0, 0.6),
                orientation=unit(rng.normal(size=4)), velocity=3 * rng.normal(size=3),
                angular_velocity=5 * rng.normal(size=3),
            )  # fmt: skip
            run = run_of(scene, 0.3, 0.01, impact_law=law)
            least = min(least, float(np.min(run.steps["impact_energy"])) / run.energy[0])
        assert least > -1e-9 if law == "energetic" else least < -1e-4


def test_bystanders_do_not_matter() -> None:
    """A body's motion is the same beside others that it does not touch, to rounding."""

    def egg(scene: Scene) -> Scene:
        scene.add(
            "egg", shapes.ellipsoid(0.2, 0.15, 0.1), mass=0.01, position=(0, 0, 0.4),
            velocity=(1, 0, 0), angular_velocity=(3, 1, 0),
        )  # fmt: skip
        return scene

    alone = dropped(shapes.sphere(0.2), 0.5, 0.3, position=(5, 0, 0.9))
    beside = egg(dropped(shapes.sphere(0.2), 0.5, 0.3, position=(5, 0, 0.9)))
    ball, both = (run_of(scene, 0.6, 0.01)["body"] for scene in (alone, beside))
    np.testing.assert_allclose(both.position, ball.position, atol=1e-11)
    np.testing.assert_allclose(both.velocity, ball.velocity, atol=1e-9)


def test_a_ball_comes_to_rest() -> None:
    """Infinitely many bounces in a finite time: from 1 m with e = 0.5 at 1.3546 s, within a step."""
    run = run_of(dropped(shapes.sphere(0.1), 0.5, 0.0, position=(0, 0, 1.1)), 1.5, 0.01)
    moving = np.abs(run["body"].velocity[:, 2]) > 1e-9
    assert run.time[np.flatnonzero(moving)[-1] + 1] == pytest.approx(1.3546, abs=0.01)
    assert run["body"].position[-1, 2] == pytest.approx(0.1, abs=1e-9)


def test_runs_certify() -> None:
    """Gap, restitution, Coulomb's law of whole impulses and momentum, from poses and shapes."""
    scene = dropped(shapes.ellipsoid(0.3, 0.2, 0.1), 0.6, 0.4, position=(0, 0, 0.5), velocity=(1, 0, 0))
    assert run_of(scene, 0.6, 0.01).certify().ok


@pytest.mark.parametrize("native", ["0", "1"])
def test_too_many_impacts_are_taken_together(native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After max_impacts the rest of a step is not cut, and the step says so: the ball comes to rest."""
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", native)
    scene = dropped(shapes.sphere(0.1), 0.8, 0.0, position=(0, 0, 0.101))
    run = run_of(scene, 0.5, 0.05, max_impacts=1)
    assert np.max(run.steps["impacts"]) <= 2
    if native == "1":
        assert any("many impacts in a step" in why for why in run.steps["reason"])
    assert run["body"].position[-1, 2] == pytest.approx(0.1, abs=1e-9)
    assert np.linalg.norm(run["body"].velocity[-1]) < 1e-9
