"""What a user sees of a run: total time, reasons of slow steps, steppers, what may not have been meant."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from failing_steps import fail_steps

from implicit_geom import Scene, SceneNotice, Trajectory, read_scene, shapes, simulate, simulate_batch
from implicit_geom.experiments.fuzz.saved_runs import without_hash
from implicit_geom.model.solve_arrays import STEP
from implicit_geom.run.record.call_account import Call
from implicit_geom.scene.notices import NO_FRICTION
from implicit_geom.scene.scene_file import to_dict


def ball(height: float = 0.15, **friction: float) -> Scene:
    """A ball over the ground, at rest or falling."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, height), velocity=(1, 0, 0))
    if friction:
        scene.friction(**friction)
    return scene


def line(run: Any, name: str) -> str:
    """The line of a summary that begins with a word."""
    (found,) = [text for text in run.summary().splitlines() if text.startswith(name)]
    return found


def ran(scene: Scene, steps: int = 20, **options: Any) -> Trajectory:
    return simulate(scene, duration=steps / 64, step=1 / 64, progress=False, **options)


# ---- time


def test_total_time_includes_the_set_up() -> None:
    run = ran(ball(mu=0.3))
    (call,) = run.calls
    assert call.total_time > call.step_time > 0
    assert call.step_time == pytest.approx(run.steps["wall_time"].sum())
    assert re.match(r"wall time   \S+ s in all: \S+ s for the steps, ", line(run, "wall time"))
    more = run.resume(duration=0.5)
    assert [c.first for c in more.calls] == [1, 21]
    assert sum(c.total_time for c in more.calls) > call.total_time


# ---- reasons


def test_steps_in_machine_code_have_no_reason() -> None:
    run = ran(ball(height=0.1, mu=0.3))
    assert set(run.steps["reason"]) == {""}
    assert line(run, "compiled") == "compiled    20 steps; 0 left machine code"
    assert "slowest" not in run.summary()


def test_an_impact_is_named() -> None:
    run = ran(ball(mu=0.3, restitution=0.5))
    named = run.steps["reason"] == "impact"
    assert 1 <= np.sum(named) < 20
    at = run.steps[named][np.argmax(run.steps["wall_time"][named])]
    assert f"{np.sum(named)} left machine code ({np.sum(named)} impact)" in run.summary()
    assert line(run, "slowest").startswith(
        f"slowest     {at['wall_time']:.3g} s at t = {at['time']:.6g} s (impact, 1 contact, "
    )


def pushed() -> Scene:
    scene = ball(mu=0.3)
    scene.applied("ball", force=lambda t: (t, 0.0, 0.0))
    return scene


@pytest.mark.parametrize(
    ("build", "options", "reason"),
    [
        (pushed, {}, "not compiled: loads are functions of time"),
        (lambda: ball(mu=0.3), {"friction_residual": "fritz-john"}, "not compiled: fritz-john"),
        (lambda: ball(mu=0.3), {"stepper": "stewart-trinkle"}, "not compiled: stepper"),
    ],
)
def test_what_is_not_compiled_says_why(
    build: Callable[[], Scene], options: dict[str, Any], reason: str
) -> None:
    run = ran(build(), 5, **options)
    assert set(run.steps["reason"]) == {reason}
    assert f"compiled    0 steps; 5 left machine code (5 {reason})" in run.summary()


def test_the_switch_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    assert all("switched off" in reason for reason in ran(ball(mu=0.3), 3).steps["reason"])


def test_a_shorter_last_step_is_a_reason() -> None:
    run = simulate(ball(height=2.0, mu=0.3), duration=0.105, step=0.01, progress=False)
    assert run.steps["reason"].tolist() == [""] * 10 + ["shorter last step"]


def test_a_divided_step_says_why(bullet: Scene) -> None:
    run = simulate(bullet, duration=0.06, step=0.01, progress=False, impacts="stages")
    divided = run.steps[run.steps["status"] == "substepped"]
    assert len(divided)
    assert all("Newton did not converge" in reason for reason in divided["reason"])


