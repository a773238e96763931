"""The independent certificate accepts what the solver solved and rejects it once anything is changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from implicit_geom import Scene, shapes
from implicit_geom.check.certificate import geometry_residual, step_residuals
from implicit_geom.model.model import Model
from implicit_geom.model.records import EULER, POSITION, VELOCITY, Solve
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.rattle import RattleStepper

STEP = 0.01


def sliding_egg() -> Scene:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "body", shapes.ellipsoid(0.5, 0.4, 0.3), mass=2.0, position=(0, 0, 0.3), velocity=(1, 0.5, 0),
        angular_velocity=(1, 0, 2),
    )  # fmt: skip
    scene.friction(mu=0.3, e_r=0.05)
    return scene


def lying_box() -> Scene:
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("table", shapes.box(1, 1, 0.1), fixed=True, position=(0, 0, -0.1))
    scene.add("body", shapes.box(0.2, 0.3, 0.1), mass=1.0, position=(0.1, 0, 0.1), velocity=(0.5, 0, 0))
    scene.friction(mu=0.2, e_o=0.5, direction=(1, 1, 0))
    return scene


def pressed_ellipsoids() -> Scene:
    scene = Scene(gravity=(0, 0, 0))
    egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    scene.add("other", egg, mass=3.0, position=(-0.5, 0, 0), velocity=(1, 0, 0))
    scene.add("body", egg, mass=1.0, position=(0.5, 0, 0), velocity=(-1, 2, 0), angular_velocity=(0, 0, 1))
    scene.friction(mu=0.05)
    scene.applied("body", force=(-20, 0, 0))
    return scene


def planar_disc() -> Scene:
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("body", shapes.disc(0.5), mass=1.0, position=(0, 0.5), velocity=(2, 0))
    scene.friction(mu=0.2)
    return scene


def standing_cone() -> Scene:
    """Its base is flat: a slab and a cone in the geometry."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("body", shapes.cone(0.3, 0.5), mass=1.0, position=(0, 0, 0.125), velocity=(0.3, 0, 0))
    scene.friction(mu=0.5)
    return scene


SCENES = [sliding_egg, lying_box, pressed_ellipsoids, planar_disc, standing_cone]


# A stepper and which of its contact records is changed: that of the step, or of one of two stages.
RECORDS = {
    "euler": (EulerStepper, EULER),
    "stage 1": (RattleStepper, POSITION),
    "stage 2": (RattleStepper, VELOCITY),
}


@cache
def solved(make: Callable[[], Scene], kind: type[EulerStepper] = EulerStepper) -> tuple[Model, Solve]:
    """The first step of a scene that was taken whole; its one contact, once in each stage of RATTLE."""
    model = Model(make())
    stepper, state = kind(model), model.initial_state()
    for _ in range(3):
        attempt = stepper.step(state, STEP)
        state = attempt.solves[-1].end
        if len(attempt.solves) == 1:
            break
    (solve,) = attempt.solves
    stages = [EULER] if kind is EulerStepper else [POSITION, VELOCITY]
    assert [c.stage for c in solve.contacts] == stages
    assert min(c.p_n for c in solve.contacts) > 1e-3
    return model, solve


@pytest.mark.parametrize("kind", [EulerStepper, RattleStepper])
@pytest.mark.parametrize("make", SCENES)
def test_good_solve_is_accepted(make: Callable[[], Scene], kind: type[EulerStepper]) -> None:
    """All residuals of a solved step are below 1e-9, and its geometry is proved from the shapes."""
    model, solve = solved(make, kind)
    assert max(step_residuals(model, solve).values()) < 1e-9
    proof = geometry_residual(model, solve)
    assert max(proof.contact, proof.overlap) < 1e-10
    assert proof.normal < 1e-8


