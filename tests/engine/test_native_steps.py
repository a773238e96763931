"""Steps of the native engine: those of the Python form, and the laws of a motion without any reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from native_steps import (
    Build,
    differences,
    disc_on_disc,
    framed,
    landing,
    pair,
    run_native,
    stack,
    states_of,
    stepper,
    two_eggs,
)
from same_runs import assert_identical

from implicit_geom import Scene, Trajectory, rotation, shapes, simulate
from implicit_geom.engine.library import library
from implicit_geom.machine.availability import SWITCH, available
from implicit_geom.model.records import POSITION, Attempt

pytestmark = pytest.mark.skipif(
    library() is None or not available(), reason="the native engine is not at hand"
)

H, STEPS = 0.01, 50
BOUND = 1e-9  # of sizes, and of the speeds at hand, in a step
FOURTH = {"stepper": "implicit-rattle-4"}
BOX = shapes.box(0.5, 0.3, 0.2)
EGG = shapes.ellipsoid(0.5, 0.4, 0.3)

SCENES: dict[str, tuple[Build, dict[str, Any]]] = {
    "box": (lambda: landing(BOX), {}),
    "cylinder": (lambda: landing(shapes.cylinder(0.3, 0.8)), {}),
    "cone": (lambda: landing(shapes.cone(0.4, 0.9)), {}),
    "capsule": (lambda: landing(shapes.capsule(0.2, 0.5)), {}),
    "ellipsoid": (lambda: landing(EGG), {}),
    "ellipsoid, order four": (lambda: landing(EGG), FOURTH),
    "superellipsoid": (lambda: landing(shapes.superellipsoid(0.5, 0.4, 0.3, 4)), {}),
    "rectangle": (lambda: landing(shapes.rectangle(0.5, 0.3)), {}),
    "disc on disc": (disc_on_disc, {}),
    "two bodies": (two_eggs, {}),
    "stack": (stack, {}),
    "direction": (lambda: framed(carried=False), {}),
    "direction and frame": (framed, {}),
    "torsion": (lambda: landing(EGG, {"e_r": 0.05}, angular_velocity=(0, 0, 5)), {}),
    "restitution 0.5": (lambda: landing(BOX, {"restitution": 0.5}), {}),
    "restitution 1": (lambda: landing(BOX, {"restitution": 1.0, "mu": 0.0}), {}),
}


def way(taken: Attempt) -> tuple[Any, ...]:
    """How a step was taken: form, guard, and the pairs whose friction opposes the slip at the start."""
    lags = {(c.pair, c.lagged) for s in taken.solves for c in s.contacts if c.stage == POSITION and c.p_n > 0}
    return taken.form, taken.guard, lags


def slides_on_a_patch(taken: Attempt) -> bool:
    """Several points of a pair slide: how the weight is shared by them is open, and with it the motion."""
    for s in taken.solves:
        sliding = Counter((c.pair, c.stage) for c in s.contacts if np.linalg.norm(c.slip) > 1e-9)
        if sliding and max(sliding.values()) > 1:
            return True
    return False


@pytest.mark.parametrize("name", SCENES)
def test_a_native_step_is_the_python_one(name: str) -> None:
    """From every state of a run, where both take the step in one way: the same state at its end.

    (Where parts fail or gain too much the two divide steps each in its own way.)
    """
    build, options = SCENES[name]
    run = run_native(build(), STEPS, H, **options)
    compared = touching = 0
    for start in states_of(run)[:-1][:: 2 if name == "cone" else 1]:
        both = stepper(build(), H, **options)  # (it remembers nothing)
        ours = both.step(start, H)
        both.memory.warm.clear()
        theirs = both.reference_step(start, H)
        if theirs.reason or ours.guard != "none" or way(ours) != way(theirs):
            continue
        if slides_on_a_patch(ours) or slides_on_a_patch(theirs):
            continue
        off = differences(both.model, start, ours.solves[-1].end, theirs.solves[-1].end, H)
        assert max(off) <= BOUND, start.time
        compared += 1
        touching += any(c.p_n > 0 for s in ours.solves for c in s.contacts)
    assert compared >= 0.3 * STEPS
    assert touching >= 3


@pytest.mark.parametrize("name", ["cylinder", "capsule", "disc on disc", "restitution 0.5", "restitution 1"])
def test_whole_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without native code: one motion."""
    build, options = SCENES[name]
    ours = run_native(build(), STEPS, H, **options)
    assert not any("not compiled" in why for why in ours.steps["reason"])
    monkeypatch.setenv(SWITCH, "0")
    theirs = run_native(build(), STEPS, H, **options)
    assert all("not compiled" in why for why in theirs.steps["reason"])
    for body in ours.names:
        np.testing.assert_allclose(ours[body].position, theirs[body].position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(ours[body].velocity, theirs[body].velocity, rtol=0, atol=1e-7)


def momenta(run: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Linear and angular momentum about the origin at each time."""
    P, L = np.zeros((len(run.time), 3)), np.zeros((len(run.time), 3))
    for name, body in run.scene.bodies.items():
        if body.fixed:
            continue
        b, R = run[name], rotation.matrix(run[name].orientation)
        spin = np.einsum("tij,jk,tlk,tl->ti", R, body.inertia, R, b.angular_velocity)
        P += body.mass * b.velocity
        L += body.mass * np.cross(b.position, b.velocity) + spin
    return P, L


@pytest.mark.parametrize(("e", "mu"), [(0.0, 0.4), (0.5, 0.3), (1.0, 0.0)])
def test_collisions_conserve_momentum(e: float, mu: float) -> None:
    """Two bodies that strike each other far from anything else."""
    run = run_native(pair(e, mu), 80, H)
    assert np.sum(run.steps["impacts"]) >= 1
    for part in momenta(run):
        scale = max(1.0, float(np.max(np.abs(part))))
        np.testing.assert_allclose(part, np.broadcast_to(part[0], part.shape), rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("build", [lambda: pair(1.0, 0.0), SCENES["restitution 1"][0]])
def test_impacts_without_loss_keep_the_energy(build: Callable[[], Scene]) -> None:
    """e = 1 without friction."""
    run = run_native(build(), 100, H)
    assert len(run.impacts) >= 1
    assert np.max(np.abs(run.impacts["loss"])) <= 1e-9 * run.energy[0]


def reordered(scene: Scene, order: list[str]) -> Scene:
    """The same bodies, added in another order."""
    bodies = {name: scene.bodies[name] for name in order}
    assert set(bodies) == set(scene.bodies)
    scene.bodies.clear()
    scene.bodies.update(bodies)
    return scene


def test_the_order_of_bodies_does_not_matter() -> None:
    """The same motion, to rounding."""
    one = run_native(two_eggs(), STEPS, H)
    other = run_native(reordered(two_eggs(), ["upper", "body", "ground"]), STEPS, H)
    assert len(one.impacts) >= 2
    for name in ("body", "upper"):
        np.testing.assert_allclose(other[name].position, one[name].position, rtol=0, atol=1e-10)
        np.testing.assert_allclose(other[name].velocity, one[name].velocity, rtol=0, atol=1e-8)


def falling(L: float = 1.0, M: float = 1.0, T: float = 1.0) -> Scene:
    """A box falls on another, all in other units of length, mass and time."""
    scene = Scene(gravity=(0, 0, -9.81 * L / T**2))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add(
        "low", shapes.ellipsoid(0.3 * L, 0.2 * L, 0.2 * L), mass=M, position=(0, 0, 0.25 * L),
        velocity=(0.5 * L / T, 0, 0), angular_velocity=(0, 1 / T, 0.5 / T),
    )  # fmt: skip
    scene.add(
        "high", shapes.cylinder(0.1 * L, 0.4 * L), mass=2 * M, position=(0.05 * L, 0.02 * L, 0.8 * L),
        orientation=rotation.unit((1, 0.3, 0.2, 0.1)),
    )  # fmt: skip
    scene.friction(mu=0.3, e_r=0.01 * L, restitution=0.3)
    return scene


@pytest.mark.parametrize("units", [(1e3, 1e3, 1e3), (100.0, 1e3, 1.0), (1e-3, 1.0, 1.0)])
def test_units_do_not_matter(units: tuple[float, float, float]) -> None:
    """Millimetres, grams and milliseconds, centimetres, kilometres: the same steps, to rounding."""
    L, M, T = units
    ours, theirs = run_native(falling(), STEPS, H), run_native(falling(L, M, T), STEPS, H * T)
    assert len(ours.impacts) >= 2
    for column in ("guard", "form", "solves", "contacts", "impacts"):
        assert ours.steps[column].tolist() == theirs.steps[column].tolist()
    for name in ("low", "high"):
        np.testing.assert_allclose(theirs[name].position / L, ours[name].position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(theirs[name].velocity * T / L, ours[name].velocity, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["box", "two bodies", "stack"])
def test_a_broken_run_is_the_unbroken_one(name: str) -> None:
    """Bit for bit, wherever it is broken."""
    h = 1 / 64  # (sums of such durations are exact)
    build, options = SCENES[name]
    whole = simulate(build(), duration=40 * h, step=h, progress=False, **options)
    assert np.sum(whole.steps["contacts"] > 0) >= 5
    for at in (1, 13, 26, 39):
        part = simulate(build(), duration=at * h, step=h, progress=False, **options)
        assert_identical(whole, part.resume(duration=(40 - at) * h))


def test_boxes_in_a_bin_do_not_overlap() -> None:
    """Eight boxes fall into a bin: every step is taken, no pair overlaps, nothing is made up."""
    rng = np.random.default_rng(7)
    scene = Scene()
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    for k, normal in enumerate(((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0))):
        scene.add(f"wall {k}", shapes.halfspace(normal, offset=-0.35), fixed=True)
    for k in range(8):
        q = rng.normal(size=4)
        place = (0.3 * (k // 2 % 2) - 0.15, 0.3 * (k % 2) - 0.15, 0.35 + 0.3 * (k // 4))
        box = shapes.box(0.1, 0.08, 0.06)
        scene.add(f"box {k}", box, mass=1.0, position=place, orientation=q / np.linalg.norm(q))
    scene.friction(mu=0.5)
    run = simulate(scene, duration=2.0, step=0.01, progress=False)
    assert run.max_penetration < 1e-9
    assert np.max(run.steps["dynamics"]) < 1e-9
    assert np.max(run.steps["remainder_energy"]) < 1e-3 * run.energy[0]
