"""Compiled steps against the steppers' own: the same step from the same state, or left to the stepper."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_stages import simulate
from compiled_scenes import (
    EULER,
    RATTLE_4,
    TILTED,
    Build,
    egg,
    floating,
    framed,
    on_ground,
    on_spheres,
    planar,
    pushed,
    several,
    two_eggs,
)
from same_runs import assert_identical

from implicit_geom import Scene, Trajectory, shapes
from implicit_geom.compiled import runner
from implicit_geom.experiments import euler_disc
from implicit_geom.experiments.benchmarks.agreement import BOUND, compared
from implicit_geom.machine.availability import SWITCH, available
from implicit_geom.rotation import unit
from implicit_geom.scene.options import IMPLICIT

pytestmark = pytest.mark.skipif(not available(), reason="compiled code is not at hand")


@dataclass(frozen=True)
class Case:
    build: Build
    h: float = 0.01
    steps: int = 60
    share: float = 0.8  # of the steps that must be taken in compiled code
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "ellipsoid on plane, euler": Case(egg, options={"stepper": EULER}),
    "ellipsoid on plane, rattle": Case(egg),
    "ellipsoid on plane, rattle-4": Case(egg, options={"stepper": RATTLE_4}),
    "two ellipsoids, euler": Case(two_eggs, options={"stepper": EULER}),
    "two ellipsoids, rattle": Case(two_eggs),
    # (three sticking contacts: their equations are singular, no solution is known beyond its tolerance, and
    # rounding, which differs between processors, decides how many steps compiled code takes: 75 to 85 of 100)
    "sphere on fixed spheres": Case(on_spheres, steps=100, share=0.6, options={"tolerance": 1e-12}),
    "box lands": Case(
        lambda: on_ground(
            shapes.box(0.5, 0.3, 0.2), position=(0, 0, 0.7), orientation=TILTED, velocity=(1, 0, 0)
        ),
        steps=100,
        share=0.3,
        options={
            "tolerance": 1e-12
        },  # (spinning flat, about to stop: its velocity is known to the tolerance)
    ),
    "cylinder lands": Case(
        lambda: on_ground(shapes.cylinder(0.3, 0.8), position=(0, 0, 0.7), orientation=TILTED),
        steps=100,
        share=0.3,
    ),
    "cone lands": Case(
        lambda: on_ground(shapes.cone(0.4, 0.9), position=(0, 0, 0.7), orientation=TILTED),
        steps=100,
        share=0.3,
        options={"tolerance": 1e-12},  # (its point on a line or a face is known to the tolerance)
    ),
    # (a point on an edge is given in stage 2: nothing there may hang on rounding)
    "coin on its rim": Case(lambda: euler_disc.start().scene(), h=1e-3, steps=40),
    "superellipsoid p = 10": Case(
        lambda: on_ground(
            shapes.superellipsoid(0.5, 0.4, 0.3, p=10),
            position=(0, 0, 0.75),
            orientation=TILTED,
            velocity=(0.5, 0, 0),
        ),
        share=0.3,
    ),
    "thin ellipsoid 1:1:20": Case(
        lambda: on_ground(
            shapes.ellipsoid(0.05, 0.05, 1.0), position=(0, 0, 0.8), orientation=unit((1, 0.5, 0, 0))
        ),
        share=0.5,
    ),
    "size 1e-3 m": Case(lambda: egg(1e-3)),
    "size 1e3 m": Case(lambda: egg(1e3)),
    "step 1e-4 s": Case(lambda: egg(position=(0, 0, 0.4)), h=1e-4, steps=200),
    "step 0.05 s": Case(egg, h=0.05, steps=40, share=0.3),
    "step 0.1 s": Case(egg, h=0.1, steps=40, share=0.2),
    "no friction": Case(lambda: egg(friction={"mu": 0.0})),
    "mu = 2": Case(lambda: egg(friction={"mu": 2.0})),
    "friction against spin": Case(lambda: egg(friction={"e_r": 0.05})),
    "anisotropic, direction and frame": Case(framed),
    "force and torque": Case(pushed),
    "force and torque, rattle-4": Case(pushed, options={"stepper": RATTLE_4}),
    "disc": Case(lambda: planar(shapes.disc(0.5), 0.6)),
    "ellipse, rattle-4": Case(lambda: planar(shapes.ellipse(0.6, 0.4), 0.6), options={"stepper": RATTLE_4}),
    "polygon": Case(
        lambda: planar(shapes.polygon([(-0.5, -0.3), (0.5, -0.3), (0.3, 0.4), (-0.2, 0.4)]), 0.8),
        steps=100,
        share=0.3,
    ),
    "rectangle, euler": Case(
        lambda: planar(shapes.rectangle(0.5, 0.3), 0.8), steps=100, share=0.3, options={"stepper": EULER}
    ),
    "restitution": Case(lambda: egg(friction={"restitution": 0.6}), steps=100),
    "restitution, euler": Case(
        lambda: egg(friction={"restitution": 0.6}), steps=100, share=0.5, options={"stepper": EULER}
    ),
    "several bodies": Case(several),
    # (bodies that fly close by each other need a closer look)
    "zero gravity": Case(floating, steps=80, share=0.4),
    "implicit residual": Case(egg, options={"friction_residual": "implicit"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_step_is_the_steppers_own(name: str) -> None:
    """Every step that compiled code takes agrees with the stepper's own, and most are taken by it."""
    case = CASES[name]
    with compared() as found:
        simulate(case.build(), duration=case.steps * case.h, step=case.h, progress=False, **case.options)
    assert found.failed == 0
    assert found.position <= BOUND
    assert found.velocity <= BOUND
    assert found.compiled + found.own == case.steps
    assert found.compiled >= case.share * case.steps


