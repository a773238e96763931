"""The guard of `implicit-rattle`: thin bodies that rock are solved, do not penetrate and do not gain."""

from __future__ import annotations

import numpy as np
import pytest
from law_scenes import G, on_ground

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.rotation import unit

THIN, SHORT = 0.05, 20  # a 1:1:20 ellipsoid of 1 m
LIMIT = 1e-3  # of the energy at hand in a step


def thin(seed: int) -> Scene:
    """A thin ellipsoid dropped askew and spinning."""
    rng = np.random.default_rng(seed)
    scene = on_ground(
        shapes.ellipsoid(THIN, THIN, SHORT * THIN), position=(0, 0, 1.2),
        orientation=unit(rng.normal(size=4)), angular_velocity=2 * rng.normal(size=3),
    )  # fmt: skip
    scene.friction(mu=0.5)
    return scene


def gains(run: Trajectory, lowest: float) -> tuple[np.ndarray, np.ndarray]:
    """Gain of each step over the energy above the lowest configuration, and the largest turn of its parts."""
    above = run.kinetic_energy + G * (run["body"].position[:, 2] - lowest)
    gain = np.diff(run.energy) / np.maximum(above[1:], above[:-1])
    spin = np.linalg.norm(run.solves.w, axis=2).max(axis=1)
    turn = run.steps["step"] * np.linalg.norm(run["body"].angular_velocity[:-1], axis=1)
    np.maximum.at(turn, run.solves.table["step"], run.steps["step"][run.solves.table["step"]] * spin)
    return gain, turn


CASES = [(0.01, 3, 2.5), (0.01, 4, 2.5), (0.05, 0, 2.5), (0.05, 1, 2.5)]


@pytest.mark.parametrize(("h", "seed", "duration"), CASES)
def test_thin_ellipsoid_is_guarded(h: float, seed: int, duration: float) -> None:
    """1:1:20: no step fails, penetrates, or gains more than the tolerance; what the guard did is recorded."""
    run = simulate(thin(seed), duration=duration, step=h, progress=False)
    assert not run.failed
    assert len(run.good_steps) == round(duration / h)
    assert run.max_penetration < 1e-10 * SHORT * THIN
    assert np.max(gains(run, THIN)[0]) <= LIMIT
    assert np.max(run.energy - run.energy[0]) < 1e-9 * run.energy[0]
    guard, form, parts = run.steps["guard"], run.steps["form"], run.steps["solves"]
    assert np.sum(guard != "none") >= 2
    assert np.array_equal(form == "euler", guard == "euler")
    assert set(form) <= {"rattle", "euler", "rattle-4"}
    assert np.array_equal(form == "rattle-4", guard == "composed")
    # (an impact divides a step in two flights, the second of which may have no time left)
    plain, struck = guard == "none", run.steps["impacts"]
    assert np.all(parts[plain] <= 1 + 2 * struck[plain])
    assert np.all(parts[plain & (struck == 0)] == 1)
    assert np.all(parts[guard != "none"] > 1)
    # the forms of the solves are those of their steps
    solves = run.solves.table
    for k in np.flatnonzero(guard == "euler"):
        assert "euler" in solves["form"][solves["step"] == k]
    for k in np.flatnonzero((guard == "substeps") | (guard == "composed")):
        assert set(solves["form"][solves["step"] == k]) <= {"rattle", "impact"}


def test_a_smaller_tolerance_gives_smaller_gains() -> None:
    """energy_guard bounds the gain of a step: 1e-4 < 1e-2 < none; without it more than 10 % are gained."""
    worst, guarded = [], []
    for guard in (10.0, 1e-2, 1e-4):
        run = simulate(thin(1), duration=1.5, step=0.01, energy_guard=guard, progress=False)
        gain, _ = gains(run, THIN)
        worst.append(float(gain.max()))
        guarded.append(int(np.sum(run.steps["guard"] != "none")))
        assert worst[-1] <= guard
    assert worst[0] > 0.1 > worst[1] > 10 * worst[2]
    assert guarded[0] < guarded[1] < guarded[2]


@pytest.mark.parametrize("seed", [0, 1])
def test_compact_body_is_hardly_ever_guarded(seed: int) -> None:
    """A compact ellipsoid dropped with spin: below 5 % of its steps with h |w| < 0.2 are guarded."""
    rng = np.random.default_rng(50 + seed)
    scene = on_ground(
        shapes.ellipsoid(0.25, 0.2, 0.15), position=(0, 0, 0.4), orientation=unit(rng.normal(size=4)),
        velocity=(1, 0, 0), angular_velocity=4 * rng.normal(size=3),
    )  # fmt: skip
    scene.friction(mu=0.5)
    run = simulate(scene, duration=1.5, step=0.01, progress=False)
    gain, turn = gains(run, 0.15)
    slow = turn < 0.2
    assert slow.sum() > 100
    assert np.sum(run.steps["contacts"] > 0) > 50
    assert np.mean(run.steps["guard"][slow] != "none") < 0.05
    assert np.max(gain) <= LIMIT