@pytest.mark.parametrize(
    ("kind", "turn"),
    [*((EulerStepper, turn) for turn in (0.5, 3.0, 30.0)), (RattleStepper, 0.5), (RattleStepper, 1.4)],
)
def test_fast_rolling_is_accepted(kind: type[EulerStepper], turn: float) -> None:
    """A ball that rolls by many turns a step is certified like a slow one."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    w = turn / STEP
    spin = {"velocity": (0.01 * w, 0, 0), "angular_velocity": (0, w, 0)}
    scene.add("body", shapes.sphere(0.01), mass=1.0, position=(0, 0, 0.01), **spin)
    scene.friction(mu=0.3)
    model = Model(scene)
    (solve,) = kind(model).step(model.initial_state(), STEP).solves
    assert max(step_residuals(model, solve).values()) < 1e-9 * w


def changed(solve: Solve, change: Callable[[Any], None], stage: int = EULER) -> Solve:
    """A copy with its only contact changed, in one stage."""
    twin = copy.deepcopy(solve)
    (contact,) = (c for c in twin.contacts if c.stage == stage)
    change(contact)
    return twin


CONTACT_CHANGES: dict[str, tuple[Callable[[Any], None], tuple[str, ...]]] = {
    "larger p_n": (lambda c: setattr(c, "p_n", c.p_n + 1e-4), ("dynamics", "friction")),
    "negative p_n": (lambda c: setattr(c, "p_n", -c.p_n), ("dynamics", "complementarity", "friction")),
    "larger friction": (lambda c: setattr(c, "p_f", c.p_f * 1.01), ("dynamics", "friction")),
    "other friction": (lambda c: setattr(c, "p_f", -c.p_f), ("dynamics", "friction")),
    "no friction": (lambda c: setattr(c, "p_f", 0 * c.p_f), ("dynamics", "friction")),
    "open gap": (lambda c: setattr(c, "gap", 1e-4), ("gap", "complementarity")),
    "penetration": (lambda c: setattr(c, "gap", -1e-4), ("gap", "complementarity")),
}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("make", SCENES)
@pytest.mark.parametrize("name", CONTACT_CHANGES)
def test_changed_contact_is_rejected(make: Callable[[], Scene], name: str, record: str) -> None:
    """A changed impulse or gap shows in the residuals that depend on it, and in no other."""
    kind, stage = RECORDS[record]
    model, solve = solved(make, kind)
    change, reacting = CONTACT_CHANGES[name]
    if stage == VELOCITY:  # its law is on the normal velocity
        reacting = tuple(r for r in reacting if not (r == "complementarity" and "gap" in reacting))
    before, after = step_residuals(model, solve), step_residuals(model, changed(solve, change, stage))
    for residual in after:
        if residual in reacting:
            assert after[residual] > 1e-6, residual
        else:
            assert after[residual] == before[residual], residual


@pytest.mark.parametrize("kind", [EulerStepper, RattleStepper])
@pytest.mark.parametrize("make", SCENES)
def test_changed_motion_is_rejected(make: Callable[[], Scene], kind: type[EulerStepper]) -> None:
    """An end velocity, spin or position, or a velocity of the motion, changed by 1e-5 shows in dynamics."""
    model, solve = solved(make, kind)
    body = model.names.index("body")
    # a place is a velocity times the step
    for part, least in (("v", 0.9e-5), ("w", 1e-7), ("x", 0.9e-5 / STEP)):
        end = getattr(solve.end, part).copy()
        end[body, 0] += 1e-5
        twin = replace(solve, end=replace(solve.end, **{part: end}))
        assert step_residuals(model, twin)["dynamics"] > least, part
    for component in range(solve.half.shape[1]):
        half = solve.half.copy()
        half[body, component] += 1e-5
        assert step_residuals(model, replace(solve, half=half))["dynamics"] > 1e-7, component


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("make", SCENES)
def test_changed_lever_is_rejected(make: Callable[[], Scene], record: str) -> None:
    """A contact point moved sideways by 1 mm, or a moment added, shows in the balance of angular momentum."""
    kind, stage = RECORDS[record]
    model, solve = solved(make, kind)
    side = solve.contacts[0].tangent
    if model.dim == 3:
        side = side + solve.contacts[0].binormal
    moved = changed(solve, lambda c: setattr(c, "point", c.point + 1e-3 * side), stage)
    assert step_residuals(model, moved)["dynamics"] > 1e-6
    if model.dim == 3:
        twisted = changed(solve, lambda c: setattr(c, "p_f", c.p_f + (0, 0, 1e-4)), stage)
        assert step_residuals(model, twisted)["dynamics"] > 1e-6


@pytest.mark.parametrize("kind", [EulerStepper, RattleStepper])
@pytest.mark.parametrize("make", SCENES)
def test_changed_orientation_is_rejected(make: Callable[[], Scene], kind: type[EulerStepper]) -> None:
    """An end orientation that the spin does not lead to shows in the dynamics."""
    model, solve = solved(make, kind)
    body = model.names.index("body")
    q = solve.end.q.copy()
    if model.dim == 2:
        q[body] += 1e-3
    else:
        q[body] = q[body] + (0, 1e-3, 0, 0)
        q[body] /= np.linalg.norm(q[body])
    twin = replace(solve, end=replace(solve.end, q=q))
    assert step_residuals(model, twin)["dynamics"] > 1e-7


@pytest.mark.parametrize("record", ["euler", "stage 2"])
@pytest.mark.parametrize("make", SCENES)
def test_changed_geometry_is_rejected(make: Callable[[], Scene], record: str) -> None:
    """A contact point off the surface, a tilted normal and a body left out of the contacts are found."""
    kind, stage = RECORDS[record]
    model, solve = solved(make, kind)
    normal = solve.contacts[-1].normal
    away = changed(solve, lambda c: setattr(c, "point", c.point + 1e-5 * normal), stage)
    assert geometry_residual(model, away).contact > 1e-6
    side = solve.contacts[-1].tangent
    tilted = changed(solve, lambda c: setattr(c, "normal", (normal + 1e-3 * side) / np.hypot(1, 1e-3)), stage)
    assert geometry_residual(model, tilted).normal > 1e-4
    assert step_residuals(model, tilted)["dynamics"] > 1e-7
    # a pair that overlaps and is not in the table of contacts
    x = solve.end.x.copy()
    x[model.names.index("body")] -= 1e-4 * normal
    silent = replace(solve, contacts=[], end=replace(solve.end, x=x))
    assert geometry_residual(model, silent).overlap > 0.9e-4