def test_a_step_with_many_impacts_says_why() -> None:
    """Two balls that bounce on each other: after one impact a step is not cut."""
    scene = ball(height=0.1, mu=0.3, restitution=0.9)
    scene.add("upper", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.31), velocity=(1, 0, -1))
    run = ran(scene, 20, max_impacts=1)
    many = run.steps["reason"] == "many impacts in a step"
    assert np.any(many)
    assert set(run.steps["impacts"][many]) == {1}
    assert np.all(run.steps["guard"] == "none")
    assert np.all(ran(scene, 20).steps["reason"] == "")


def test_a_composed_step_says_why() -> None:
    """The guard's work, in machine code and outside it."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    spin = (0.3, 9.0, 0.2)
    scene.add("egg", shapes.ellipsoid(0.5, 0.4, 0.1), mass=1.0, position=(0, 0, 0.1), angular_velocity=spin)
    scene.friction(mu=0.8)
    run = simulate(scene, duration=1.0, step=0.02, energy_guard=1e-5, progress=False)
    composed = run.steps["reason"][run.steps["guard"] == "composed"]
    assert len(composed)
    assert all("gain of energy" in reason for reason in composed)


def test_a_failed_step_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_steps(monkeypatch, reason="Newton's method found no solution")
    run = ran(ball(mu=0.3), on_failure="record")
    assert run.steps["reason"].tolist() == ["Newton did not converge"]


def test_reasons_and_times_are_saved(tmp_path: Path) -> None:
    run = ran(ball(mu=0.3, restitution=0.5)).resume(duration=0.1, stepper="implicit-euler")
    run.save(tmp_path / "run.h5")
    back = Trajectory.load(tmp_path / "run.h5")
    assert back.summary() == run.summary()
    assert back.calls == run.calls
    assert back.steps["reason"].tolist() == run.steps["reason"].tolist()


def test_files_of_the_version_before(tmp_path: Path) -> None:
    """Without reasons and accounts a run loads, continues, and claims nothing about them."""
    import h5py

    run = ran(ball(mu=0.3, restitution=0.5))
    run.save(tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5", "a") as file:
        del file["calls"], file["steps/reason"]
    (tmp_path / "run.h5").write_bytes(without_hash((tmp_path / "run.h5").read_bytes()))
    old = Trajectory.load(tmp_path / "run.h5")
    assert set(old.steps["reason"]) == {""}
    assert "steps alone" in line(old, "wall time")
    assert "machine code" not in old.summary()
    whole, more = ran(ball(mu=0.3, restitution=0.5), 30), old.resume(duration=10 / 64)
    assert more["ball"].position.tobytes() == whole["ball"].position.tobytes()
    assert "in 30 steps" in more.summary()


# ---- steppers


def test_both_steppers_are_named() -> None:
    run = ran(ball(mu=0.3)).resume(duration=5 / 64, stepper="implicit-euler").resume(duration=2 / 64)
    told = "stepper     implicit-rattle (steps 1 to 20), implicit-euler (steps 21 to 27)"
    assert line(run, "stepper") == told
    assert line(ran(ball(mu=0.3)).resume(duration=0.1), "stepper").startswith("stepper     implicit-rattle:")


# ---- friction that nobody set


def noticed(call: Callable[[], Any]) -> tuple[Any, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = call()
    return out, [w for w in caught if w.category is SceneNotice]


def test_friction_that_was_not_set_is_noticed_once() -> None:
    scene = ball()
    run, told = noticed(lambda: ran(scene))
    assert [str(w.message) for w in told] == [NO_FRICTION]
    assert told[0].filename == __file__
    assert line(run, "notice") == f"notice      {NO_FRICTION}"
    again, told = noticed(lambda: ran(scene))
    assert told == []
    assert NO_FRICTION in again.summary()


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_no_notice_without_contact(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", compiled)
    run, told = noticed(lambda: ran(ball(height=5.0)))
    assert told == []
    assert "notice" not in run.summary()
    assert len(noticed(lambda: ran(ball()))[1]) == 1


def test_no_notice_where_friction_was_called() -> None:
    pair = ball()
    pair.friction("ball", "ground", mu=0.2)
    for scene in (ball(mu=0.0), ball(restitution=0.5), pair):
        assert noticed(lambda scene=scene: ran(scene))[1] == []


def test_scene_files_are_asked_too() -> None:
    plain = to_dict(ball(mu=0.0))
    assert noticed(lambda: ran(read_scene(plain)[0]))[1] == []
    del plain["friction"]
    assert len(noticed(lambda: ran(read_scene(plain)[0]))[1]) == 1
    plain["friction"] = {"pairs": [{"bodies": ["ball", "ground"], "mu": 0.1}]}
    assert noticed(lambda: ran(read_scene(plain)[0]))[1] == []


def test_notice_is_kept_with_the_run(tmp_path: Path) -> None:
    run = noticed(lambda: ran(ball()))[0]
    run.save(tmp_path / "run.h5")
    assert Trajectory.load(tmp_path / "run.h5").summary() == run.summary()


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_batches_notice_too(compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", compiled)
    options: dict[str, Any] = {"duration": 0.3, "step": 0.01, "progress": False}

    def batch(scene: Scene, **values: Any) -> Any:
        return simulate_batch(scene, {"bodies.ball.mass": [1.0, 2.0], **values}, **options)

    scene = ball()
    found, told = noticed(lambda: batch(scene))
    assert len(told) == 1
    assert line(found, "notice") == f"notice      {NO_FRICTION}"
    assert noticed(lambda: batch(scene))[1] == []
    assert noticed(lambda: batch(ball(height=5.0)))[1] == []
    assert noticed(lambda: batch(ball(mu=0.0)))[1] == []
    assert noticed(lambda: batch(ball(), **{"friction.mu": [0.0, 0.1]}))[1] == []


def test_batches_tell_their_time_and_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"bodies.ball.mass": [1.0, 2.0, 3.0], "friction.restitution": [0.0, 0.5, 0.9]}
    batch = simulate_batch(ball(mu=0.3), values, duration=0.3, step=0.01, progress=False)
    assert batch.total_time > batch.wall_time > 0
    assert batch.solved.sum() > 0
    left = f"30 steps a row, {batch.solved.sum()} of 90 left machine code in {np.sum(batch.solved > 0)} rows"
    assert repr(batch).startswith(f"<Batch of 3 rows, 0 failed: {left}, {batch.total_time:.3g} s in all")
    assert line(batch, "steps") == f"steps       {left}"
    assert line(batch, "rows") == "rows        3, 0 failed"
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    fail_steps(monkeypatch)
    failed = simulate_batch(ball(mu=0.3), values, duration=0.3, step=0.01, progress=False)
    assert "3 rows, 3 failed" in repr(failed)
    assert "FAILED      row 2: step at t = 0 s failed: no luck" in failed.summary()


# ---- faces


def box_on_ground(**friction: float) -> Scene:
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("box", shapes.box(0.2, 0.2, 0.1), mass=1.0, position=(0, 0, 0.1))
    scene.friction(**friction)
    scene.applied("box", force=(3.0, 0, 0), torque=(0, 0, -0.3))
    return scene


def standing(shape: shapes.Shape, height: float, turn: tuple[float, ...] = (1, 0, 0, 0)) -> Scene:
    scene = Scene()
    scene.add("ground", shapes.box(1, 1, 0.5), fixed=True, position=(0, 0, -0.5))
    scene.add("body", shape, mass=1.0, position=(0, 0, height), orientation=turn)
    scene.friction(mu=0.5)
    return scene


def test_a_face_without_torsion_is_named() -> None:
    """The box pushed off-centre turns, though a real patch would hold it: the summary names pair and fix."""
    run = simulate(box_on_ground(mu=0.5), duration=0.2, step=0.01, progress=False)
    assert abs(run["box"].angular_velocity[-1, 2]) > 1
    told = line(run, "notice")
    assert "'ground' and 'box' touch with e_r = 0" in told
    assert "set e_r in metres" in told
    held = simulate(box_on_ground(mu=0.5, e_r=0.1), duration=0.2, step=0.01, progress=False)
    assert abs(held["box"].angular_velocity[-1, 2]) < 1e-6
    assert "notice" not in held.summary()
    without = simulate(box_on_ground(mu=0.0), duration=0.2, step=0.01, progress=False)
    assert "notice" not in without.summary()


ACROSS = (np.sqrt(0.5), np.sqrt(0.5), 0, 0)


@pytest.mark.parametrize(
    ("scene", "flat"),
    [
        (standing(shapes.cylinder(0.1, 0.2), 0.1), True),
        (standing(shapes.cylinder(0.1, 0.2), 0.1, ACROSS), False),
        (standing(shapes.cone(0.2, 0.2), 0.05), True),
        (standing(shapes.sphere(0.1), 0.1), False),
        (standing(shapes.capsule(0.1, 0.2), 0.1, ACROSS), False),
        (standing(shapes.box(0.1, 0.1, 0.1), 0.1), True),
    ],
)
def test_which_contacts_are_faces(scene: Scene, flat: bool) -> None:
    """Ends and bases are faces; the line on which a cylinder rolls, and a point, are not."""
    for impacts in ("stages", "events"):
        run = simulate(scene, duration=0.05, step=0.01, impacts=impacts, progress=False)
        assert len(run.contacts)
        assert ("touch with e_r = 0" in run.summary()) == flat


def test_native_steps_count_their_work() -> None:
    """A box that lands: rounds in every step, factorisations where it touches."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add(
        "box", shapes.box(0.1, 0.12, 0.15), mass=1.0, position=(0, 0, 0.4), angular_velocity=(3.0, 1.0, 0)
    )
    scene.friction(mu=0.3)
    run = simulate(scene, duration=1.0, step=0.01, progress=False)
    steps = run.steps
    assert np.all(steps["factorisations"][steps["contacts"] > 0] > 0)
    assert np.all(steps["rounds"] > 0)
    assert set(steps["reason"]) == {""}


