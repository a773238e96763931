"""`simulate(..., record=n)` keeps every n-th step and the last, accounts for all; long runs fit in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing_steps import fail_steps
from same_runs import assert_identical

from implicit_geom import Scene, SceneError, StepFailed, Trajectory, read_scene, shapes, simulate
from implicit_geom.model.solve_arrays import RESIDUALS
from implicit_geom.scene.options import IMPLICIT

STEPPERS = (*IMPLICIT, "nguyen-trinkle")  # the last one takes planar polygons


def bricks() -> Scene:
    """Two planar bricks that fall on the ground and on each other."""
    scene = Scene(dim=2)
    scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    scene.add("low", shapes.rectangle(0.3, 0.1), mass=1.0, position=(0, 0.15), velocity=(1, 0))
    scene.add("high", shapes.rectangle(0.2, 0.1), mass=1.0, position=(0.1, 0.5), orientation=0.2)
    scene.friction(mu=0.3)
    return scene


def ran(scene: Scene, steps: int, **options: Any) -> Trajectory:
    return simulate(scene, duration=steps / 64, step=1 / 64, progress=False, **options)


@pytest.mark.parametrize("every", [1, 3, 7, 40, 1000])
@pytest.mark.parametrize("stepper", STEPPERS)
def test_rows_are_those_of_the_whole_run(stepper: str, every: int, eggs: Scene) -> None:
    """Times, states, contacts and steps of every n-th, to the last bit; residuals and energies of all."""
    eggs = bricks() if stepper == "nguyen-trinkle" else eggs
    whole, thin = ran(eggs, 40, stepper=stepper), ran(eggs, 40, stepper=stepper, record=every)
    kept = [k for k in range(1, 41) if k % every == 0 or k == 40]
    rows = [0, *kept]
    assert thin.time.tobytes() == whole.time[rows].tobytes()
    for name in thin.names:
        for part in ("position", "orientation", "velocity", "angular_velocity"):
            ours, theirs = getattr(thin[name], part), getattr(whole[name], part)[rows]
            assert ours.tobytes() == theirs.tobytes()
    assert thin.energy.tobytes() == whole.energy[rows].tobytes()
    assert thin.contacts.tobytes() == whole.contacts[np.isin(whole.contacts["time"], thin.time)].tobytes()
    steps, own = thin.steps, whole.steps[np.array(kept) - 1]
    for name in ("time", "step", "iterations", "status", "form", "guard", "solves", "contacts", "reason"):
        assert np.array_equal(steps[name], own[name]), name
    parts = np.split(whole.steps, kept[:-1])
    for name in RESIDUALS:
        assert steps[name].tolist() == [part[name].max() for part in parts]
    for name in ("work_energy", "friction_energy", "impact_energy", "remainder_energy"):
        np.testing.assert_allclose(steps[name], [part[name].sum() for part in parts], rtol=1e-12, atol=1e-15)
    assert thin.max_penetration == whole.max_penetration
    assert len(thin.log) == steps["solves"].sum()


def test_ledger_balances_between_rows(eggs: Scene) -> None:
    """kinetic + potential changes from row to row by what the ledger says."""
    ledger = ran(eggs, 50, record=8).ledger
    assert len(ledger) == 7
    energy = ledger["kinetic"] + ledger["potential"]
    booked = ledger["work"] - ledger["friction"] - ledger["impact"] + ledger["remainder"]
    np.testing.assert_allclose(np.diff(energy), booked[1:], rtol=0, atol=1e-12)
    assert ledger["impact"].sum() > 0.1


@pytest.mark.parametrize("breaks", [(20, 20), (13, 27), (1, 2, 37)])
@pytest.mark.parametrize("stepper", STEPPERS)
def test_continued_equals_unbroken(
    stepper: str, breaks: tuple[int, ...], eggs: Scene, tmp_path: Path
) -> None:
    """Saved, loaded and continued at steps that are kept and at ones that are not: the same rows and bits."""
    eggs = bricks() if stepper == "nguyen-trinkle" else eggs
    whole = ran(eggs, 40, stepper=stepper, record=5)
    run = ran(eggs, breaks[0], stepper=stepper, record=5)
    for steps in breaks[1:]:
        run.save(tmp_path / "part.h5")
        run = Trajectory.load(tmp_path / "part.h5").resume(duration=steps / 64)
    assert len(run.time) == 9
    assert_identical(whole, run)


def test_other_numbers_in_the_parts(eggs: Scene) -> None:
    """A run that kept all steps goes on with every fourth, and back again."""
    whole = ran(eggs, 30)
    run = ran(eggs, 10).resume(duration=10 / 64, record=4).resume(duration=10 / 64, record=1)
    assert run.time.tobytes() == whole.time[[*range(11), 12, 16, *range(20, 31)]].tobytes()
    assert run["low"].position[-1].tobytes() == whole["low"].position[-1].tobytes()
    assert not np.any(np.isnan(run.steps["dynamics"]))
    np.testing.assert_allclose(run.ledger["impact"].sum(), whole.ledger["impact"].sum(), rtol=1e-12)


def test_shorter_last_step_and_times(eggs: Scene) -> None:
    """Times stay multiples of the step also where the rows that tell so are not kept."""
    parts = [0.1, 0.025, 0.1]
    runs = []
    for every in (1, 4):
        run = simulate(eggs, duration=parts[0], step=0.01, record=every, progress=False)
        for duration in parts[1:]:
            run = run.resume(duration=duration)
        runs.append(run)
    assert np.all(np.isin(runs[1].time, runs[0].time))
    assert runs[1].time[-1] == runs[0].time[-1]


def test_failed_step_is_kept(eggs: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last good step and the one that failed are there; the run goes on from it."""
    with monkeypatch.context() as patch:
        fail_steps(patch, 13 / 64)
        run = ran(eggs, 20, record=5, on_failure="record")
        with pytest.raises(StepFailed) as raised:
            ran(eggs, 20, record=5)
    assert run.steps["status"].tolist() == ["converged"] * 3 + ["failed"]
    assert run.time.tolist() == [0, 5 / 64, 10 / 64, 13 / 64]
    assert raised.value.run.time.tolist() == run.time.tolist()
    assert "13 steps" in run.summary()
    assert "1 failed" in run.summary()
    assert run.resume(duration=7 / 64).time.tolist() == [k / 64 for k in (0, 5, 10, 15, 20)]


