"""A continued run equals an unbroken one, and a repeated run the first one, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from same_runs import assert_identical

from implicit_geom import Scene, SceneError, Trajectory, simulate
from implicit_geom.scene.options import IMPLICIT


@pytest.mark.parametrize("stepper", ["implicit-euler", "implicit-rattle"])
def test_same_scene_twice_is_bit_identical(stepper: str, eggs: Scene) -> None:
    """The same scene simulated twice gives the same bits."""
    assert_identical(
        simulate(eggs, duration=0.6, step=0.01, progress=False, stepper=stepper),
        simulate(eggs, duration=0.6, step=0.01, progress=False, stepper=stepper),
    )


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_saved_and_continued_equals_unbroken(stepper: str, eggs: Scene, tmp_path: Path) -> None:
    """With contacts and anisotropic friction: 0.6 s = 0.37 s + save + load + 0.23 s."""
    whole = simulate(eggs, duration=0.6, step=0.01, progress=False, stepper=stepper)
    part = simulate(eggs, duration=0.37, step=0.01, progress=False, stepper=stepper)
    part.save(tmp_path / "part.h5")
    continued = Trajectory.load(tmp_path / "part.h5").resume(duration=0.23)
    assert len(whole.contacts) > 20
    assert set(whole.contacts["first"]) == {"ground", "low"}
    assert_identical(whole, continued)


@pytest.mark.parametrize(
    ("stepper", "impacts"), [*((s, "stages") for s in IMPLICIT), *((s, "events") for s in IMPLICIT[:2])]
)
def test_continued_after_substeps_equals_unbroken(
    stepper: str, impacts: str, bullet: Scene, tmp_path: Path
) -> None:
    """The same where steps were taken in parts, before and after the break."""
    options: dict[str, Any] = {"step": 0.01, "progress": False, "stepper": stepper, "impacts": impacts}
    whole = simulate(bullet, duration=0.06, **options)
    parts = whole.steps["status"] == "substepped" if impacts == "stages" else whole.steps["impacts"] > 0
    assert np.sum(parts) >= 1
    at = int(np.flatnonzero(parts)[0])
    for steps in {max(at, 1), at + 1}:
        part = simulate(bullet, duration=steps * 0.01, **options)
        part.save(tmp_path / "part.h5")
        continued = Trajectory.load(tmp_path / "part.h5").resume(duration=(6 - steps) * 0.01)
        assert_identical(whole, continued)


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_planar_run_continues_bit_identically(stepper: str, disc, tmp_path: Path) -> None:
    """The same in the plane, where states have other shapes."""
    whole = simulate(disc(), duration=0.5, step=0.01, progress=False, stepper=stepper)
    part = simulate(disc(), duration=0.2, step=0.01, progress=False, stepper=stepper)
    part.save(tmp_path / "part.h5")
    assert_identical(whole, Trajectory.load(tmp_path / "part.h5").resume(duration=0.3))


@pytest.mark.parametrize("stepper", ["implicit-euler", "implicit-rattle"])
def test_without_the_warm_start_the_bits_differ(stepper: str, eggs: Scene) -> None:
    """Negative control: a run continued without the solver's memory is not the unbroken one."""
    whole = simulate(eggs, duration=0.6, step=0.01, progress=False, stepper=stepper)
    part = simulate(eggs, duration=0.37, step=0.01, progress=False, stepper=stepper)
    part.memory = {"warm": {}, "normals": {}, "history": None}
    with pytest.raises(AssertionError):
        assert_identical(whole, part.resume(duration=0.23))


def test_function_loads_need_the_scene_again(disc, tmp_path: Path) -> None:
    """A run whose load is a function of time is saved, and continued only with the scene at hand."""

    def pushed() -> Scene:
        scene = disc()
        scene.applied("disc", force=lambda t: (np.sin(t), 0.0))
        return scene

    whole = simulate(pushed(), duration=0.5, step=0.01, progress=False)
    simulate(pushed(), duration=0.2, step=0.01, progress=False).save(tmp_path / "part.h5")
    part = Trajectory.load(tmp_path / "part.h5")
    with pytest.raises(SceneError, match="pass the scene again"):
        part.resume(duration=0.3)
    assert_identical(whole, part.resume(duration=0.3, scene=pushed()))


def test_other_bodies_are_refused(disc, eggs: Scene) -> None:
    """A run is not continued with another scene's bodies."""
    with pytest.raises(SceneError, match="other bodies"):
        simulate(disc(), duration=0.02, step=0.01).resume(duration=0.1, scene=eggs)