# ---- scenes that never suit


def moving_halfspace() -> Scene:
    """A half-space with a mass falls on a fixed ball."""
    scene = Scene()
    scene.add(
        "ceiling",
        shapes.halfspace(normal=(0, 0, -1)),
        mass=1.0,
        com=(0, 0, 0),
        inertia=(1, 1, 1),
        position=(0, 0, 0.7),
    )
    scene.add("ball", shapes.sphere(0.3), mass=1.0, position=(0, 0, 0.3))
    scene.friction(mu=0.2)
    return scene


def shaken() -> Scene:
    scene = egg()
    scene.applied("body", force=lambda t: (np.sin(9 * t), 0.0, 0.0))
    return scene


UNSUITED: dict[str, tuple[Build, dict[str, Any]]] = {
    "time-dependent load": (shaken, {}),
    "fritz-john": (egg, {"friction_residual": "fritz-john"}),
    "moving half-space": (moving_halfspace, {}),
}


@pytest.mark.parametrize("name", UNSUITED)
def test_what_does_not_suit_is_left_to_the_stepper(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a run is the one without compiled code, to the last bit."""
    build, options = UNSUITED[name]
    with compared() as found:
        ours = simulate(build(), duration=0.3, step=0.01, progress=False, **options)
    assert found.compiled == 0
    monkeypatch.setenv(SWITCH, "0")
    assert_identical(ours, simulate(build(), duration=0.3, step=0.01, progress=False, **options))


def test_the_switch_leaves_all_steps_to_the_stepper(monkeypatch: pytest.MonkeyPatch) -> None:
    """IMPLICIT_GEOM_COMPILED=0 is obeyed."""
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    with compared() as found:
        simulate(egg(), duration=0.1, step=0.01, progress=False)
    assert found.compiled + found.own == 0


def test_a_large_system_is_left_to_the_stepper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above LARGEST unknowns no engine is made; the run is the stepper's own."""
    monkeypatch.setattr(runner, "LARGEST", 10)
    with compared() as found:
        simulate(egg(), duration=0.1, step=0.01, progress=False)
    assert (found.compiled, found.own) == (0, 10)


# ---- continued runs


def bouncing() -> Scene:
    """Two eggs that bounce: own and compiled steps take turns."""
    scene = two_eggs()
    scene.friction(mu=0.4, restitution=0.5)
    return scene


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_a_run_broken_anywhere_equals_the_unbroken_one(stepper: str, tmp_path: Path) -> None:
    """Breaks before, right after and between steps that the stepper took itself; also saved and loaded."""
    h, steps = 1 / 64, 40  # (sums of such durations are exact)

    def run(count: int) -> Trajectory:
        return simulate(bouncing(), duration=count * h, step=h, progress=False, stepper=stepper)

    whole = run(steps)
    own = np.flatnonzero(whole.steps["reason"] != "").tolist()
    assert 3 <= len(own) <= 0.7 * steps
    middle = own[len(own) // 2]
    breaks = {1, own[0], own[0] + 1, middle + 1, own[-1] + 1, steps // 2}
    for at in sorted(breaks & set(range(1, steps))):
        part = run(at)
        if at in (own[0] + 1, steps // 2):
            part.save(tmp_path / "part.h5")
            part = Trajectory.load(tmp_path / "part.h5")
        assert_identical(whole, part.resume(duration=(steps - at) * h))


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_the_length_of_a_call_leaves_no_trace(stepper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of at most 16 steps (the least that MEMORY allows) or fewer give the bits of long calls."""
    h, steps = 1 / 64, 40

    def run(count: int) -> Trajectory:
        return simulate(bouncing(), duration=count * h, step=h, progress=False, stepper=stepper)

    runs = [run(steps)]
    monkeypatch.setattr(runner, "MEMORY", 1)
    runs.append(run(steps))
    clip = np.clip
    for longest in (1, 7):
        with monkeypatch.context() as m:
            m.setattr(runner.np, "clip", lambda *a, n=longest: n if a[1] == 16 else clip(*a))
            runs.append(run(17).resume(duration=(steps - 17) * h))
    for run in runs[1:]:
        assert_identical(runs[0], run)
