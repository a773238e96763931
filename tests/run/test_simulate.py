"""Time steps, options and the checks before the first step."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, shapes, simulate
from implicit_geom.rotation import unit
from implicit_geom.scene.options import IMPLICIT, SimulationOptions
from implicit_geom.scene.scene_file import to_dict


def ball(**body: object) -> Scene:
    scene = Scene(gravity=(0, 0, -10))
    scene.add("ball", shapes.sphere(0.1), mass=2.0, **body)  # type: ignore[arg-type]
    return scene


def test_last_step_is_shortened() -> None:
    """A duration that is no multiple of the step ends exactly at the duration, with a shorter last step."""
    run = simulate(ball(), duration=0.25, step=0.1)
    assert run.time.tolist() == [0.0, 0.1, 0.2, 0.25]
    assert run.steps["step"][-1] == pytest.approx(0.05, rel=1e-12)
    assert run["ball"].velocity[-1, 2] == pytest.approx(-2.5, rel=1e-12)


def test_rounding_adds_no_step() -> None:
    """Durations that are multiples of the step up to rounding get exactly that many equal steps."""
    for duration, step, count in ((0.3, 0.1, 3), (1.0, 0.01, 100), (2.0, 1 / 3, 6), (0.7, 0.1, 7)):
        lengths = SimulationOptions(duration, step).step_lengths()
        assert lengths.tolist() == [step] * count
    assert SimulationOptions(0.05, 0.1).step_lengths().tolist() == [0.05]
    assert len(SimulationOptions(0.1 * (1 + 1e-7), 0.1).step_lengths()) == 2


def test_times_are_multiples_of_the_step() -> None:
    """Times are k * step, with no accumulated rounding, also in a continued run."""
    run = simulate(ball(), duration=1.0, step=0.01).resume(duration=1.0)
    assert run.time.tolist() == [k * 0.01 for k in range(201)]


def test_after_a_shortened_step_the_count_starts_anew() -> None:
    """A run continued after a shortened step counts from its end."""
    run = simulate(ball(), duration=0.25, step=0.1).resume(duration=0.2)
    np.testing.assert_allclose(run.time, [0, 0.1, 0.2, 0.25, 0.35, 0.45], rtol=1e-15)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"step": 0}, "step = 0 "),
        ({"step": -0.1}, "step = -0.1"),
        ({"step": math.nan}, "step = nan"),
        ({"step": "0.1"}, "step = '0.1'"),
        ({"step": True}, "step = True"),
        ({"duration": -1}, "duration = -1"),
        ({"duration": math.inf}, "duration = inf"),
        ({"duration": None}, "duration = None"),
        ({"tolerance": 0}, "tolerance = 0"),
        ({"tolerance": 2.0}, "tolerance = 2"),
        ({"friction_tolerance": 0}, "friction_tolerance = 0"),
        ({"friction_tolerance": 1.0}, "friction_tolerance = 1"),
        ({"stepper": "implicit-eulr"}, "did you mean 'implicit-euler'"),
        ({"stepper": "implicit-ratle"}, "did you mean 'implicit-rattle'"),
        ({"stepper": "nguyen-trinkl"}, "did you mean 'nguyen-trinkle'"),
        ({"stepper": 3}, "stepper = 3"),
        ({"energy_guard": 0}, "energy_guard = 0"),
        ({"energy_guard": math.nan}, "energy_guard = nan"),
        ({"friction_residual": "projektion"}, "did you mean 'projection'"),
        ({"on_failure": "ignore"}, "on_failure = 'ignore'"),
        ({"impact_law": "newtn"}, "did you mean 'newton'"),
        ({"impacts": "event"}, "did you mean 'events'"),
        ({"impacts": "events", "stepper": "implicit-euler"}, "impacts = 'events': take implicit-rattle"),
        (
            {"impact_law": "poisson", "stepper": "implicit-euler"},
            "impact_law = 'poisson': take implicit-rattle",
        ),
        ({"max_impacts": 0}, "max_impacts = 0"),
        ({"max_impacts": 2.5}, "max_impacts = 2.5"),
        ({"progress": "yes"}, "progress = 'yes'"),
    ],
)
def test_bad_options_are_one_line(change: dict[str, object], words: str) -> None:
    """Every bad option raises SceneError in one line with the field and its value."""
    options = {"duration": 1.0, "step": 0.1, **change}
    with pytest.raises(SceneError) as error:
        simulate(ball(), **options)  # type: ignore[arg-type]
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_overlap_at_the_start_is_refused() -> None:
    """Bodies that overlap at the start are named, with the overlap."""
    scene = ball()
    scene.add("other", shapes.sphere(0.1), mass=1.0, position=(0.15, 0, 0))
    with pytest.raises(SceneError, match=r"'ball' and 'other' overlap by 0\.05 m"):
        simulate(scene, duration=1.0, step=0.1)


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_touching_at_the_start_is_allowed(stepper: str) -> None:
    """Bodies that touch, with an overlap of rounding size, are no error."""
    scene = ball()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1), offset=-0.1 + 1e-12), fixed=True)
    run = simulate(scene, duration=0.1, step=0.1, stepper=stepper)
    assert abs(run["ball"].position[-1, 2]) < 1e-10


@pytest.mark.parametrize("restitution", [-0.1, 1.1, math.nan, math.inf])
def test_restitution_outside_its_range_is_refused(restitution: float) -> None:
    """A restitution below zero, above one or without value is an error, for all pairs or for one."""
    scene = ball()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1), offset=-1), fixed=True)
    with pytest.raises(SceneError, match=r"friction\(ball, ground\)\.restitution = "):
        scene.friction("ball", "ground", restitution=restitution)
    with pytest.raises(SceneError, match=r"friction\.restitution = "):
        scene.friction(restitution=restitution)


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("restitution", [0.5, 0.9, 1.0])
def test_every_stepper_takes_restitution(restitution: float, stepper: str) -> None:
    """A ball that hits the ground at 4 m/s leaves at e times that, to h/2 times gravity with Euler.

    With RATTLE it does so at the instant of the impact, and has flown on by the end of the step.
    """
    for h in (0.01, 0.013):
        scene = ball(position=(0, 0, 0.9))
        scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
        scene.friction("ball", "ground", restitution=restitution)
        run = simulate(scene, duration=0.5, step=h, stepper=stepper)
        hit = int(np.flatnonzero(run.time == run.contacts["time"][0])[0])
        after = run["ball"].velocity[hit, 2]
        if stepper == "implicit-euler":
            # a step x+ = x + h v+ flies exactly with velocities that belong to half a step earlier
            assert -1e-9 < after - 4 * restitution < 1.01 * 10 * h / 2 + 1e-9
        else:
            assert after == pytest.approx(4 * restitution - 10 * (run.time[hit] - 0.4), abs=1e-9)
            assert run.impacts["time"].tolist() == pytest.approx([0.4], abs=1e-12)
        assert run.max_penetration < 1e-12


def test_the_default_stepper_is_implicit_rattle() -> None:
    """Named nowhere else: a run without a stepper is one of `implicit-rattle`, and says so."""
    run = simulate(ball(), duration=0.2, step=0.1)
    assert run.options.stepper == "implicit-rattle"
    assert set(run.steps["form"]) == {"rattle"}
    assert "implicit-rattle" in run.summary()


def test_load_that_becomes_nan_is_an_error() -> None:
    """A load that returns NaN ends the run with the body, the field and the time."""
    scene = ball()
    scene.applied("ball", force=lambda t: (0, 0, math.nan if t > 0.15 else 0))
    with pytest.raises(SceneError, match=r"applied\.ball\.force at t = 0\.2"):
        simulate(scene, duration=1.0, step=0.1)


def test_progress_function_sees_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress function is called with the fraction done, after every step that a stepper takes itself."""
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    seen: list[float] = []
    simulate(ball(), duration=0.5, step=0.1, progress=seen.append)
    assert seen == [k / 5 for k in range(1, 6)]