def test_summary_says_what_is_kept(eggs: Scene) -> None:
    text = ran(eggs, 40, record=3).summary()
    assert "in 40 steps: 40 converged" in text
    assert "recorded    14 of them: every 3rd and the last" in text
    assert "recorded" not in ran(eggs, 40).summary()


@pytest.mark.parametrize("value", [0, -3, 2.5, True, "2"])
def test_bad_numbers_are_refused(value: Any, eggs: Scene) -> None:
    with pytest.raises(SceneError, match=r"record = .* must be a whole number above zero"):
        ran(eggs, 4, record=value)


def test_scene_files_take_it(eggs: Scene) -> None:
    from implicit_geom.scene.scene_file import to_dict

    scene, options = read_scene({**to_dict(eggs), "simulation": {"duration": 0.1, "step": 0.01, "record": 5}})
    assert len(simulate(scene, **options, progress=False).time) == 3


MEASURED = """
import json, resource, sys
from implicit_geom import shapes
from implicit_geom import Scene
from implicit_geom import simulate
scene = Scene()
scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
scene.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.3), velocity=(1, 0.2, 0),
          angular_velocity=(0.1, 0.2, 0.5))
scene.friction(mu=0.4)
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def ran(steps):
    return simulate(scene, duration=steps * 1e-3, step=1e-3, record=int(sys.argv[2]), progress=False)
ran(10000).energy
before, steps = used(), int(sys.argv[1])
run = ran(steps)
run.energy, run["egg"].position
print(json.dumps([(used() - before) / steps, len(run.time)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is that of Linux")
@pytest.mark.parametrize(("record", "most"), [(1, 900.0), (1000, 100.0)])
def test_memory_of_a_long_run(record: int, most: float) -> None:
    """One body on a plane: below 1 kB a step, energies and motion included; far less if few are kept."""
    code = [sys.executable, "-c", MEASURED, "150000", str(record)]
    out = subprocess.run(code, capture_output=True, text=True, check=True, timeout=300)
    grown, rows = json.loads(out.stdout)
    assert rows == 150000 // record + 1
    assert grown < most
