"""`run.certify()` holds for true runs, and each way of breaking one shows in the residual that it breaks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from impact_runs import dropped_ball, dropped_box, rectangle_on_its_corner, struck_twice, two_islands

from implicit_geom import Certificate, Scene, SceneError, Trajectory, shapes, simulate
from implicit_geom.check.certificate import step_residuals
from implicit_geom.model.model import Model
from implicit_geom.model.records import IMPACT, POSITION, VELOCITY, ContactRecord, Solve
from implicit_geom.scene.options import IMPACT_LAWS, IMPLICIT


def egg(restitution: float = 0.0) -> Scene:
    """Falls, slides and rolls."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    body = shapes.ellipsoid(0.5, 0.4, 0.3)
    scene.add("body", body, mass=2.0, position=(0, 0, 0.32), velocity=(1, 0.5, 0), angular_velocity=(1, 0, 2))
    scene.friction(mu=0.3, e_r=0.02, restitution=restitution)
    return scene


def bodies_meet() -> Scene:
    """An egg and a box over a table that is a box: no half-space, seven pairs."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("table", shapes.box(1, 1, 0.1), fixed=True, position=(0, 0, -0.1))
    scene.add("box", shapes.box(0.2, 0.3, 0.1), mass=1.0, position=(0.1, 0, 0.1), velocity=(0.5, 0, 0))
    scene.add("egg", shapes.ellipsoid(0.2, 0.15, 0.1), mass=1.0, position=(0.1, 0, 0.302))
    scene.add("can", shapes.cylinder(0.1, 0.1), mass=1.0, position=(-0.5, 0.2, 0.1))
    scene.friction(mu=0.2)
    return scene


def ran(scene: Scene, stepper: str = "implicit-rattle", **options: Any) -> Trajectory:
    return simulate(scene, duration=0.3, step=0.01, stepper=stepper, progress=False, **options)


def rebuilt(run: Trajectory, **changes: Any) -> Trajectory:
    """A run of changed solves, or of another start; what it said of its steps before is kept."""
    initial = changes.pop("initial", run.initial)
    solves = replace(run.solves, **changes)
    steps, count = run.steps, len(run.steps)
    return Trajectory(
        run.scene, run.options, initial, solves, steps, run.memory, assessed=count, calls=run.calls
    )


MADE = {
    "ball": dropped_ball,
    "sticking ball": lambda: dropped_ball(mu=5.0),
    "elastic ball": lambda: dropped_ball(mu=0.0, e=1.0),
    "box": dropped_box,
    "turning box": lambda: dropped_box(spin=3.0),
    "islands": two_islands,
    "poisson": lambda: dropped_ball(law="poisson"),
    "energetic": lambda: dropped_ball(law="energetic"),
    **{f"corner, {law}": partial(rectangle_on_its_corner, law) for law in IMPACT_LAWS},
}


@pytest.mark.parametrize("name", MADE)
def test_true_impacts_hold(name: str) -> None:
    """Runs put together by hand, without any stepper: every residual is rounding."""
    certificate = MADE[name]().certify()
    assert certificate.ok, certificate
    assert all(r.value < 1e-12 for r in certificate.residuals.values()), certificate


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("make", [egg, lambda: egg(0.5), bodies_meet])
def test_true_runs_hold(make: Callable[[], Scene], stepper: str, tmp_path: Path) -> None:
    """Runs of the steppers, at once and once they are read from a file."""
    run = ran(make(), stepper)
    assert run.certify().ok, run.certify()
    run.save(tmp_path / "run.h5")
    assert Trajectory.load(tmp_path / "run.h5").certify().ok


@pytest.mark.parametrize("make", [dropped_ball, lambda: ran(egg()), lambda: ran(bodies_meet())])
def test_sunk_run_is_found(make: Callable[[], Trajectory]) -> None:
    """A run whose bodies, with their contact points, lie 5 cm too low keeps all laws but the geometry."""
    run = make()
    assert run.certify().ok
    down = np.zeros_like(run.initial.x)
    down[[k for k, b in enumerate(run.scene.bodies.values()) if not b.fixed], -1] = -0.05
    contacts = run.solves.contacts.copy()
    for name in ("point", "end_point"):
        contacts[name][:, -1] -= 0.05
    initial = replace(run.initial, x=run.initial.x + down)
    sunk = rebuilt(run, x=run.solves.x + down, contacts=contacts, initial=initial).certify()
    assert {"overlap", "contact"} <= set(sunk.broken), sunk
    assert not {"dynamics", "gap", "complementarity", "friction", "restitution"} & set(sunk.broken)
    assert sunk.residuals["overlap"].value == pytest.approx(0.05, abs=2e-2)
    assert sunk.residuals["contact"].value > 0.04


def test_one_sunk_step_is_found() -> None:
    """The step is named; one that only touches another body from the side is found, too."""
    run = ran(bodies_meet())
    x = run.solves.x.copy()
    ends = np.flatnonzero(np.append(np.diff(run.solves.table["step"]) != 0, True))
    x[ends[17], run.names.index("can"), 2] -= 1e-6
    broken = rebuilt(run, x=x).certify()
    overlap = broken.residuals["overlap"]
    assert (overlap.step, overlap.ok) == (17, False)
    assert overlap.value == pytest.approx(1e-6, rel=1e-6)
    assert overlap.time == pytest.approx(0.18)


def with_restitution(scene: Scene, e: float) -> Scene:
    twin = copy.deepcopy(scene)
    twin.friction(restitution=e)
    return twin


@pytest.mark.parametrize("law", IMPACT_LAWS)
@pytest.mark.parametrize("mu", [0.0, 0.2, 5.0])
def test_other_restitution_is_found(law: str, mu: float) -> None:
    """A bounce with e = 0.4 is none of a scene with e = 0.95, nor with 0.39, 0.2 or 0, by any law."""
    run = dropped_ball(mu=mu, e=0.4, law=law)
    assert run.certify().ok
    for e in (0.95, 0.39, 0.2, 0.0):
        certificate = run.certify(with_restitution(run.scene, e))
        assert certificate.broken == ["restitution"], (e, certificate)
        assert certificate.residuals["restitution"].step == 1


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_other_restitution_of_a_stepper_is_found(stepper: str) -> None:
    """The same of a ball that a stepper let bounce."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.15), velocity=(1, 0, -2))
    scene.friction(mu=0.2, restitution=0.4)
    run = ran(scene, stepper)
    assert run.certify().ok, run.certify()
    for e in (0.95, 0.0):
        assert run.certify(with_restitution(scene, e)).broken == ["restitution"], e