def test_slow_steps_of_machine_code_are_named() -> None:
    """The three slowest of all calls, and what their time went into."""
    call, steps = Call("implicit-rattle", 1), np.zeros(50, STEP)
    steps["time"], steps["wall_time"], steps["status"] = np.arange(1, 51) / 64, 1e-5, "converged"
    steps["wall_time"][[7, 9, 30]] = 0.3, 0.1, 0.2
    steps["contacts"][7], steps["solves"][7], steps["rounds"][7], steps["factorisations"][7] = 1, 3, 12, 40
    steps["reason"][30] = "gain of energy"
    for part in (steps[:20], steps[20:]):
        call.note(part, np.zeros(0), compiled=True)
    assert call.compiled == 50
    assert call.slowest == [
        [0.3, 8 / 64, "1 contact, 3 solves, 12 rounds, 40 factorisations"],
        [0.2, 31 / 64, "gain of energy"],
        [0.1, 10 / 64, ""],
    ]


def test_a_bar_shows_time_rate_and_contacts(capsys: pytest.CaptureFixture[str]) -> None:
    simulate(ball(height=0.1, mu=0.3), duration=0.5, step=1 / 64, progress=True)
    last = capsys.readouterr().err.split("\r")[-1]
    assert re.search(r"t = 0.5 s, \S+ x real time, 1 contacts", last)