def test_bar_only_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is written to a stderr that is no terminal, unless a bar is asked for."""
    simulate(ball(), duration=0.2, step=0.1)
    assert capsys.readouterr().err == ""
    simulate(ball(), duration=0.2, step=0.1, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_run_keeps_its_own_scene() -> None:
    """Bodies and friction added to a scene after a run do not change the run."""
    scene = ball()
    run = simulate(scene, duration=0.1, step=0.1)
    before = to_dict(run.scene)
    scene.add("late", shapes.sphere(0.1), mass=1.0, position=(5, 0, 0))
    scene.friction(mu=0.9)
    assert run.names == ["ball"]
    assert to_dict(run.scene) == before != to_dict(scene)


def test_interrupted_run_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt carries the run up to the last good step, and that run can be continued."""
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")

    def stop(fraction: float) -> None:
        if fraction >= 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupt:
        simulate(ball(), duration=1.0, step=0.1, progress=stop)
    run = interrupt.value.run  # type: ignore[attr-defined]
    assert run.failed
    assert len(run.time) == 6
    whole = simulate(ball(), duration=1.0, step=0.1)
    assert run.resume(duration=0.5).states.x.tobytes() == whole.states.x.tobytes()


def test_impossible_inertia_is_refused() -> None:
    """Principal moments that no body has (one above the sum of the others) are bad input."""
    scene = Scene()
    with pytest.raises(SceneError, match="must not exceed the sum"):
        scene.add("b", shapes.sphere(0.1), mass=1.0, inertia=(1, 1, 50))


def test_failing_load_is_named() -> None:
    """A load function that raises is reported with its body, its field and the time."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("b", shapes.sphere(0.1), mass=1.0)
    scene.applied("b", force=lambda t: (1 / 0, 0, 0))
    with pytest.raises(SceneError, match=r"applied\.b\.force: the function failed at t = 0 s"):
        simulate(scene, duration=0.1, step=0.1)


def test_largest_rise_of_energy_is_told() -> None:
    """A step that gains energy shows in the summary: Euler's contact work is first order in h."""
    scene = Scene()
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "b",
        shapes.superellipsoid(0.3, 0.2, 0.1, 8),
        mass=1.0,
        position=(0, 0, 0.335),
        orientation=unit((-1.5094, -0.567, -1.925, -0.1098)),
        velocity=(-0.8134, 1.0998, -0.0554),
        angular_velocity=(-3.0912, -2.186, 1.9954),
    )
    scene.friction(mu=0.3)
    run = simulate(scene, duration=0.3, step=0.05, stepper="implicit-euler")
    told = re.search(r"largest gain in a step (\S+)\)", run.summary())
    assert told
    scale = max(abs(run.energy[0]), run.kinetic_energy.max())
    assert float(told[1]) == pytest.approx(run.ledger["remainder"].max() / scale, rel=0.1)
    assert float(told[1]) > 1e-4
    # the gain is that of the energy itself, not only an entry of the ledger
    assert np.diff(run.energy).max() > 1e-4 * scale
