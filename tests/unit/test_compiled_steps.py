"""Compiled steps against the steppers' own: the same step from the same state, or left to the stepper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from test_restart import assert_identical

import shapes
from experiments.benchmarks.agreement import BOUND, compared
from implicit_geom import Scene, Trajectory, simulate
from implicit_geom.compiled import SWITCH, available, blocks, runner
from implicit_geom.compiled.engine import Engine
from implicit_geom.compiled.pair_functions import PairFunctions
from implicit_geom.contact_group import WarmStart
from implicit_geom.distance import closest
from implicit_geom.model import Model
from implicit_geom.options import AVAILABLE, SimulationOptions
from implicit_geom.solver_state import Memory, restore
from implicit_geom.steppers import make_stepper

pytestmark = pytest.mark.skipif(not available(), reason="compiled code is not at hand")

EULER, RATTLE, RATTLE_4 = "implicit-euler", "implicit-rattle", "implicit-rattle-4"
TILTED = (1, 0.1, 0.2, 0.3)
Build = Callable[[], Scene]


def on_ground(
    shape: Any,
    *,
    gravity: float = 9.81,
    friction: dict[str, Any] | None = None,
    mass: float = 1.0,
    **start: Any,
) -> Scene:
    """A body over a half-space."""
    dim = shape.dim
    down = (0.0,) * (dim - 1) + (-gravity,)
    scene = Scene(dim=dim, gravity=down)
    up = (0.0,) * (dim - 1) + (1.0,)
    scene.add("ground", (shapes.halfspace if dim == 3 else shapes.halfplane)(normal=up), fixed=True)
    scene.add("body", shape, mass=mass, **start)
    scene.friction(**({"mu": 0.4} | (friction or {})))
    return scene


def egg(size: float = 1.0, **more: Any) -> Scene:
    """An ellipsoid that lands, slides and rolls; everything in proportion to its size, gravity too."""
    return on_ground(
        shapes.ellipsoid(0.5 * size, 0.4 * size, 0.3 * size),
        gravity=9.81 * size,
        **{
            "position": (0, 0, 0.45 * size),
            "orientation": TILTED,
            "velocity": (1.0 * size, 0.3 * size, 0),
            "angular_velocity": (1, 2, 3),
            **more,
        },
    )


def two_eggs() -> Scene:
    scene = egg()
    scene.add(
        "upper", shapes.ellipsoid(0.3, 0.3, 0.2), mass=0.5, position=(0.05, 0, 1.15), orientation=TILTED
    )
    return scene


def on_spheres() -> Scene:
    """A sphere that comes to lie on three fixed ones, with nothing below."""
    scene = Scene()
    for i, angle in enumerate(2 * np.pi * np.arange(3) / 3):
        at = (0.6 * np.cos(angle), 0.6 * np.sin(angle), 0.0)
        scene.add(f"support{i}", shapes.sphere(0.5), position=at, fixed=True)
    scene.add("ball", shapes.sphere(0.4), mass=1.0, position=(0.02, 0.01, 0.75), angular_velocity=(0.3, 0, 1))
    scene.friction(mu=0.3)
    return scene


def pushed() -> Scene:
    scene = egg()
    scene.applied("body", force=(2.0, -1.0, 0.5), torque=(0.1, 0.2, -0.3))
    return scene


def several() -> Scene:
    """Four bodies in space and a plate, all pairs of other kinds."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("plate", shapes.box(1, 1, 0.1), position=(2, 0, 0.1), fixed=True)
    scene.add("ball", shapes.sphere(0.3), mass=1.0, position=(2, 0, 0.55), velocity=(-0.5, 0, 0))
    scene.add("egg", shapes.ellipsoid(0.4, 0.3, 0.3), mass=2.0, position=(0, 0, 0.35), velocity=(1, 0, 0))
    scene.add("pill", shapes.capsule(0.2, 0.5), mass=1.5, position=(0, 1.0, 0.45), orientation=(1, 1, 0, 0))
    scene.friction(mu=0.5)
    return scene


