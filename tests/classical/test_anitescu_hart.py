"""`anitescu-hart` as a stepper: the step of Stewart and Trinkle and its relaxations keep their own laws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, StepFailed, Stepper, Trajectory, shapes, simulate
from implicit_geom.experiments.piles import pile


def egg(mu: float) -> Scene:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "egg",
        shapes.ellipsoid(0.5, 0.4, 0.3),
        mass=1.0,
        position=(0, 0, 0.32),
        orientation=(0.99, 0.05, 0.1, 0),
        velocity=(1.0, 0.3, 0),
        angular_velocity=(0.5, 2.0, 0.3),
    )
    scene.friction(mu=mu)
    return scene


def run(scene: Scene, model: str, **options: object) -> Trajectory:
    stepper = Stepper.named("anitescu-hart", relaxation=model, **options)
    return simulate(scene, duration=0.3, step=0.01, stepper=stepper, progress=False)


@pytest.mark.parametrize("model", ["LCP0", "LCP1"])
def test_in_space_it_is_the_step_of_stewart_and_trinkle(model: str) -> None:
    """Same gap, wrench and pyramid, another solver: the same motion."""
    switches = Stepper(gap="linearised", wrench="start", friction="pyramid")
    other = simulate(egg(0.2), duration=0.3, step=0.01, stepper=switches, progress=False)
    mine = run(egg(0.2), model, relaxation_tolerance=1e-11)
    np.testing.assert_allclose(mine["egg"].position, other["egg"].position, atol=1e-8)
    np.testing.assert_allclose(mine["egg"].orientation, other["egg"].orientation, atol=1e-7)


@pytest.mark.parametrize("model", ["LCP0", "LCP1", "LCP2"])
def test_its_own_laws_hold(model: str) -> None:
    """Recomputed from states and impulses; LCP2 may open a pressing contact by mu lambda, no more."""
    found = run(egg(0.2), model, relaxation_tolerance=1e-9).steps
    assert np.max(found["dynamics"]) < 1e-9
    assert np.max(found["complementarity"]) < 1e-8
    assert np.max(found["friction"]) < 1e-8
    assert np.max(found["residual"]) <= 1e-10


@pytest.mark.parametrize("model", ["LCP0", "LCP1", "LCP2"])
def test_flight_without_contacts(model: str) -> None:
    """A body that nothing is near falls as every stepper of first order lets it fall."""
    scene = Scene()
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 9), angular_velocity=(1, 2, 3)
    )
    other = simulate(scene, duration=0.3, step=0.01, stepper="implicit-euler", progress=False)
    mine = run(scene, model)
    np.testing.assert_allclose(mine["egg"].position, other["egg"].position, atol=1e-12)
    np.testing.assert_allclose(mine["egg"].orientation, other["egg"].orientation, atol=1e-9)


def test_one_iteration_is_off_by_mu_lambda_in_exact_laws() -> None:
    """The certificate of LCP2's run under LCP0's laws fails by what AH02 calls its error."""
    mine = run(egg(0.2), "LCP2")
    opened = mine.contacts["gap"][mine.contacts["p_n"] > 1e-6]
    slip = mine.contacts["slip_speed"][mine.contacts["p_n"] > 1e-6]
    assert opened.max() > 0.5 * 0.2 * 0.01 * slip.max()


def test_a_fixed_point_that_is_not_reached_fails_loudly() -> None:
    scene = pile(4, 0.2)
    stepper = Stepper.named("anitescu-hart", relaxation="LCP1", relaxation_limit=2)
    with pytest.raises(StepFailed, match="not converged in 2 rounds"):
        simulate(scene, duration=0.1, step=0.05, stepper=stepper, progress=False)
    kept = simulate(scene, duration=0.1, step=0.05, stepper=stepper, on_failure="record", progress=False)
    assert kept.failed
    assert kept.steps["status"][-1] == "failed"


def test_a_saved_run_continues_as_if_unbroken(tmp_path: Path) -> None:
    stepper = Stepper.named("anitescu-hart", relaxation="LCP1")
    whole = simulate(pile(3, 0.1), duration=0.4, step=0.05, stepper=stepper, progress=False)
    simulate(pile(3, 0.1), duration=0.2, step=0.05, stepper=stepper, progress=False).save(tmp_path / "a.h5")
    again = Trajectory.load(tmp_path / "a.h5").resume(duration=0.2)
    assert again.options.switches == stepper
    np.testing.assert_array_equal(again["d2-0"].position, whole["d2-0"].position)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"relaxation": "LCP3"}, "LCP2"),
        ({"relaxation_limit": 0}, "stepper.relaxation_limit = 0 must be a whole number"),
        ({"relaxation_tolerance": -1.0}, "relaxation_tolerance"),
        ({"gap": "end"}, "does not go with anitescu-hart"),
        ({"integrator": "rattle"}, "integrator"),
    ],
)
def test_options_that_make_no_sense_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(SceneError, match=message):
        Stepper.named("anitescu-hart", **fields)


def test_relaxation_is_for_anitescu_hart_only() -> None:
    with pytest.raises(SceneError, match="for anitescu-hart only"):
        Stepper.named("stewart-trinkle", relaxation="LCP1")
