"""Residuals and energies of the steps are computed when they are asked for, once, and only what is new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from failing_steps import fail_steps

from implicit_geom import Scene, SceneError, Trajectory, shapes, simulate
from implicit_geom.experiments.fuzz.saved_runs import without_hash
from implicit_geom.model.model import Model
from implicit_geom.model.solve_arrays import ASSESSED, KNOWN
from implicit_geom.run.record import assessment
from implicit_geom.run.record.step_log import fields
from implicit_geom.scene.options import IMPLICIT


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many solves each call of the certificate was given."""
    numbers: list[int] = []
    compute = assessment.residuals

    def counted(model, initial, solves, stepper):
        numbers.append(len(solves))
        return compute(model, initial, solves, stepper)

    monkeypatch.setattr(assessment, "residuals", counted)
    return numbers


def complete(table: np.ndarray) -> bool:
    return not any(np.any(np.isnan(table[name])) for name in ASSESSED)


def rows_bytes(table: np.ndarray) -> list[bytes]:
    return [table[name].tobytes() for name in table.dtype.names or () if name != "wall_time"]


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_steps_are_computed_when_read(stepper: str, eggs: Scene, checked: list[int], tmp_path: Path) -> None:
    """Motion, times and contacts leave them alone; `steps`, `ledger` and `save` compute them once."""

    def ran() -> Trajectory:
        return simulate(eggs, duration=0.1, step=0.01, stepper=stepper, progress=False)

    run = ran()
    assert len(run.time) == len(run["low"].position) == len(run.energy) == 11
    assert run.final.time == run.time[-1]
    assert len(run.good_steps) == 10
    assert run.good_steps["iterations"].min() > 0
    assert run.contacts["time"].max() <= 0.1
    assert run.max_penetration < 1e-9
    assert not run.failed
    assert checked == []
    assert complete(run.steps)
    assert max(run.steps[name].max() for name in ("dynamics", "gap", "complementarity", "friction")) < 1e-9
    assert checked == [len(run.solves)]
    assert run.steps is run.steps
    assert np.array_equal(run.ledger["work"], run.steps["work_energy"])
    assert "ledger" in run.summary()
    assert checked == [len(run.solves)]
    for look in (lambda r: r.ledger, lambda r: r.summary(), lambda r: r.save(tmp_path / "run.h5")):
        look(ran())
    assert len(checked) == 4
    back = Trajectory.load(tmp_path / "run.h5")
    assert rows_bytes(back.steps) == rows_bytes(run.steps)
    assert len(checked) == 4


def test_good_steps_have_no_column_that_is_not_known() -> None:
    """A residual cannot be read from `good_steps` as a number that was never computed."""
    scene = Scene()
    scene.add("body", shapes.sphere(0.1), mass=1.0)
    run = simulate(scene, duration=0.02, step=0.01, progress=False)
    names = run.good_steps.dtype.names or ()
    assert not set(names) & set(ASSESSED)
    assert set(names) | set(ASSESSED) == set(run.steps.dtype.names or ())


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_a_step_gathers_its_solves(stepper: str, bullet: Scene) -> None:
    """A residual is the largest over a step's solves, an energy the sum; whatever is computed at once."""
    run = simulate(bullet, duration=0.06, step=0.01, stepper=stepper, progress=False)
    solves, model = run.solves, assessment.Model(run.scene)
    assert len(solves) > len(run.good_steps)
    found = assessment.residuals(model, run.initial, solves)
    booked = assessment.entries(model, run.initial, solves)
    for i, row in enumerate(run.steps):
        own = solves.table["step"] == i
        for name, values in found.items():
            assert row[name] == values[own].max(), name
        for name in ("work", "friction", "impact", "remainder"):
            assert row[f"{name}_energy"] == pytest.approx(booked[name][own].sum(), rel=1e-14, abs=1e-18), name


