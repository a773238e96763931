"""The ledger of energy: it balances, and each of its entries is the work it names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.rotation import unit

G = 9.81
STEPPERS = ("implicit-euler", "implicit-rattle", "implicit-rattle-4")


def ran(scene: Scene, duration: float, step: float, stepper: str = "implicit-rattle") -> Trajectory:
    return simulate(scene, duration=duration, step=step, stepper=stepper, progress=False)


def pushed_egg() -> Scene:
    """An egg that falls, bounces, slides and rolls under a force and a torque that change with time."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "body", shapes.ellipsoid(0.5, 0.4, 0.3), mass=2.0, position=(0, 0, 0.35), velocity=(1, 0.5, 0),
        angular_velocity=(1, 0, 2),
    )  # fmt: skip
    scene.applied("body", force=lambda t: (5 * np.cos(9 * t), 2.0, -3.0), torque=lambda t: (0, t, 0.4))
    scene.friction(mu=0.3, e_r=0.02, restitution=0.3)
    return scene


def pushed_box() -> Scene:
    """A box that drops on its face and is pushed along it; faces, edges, substeps."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "body", shapes.box(0.2, 0.15, 0.1), mass=1.0, position=(0, 0, 0.16), orientation=unit((1, 0.1, 0, 0))
    )
    scene.applied("body", force=(4, 1, 0), torque=(0, 0, 0.1))
    scene.friction(mu=0.3)
    return scene


def two_balls() -> Scene:
    """Two balls that collide; one is pushed."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("one", shapes.sphere(0.1), mass=1.0, position=(-0.15, 0, 0), velocity=(1, 0.2, 0))
    scene.add("two", shapes.sphere(0.1), mass=2.0, position=(0.15, 0.03, 0), angular_velocity=(0, 3, 5))
    scene.applied("one", force=(3, 0, 0))
    scene.friction(mu=0.4, restitution=0.5)
    return scene


def planar_disc() -> Scene:
    scene = Scene(dim=2, gravity=(0, -G))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("body", shapes.disc(0.5), mass=1.0, position=(0, 0.53), velocity=(2, 0), angular_velocity=1.0)
    scene.applied("body", force=(0.5, 0), torque=0.7)
    scene.friction(mu=0.2, restitution=0.4)
    return scene


@pytest.mark.parametrize("stepper", STEPPERS)
@pytest.mark.parametrize("make", [pushed_egg, pushed_box, two_balls, planar_disc])
def test_ledger_balances(make: Callable[[], Scene], stepper: str) -> None:
    """Kinetic + potential changes by work - friction - impact + remainder in every step, to 1e-12."""
    run = ran(make(), 0.3, 0.01, stepper)
    ledger = run.ledger
    assert len(ledger) == len(run.steps) == 30
    assert np.array_equal(ledger["kinetic"], run.kinetic_energy[1:])
    assert np.array_equal(ledger["potential"], run.potential_energy[1:])
    change = np.diff(run.energy)
    named = ledger["work"] - ledger["friction"] - ledger["impact"] + ledger["remainder"]
    scale = np.max(np.abs(run.energy)) + np.max(run.kinetic_energy)
    assert np.max(np.abs(change - named)) < 1e-12 * scale
    # entries are there to be told apart: each takes part in the scene
    assert np.sum(np.abs(ledger["work"])) > 1e-3 * scale
    if make is two_balls:  # the friction of an impact belongs to the impact
        assert np.all(ledger["friction"] == 0)
    else:
        assert np.sum(ledger["friction"]) > 1e-3 * scale
    assert np.sum(ledger["impact"]) > 1e-3 * scale
    if stepper != "implicit-euler":
        assert np.max(np.abs(ledger["remainder"])) < 1e-3 * scale
        assert np.min(ledger["friction"]) > -1e-9 * scale
        assert np.min(ledger["impact"]) > -1e-9 * scale


@pytest.mark.parametrize(("stepper", "bound"), [("implicit-rattle", 1e-12), ("implicit-euler", 2e-2)])
def test_sliding_friction_is_mu_m_g_times_the_way(stepper: str, bound: float) -> None:
    """A sliding box loses mu m g times the way; exactly by `implicit-rattle`, to the order by Euler."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("body", shapes.box(0.2, 0.2, 0.05), mass=2.0, position=(0, 0, 0.05), velocity=(1.5, 0, 0))
    scene.friction(mu=0.3)
    run = ran(scene, 0.3, 0.01, stepper)
    way = run["body"].position[-1, 0]
    lost = np.sum(run.ledger["friction"])
    assert abs(lost - 0.3 * 2.0 * G * way) < 2 * bound
    assert np.max(np.abs(run.ledger["impact"])) < 1e-12
    assert np.max(np.abs(run.ledger["work"])) == 0
    if stepper == "implicit-rattle":
        assert np.max(np.abs(run.ledger["remainder"])) < 1e-12


@pytest.mark.parametrize("stepper", STEPPERS)
def test_friction_never_gains(stepper: str) -> None:
    """An egg that rocks and turns on the spot: friction never gains."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    scene.add("egg", egg, mass=1.0, position=(0, 0, 0.6), orientation=(0.9, 0.3, 0.3, 0))
    scene.friction(mu=0.4, e_r=0.02)
    ledger = ran(scene, 3.0, 0.01, stepper).ledger
    assert np.min(ledger["friction"]) >= 0
    assert 5e-4 < np.sum(ledger["friction"]) < 2e-3


