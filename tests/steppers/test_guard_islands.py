"""The guard judges islands of contacts, each by its own energy in its own frame, on what it creates."""

from __future__ import annotations

import re

import by_stages
import numpy as np
import pytest
from law_scenes import G

from implicit_geom import Scene, Trajectory, rotation, shapes, simulate
from implicit_geom.experiments.benchmarks.agreement import compared
from implicit_geom.experiments.benchmarks.timing import uncompiled
from implicit_geom.machine.availability import available
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model
from implicit_geom.model.records import Solve
from implicit_geom.steppers.island_energy import island_energies, step_islands
from implicit_geom.steppers.rattle import RattleStepper

GUARD = 1e-3  # the default: of an island's energy, what a step may create
MASS = 0.01


def cone(
    seed: int, boost: float = 0.0, mu: float = 0.3, units: tuple[float, float, float] = (1.0, 1.0, 1.0)
) -> Scene:
    """A thin cone of 10 g dropped askew and spinning; in other units of length, mass and time."""
    L, M, T = units
    rng = np.random.default_rng(seed)
    scene = Scene(gravity=(0, 0, -G * L / T**2))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add(
        "cone", shapes.cone(0.2 * L, 0.05 * L), mass=MASS * M, position=(0, 0, 0.6 * L),
        orientation=rotation.unit(rng.normal(size=4)), velocity=(boost * L / T, 0, 0),
        angular_velocity=4 * rng.normal(size=3) / T,
    )  # fmt: skip
    scene.friction(mu=mu)
    return scene


def gains(run: Trajectory, boost: float = 0.0) -> np.ndarray:
    """What the cone gains in each step, over its energy at the start, in a frame with that velocity."""
    body, c = run.scene.bodies["cone"], run["cone"]
    v = c.velocity - np.array([boost, 0, 0])
    w = np.einsum("tji,tj->ti", rotation.matrix(c.orientation), c.angular_velocity)
    kinetic = body.mass * np.sum(v**2, axis=1) / 2 + np.einsum("ti,ij,tj->t", w, body.inertia, w) / 2
    energy = kinetic + body.mass * G * c.position[:, 2]
    return np.diff(energy) / energy[0]


@pytest.mark.parametrize("mass", [1.0, 1e6])
def test_a_far_body_is_no_excuse(mass: float) -> None:
    """Beside a heavy ball that it never meets a cone gains little (35 % where it excused gains)."""
    for seed in (0, 3):
        scene = cone(seed)
        scene.add("ball", shapes.sphere(0.2), mass=mass, position=(0, 5, 2), velocity=(0, 0.5, 0))
        run = simulate(scene, duration=2.0, step=0.01, progress=False)
        assert np.max(gains(run)) < GUARD


def test_a_boost_changes_nothing() -> None:
    """A cone without friction that slides at 100 m/s is stepped as one that does not slide."""
    rest, quick = (
        simulate(cone(3, boost, mu=0.0), duration=2.0, step=0.01, progress=False) for boost in (10.0, 100.0)
    )
    assert np.max(gains(quick, 100.0)) < GUARD
    assert rest.steps["guard"].tolist() == quick.steps["guard"].tolist()
    assert np.any(rest.steps["guard"] != "none")
    moved = quick["cone"].position - np.outer(quick.time, (90.0, 0, 0))
    np.testing.assert_allclose(moved, rest["cone"].position, rtol=0, atol=1e-7)


def test_friction_pays_for_no_gain() -> None:
    """A blunt block slides: what is created hides behind what friction loses, and would set it rocking."""
    scene = Scene(dim=2)
    scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    block = shapes.superellipse(0.2, 0.1, 10.0)
    scene.add("block", block, mass=1.0, position=(0, 0.1 + 1e-12), velocity=(1, 0))
    scene.friction(mu=0.2)
    run = simulate(scene, duration=0.3, step=0.01, progress=False)
    assert np.max(np.abs(run["block"].angular_velocity)) < 1e-2
    np.testing.assert_allclose(run["block"].velocity[:, 0], 1 - 0.2 * G * run.time, rtol=0, atol=1e-3)


@pytest.mark.parametrize("units", [(1e3, 1e3, 1e3), (1e-3, 1.0, 1.0), (1.0, 1.0, 1e3)])
def test_units_change_nothing(units: tuple[float, float, float]) -> None:
    """In mm, g and ms, and where every speed is a thousandth: the same steps and modes."""
    ours = simulate(cone(2), duration=0.8, step=0.01, progress=False)
    theirs = simulate(cone(2, units=units), duration=0.8 * units[2], step=0.01 * units[2], progress=False)
    for column in ("guard", "form", "solves", "contacts"):
        assert ours.steps[column].tolist() == theirs.steps[column].tolist()
    assert ours.contacts["mode"].tolist() == theirs.contacts["mode"].tolist()
    assert {"stick", "slide"} == set(ours.contacts["mode"].tolist())
    np.testing.assert_allclose(theirs["cone"].position / units[0], ours["cone"].position, rtol=0, atol=1e-9)
    energy = units[1] * (units[0] / units[2]) ** 2
    for name in ("friction", "impact", "remainder"):
        np.testing.assert_allclose(theirs.ledger[name] / energy, ours.ledger[name], rtol=0, atol=1e-10)


