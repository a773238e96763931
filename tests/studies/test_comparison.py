"""`compare` and `advise`: errors against a reference that knows its own, and the cheapest stepper."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing_steps import fail_steps

from implicit_geom import (
    Scene,
    SceneError,
    SimulationError,
    Stepper,
    Trajectory,
    advise,
    compare,
    shapes,
    simulate,
)
from implicit_geom.model.records import Attempt
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.studies.advice import Advice, Trial
from implicit_geom.studies.reference_run import Reference, best_run

OPTIONS: dict[str, Any] = {"duration": 0.2, "step": 0.01, "progress": False}


@pytest.fixture
def egg() -> Scene:
    """An egg that rocks on a plane without slip."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    spin = {"velocity": (0.3, 0, 0), "angular_velocity": (0, 1.0, 0)}
    scene.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.3), **spin)
    scene.friction(mu=0.8)
    return scene


@pytest.fixture
def ball() -> Scene:
    """A ball that lands after 0.1 s."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    height = 0.1 + 9.81 * 0.103**2 / 2
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, height))
    return scene


def test_order_shows_in_the_table(egg: Scene) -> None:
    """The better the stepper, the smaller both errors; the reference's own error is far below them."""
    found = compare(egg, steppers=["implicit-euler", "implicit-rattle", "implicit-rattle-4"], **OPTIONS)
    for column in ("energy_error", "position_error"):
        euler, rattle, rattle4 = found.table[column]
        assert euler > 20 * rattle > 400 * rattle4
        assert getattr(found.reference, column) < rattle4 / 20
    assert found.table["failed"].tolist() == [0, 0, 0]
    assert found.table["steps"].tolist() == [20, 20, 20]
    assert found.table["penetration"].max() < 1e-10
    assert "implicit-rattle-4 at h = 0.000625 s" in str(found)


def test_the_reference_knows_its_own_error(egg: Scene) -> None:
    """Half the step again moves it by less than it claims to be uncertain by."""
    reference = best_run(egg, duration=0.2, step=0.08)
    finer = simulate(egg, duration=0.2, step=0.0025, stepper="implicit-rattle-4", progress=False)
    apart = Reference(finer, "").errors(reference.run)
    assert 0 < apart.energy.max() < reference.energy_error
    assert 0 < apart.position.max() < reference.position_error


def test_a_late_impact_is_no_error_of_all_its_energy(ball: Scene) -> None:
    """A landing that a long step moves by a part of the step costs energy to first order only."""
    found = compare(ball, steppers=["implicit-euler"], **OPTIONS)
    error = found.table["energy_error"][0]
    late = found.reference.errors(found.found["implicit-euler"].run)
    assert found.reference.run.energy[0] - found.reference.run.energy[-1] > 0.3 * found.reference.energy
    assert error == late.energy.max() < 0.15


def test_a_given_reference(egg: Scene) -> None:
    """A run of the user's takes the place of the reference; one without the times needed is refused."""
    own = simulate(egg, duration=0.2, step=0.005, stepper="implicit-rattle-4", progress=False)
    found = compare(egg, steppers=["implicit-rattle"], reference=own, **OPTIONS)
    assert np.isnan(found.reference.energy_error)
    assert found.reference.run is own
    odd = simulate(egg, duration=0.2, step=0.007, progress=False)
    with pytest.raises(SceneError, match=r"no state at t = 0\.01 s"):
        compare(egg, steppers=["implicit-rattle"], reference=odd, **OPTIONS)
    short = simulate(egg, duration=0.1, step=0.01, progress=False)
    with pytest.raises(SceneError, match="last as long"):
        compare(egg, steppers=["implicit-rattle"], reference=short, **OPTIONS)


def test_failures_are_rows(egg: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stepper that fails, or refuses the scene, says so; the others are not touched; files are written."""
    solve = EulerStepper.step

    def step(self: EulerStepper, state, h: float) -> Attempt:
        if type(self) is EulerStepper and state.time > 0.095:
            return Attempt([], "no luck", [[1.0]])
        return solve(self, state, h)

    reference = simulate(egg, duration=0.2, step=0.005, progress=False)
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    monkeypatch.setattr(EulerStepper, "step", step)
    found = compare(egg, steppers=["implicit-euler", "implicit-rattle"], reference=reference, **OPTIONS)
    assert found.table["failed"].tolist() == [1, 0]
    assert found.table["end_time"].tolist() == pytest.approx([0.1, 0.2])
    assert "no luck" in found.table["reason"][0]
    assert "no luck" in str(found)
    assert found.finished == ["implicit-rattle"]
    written = found.save(tmp_path / "out")
    assert [path.name for path in written] == ["comparison.csv", "comparison.png"]
    with written[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["stepper"] for row in rows] == ["implicit-euler", "implicit-rattle"]
    assert written[1].stat().st_size > 10_000


def test_no_reference_is_an_error(egg: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no stepper gets to the end there is nothing to measure against."""
    fail_steps(monkeypatch)
    with pytest.raises(SimulationError, match="no stepper gives a reference"):
        compare(egg, steppers=["implicit-rattle"], **OPTIONS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"steppers": []}, "at least one"),
        ({"steppers": ["implicit-eular"]}, "did you mean 'implicit-euler'"),
        ({"reference": 3}, "must be a run"),
        ({"step": -1.0}, "step = -"),
        ({"duration": None}, "duration = None"),
        ({"scene": 3}, "scene = 3"),
    ],
)
def test_bad_input(changes: dict[str, Any], words: str, egg: Scene) -> None:
    """Refused in one line."""
    with pytest.raises(SceneError) as caught:
        compare(**{"scene": egg, "steppers": ["implicit-euler"], **OPTIONS, **changes})
    assert words in str(caught.value)