def test_sliding_friction_of_the_stepper_of_order_one_converges() -> None:
    """With `implicit-euler` the same difference halves with the step."""

    def difference(h: float) -> float:
        scene = Scene(dim=2, gravity=(0, -G))
        scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
        scene.add("body", shapes.rectangle(0.2, 0.05), mass=1.0, position=(0, 0.05), velocity=(1.5, 0))
        scene.friction(mu=0.3)
        run = ran(scene, 0.24, h, "implicit-euler")
        return float(abs(np.sum(run.ledger["friction"]) - 0.3 * G * run["body"].position[-1, 0]))

    coarse, fine = difference(0.02), difference(0.01)
    assert 0.45 * coarse < fine < 0.55 * coarse


@pytest.mark.parametrize("stepper", ["implicit-rattle", "implicit-euler"])
@pytest.mark.parametrize("e", [0.0, 0.5])
def test_drop_loses_its_height_in_the_impact(stepper: str, e: float) -> None:
    """A ball that drops from a height loses (1 - e^2) m g height in its first impact, to 1e-3 at h = 1e-3."""
    height = 0.05
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("body", shapes.sphere(0.1), mass=2.0, position=(0, 0, 0.1 + height))
    scene.friction(mu=0.3, restitution=e)
    run = ran(scene, 0.12, 1e-3, stepper)
    lost = float(np.sum(run.ledger["impact"]))
    energy = 2.0 * G * height
    assert abs(lost - (1 - e**2) * energy) < (1e-3 if stepper == "implicit-rattle" else 2e-2) * energy
    # by Euler a plastic impact takes a second step: the first one ends on the way to the ground
    steps = np.sum(np.abs(run.ledger["impact"]) > 1e-9 * energy)
    assert steps == (2 if stepper == "implicit-euler" and e == 0 else 1)
    assert np.sum(np.abs(run.ledger["friction"])) < 1e-12 * energy


@pytest.mark.parametrize("stepper", STEPPERS)
def test_rolling_sphere_has_no_remainder(stepper: str) -> None:
    """A sphere that rolls without slip on a level plane changes nothing: every entry below 1e-12."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "body", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1, 0.5, 0),
        angular_velocity=(-5, 10, 0),
    )  # fmt: skip
    scene.friction(mu=0.3)
    run = ran(scene, 0.3, 0.01, stepper)
    for name in ("work", "friction", "impact", "remainder"):
        assert np.max(np.abs(run.ledger[name])) < 1e-12, name


def test_remainder_of_rolling_is_the_error_of_the_energy() -> None:
    """An egg that rolls without slip: the remainder is the whole change of energy, of second order."""

    def worst(h: float) -> float:
        scene = Scene(gravity=(0, 0, -G))
        scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
        q = np.array([0.9580325796404554, 0.24462587947773934, 0.14479246283091118, -0.036971585637570345])
        egg = shapes.ellipsoid(0.5, 0.4, 0.3)
        scene.add("body", egg, mass=1.0, position=(0, 0, 0.3444669009325333), orientation=q)
        scene.friction(mu=1.0)
        run = ran(scene, 0.4, h)
        assert np.max(np.abs(run.ledger["friction"])) < 1e-9
        assert np.max(np.abs(run.ledger["impact"])) < 1e-9
        sums = np.cumsum(run.ledger["remainder"])
        assert np.max(np.abs(sums - (run.energy[1:] - run.energy[0]))) < 1e-9
        return float(np.max(np.abs(sums)))

    assert 3.6 < worst(0.02) / worst(0.01) < 4.4


@pytest.mark.parametrize("stepper", ["implicit-rattle", "implicit-rattle-4"])
def test_work_of_a_torque(stepper: str) -> None:
    """A torque about a principal axis: the work is torque times angle, all of it kinetic, nothing remains."""
    scene = Scene(gravity=(0, 0, -G))
    box = shapes.box(0.1, 0.2, 0.3)
    scene.add("body", box, mass=2.0, angular_velocity=(0, 0, 1.0), velocity=(0, 0, 1))
    scene.applied("body", torque=(0, 0, 0.25))
    run = ran(scene, 0.5, 0.01, stepper)
    J = box.inertia(2.0)[2, 2]
    w = 1.0 + 0.25 / J * 0.5
    angle = 0.5 * (1.0 + w) / 2
    assert abs(run["body"].angular_velocity[-1, 2] - w) < 1e-12
    assert abs(np.sum(run.ledger["work"]) - 0.25 * angle) < 1e-12
    assert np.max(np.abs(run.ledger["remainder"])) < 1e-12


def test_work_of_a_force() -> None:
    """A constant force on a free body: work is force times way; gravity is potential energy, no work."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("body", shapes.sphere(0.1), mass=2.0, velocity=(0.3, 0, 2))
    scene.applied("body", force=(1.0, 2.0, 3.0))
    run = ran(scene, 0.5, 0.01)
    way = run["body"].position[-1] - run["body"].position[0]
    assert abs(np.sum(run.ledger["work"]) - way @ (1.0, 2.0, 3.0)) < 1e-12
    assert np.max(np.abs(run.ledger["remainder"])) < 1e-12


def test_saved_run_keeps_its_ledger(tmp_path: Path) -> None:
    """A run that was saved and loaded has the same ledger to the last bit, and the same summary and table."""
    run = ran(pushed_box(), 0.2, 0.01)
    run.save(tmp_path / "run.h5")
    loaded = Trajectory.load(tmp_path / "run.h5")
    assert loaded.ledger.dtype == run.ledger.dtype
    assert loaded.ledger.tobytes() == run.ledger.tobytes()
    assert loaded.summary() == run.summary()
    columns = loaded.table("ledger")
    assert list(columns) == ["time", "kinetic", "potential", "work", "friction", "impact", "remainder"]
    assert np.array_equal(columns["friction"], run.ledger["friction"])