def crowd() -> Scene:
    """Two islands of two bodies each that rock and roll, and one body alone."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    thin = shapes.ellipsoid(0.3, 0.25, 0.05)
    for i, mass in enumerate((0.1, 10.0)):
        spin = (0.2, 3.0 - 5 * i, 0.1)
        scene.add(f"lower {i}", thin, mass=mass, position=(2.0 * i, 0, 0.05), angular_velocity=spin)
        place = (2.0 * i + 0.02, 0.01, 0.1501)
        scene.add(f"upper {i}", shapes.sphere(0.05), mass=mass / 2, position=place, velocity=(0.1, 0, 0))
    scene.add("alone", thin, mass=1.0, position=(0, 2, 0.05), angular_velocity=(3.0, 1.0, 0.0))
    scene.friction(mu=0.6)
    return scene


def test_two_texts_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The islands of one solve are those of all solves of a run, with the same energies."""
    model, asked = Model(crowd()), []
    original = RattleStepper.solve

    def kept(self: RattleStepper, *arguments: object) -> object:
        found = original(self, *arguments)  # type: ignore[arg-type]
        asked.append(found)
        return found

    monkeypatch.setattr(RattleStepper, "solve", kept)
    with uncompiled():
        run = by_stages.simulate(crowd(), duration=0.2, step=0.01, progress=False)
    scale, most = EnergyScale(model), 0
    every = island_energies(model, scale, run.initial, run.solves)
    solves = {(s.start.time, s.h): s for s in asked if isinstance(s, Solve)}
    for k, row in enumerate(run.solves.table):
        solve = solves.get((float(row["time"]), float(row["h"])))
        if solve is None:
            continue
        one, mine = step_islands(model, scale, solve), every.solve == k
        most = max(most, len(one.made))
        for name in ("made", "left", "at_hand"):
            np.testing.assert_allclose(getattr(one, name), getattr(every, name)[mine], rtol=0, atol=1e-12)
        assert np.array_equal(one.label[0] >= 0, every.label[k] >= 0)
    assert most >= 3
    sums = np.bincount(every.solve, every.left)
    assert sums.sum() == pytest.approx(run.ledger["remainder"].sum(), abs=1e-12)


@pytest.mark.skipif(not available(), reason="compiled code is not at hand")
def test_compiled_islands_are_the_steppers_own() -> None:
    """Machine code divides a scene into the same islands: it takes and refuses the same steps."""
    with compared() as found:
        ours = by_stages.simulate(crowd(), duration=1.0, step=0.02, progress=False)
    assert found.own <= 0.7 * len(ours.steps)
    assert found.failed == 0
    assert found.position < 1e-12
    with uncompiled():
        theirs = by_stages.simulate(crowd(), duration=1.0, step=0.02, progress=False)
    assert ours.steps["guard"].tolist() == theirs.steps["guard"].tolist()
    assert np.any(ours.steps["guard"] != "none")


def test_the_summary_names_the_island() -> None:
    """The largest gain of an island in a step, when and which bodies."""
    scene = cone(0)
    scene.add("ball", shapes.sphere(0.2), mass=1e3, position=(0, 5, 0.2))
    told = re.search(r"largest gain (\S+) of its energy: '(\w+)', (\S+) s",
                     simulate(scene, duration=1.5, step=0.01, progress=False).summary())  # fmt: skip
    assert told
    assert told[2] == "cone"
    assert 0 < float(told[1]) <= GUARD


@pytest.mark.parametrize("stepper", ["implicit-rattle", "implicit-euler"])
def test_friction_never_gains(stepper: str) -> None:
    """An egg that rolls to rest: no step books a gain in friction; what else is lost is the error."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    scene.add("egg", egg, mass=1.0, position=(0, 0, 0.6), orientation=(0.9, 0.3, 0.3, 0))
    scene.friction(mu=0.4, e_r=0.02)
    run = simulate(scene, duration=3.0, step=0.01, stepper=stepper, progress=False)
    assert np.min(run.ledger["friction"]) >= 0
    assert np.max(run.ledger["remainder"]) < 1e-4


def test_slips_have_no_scale_of_their_own() -> None:
    """A block that slides at a nanometre a second, in a scene where nothing is faster, slides."""
    scene = Scene(gravity=(0, 0, -1e-9))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("block", shapes.box(0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1e-9, 0, 0))
    scene.friction(mu=0.1)
    run = simulate(scene, duration=1.0, step=0.1, progress=False)
    assert set(run.contacts["mode"].tolist()) == {"slide"}
    lost = 1e-18 / 2 - float(np.sum(run["block"].velocity[-1] ** 2)) / 2
    assert run.ledger["friction"].sum() == pytest.approx(lost, rel=1e-6)