def floating() -> Scene:
    """Two bodies that meet without gravity."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("one", shapes.ellipsoid(0.5, 0.3, 0.3), mass=1.0, angular_velocity=(0.5, 1, 2))
    scene.add("two", shapes.sphere(0.3), mass=2.0, position=(1.2, 0.1, 0), velocity=(-2, 0, 0))
    scene.friction(mu=0.3)
    return scene


def planar(shape: Any, y: float) -> Scene:
    return on_ground(shape, position=(0, y), orientation=0.3, velocity=(-2, 0), angular_velocity=1.5)


def framed() -> Scene:
    """Two kinds of anisotropic friction at once: across the world, and fixed to a body."""
    scene = egg(friction={"mu": 0.5, "e_t": 1.0, "e_o": 0.3, "e_r": 0.02, "direction": (1, 2, 0.3)})
    scene.add("block", shapes.ellipsoid(0.6, 0.6, 0.3), mass=3.0, position=(3, 0, 0.3), velocity=(-1, 0.5, 0))
    scene.friction("ground", "block", mu=0.4, e_t=1.0, e_o=0.5, e_r=0.1, direction=(1, 0.2, 0), frame="block")
    return scene


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
    # (three sticking contacts: their equations are singular, and no solution is known beyond its tolerance)
    "sphere on fixed spheres": Case(on_spheres, steps=100, options={"tolerance": 1e-12}),
    "box lands": Case(
        lambda: on_ground(
            shapes.box(0.5, 0.3, 0.2), position=(0, 0, 0.7), orientation=TILTED, velocity=(1, 0, 0)
        ),
        steps=100,
        share=0.3,
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
            shapes.ellipsoid(0.05, 0.05, 1.0), position=(0, 0, 0.8), orientation=(1, 0.5, 0, 0)
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


def own_steps(run: Callable[[], Trajectory]) -> tuple[Trajectory, list[int]]:
    """A run, and the numbers of the steps that its stepper took itself."""
    found: list[int] = []
    left = runner.Runner.left
    with pytest.MonkeyPatch.context() as m:
        from implicit_geom.simulate import _March

        step = _March._step

        def counted(march: Any, h: float, end: float) -> str:
            found.append(march.recorder.count)
            return step(march, h, end)

        m.setattr(_March, "_step", counted)
        out = run()
    assert runner.Runner.left is left
    return out, found


@pytest.mark.parametrize("stepper", AVAILABLE)
def test_a_run_broken_anywhere_equals_the_unbroken_one(stepper: str, tmp_path: Path) -> None:
    """Breaks before, right after and between steps that the stepper took itself; also saved and loaded."""
    h, steps = 1 / 64, 40  # (sums of such durations are exact)

    def run(count: int) -> Trajectory:
        return simulate(bouncing(), duration=count * h, step=h, progress=False, stepper=stepper)

    whole, own = own_steps(lambda: run(steps))
    assert 3 <= len(own) <= 0.7 * steps
    middle = own[len(own) // 2]
    breaks = {1, own[0], own[0] + 1, middle + 1, own[-1] + 1, steps // 2}
    for at in sorted(breaks & set(range(1, steps))):
        part = run(at)
        if at in (own[0] + 1, steps // 2):
            part.save(tmp_path / "part.h5")
            part = Trajectory.load(tmp_path / "part.h5")
        assert_identical(whole, part.resume(duration=(steps - at) * h))


@pytest.mark.parametrize("stepper", AVAILABLE)
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


# ---- never a silent wrong answer


def flying_past() -> Scene:
    """A fast ball arrives from afar between two others, which it was no candidate to meet."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("left", shapes.sphere(0.3), mass=1.0, position=(-0.4, 0, 0), velocity=(0.1, 0, 0))
    scene.add("right", shapes.sphere(0.3), mass=1.0, position=(0.4, 0, 0), velocity=(-0.1, 0, 0))
    scene.add("third", shapes.sphere(0.1), mass=0.1, position=(0, 0, 15.0), velocity=(0, 0, -50))
    scene.friction(mu=0.3)
    return scene


