"""Impacts in a run: their table, the whole step's impulses, the ledger, islands, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from impact_runs import dropped_ball, dropped_box, two_islands
from solve_loops import each_solve, loop_ledger, loop_residuals

from implicit_geom import SceneError, Trajectory
from implicit_geom.check.certificate import residuals, step_residuals
from implicit_geom.experiments.fuzz.saved_runs import content
from implicit_geom.model.ledger import entries, step_ledger
from implicit_geom.model.model import Model
from implicit_geom.model.records import IMPACT
from implicit_geom.model.solve_arrays import SolveArrays

REFERENCES = Path(__file__).parents[1] / "references"
MADE = [dropped_ball, dropped_box, two_islands]


@pytest.mark.parametrize("mu", [0.0, 0.2, 5.0])
def test_ball(mu: float) -> None:
    """One row: the closed form of a ball on a plane, which slips, or sticks with 2/7 of the slip before."""
    run = dropped_ball(mu=mu, e=0.6)
    (row,) = run.impacts
    fall = 1.0 + 9.81 * 0.0123
    assert row["time"] == pytest.approx(0.0123)
    assert (row["first"], row["second"], row["impact"], row["restitution"]) == ("ground", "ball", 0, 0.6)
    assert row["approach"] == pytest.approx(-fall, rel=1e-12)
    assert row["separation"] == pytest.approx(0.6 * fall, rel=1e-12)
    assert row["p_n"] == pytest.approx(2.0 * 1.6 * fall, rel=1e-12)
    slip = np.hypot(1.0 + 3.0 * 0.1, 0.5 + 2.0 * 0.1)  # (v + w x r along x and y)
    across = min(mu * row["p_n"], 2 / 7 * 2.0 * slip)
    assert np.hypot(row["p_t"], row["p_o"]) == pytest.approx(across, rel=1e-12, abs=1e-15)
    assert row["slip_speed"] == pytest.approx(slip - 3.5 * across / 2.0, abs=1e-12)
    lost = run.energy[0] - run.energy[-1]
    assert row["loss"] == pytest.approx(lost, abs=1e-13)
    assert run.ledger["impact"] == pytest.approx([0, lost, 0], abs=1e-13)
    assert np.all(run.ledger["friction"] == 0)
    assert np.abs(run.ledger["remainder"]).max() < 1e-13


def test_rows_of_steps_and_contacts() -> None:
    """The step with the impact has three solves and is not divided; its contact has the impact's impulses."""
    run = dropped_ball()
    assert run.steps["impacts"].tolist() == [0, 1, 0]
    assert run.steps["solves"].tolist() == [1, 3, 1]
    assert set(run.steps["status"]) == {"converged"}
    (contact,), (impact,) = run.contacts, run.impacts
    assert contact["time"] == pytest.approx(0.02)
    for name in ("point", "normal", "tangent", "binormal", "p_n", "p_t", "p_o", "p_r", "slip_speed"):
        assert np.array_equal(contact[name], impact[name]), name
    assert contact["mode"] == "slide"
    assert list(run.table("impacts"))[:6] == ["impact", "time", "first", "second", "point_x", "point_y"]


@pytest.mark.parametrize("e_r", [0.0, 0.05])
def test_points_of_a_face_become_one(e_r: float) -> None:
    """Four points of a box that lands are four rows of `impacts`, and one contact of the same force."""
    run = dropped_box(spin=3.0, e_r=e_r)
    (contact,), rows = run.contacts, run.impacts
    assert len(rows) == 4
    assert len(set(rows["impact"])) == run.steps["impacts"][0] == run.steps["contacts"][0] == 1
    assert np.count_nonzero(rows["loss"]) == 1
    assert rows["loss"][0] == pytest.approx(run.energy[0] - run.energy[-1], abs=1e-13)

    def wrench(rows: np.ndarray, about: np.ndarray) -> np.ndarray:
        rows = np.atleast_1d(rows)
        names = ("normal", "tangent", "binormal")
        force = sum(rows[f"p_{k}"][:, None] * rows[name] for k, name in zip("nto", names, strict=True))
        moment = np.cross(rows["point"] - about, force) + rows["p_r"][:, None] * rows["normal"]
        return np.sum(np.column_stack([force, moment]), axis=0)

    a = contact["point"]
    np.testing.assert_allclose(a, rows["p_n"] @ rows["point"] / rows["p_n"].sum(), atol=1e-15)
    one, four = wrench(contact, a), wrench(rows, a)
    np.testing.assert_allclose(one[:5], four[:5], atol=1e-14)
    assert abs(four[5]) > 1e-2
    assert contact["p_r"] == pytest.approx(four[5] if e_r else 0.0, abs=1e-14)


def shaken(run: Trajectory) -> SolveArrays:
    """Other velocities and impulses: residuals and remainders are no longer rounding."""
    rng, solves = np.random.default_rng(3), run.solves
    contacts = solves.contacts.copy()
    for name in ("point", "normal", "tangent", "p_n", "p_t", "bounce", "gap"):
        contacts[name] += 1e-2 * rng.standard_normal(contacts[name].shape)
    v = solves.v + 1e-2 * rng.standard_normal(solves.v.shape) * solves.bodies[:, :, None]
    v[1:][~solves.bodies[1:]] = v[:-1][~solves.bodies[1:]]
    return replace(solves, contacts=contacts, v=v)