@pytest.mark.parametrize("block", [1, 7])
def test_blocks_leave_the_bits_alone(block: int, eggs: Scene, checked: list[int]) -> None:
    """However many solves are computed at once, the table is the same to the last bit."""
    run = simulate(eggs, duration=0.2, step=0.01, progress=False)
    model, stepper = Model(run.scene, run.options.friction_residual), run.options.switches
    rows = assessment.assess(
        model, run.initial, run.log, len(run.steps), stepper=stepper, block=block * len(run.names)
    )
    assert checked[0] == len(run.solves) > block
    assert max(checked[1:]) == block
    assert sum(checked[1:]) == len(run.solves)
    assert rows_bytes(rows) == rows_bytes(fields(run.steps, KNOWN))


@pytest.mark.parametrize("looked", [True, False])
@pytest.mark.parametrize("stepper", IMPLICIT)
def test_continued_run_computes_what_is_new(
    stepper: str, looked: bool, eggs: Scene, checked: list[int]
) -> None:
    """A first part whose steps are known is not computed again, one that nobody looked at is left alone."""
    whole = simulate(eggs, duration=0.3, step=0.01, stepper=stepper, progress=False)
    part = simulate(eggs, duration=0.2, step=0.01, stepper=stepper, progress=False)
    assert not looked or complete(part.steps)
    checked.clear()
    continued = part.resume(duration=0.1)
    assert checked == []
    assert rows_bytes(continued.steps) == rows_bytes(whole.steps)
    assert checked[0] == len(continued.solves) - (len(part.solves) if looked else 0)


def test_first_part_belongs_to_its_own_scene(disc: Callable[[], Scene]) -> None:
    """A run continued with other friction and loads: its first rows are those of their own scene."""
    part, alone = (simulate(disc(), duration=0.2, step=0.01, progress=False) for _ in range(2))
    scene = disc()
    scene.friction(mu=0.1)
    scene.applied("disc", force=(2.0, 0.0))
    continued = part.resume(duration=0.1, scene=scene)
    assert rows_bytes(continued.steps[:20]) == rows_bytes(alone.steps)
    assert complete(continued.steps)
    assert max(continued.steps[name].max() for name in ("dynamics", "friction")) < 1e-9
    assert np.all(continued.steps["work_energy"][20:] < 0)
    assert np.all(continued.steps["work_energy"][:20] == 0)


def test_failed_step_keeps_nan(eggs: Scene, monkeypatch: pytest.MonkeyPatch, checked: list[int]) -> None:
    """The step that failed has no residuals; all others have, also in the run that continues."""
    with monkeypatch.context() as patch:
        fail_steps(patch, 0.1)
        run = simulate(eggs, duration=0.2, step=0.01, on_failure="record", progress=False)
    assert complete(run.steps[:-1])
    assert all(np.isnan(run.steps[name][-1]) for name in ASSESSED)
    checked.clear()
    continued = run.resume(duration=0.1)
    assert len(continued.steps) == 20
    assert complete(continued.steps)
    assert checked == [len(continued.solves) - len(run.solves)]


def test_anisotropy_without_friction_is_checked() -> None:
    """Where mu = 0, e_t != e_o needs no direction, and the steps are checked like any other."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("body", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1, 0, 0))
    scene.friction(mu=0.0, e_o=0.5)
    run = simulate(scene, duration=0.05, step=0.01, progress=False)
    assert len(run.contacts) == 5
    assert run.steps["friction"].max() < 1e-12


def test_older_files_are_refused(disc: Callable[[], Scene], tmp_path: Path) -> None:
    """A run of the format before, which has one contact a pair, is refused in one line."""
    path = tmp_path / "run.h5"
    simulate(disc(), duration=0.02, step=0.01, progress=False).save(path)
    path.write_bytes(without_hash(path.read_bytes()))
    with h5py.File(path, "a") as file:
        assert file.attrs["format_version"] == 5
        assert "feature" in file["contacts"]
        file.attrs["format_version"] = 3
    with pytest.raises(SceneError, match="written by an older version; run the scene again"):
        Trajectory.load(path)
