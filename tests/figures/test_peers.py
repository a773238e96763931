"""The peers start from the reference's state and keep a rolling sphere's speed; absent ones are left out."""

from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Scene, shapes
from implicit_geom.experiments import ellipsoid_rolling, peers, rattleback, work_precision
from implicit_geom.experiments.peers import (
    MODULES,
    PACKAGES,
    SOURCES,
    RollingBody,
    energy,
    installed,
    peer,
    siconos_peer,
)
from implicit_geom.experiments.references import reference
from implicit_geom.experiments.work_precision_report import OURS

REFERENCES = {
    "ellipsoid-rolling": lambda: reference("ellipsoid_rolling")["states"],
    "rattleback": lambda: reference("rattleback")["runs"][0]["states"],
}
SCENES = {"ellipsoid-rolling": ellipsoid_rolling.scene, "rattleback": rattleback.scene}


def present(name: str):
    """A peer's module, where it is installed."""
    if name not in installed():
        pytest.skip(f"{name} is not installed ({SOURCES[name]})")
    return peer(name)


@pytest.fixture(params=list(MODULES))
def simulator(request):
    return present(request.param)


def hard(simulator):
    """The setting whose contact is as hard as it gets: Siconos' is rigid as it is."""
    settings = simulator.settings()
    return settings["stiff"] if "stiff" in settings else settings["solved"]


def sphere(speed: float, height: float = 0.1) -> RollingBody:
    """A ball of radius 0.1 m rolling along x."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    start = {"position": (0, 0, height), "velocity": (speed, 0, 0), "angular_velocity": (0, speed / 0.1, 0)}
    scene.add("body", shapes.ellipsoid(0.1, 0.1, 0.1), mass=2.0, **start)
    scene.friction(mu=0.5)
    return RollingBody.of(scene)


@pytest.mark.parametrize("case", list(SCENES))
def test_the_start_is_that_of_the_reference(simulator, case: str) -> None:
    """Energy, pose and velocities at t = 0, read back from the peer's own state."""
    body, states = RollingBody.of(SCENES[case]()), REFERENCES[case]()
    setting = hard(simulator)
    run = simulator.simulate(body, duration=1e-3, step=1e-3, setting=setting)
    assert energy(body, run)[0] == pytest.approx(states["energy"][0], rel=1e-12)
    for found, key in (
        ("position", "x"),
        ("orientation", "q"),
        ("velocity", "v"),
        ("angular_velocity", "omega"),
    ):
        np.testing.assert_allclose(getattr(run, found)[0], states[key][0], atol=1e-13, err_msg=found)


@pytest.mark.parametrize("case", list(SCENES))
def test_one_short_step_agrees_with_the_reference(simulator, case: str) -> None:
    """Mass, centre of mass and inertia are taken over: 0.1 s end near the reference, velocities included."""
    body, states = RollingBody.of(SCENES[case]()), REFERENCES[case]()
    row = int(np.argmin(np.abs(np.array(states["t"]) - 0.1)))
    setting = hard(simulator)
    run = simulator.simulate(body, duration=0.1, step=1e-5, setting=setting)
    np.testing.assert_allclose(run.position[-1], states["x"][row], atol=1e-5)
    np.testing.assert_allclose(run.angular_velocity[-1], states["omega"][row], rtol=0, atol=2e-2)
    E = energy(body, run)
    assert np.max(np.abs(E / E[0] - 1)) < 1e-3


def test_a_rolling_sphere_keeps_its_speed(simulator) -> None:
    body = sphere(1.0)
    for name, setting in simulator.settings().items():
        run = simulator.simulate(body, duration=1.0, step=1e-3, setting=setting)
        assert run.velocity[-1, 0] == pytest.approx(1.0, rel=2e-3), name
        assert run.position[-1, 0] == pytest.approx(1.0, rel=2e-3), name


def test_free_flight_takes_every_step_once(simulator) -> None:
    """n steps of semi-implicit Euler from rest: v = -g n h, and the states recorded are one a step."""
    body = sphere(0.0, height=10.0)
    setting = hard(simulator)
    run = simulator.simulate(body, duration=0.5, step=0.01, setting=setting)
    assert run.steps == 50
    np.testing.assert_allclose(run.time, 0.01 * np.arange(51), atol=1e-12)
    np.testing.assert_allclose(run.velocity[:, 2], -9.81 * run.time, atol=1e-9)
    ends = simulator.simulate(body, duration=0.5, step=0.01, setting=setting, record=False)
    np.testing.assert_allclose(ends.position, run.position[[0, -1]], atol=1e-12)


def test_a_duration_that_is_no_multiple_of_the_step_is_refused(simulator) -> None:
    with pytest.raises(ValueError, match="no multiple"):
        simulator.simulate(sphere(1.0), duration=0.1, step=0.03, setting=hard(simulator))


def test_least_potential_is_that_of_the_flattest_side() -> None:
    body = RollingBody.of(rattleback.scene())
    assert body.least_potential == pytest.approx(body.mass * 9.81 * 0.01)


def test_settings_named_by_the_experiment_exist(simulator) -> None:
    name = simulator.__name__.rsplit(".", 1)[-1].removesuffix("_peer")
    for params in (work_precision.PARAMS, work_precision.QUICK):
        wanted = {
            key.split()[1]
            for steps in params["steps"].values()
            for key in steps
            if key.startswith(f"{name} ")
        }
        assert wanted <= set(simulator.settings())


def test_absent_peers_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PACKAGES", dict.fromkeys(PACKAGES, "no_such_package"))
    monkeypatch.setattr(siconos_peer, "HEADERS", Path("/no/such/folder"))
    assert installed() == []
    monkeypatch.setattr(work_precision, "simulate", _no_run)
    entries = list(work_precision._entries(work_precision.QUICK))
    assert {entry.simulator for entry in entries} == {OURS}
    columns = ("case", "simulator", "setting", "h", "position_error", "energy_error", "wall_time", "steps")
    table = {name: np.array([]) for name in columns}
    absent = {"peer": np.array(list(PACKAGES)), "version": np.array(["not installed"] * len(PACKAGES))}
    machine = {"cores": np.array([2]), "load": np.array([0.0])}
    tables = {"work_precision": table, "peers": absent, "machine": machine}
    assert work_precision.report(tables).count("is not installed") == len(PACKAGES)
    assert all(check.passed for check in work_precision.check(tables))


def _no_run(*_args, **_options):
    raise AssertionError("nothing is to be simulated here")