def struck(run: Trajectory) -> bool:
    """The third ball has pushed both others apart."""
    return bool(run["left"].velocity[-1, 0] < 0 < run["right"].velocity[-1, 0])


def shot(distance: float, speed: float) -> Scene:
    """A small ball at a thin plate."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("plate", shapes.box(1, 1, 0.005), fixed=True)
    scene.add("ball", shapes.sphere(0.02), mass=0.1, position=(0, 0, distance), velocity=(0, 0, -speed))
    scene.friction(mu=0.3)
    return scene


def stopping() -> Scene:
    """A flat body slides to a halt."""
    return on_ground(shapes.box(0.4, 0.4, 0.1), position=(0, 0, 0.1), velocity=(1.0, 0.2, 0))


def struck_while_sliding() -> Scene:
    """A blow from above presses a sliding body so hard that its slip would turn round within the step."""
    scene = on_ground(
        shapes.ellipsoid(0.4, 0.4, 0.2), position=(0, 0, 0.2), velocity=(1, 0, 0), friction={"mu": 0.6}
    )
    scene.add("hammer", shapes.sphere(0.2), mass=1.0, position=(0, 0, 0.7), velocity=(0, 0, -6))
    return scene


def spinning_egg() -> Scene:
    """A fast egg that rises: a step of RATTLE gains and loses energy."""
    return on_ground(
        shapes.ellipsoid(0.6, 0.4, 0.4),
        position=(0, 0, 0.48),
        orientation=(1, 0, 0.3, 0),
        angular_velocity=(0, 0.1, 12),
        friction={"mu": 0.3},
    )


@dataclass(frozen=True)
class Trap:
    build: Build
    holds: Callable[[Trajectory], bool]  # the property that a wrongly accepted step would break
    h: float = 0.01
    steps: int = 60
    own: int = 1  # steps at least that compiled code must refuse; 0 where it may do as the stepper does
    options: dict[str, Any] = field(default_factory=dict)


TRAPS = {
    "thin plate, near": Trap(lambda: shot(0.5, 30.0), lambda r: r["ball"].position[:, 2].min() > 0),
    "thin plate, far": Trap(lambda: shot(50.0, 300.0), lambda r: r["ball"].position[:, 2].min() > 0),
    "thin plate, euler": Trap(
        lambda: shot(5.0, 300.0),
        lambda r: r["ball"].position[:, 2].min() > 0,
        options={"stepper": EULER},
    ),
    "third body": Trap(flying_past, struck),
    "third body, euler": Trap(flying_past, struck, options={"stepper": EULER}),
    "restitution": Trap(
        lambda: on_ground(shapes.sphere(0.2), position=(0, 0, 1.0), friction={"mu": 0.0, "restitution": 1.0}),
        lambda r: abs(r["body"].position[50:, 2].max() - 1.0) < 2e-3,
        steps=90,
    ),
    "gain of energy": Trap(
        spinning_egg,
        lambda r: np.diff(r.energy).max() < 1e-4 * r.energy.max(),
        h=0.05,
        steps=40,
        own=20,
        options={"energy_guard": 1e-4},
    ),
    "blow on a sliding body": Trap(
        struck_while_sliding, lambda r: np.diff(r.energy).max() < 1e-2 * r.energy.max(), steps=20, own=0
    ),
    "end of sliding": Trap(
        stopping,
        lambda r: (
            abs(np.linalg.norm(r["body"].position[-1, :2]) - 1.04 / (2 * 0.4 * 9.81)) < 1e-3
            and not np.any(np.abs(r["body"].velocity[-1]) > 1e-9)
        ),
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_step_that_needs_more_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code leaves such a step to the stepper; the run is the one without compiled code."""
    trap = TRAPS[name]
    options = {"duration": trap.steps * trap.h, "step": trap.h, "progress": False, **trap.options}
    with compared() as found:
        ours = simulate(trap.build(), **options)
    assert found.failed == 0
    assert max(found.position, found.velocity) <= BOUND
    assert found.own >= trap.own
    assert found.compiled >= 5
    assert trap.holds(ours)
    monkeypatch.setenv(SWITCH, "0")
    theirs = simulate(trap.build(), **options)
    assert trap.holds(theirs)
    assert ours.steps["guard"].tolist() == theirs.steps["guard"].tolist()
    assert ours.steps["solves"].tolist() == theirs.steps["solves"].tolist()
    for body in ours.names:
        for part in ("position", "velocity"):
            a, b = getattr(ours[body], part), getattr(theirs[body], part)
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * (1 + np.abs(b).max()))


