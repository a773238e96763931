"""A step that cannot be solved is loud, keeps everything up to it, and can be repeated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from failing_steps import fail_steps

from implicit_geom import Scene, SceneError, StepFailed, Trajectory, replay, simulate
from implicit_geom.machine.availability import SWITCH, available
from implicit_geom.scene.options import IMPLICIT


@pytest.fixture(params=["0", "1"], ids=["python", "native"])
def fails_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Make every stepper fail in the step that starts at a given time; with None none does."""
    monkeypatch.setenv(SWITCH, request.param)

    def install(time: float | None) -> None:
        monkeypatch.undo()
        monkeypatch.setenv(SWITCH, request.param)
        if time is not None:
            fail_steps(monkeypatch, time, history=[[3.0, 2.0], [1.0]])

    return install


def test_failed_step_carries_everything(eggs: Scene, fails_at) -> None:
    """StepFailed has the time, the state by body, the history and the run up to the last good step."""
    fails_at(0.2)
    with pytest.raises(StepFailed, match=r"step at t = 0\.2 s failed: no luck") as error:
        simulate(eggs, duration=0.5, step=0.01)
    failure = error.value
    assert failure.time == 0.2
    assert failure.history == [[3.0, 2.0], [1.0]]
    assert len(failure.run.time) == 21
    assert failure.run.failed
    np.testing.assert_array_equal(failure.state["low"][0], failure.run["low"].position[-1])


def test_recorded_failure_returns_the_run(eggs: Scene, fails_at, tmp_path: Path) -> None:
    """on_failure="record": the run to the last good step, its last step marked, also after loading."""
    fails_at(0.2)
    run = simulate(eggs, duration=0.5, step=0.01, on_failure="record")
    run.save(tmp_path / "run.h5")
    for r in (run, Trajectory.load(tmp_path / "run.h5")):
        assert r.failed
        assert "no luck" in r.failure
        assert r.steps["status"][-1] == "failed"
        assert len(r.steps) == 21
        assert len(r.time) == len(r.energy) == 21
        assert "FAILED" in r.summary()


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_failed_run_can_be_continued(stepper: str, eggs: Scene, fails_at) -> None:
    """Once the cause is gone, a failed run continues as if it had never failed."""
    whole = simulate(eggs, duration=0.4, step=0.01, stepper=stepper)
    fails_at(0.2)
    run = simulate(eggs, duration=0.4, step=0.01, on_failure="record", stepper=stepper)
    fails_at(None)
    again = run.resume(duration=0.2)
    assert not again.failed
    assert again.states.x.tobytes() == whole.states.x.tobytes()
    assert "failed" not in again.steps["status"]


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_replay_repeats_the_step_exactly(stepper: str, eggs: Scene, fails_at, tmp_path: Path) -> None:
    """The file holds all a step depends on: with the cause gone it gives the unbroken run's bits."""
    whole = simulate(eggs, duration=0.4, step=0.01, stepper=stepper)
    fails_at(0.2)
    with pytest.raises(StepFailed) as error:
        simulate(eggs, duration=0.5, step=0.01, stepper=stepper)
    path = tmp_path / "step.json"
    error.value.write(path)
    with pytest.raises(StepFailed) as again:
        replay(path)
    assert str(again.value) == str(error.value)
    assert again.value.replay == error.value.replay
    fails_at(None)
    attempt = replay(path)
    end = attempt.solves[-1].end
    if stepper == "implicit-euler" and available():  # (the run's step in machine code, this one not)
        np.testing.assert_allclose(end.x, whole.states.x[21], atol=1e-12)
        return
    assert end.x.tobytes() == whole.states.x[21].tobytes()
    assert end.w.tobytes() == whole.states.w[21].tobytes()


def test_other_files_are_no_replay(tmp_path: Path) -> None:
    """A missing file, text, JSON of something else and an incomplete record: one line each."""
    path = tmp_path / "x.json"
    with pytest.raises(SceneError, match="cannot be read"):
        replay(path)
    for text, words in (("hello", "not a JSON file"), ("[1]", "not the file of a failed step")):
        path.write_text(text)
        with pytest.raises(SceneError, match=words):
            replay(path)
    path.write_text(
        json.dumps({"format": "implicit-geom failed step", "options": {"duration": 1, "step": 1}})
    )
    with pytest.raises(SceneError, match="incomplete"):
        replay(path)
