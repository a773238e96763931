"""Steps that the guard of `implicit-rattle` has composed of five, in compiled code and without."""

from __future__ import annotations

import numpy as np
import pytest
from by_stages import simulate
from compiled_scenes import Build, on_ground

from implicit_geom import Scene, shapes
from implicit_geom.compiled import runner
from implicit_geom.experiments.benchmarks.agreement import BOUND, compared
from implicit_geom.experiments.benchmarks.timing import uncompiled
from implicit_geom.experiments.ellipsoid_rolling import scene as rolling
from implicit_geom.machine.availability import available
from implicit_geom.rotation import unit
from implicit_geom.run.batch import simulate_batch

pytestmark = pytest.mark.skipif(not available(), reason="compiled code is not at hand")


def blunt() -> Scene:
    """A body without a closed form that rolls."""
    shape = shapes.superellipsoid(0.5, 0.4, 0.3, p=2.2)
    return on_ground(shape, position=(0, 0, 0.407), orientation=unit((1, 0.6, 0.2, 0)), friction={"mu": 2.0})


def flat_one() -> Scene:
    """In the plane."""
    shape = shapes.ellipse(0.6, 0.3)
    return on_ground(shape, position=(0, 0.45), orientation=0.6, friction={"mu": 2.0})


CASES: dict[str, tuple[Build, float]] = {
    "alone": (rolling, 0.1),
    "one contact, in the plane": (flat_one, 0.05),
    "any scene": (blunt, 0.05),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_composed_step_is_the_steppers_own(name: str) -> None:
    """Compiled code composes the same steps with the same result, and records the same parts."""
    build, h = CASES[name]
    options = {"duration": 2.0, "step": h, "progress": False}
    with compared() as found:
        ours = simulate(build(), **options)
    composed = ours.steps["guard"] == "composed"
    assert np.sum(composed) >= 3
    assert found.own <= 0.1 * len(composed)
    assert found.failed == 0
    assert found.position < BOUND
    assert found.velocity < BOUND
    with uncompiled():
        theirs = simulate(build(), **options)
    for column in ("guard", "form", "status", "solves", "contacts"):
        assert ours.steps[column].tolist() == theirs.steps[column].tolist()
    np.testing.assert_allclose(ours.solves.table["h"], theirs.solves.table["h"], rtol=0, atol=0)
    np.testing.assert_allclose(ours.solves.table["time"], theirs.solves.table["time"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(ours.contacts["p_n"], theirs.contacts["p_n"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours.states.x, theirs.states.x, rtol=0, atol=1e-9)


def test_the_room_for_parts_may_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call whose rows are full ends early, and the next goes on."""
    whole = simulate(rolling(), duration=2.0, step=0.1, progress=False)
    monkeypatch.setattr(runner, "LONGEST", 16)
    parts = simulate(rolling(), duration=2.0, step=0.1, progress=False)
    assert np.sum(whole.steps["solves"]) > 16 + 4
    np.testing.assert_array_equal(whole.states.x, parts.states.x)


def test_lanes_compose_each_its_own_steps() -> None:
    """In a batch some lanes compose a step that others take at once; each is as if alone."""
    spins = np.zeros((8, 3))
    spins[:, 2] = np.linspace(-2, 2, 8)
    options = {"duration": 1.5, "step": 0.08, "progress": False}
    batch = simulate_batch(
        rolling(), {"bodies.body.angular_velocity": spins}, threads=1, impacts="stages", **options
    )
    guards = []
    for i, spin in enumerate(spins):
        scene = rolling()
        scene.bodies["body"].angular_velocity[:] = spin
        run = simulate(scene, **options)
        guards.append(run.steps["guard"] == "composed")
        np.testing.assert_allclose(batch["body"].position[i], run["body"].position, rtol=0, atol=1e-9)
    assert np.any(np.any(guards, axis=0) & ~np.all(guards, axis=0))
    assert np.mean(batch.solved) < 3
