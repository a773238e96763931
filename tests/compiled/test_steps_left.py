"""Steps that compiled code must leave to the stepper, spoiled starts and states: no silent wrong answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from by_stages import simulate
from compiled_scenes import EULER, RATTLE, RATTLE_4, Build, egg, on_ground

from implicit_geom import Scene, Trajectory, shapes
from implicit_geom.compiled import runner, structs
from implicit_geom.compiled.engine import Engine
from implicit_geom.compiled.functions.pair import PairFunctions
from implicit_geom.experiments.benchmarks.agreement import BOUND, compared
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.machine.availability import SWITCH, available
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.model import Model
from implicit_geom.rotation import unit
from implicit_geom.run.make_stepper import make_stepper
from implicit_geom.run.storage.solver_state import Memory, restore
from implicit_geom.scene.options import SimulationOptions

pytestmark = pytest.mark.skipif(not available(), reason="compiled code is not at hand")


def flying_past(distance: float = 15.0, speed: float = 50.0) -> Scene:
    """A fast ball arrives from afar between two others, which it was no candidate to meet."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("left", shapes.sphere(0.3), mass=1.0, position=(-0.4, 0, 0), velocity=(0.1, 0, 0))
    scene.add("right", shapes.sphere(0.3), mass=1.0, position=(0.4, 0, 0), velocity=(-0.1, 0, 0))
    start = {"position": (0, 0, distance), "velocity": (0, 0, -speed)}
    scene.add("third", shapes.sphere(0.1), mass=0.1, **start)
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
        orientation=unit((1, 0, 0.3, 0)),
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
    # (an impact for which the smoothing path and shorter steps find different solutions)
    "third body, violent": Trap(lambda: flying_past(60.0, 200.0), struck),
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
        own=0,  # (the guard has such steps composed, in compiled code as by the stepper)
        options={"energy_guard": 1e-4},
    ),
    "gain of energy in composed steps": Trap(
        spinning_egg,
        lambda r: np.diff(r.energy).max() < 2e-6 * r.energy.max(),
        h=0.05,
        steps=40,
        own=10,
        options={"energy_guard": 1e-6},
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
    options = SimulationOptions(1.0, h, stepper, impacts="stages")
    model = Model(build())
    solver = make_stepper(model, options)
    state = model.initial_state()
    solver.memory.widen(state, h)
    march = runner.Runner(model, solver, options)
    for k in range(steps):
        after, _, taken = march.run(state, 1, k, np.array([(k + 1) * h]))
        if len(taken):
            state = after
            continue
        march.invalidate()
        state = solver.step(state, h).solves[-1].end
        solver.memory.widen(state, h)
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
        march.invalidate()
        for c, w in list(solver.memory.warm.items()):
            u, size = w.unknowns, w.unknowns.size
            if spoiled == "warm":
                u = u + rng.normal(size=size) * 10 ** rng.uniform(-3, 1) * (np.abs(u).max() + 1e-3)
            elif spoiled == "mirrored":
                u = -u * rng.choice([1, 1, 1, -1], size)
            solver.memory.warm[c] = WarmStart(u, w.direction, w.m_c, w.h)
        if spoiled == "history":
            assert memory["history"] is not None
            past = np.array(memory["history"][1])
            solver.memory.history = (5.0, past + rng.normal(size=past.shape) * 10 ** rng.uniform(-4, 1))
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
    march.invalidate()
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
    bodies = [structs.constants(3).symbol(f"k{i}") for i in (1, 2)]
    gap, n, closed, nu = ca.SX.sym("gap"), ca.SX.sym("n", 3), ca.SX.sym("closed"), ca.SX.sym("nu", 6)
    flag = functions._may_cross(gap, n, info, closed > 0, [ca.SX.zeros(6), nu], bodies, c, ca.SX(1.0))
    may_cross = ca.Function(
        "may_cross", [gap, n, closed, nu, info.value, bodies[0].value, bodies[1].value, c.value], [flag]
    )
    engine = Engine(model, 1, SimulationOptions(1.0, 1.0), [0], 1)
    engine.load(0, solver)
    constants, pair = engine.bodies.constants[:, :, 0], engine.groups[0].constants[0, :, 0]
    rng = np.random.default_rng(4)
    crossed = ruled_out = 0
    for _ in range(100):
        x, y = rng.uniform(-0.4, 0.4, (2, 3))
        x *= 0.15 / np.linalg.norm(x) * rng.uniform(1, 3) if rng.random() < 0.7 else 1.0
        state = model.initial_state()
        state = replace(state, x=np.array([np.zeros(3), x]))
        after = replace(state, x=np.array([np.zeros(3), y]))
        first, last = (find_closest_points(model.placed(s, 0), model.placed(s, 1)) for s in (state, after))
        if min(first.points.gap, last.points.gap) < 0:
            continue
        motion = np.zeros((2, 6))
        motion[1, :3] = y - x
        solver.memory.broad.normals.pop(0, None)
        crosses = solver.memory.broad.crossed(state, motion, 1.0, {0: (last.unknowns, False)}) == 0
        start = np.zeros(functions.start.size)
        start[functions.start.at["gap"]] = first.points.gap
        start[functions.start.at["n"]] = first.points.normal
        refused = may_cross(last.points.gap, last.points.normal, 0, motion[1], start, *constants, pair)
        assert float(refused) == 1.0 or not crosses
        crossed += crosses
        ruled_out += float(refused) == 0.0
    assert crossed > 10
    assert ruled_out > 10
