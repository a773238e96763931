"""Progress of work made of many runs: it moves while they are made, never back, and reaches its end."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from failing_steps import before_steps, fail_steps

from implicit_geom import Scene, shapes, simulate
from implicit_geom.engine.native_runner import PAUSE
from implicit_geom.interface.progress import part, reporting
from implicit_geom.machine.availability import SWITCH
from implicit_geom.model.records import Attempt
from implicit_geom.run.batch import run_to_end, started_lanes
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.values import variants
from implicit_geom.studies.advice import advise
from implicit_geom.studies.comparison import compare

OPTIONS: dict[str, Any] = {"duration": 0.1, "step": 0.01}


@pytest.fixture
def ball() -> Scene:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1, 0, 0))
    scene.friction(mu=0.2)
    return scene


def assert_moves(seen: list[float], most: float) -> None:
    """From start to end, without a jump of more than `most`."""
    fractions = np.array([0.0, *seen])
    assert np.all(np.diff(fractions) >= 0)
    assert fractions[-1] == 1.0
    assert np.max(np.diff(fractions)) <= most


def test_compare_moves(ball: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also during the reference, which is most of the work."""
    monkeypatch.setenv(SWITCH, "0")
    seen: list[float] = []
    steppers = ["implicit-rattle", "stewart-trinkle"]
    found = compare(ball, **OPTIONS, steppers=steppers, progress=seen.append)
    assert_moves(seen, 0.01)
    seen.clear()
    compare(ball, **OPTIONS, steppers=steppers, reference=found.reference.run, progress=seen.append)
    assert_moves(seen, 0.1)


def test_compare_never_goes_back(ball: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where the best stepper fails on the way and another one makes the reference."""
    monkeypatch.setenv(SWITCH, "0")
    fail_steps(monkeypatch, 0.06, euler=False, fourth=True)
    seen: list[float] = []
    compare(ball, **OPTIONS, steppers=["implicit-rattle"], progress=seen.append)
    assert_moves(seen, 0.4)  # (what the first one had reached is not told again)


def test_advise_moves(ball: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the trials of every stepper; those that are not needed are passed over."""
    monkeypatch.setenv(SWITCH, "0")
    seen: list[float] = []
    steppers = ["implicit-rattle", "implicit-euler", "stewart-trinkle"]
    advise(ball, **OPTIONS, tolerance=1e-6, trial=1.0, steppers=steppers, progress=seen.append)
    assert_moves(seen, 0.35)
    assert len(seen) > 100


@pytest.mark.parametrize("compiled", ["0", "1"])
def test_a_batch_reaches_its_end(ball: Scene, compiled: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a scene fails, and where steps are taken outside the compiled code."""
    monkeypatch.setenv(SWITCH, compiled)

    def fails(stepper: Any, _: Any) -> Attempt | None:
        return Attempt([], "no luck", [[1.0]]) if stepper.model.bodies[1].mass == 3.0 else None

    before_steps(monkeypatch, fails)
    seen: list[float] = []
    options = SimulationOptions(0.605, 0.01, "implicit-rattle")
    lanes = started_lanes(variants(ball, {"bodies.ball.mass": [1.0, 2.0, 3.0]}), options)
    run_to_end(lanes, options, threads=2, progress=seen.append, pause=0.0)
    assert [bool(lane.failure) for lane in lanes] == [False, False, True]
    assert_moves(seen, 1.0)
    assert compiled == "1" or len(seen) > 100


def test_parts_of_a_whole() -> None:
    """The fraction of one run is so many units of all; what goes back is not told."""
    seen: list[float] = []
    with reporting(seen.append, 20) as done:
        for fraction in (0.5, 1.0):
            part(done, 10, 10)(fraction)
        part(done, 10, 10)(0.5)
    assert seen == [0.75, 1.0, 1.0]


def test_a_long_native_march_moves(eggs: Scene) -> None:
    """In calls of about a tenth of a second, few steps at first."""
    seen: list[float] = []
    run = simulate(eggs, duration=3.0, step=0.0005, progress=seen.append)
    assert set(run.steps["reason"]) == {""}
    assert_moves(seen, 0.4)
    assert seen[0] == 1 / 6000
    assert len(seen) > 0.5 * run.steps["wall_time"].sum() / PAUSE


def test_a_native_march_is_interrupted(eggs: Scene) -> None:
    """Within a call or two; the steps that were taken are kept."""
    begun: list[float] = []

    def interrupt(_: float) -> None:
        if not begun:
            begun.append(time.perf_counter())
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(eggs, duration=60.0, step=0.0002, progress=interrupt)
    assert time.perf_counter() - begun[0] < 5.0
    run = caught.value.run  # type: ignore[attr-defined]
    assert 10 < len(run.time) < 300_000
    assert run.failure == "interrupted"