def test_advice_meets_the_tolerance_and_nothing_cheaper_does(egg: Scene) -> None:
    """A second-order stepper beats a first-order one; the chosen step is the longest of its stepper's."""
    tried = ["implicit-euler", "implicit-rattle"]
    advice = advise(egg, duration=0.4, step=0.01, tolerance=1e-3, trial=0.5, steppers=tried, progress=False)
    best = advice.choice
    assert best is not None
    assert str(best.stepper.name) == "implicit-rattle"
    assert best.error <= 1e-3
    longer = [t for t in advice.trials if t.stepper == best.stepper and t.step > best.step]
    assert not any(advice.meets(t) for t in longer)
    assert advice.trial_time == pytest.approx(0.24)  # whole longest steps
    run = simulate(egg, duration=0.4, step=best.step, stepper=best.stepper, progress=False)
    whole = best_run(egg, duration=0.4, step=best.step)
    errors = whole.errors(run)
    assert errors.energy.max() < 1e-3
    assert errors.position.max() / whole.length < 1e-3
    assert "judged on the first 0.24 s of 0.4 s" in str(advice)


def test_a_scene_file_brings_duration_and_step(egg: Scene, tmp_path: Path) -> None:
    """compare and advise take a scene file as it is; what is given goes before."""
    (tmp_path / "ball.toml").write_text(
        "[bodies.ball]\nshape = { kind = 'sphere', r = 0.1 }\nmass = 1\n"
        "[simulation]\nduration = 0.2\nstep = 0.01\nstepper = 'implicit-euler'"
    )
    found = compare(tmp_path / "ball.toml", steppers=["implicit-rattle"], step=0.02, progress=False)
    assert found.table["steps"].tolist() == [10]
    advice = advise(tmp_path / "ball.toml", steppers=["implicit-rattle"], progress=False)
    assert advice.duration == 0.2
    assert advice.choice is not None


def test_no_advice_where_none_is_good_enough(egg: Scene) -> None:
    """A tolerance that no step of the ladder meets: no choice, and the text says so."""
    asked: dict[str, Any] = {"duration": 0.2, "step": 0.01, "tolerance": 1e-9, "progress": False}
    advice = advise(egg, steppers=["implicit-euler"], **asked)
    assert advice.choice is None
    assert "no trial meets the tolerance" in str(advice)


def test_cheapest_then_fewest_iterations(egg: Scene) -> None:
    """Times within a quarter of each other are equal; the reference's uncertainty counts."""
    run: Trajectory = simulate(egg, duration=0.1, step=0.01, progress=False)
    stepper = Stepper()
    trials = (
        Trial(stepper, 0.01, 1e-4, 1e-4, 1.0, 500.0),
        Trial(stepper, 0.02, 1e-4, 1e-4, 1.2, 300.0),
        Trial(stepper, 0.04, 1e-4, 1e-4, 1.3, 100.0),
        Trial(stepper, 0.08, 1e-2, 1e-4, 0.1, 100.0),
        Trial(stepper, 0.16, 1e-4, 1e-4, 0.1, 100.0, reason="failed"),
    )
    advice = Advice(trials, 1e-3, 1.0, 1.0, Reference(run, "", 1e-5, 1e-5))
    assert advice.choice is trials[1]
    vague = Advice(trials, 1e-3, 1.0, 1.0, Reference(run, "", 1e-3, 1e-5))
    assert vague.choice is None


def test_advice_refuses_bad_numbers(egg: Scene) -> None:
    for bad in ({"tolerance": -1.0}, {"tolerance": 2.0}, {"trial": 1.5}):
        with pytest.raises(SceneError, match=next(iter(bad))):
            advise(egg, duration=0.2, step=0.01, **bad)


def test_steppers_that_do_not_suit_are_left_out_or_refused(egg: Scene) -> None:
    """By default they are named below the table; where none is left the scene is refused."""
    found = compare(egg, duration=0.05, step=0.01)
    assert list(found.left_out) == ["nguyen-trinkle"]
    assert "nguyen-trinkle" not in found.found
    assert "left out: nguyen-trinkle: " in str(found)
    with pytest.raises(SceneError, match="nguyen-trinkle' is planar"):
        compare(egg, duration=0.05, step=0.01, steppers=["nguyen-trinkle"])


def test_advice_says_where_nothing_touched() -> None:
    """A trial that ends before the impact says nothing of it; a tolerance below the reference is named."""
    scene = Scene()
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 3))
    advice = advise(scene, duration=2.0, step=0.01, steppers=["implicit-rattle"])
    assert "nothing touched" in str(advice)
    short = advise(scene, duration=0.2, step=0.01, steppers=["implicit-rattle"], tolerance=1e-300)
    assert short.choice is None
    assert "no trial can be judged to 1e-300" in str(short)