def prepared(build: Build, stepper: str, steps: int) -> tuple[runner.Runner, Any]:
    """A runner with its solver, and the state after some steps."""
    h = 0.01
    options = SimulationOptions(1.0, h, stepper)
    model = Model(build())
    solver = make_stepper(model, options)
    state = model.initial_state()
    solver.widen(state, h)
    march = runner.Runner(model, solver, options)
    for k in range(steps):
        after, _, taken = march.run(state, 1, k, np.array([(k + 1) * h]))
        if len(taken):
            state = after
            continue
        march.left()
        state = solver.step(state, h).solves[-1].end
        solver.widen(state, h)
    return march, state


def on_a_sphere() -> Scene:
    scene = Scene()
    scene.add("base", shapes.sphere(0.5), fixed=True)
    scene.add(
        "ball",
        shapes.ellipsoid(0.3, 0.3, 0.25),
        mass=1.0,
        position=(0.05, 0, 0.76),
        angular_velocity=(0, 1, 0),
    )
    scene.friction(mu=0.5)
    return scene


@pytest.mark.parametrize("build", [egg, on_a_sphere, stopping])
@pytest.mark.parametrize(
    ("stepper", "spoiled"), [(EULER, "warm"), (EULER, "mirrored"), (EULER, "history"), (RATTLE, "history")]
)
def test_a_bad_start_leads_to_the_same_solution_or_to_none(build: Build, spoiled: str, stepper: str) -> None:
    """Whatever Newton starts from, also a contact on the wrong side: no other root is accepted.

    (The warm starts of RATTLE hold the contact at the start of the step: those are no guess, and left alone.)
    """
    march, state = prepared(build, stepper, 20)
    solver, h = march.solver, march.options.step
    memory = Memory(solver).plain()
    wanted = solver.step(state, h).solves[-1].end
    accepted = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        restore(solver, memory)
        march.left()
        for c, w in list(solver.warm.items()):
            u, size = w.unknowns, w.unknowns.size
            if spoiled == "warm":
                u = u + rng.normal(size=size) * 10 ** rng.uniform(-3, 1) * (np.abs(u).max() + 1e-3)
            elif spoiled == "mirrored":
                u = -u * rng.choice([1, 1, 1, -1], size)
            solver.warm[c] = WarmStart(u, w.direction, w.m_c, w.h)
        if spoiled == "history":
            assert memory["history"] is not None
            past = np.array(memory["history"][1])
            solver.history = (5.0, past + rng.normal(size=past.shape) * 10 ** rng.uniform(-4, 1))
        after, _, taken = march.run(state, 1, 20, np.array([state.time + h]))
        if len(taken):
            accepted += 1
            for part in ("x", "q", "v", "w"):
                np.testing.assert_allclose(getattr(after, part), getattr(wanted, part), rtol=0, atol=1e-11)
        else:
            assert after is state
    assert accepted >= 1