def test_a_reduced_bounce_is_found() -> None:
    """Newton's law is taken at its word."""
    run = dropped_ball(mu=0.2, e=0.4)
    contacts = run.solves.contacts.copy()
    struck = contacts["stage"] == IMPACT
    contacts["bounce"][struck] *= 0.9
    found = rebuilt(run, contacts=contacts).certify()
    assert set(found.broken) == {"complementarity", "restitution"}
    contacts["bounce"][struck] /= 0.9
    contacts["approach"][struck] += 1e-3
    assert rebuilt(run, contacts=contacts).certify().broken == ["restitution"]


def test_bounces_after_the_last_impact_of_a_step_may_be_none() -> None:
    """After `max_impacts` impacts of a step those that follow may be without restitution, no others."""
    for limit, broken in ((1, []), (2, ["restitution"])):
        run = struck_twice(max_impacts=limit)
        assert run.steps["impacts"].tolist() == [2]
        assert run.certify().broken == broken, limit


CHANGES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], set[str]]] = {
    "more friction than its cone": (lambda p: p * (1, 1.2, 1.2), {"friction"}),
    "less friction": (lambda p: p * (1, 0.8, 0.8), {"friction"}),
    "none": (lambda p: p * (1, 0, 0), {"friction"}),
    "along the slip": (lambda p: p * (1, -1, -1), {"friction"}),
    "against another slip": (
        lambda p: np.array([p[0], *(np.array([[0.8, -0.6], [0.6, 0.8]]) @ p[1:])]),
        {"friction"},
    ),
    "a larger push": (lambda p: p * (1.1, 1.1, 1.1), {"complementarity", "friction"}),
}


@pytest.mark.parametrize("law", IMPACT_LAWS)
@pytest.mark.parametrize("name", CHANGES)
def test_other_impulses_of_an_impact_are_found(name: str, law: str) -> None:
    """Impulses out of the cone, or against another slip, with a motion that keeps momentum."""
    change, broken = CHANGES[name]
    certificate = dropped_ball(mu=0.2, law=law, change=change).certify()
    found = set(certificate.broken)
    if name == "a larger push":
        assert found & {"complementarity", "restitution", "friction"}, certificate
    else:
        assert found == broken, certificate
    assert certificate.residuals["dynamics"].ok
    assert certificate.residuals["friction"].step in (0, 1)


@pytest.mark.parametrize("law", ["poisson", "energetic"])
def test_phases_have_friction_of_their_own(law: str) -> None:
    """A corner slips forth in the compression and back in the decompression; without the record of the
    compression, or with another one, neither phase is proved."""
    run = rectangle_on_its_corner(law)
    contacts = run.solves.contacts.copy()
    assert contacts["c_t"][0] * (contacts["p_t"] - contacts["c_t"])[0] < 0
    for factor in (0.0, 0.99):
        for name in ("c_n", "c_t"):
            contacts[name] = factor * run.solves.contacts[name]
        broken = rebuilt(run, contacts=contacts).certify()
        assert "friction" in broken.broken or "complementarity" in broken.broken, broken
        assert broken.residuals["dynamics"].ok