@pytest.mark.parametrize("make", MADE)
def test_arrays_equal_loops(make: Callable[[], Trajectory]) -> None:
    """Ledger and residuals over all solves, of one solve, and as plain loops agree; changed solves, too."""
    run = make()
    model = Model(run.scene)
    for solves in (run.solves, shaken(run)):
        booked, checked = entries(model, run.initial, solves), residuals(model, run.initial, solves)
        for i, row in enumerate(each_solve(run.initial, solves)):
            for name, value in loop_ledger(model, row).items():
                assert booked[name][i] == pytest.approx(value, abs=1e-11), name
                assert getattr(step_ledger(model, row), name) == pytest.approx(value, abs=1e-11), name
            alone, loop = step_residuals(model, row), loop_residuals(model, row)
            for name in loop:
                assert alone[name] == checked[name][i]
                assert alone[name] == pytest.approx(loop[name], rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("make", MADE)
def test_true_runs_have_no_residuals(make: Callable[[], Trajectory]) -> None:
    """Momentum, gap, impact law and friction of runs put together by hand hold to rounding."""
    run = make()
    for name in ("dynamics", "gap", "complementarity", "friction"):
        assert run.steps[name].max() < 1e-11, name


def test_islands_leave_each_other_alone() -> None:
    """Forces on a body work once, in its own solve; a body moved by another island's solve is found."""
    run = two_islands()
    way = run["high"].position[-1] - run["high"].position[0]
    assert run.ledger["work"][0] == pytest.approx(way @ (1, 20), abs=1e-12)
    assert abs(run.ledger["remainder"][0]) < 1e-12
    assert run.steps["status"][0] == "converged"
    model, solves = Model(run.scene), run.solves
    for part in ("x", "v", "w"):
        changed = getattr(solves, part).copy()
        changed[1:, 2] += 1e-9  # in the impact of the other disc, and kept
        found = residuals(model, run.initial, replace(solves, **{part: changed}))["dynamics"]
        assert np.isinf(found[1]), part
    x = solves.x.copy()
    x[1:, 1] += 1e-9  # a body moves in its own impact
    assert np.isinf(residuals(model, run.initial, replace(solves, x=x))["dynamics"][1])


def test_impacts_of_steps_left_out_are_counted() -> None:
    """With record=n the impacts of all steps are counted, their loss is booked, and those kept are listed."""
    run = dropped_ball(record=3)
    assert run.steps["impacts"].tolist() == [1]
    assert run.ledger["impact"][0] == pytest.approx(dropped_ball().ledger["impact"].sum(), rel=1e-12)
    assert len(run.impacts) == 0


@pytest.mark.parametrize("make", MADE)
def test_files(make: Callable[[], Trajectory], tmp_path: Path) -> None:
    """Save and load keep every bit."""
    run = make()
    run.save(tmp_path / "run.h5")
    back = Trajectory.load(tmp_path / "run.h5")
    for name in ("impacts", "contacts", "steps", "ledger"):
        assert getattr(back, name).tobytes() == getattr(run, name).tobytes(), name
    assert back.solves.bodies.tobytes() == run.solves.bodies.tobytes()
    assert np.any(back.solves.contacts["stage"] == IMPACT)


def test_files_of_the_last_version_load(tmp_path: Path) -> None:
    """A run of format 5: every solve moves all bodies, none is an impact; it can be continued and saved."""
    run = Trajectory.load(REFERENCES / "run_format_5.hdf5")
    assert len(run.time) == 7
    assert np.all(run.solves.bodies)
    assert len(run.impacts) == run.steps["impacts"].sum() == 0
    assert not np.any(run.solves.contacts["approach"])
    assert len(run.resume(duration=0.02).time) == 9
    run.save(tmp_path / "again.h5")
    assert content(tmp_path / "again.h5") == content(REFERENCES / "run_format_5.hdf5")


def test_another_version_in_the_first_line_is_refused(tmp_path: Path) -> None:
    """A file of one version that says it is of another was changed."""
    run = dropped_ball()
    run.save(tmp_path / "run.h5")
    new, old = (tmp_path / "run.h5").read_bytes(), (REFERENCES / "run_format_5.hdf5").read_bytes()
    for data in (new.replace(b"run 6", b"run 5", 1), old.replace(b"run 5", b"run 6", 1)):
        (tmp_path / "run.h5").write_bytes(data)
        with pytest.raises(SceneError, match="not as it was written"):
            Trajectory.load(tmp_path / "run.h5")


def test_impacts_take_no_time(tmp_path: Path) -> None:
    """A file with an impact that lasts, or with a solve that takes no time and is none, is refused."""
    run = dropped_ball()
    solves = run.solves
    for form, h in (("impact", 1e-3), ("rattle", 0.0)):
        table = solves.table.copy()
        table["form"][2], table["h"][2] = form, h
        wrong = replace(solves, table=table)
        twin = Trajectory(run.scene, run.options, run.initial, wrong, run.steps, run.memory, assessed=3)
        twin.save(tmp_path / "run.h5")
        with pytest.raises(SceneError, match=r"zero elsewhere than in impacts"):
            Trajectory.load(tmp_path / "run.h5")