@pytest.mark.parametrize("stepper", [EULER, RATTLE, RATTLE_4])
@pytest.mark.parametrize(
    ("part", "value"),
    [(part, value) for part in ("x", "q", "v", "w") for value in (np.nan, np.inf)]
    + [("v", 1e200), ("w", 1e200)],
)
def test_a_spoiled_state_is_not_stepped(stepper: str, part: str, value: float) -> None:
    """A number that is none, infinite or beyond all bounds takes no step in compiled code."""
    march, state = prepared(egg, stepper, 15)
    spoiled = getattr(state, part).copy()
    spoiled[1, 0] = value
    state = replace(state, **{part: spoiled})
    march.left()
    assert len(march.run(state, 5, 15, state.time + 0.01 * np.arange(1, 6))[2]) == 0


@pytest.mark.parametrize("stepper", [EULER, RATTLE])
@pytest.mark.parametrize("force", [1e150, 1e308])
def test_a_load_beyond_all_bounds(force: float, stepper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overflow within a step ends a run with compiled code as it ends one without."""

    def outcome() -> tuple[str, int]:
        scene = egg()
        scene.applied("body", force=(0.0, 0.0, force))
        with np.errstate(all="ignore"):
            run = simulate(
                scene, duration=0.05, step=0.01, progress=False, on_failure="record", stepper=stepper
            )
        return run.failure.split(":")[0], len(run.time)

    ours = outcome()
    monkeypatch.setenv(SWITCH, "0")
    assert ours == outcome()


def test_a_motion_that_crosses_is_always_looked_at() -> None:
    """Wherever the broad phase finds a crossing, the compiled bound refuses to rule one out.

    A small ball and a rod on straight paths, with the closest points at both ends of the step.
    """
    scene = Scene(gravity=(0, 0, 0))
    scene.add("rod", shapes.capsule(0.05, 0.4), fixed=True)
    scene.add("ball", shapes.sphere(0.05), mass=1.0, position=(0.3, 0, 0))
    model = Model(scene)
    solver = make_stepper(model, SimulationOptions(1.0, 0.01))
    functions = PairFunctions(model.pairs[0].kernel)
    c, info = functions.constants.symbol("c"), functions.start.symbol("start")
    bodies = [blocks.constants(3).symbol(f"k{i}") for i in (1, 2)]
    gap, n, closed, nu = ca.SX.sym("gap"), ca.SX.sym("n", 3), ca.SX.sym("closed"), ca.SX.sym("nu", 6)
    flag = functions._may_cross(gap, n, info, closed > 0, [ca.SX.zeros(6), nu], bodies, c, ca.SX(1.0))
    may_cross = ca.Function(
        "may_cross", [gap, n, closed, nu, info.value, bodies[0].value, bodies[1].value, c.value], [flag]
    )
    engine = Engine(model, 1, SimulationOptions(1.0, 1.0), [0], 1)
    engine.load(0, solver)
    constants, pair = engine.constants[:, :, 0], engine.groups[0].constants[0, :, 0]
    rng = np.random.default_rng(4)
    crossed = ruled_out = 0
    for _ in range(100):
        x, y = rng.uniform(-0.4, 0.4, (2, 3))
        x *= 0.15 / np.linalg.norm(x) * rng.uniform(1, 3) if rng.random() < 0.7 else 1.0
        state = model.initial_state()
        state = replace(state, x=np.array([np.zeros(3), x]))
        after = replace(state, x=np.array([np.zeros(3), y]))
        first, last = (closest(model.placed(s, 0), model.placed(s, 1)) for s in (state, after))
        if min(first.points.gap, last.points.gap) < 0:
            continue
        motion = np.zeros((2, 6))
        motion[1, :3] = y - x
        solver.broad.normals.pop(0, None)
        length = float(np.linalg.norm(y - x))
        crosses = solver.broad._crosses(0, state, motion, 1.0, length, last.unknowns, False)
        start = np.zeros(functions.start.size)
        start[functions.start.at["gap"]] = first.points.gap
        start[functions.start.at["n"]] = first.points.normal
        refused = may_cross(last.points.gap, last.points.normal, 0, motion[1], start, *constants, pair)
        assert float(refused) == 1.0 or not crosses
        crossed += crosses
        ruled_out += float(refused) == 0.0
    assert crossed > 10
    assert ruled_out > 10