@pytest.mark.parametrize("short", [True, False])
def test_a_part_that_only_leads_to_an_impact(short: bool) -> None:
    """Stage 1 of a part of 1e-6 s keeps to the law of velocities where its gap was taken at the start."""
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("disc", shapes.disc(0.5), mass=1.0, position=(0, 0.5))
    scene.friction(mu=0.2)
    model = Model(scene)
    start, h = model.initial_state(), 1e-6
    frame = (np.zeros(2), np.array([0.0, 1]), np.array([1.0, 0]), np.zeros(2))
    records = [
        ContactRecord(0, *frame, 1e-12, 9.81 * h / 2, np.zeros(3), np.zeros(3), stage)
        for stage in (POSITION, VELOCITY)
    ]
    if short:
        records[0].gap_point, records[0].gap_normal = records[0].point, records[0].normal
    solve = Solve(start, start.at_time(h), h, np.zeros((2, 3)), "rattle", records, 1, "converged", 0.0)
    found = step_residuals(model, solve)
    assert found["dynamics"] < 1e-15
    assert (found["complementarity"] < 1e-15) == short


def test_momentum_of_an_impact() -> None:
    """Impulses that the jump does not have, and a jump that the impulses do not make."""
    run = dropped_ball()
    contacts = run.solves.contacts.copy()
    contacts["p_t"] += 1e-6
    assert "dynamics" in rebuilt(run, contacts=contacts).certify().broken
    v = run.solves.v.copy()
    v[2:, 1, 0] += 1e-6
    assert "dynamics" in rebuilt(run, v=v).certify().broken


def test_a_body_left_out_of_a_step_is_found() -> None:
    """Time passes for every body: a solve that moves no body, and stays as it is, is no step."""
    run = two_islands()
    bodies, x = run.solves.bodies.copy(), run.solves.x.copy()
    v, q = run.solves.v.copy(), run.solves.q.copy()
    bodies[3], x[3], v[3], q[3] = False, x[2], v[2], q[2]
    certificate = rebuilt(run, bodies=bodies, x=x, v=v, q=q).certify()
    assert certificate.broken == ["time"]
    assert certificate.residuals["time"].value == pytest.approx(0.01)


def test_what_a_run_says_of_itself_is_not_believed(tmp_path: Path) -> None:
    """A saved run with good residuals in its table and other states is found."""
    run = ran(egg())
    v = run.solves.v.copy()
    v[10:] += (1e-5, 0, 0)
    false = rebuilt(run, v=v)
    false.save(tmp_path / "run.h5")
    back = Trajectory.load(tmp_path / "run.h5")
    assert back.steps["dynamics"].max() < 1e-9
    assert "dynamics" in back.certify().broken


def test_words() -> None:
    """One line for the prompt, a table for the screen; residuals by name with unit, bound and step."""
    certificate = dropped_ball().certify()
    assert isinstance(certificate, Certificate)
    assert repr(certificate) == "<Certificate of 3 steps, implicit-rattle: holds>"
    lines = str(certificate).splitlines()
    assert lines[0] == "certificate of 3 steps, implicit-rattle: holds"
    assert [line.split()[:2] for line in lines[2:]] == [["ok", name] for name in certificate.residuals]
    wrong = dropped_ball(e=0.4).certify(with_restitution(dropped_ball().scene, 0.95))
    assert "does NOT hold: restitution" in repr(wrong)
    assert any(line.startswith("NOT   restitution") for line in str(wrong).splitlines())


def test_what_cannot_be_checked_is_said() -> None:
    """Classical steppers promise no geometry; steps that were left out are not checked again."""
    disc = Scene(dim=2, gravity=(0, -9.81))
    disc.add("ground", shapes.halfplane((0, 1)), fixed=True)
    disc.add("disc", shapes.disc(0.5), mass=1.0, position=(0, 0.5), velocity=(2, 0))
    disc.friction(mu=0.2)
    classical = ran(disc, "stewart-trinkle").certify()
    assert classical.ok
    assert np.isinf(classical.residuals["overlap"].bound)
    assert "classical" in classical.notes[0]
    thin = ran(egg(), record=7).certify()
    assert thin.ok
    assert "not all steps were kept" in thin.notes[0]
    both = ran(disc).resume(duration=0.1, stepper="stewart-trinkle").certify()
    assert both.ok, both
    with pytest.raises(SceneError, match="other bodies"):
        ran(disc).certify(egg())


def test_loads_that_are_functions_need_the_scene(tmp_path: Path) -> None:
    """A loaded run of such loads says so; with the scene it is checked."""
    scene = egg()
    scene.applied("body", force=lambda t: (t, 0, 0))
    ran(scene).save(tmp_path / "run.h5")
    back = Trajectory.load(tmp_path / "run.h5")
    with pytest.raises(SceneError, match="pass the scene again"):
        back.certify()
    assert back.certify(scene).ok
