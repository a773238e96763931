"""Unions in scenes: pairs of pieces, distance, files, continued and compiled runs, many at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from implicit_geom import Scene, Trajectory, distance, shapes, simulate, simulate_batch
from implicit_geom.check.certificate import geometry_residual
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Model
from implicit_geom.rotation import unit
from implicit_geom.scene.scene_file import read_scene, to_dict
from implicit_geom.steppers.euler import EulerStepper

TEXT = """
[bodies.ground]
shape = { kind = "halfspace", normal = [0, 0, 1] }
fixed = true

[bodies.bell]
shape = { kind = "union", shapes = [
    { kind = "moved", shape = { kind = "sphere", r = 0.1 }, position = [0.3, 0, 0] },
    { kind = "moved", shape = { kind = "sphere", r = 0.2 }, position = [-0.3, 0, 0] },
] }
mass = 1.0
position = [0, 0, 0.5]

[friction]
mu = 0.4
"""


def tumbling() -> Scene:
    """An L and a dumbbell that fall on a fixed cross, on the ground and on each other."""
    scene = Scene()
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    cross = shapes.union(shapes.box(0.5, 0.05, 0.05), shapes.box(0.05, 0.5, 0.05))
    scene.add("cross", cross, fixed=True, position=(0, 0, 0.05))
    bell = shapes.union(shapes.sphere(0.1).moved((0.3, 0, 0)), shapes.sphere(0.15).moved((-0.3, 0, 0)))
    scene.add("bell", bell, mass=1.0, position=(0, 0.1, 0.5), orientation=unit((1, 0.3, 0.1, 0)))
    L = shapes.union(shapes.ellipsoid(0.3, 0.1, 0.1), shapes.ellipsoid(0.1, 0.1, 0.3).moved((0.2, 0, 0.2)))
    scene.add("L", L, mass=2.0, position=(0.2, 0, 1.0), angular_velocity=(0, 0.5, 0))
    scene.friction(mu=0.4)
    scene.friction("bell", "cross", mu=0.1, restitution=0.2)
    return scene


def test_pairs_of_pieces() -> None:
    """Every piece meets every piece of other bodies; not its own body's, nor those of two fixed bodies."""
    model = Model(tumbling())
    pieces, pairs = model.pieces, model.pairs
    owner = pieces.owner.tolist()
    assert owner == [0, 1, 1, 2, 2, 3, 3]
    wanted = [
        (i, j)
        for i in range(7)
        for j in range(i + 1, 7)
        if owner[i] != owner[j] and not (pieces.fixed[i] and pieces.fixed[j])
    ]
    assert list(zip(*(side.tolist() for side in pairs.ends(np.arange(len(pairs)))), strict=True)) == wanted
    assert pairs.number(*np.array(wanted).T).tolist() == list(range(len(wanted)))
    for pair, (i, j) in zip(pairs, wanted, strict=True):
        assert {pair.first, pair.second} == {owner[i], owner[j]}
        assert set(pair.pieces) == {i, j}
        assert pair.law.mu == (0.1 if {owner[i], owner[j]} == {1, 2} else 0.4)


def test_distance_to_a_union() -> None:
    """The distance to a union is the smallest over its pieces, whichever side it is on."""
    bell = shapes.union(shapes.sphere(0.1).moved((1, 0, 0)), shapes.sphere(0.2).moved((-1, 0, 0)))
    away = ((0, 0, 0), (1, 0, 0, 0))
    ball = shapes.sphere(0.5)
    c = distance(bell, away, ball, ((1, 0, 2), (1, 0, 0, 0)))
    assert c.gap == pytest.approx(1.4)
    np.testing.assert_allclose(c.point_a, (1, 0, 0.1), atol=1e-9)
    swapped = distance(ball, ((1, 0, 2), (1, 0, 0, 0)), bell, away)
    assert swapped.gap == pytest.approx(c.gap)
    np.testing.assert_allclose(swapped.normal, -c.normal, atol=1e-9)
    np.testing.assert_allclose(swapped.point_b, c.point_a, atol=1e-9)
    # between the two spheres there is room that the hull does not leave
    assert distance(bell, away, shapes.sphere(0.5), away).gap == pytest.approx(0.3)
    low = distance(bell, ((0, 0, 1), (1, 0, 0, 0)), shapes.halfspace((0, 0, 1)), away)
    assert low.gap == pytest.approx(0.8)
    assert low.normal[2] == pytest.approx(-1)
    both = distance(bell, away, bell, ((2.5, 0, 0), (1, 0, 0, 0)))
    assert both.gap == pytest.approx(0.2)


def test_scene_file(tmp_path: Path) -> None:
    """A union in a scene file is read, written and read again to the last bit."""
    path = tmp_path / "scene.toml"
    path.write_text(TEXT)
    scene, _ = read_scene(path)
    body = scene.bodies["bell"]
    assert [type(p.shape) for p in body.shape.pieces] == [shapes.Sphere] * 2
    again, _ = read_scene(to_dict(scene))
    assert again.bodies["bell"].shape == body.shape
    assert np.array_equal(again.bodies["bell"].inertia, body.inertia)


def test_saved_and_continued(tmp_path: Path) -> None:
    """A run of unions that is saved, loaded and continued equals the unbroken one bit for bit."""
    whole = simulate(tumbling(), duration=0.5, step=0.01)
    half = simulate(tumbling(), duration=0.3, step=0.01)
    half.save(tmp_path / "run.h5")
    run = Trajectory.load(tmp_path / "run.h5").resume(duration=0.2)
    for name in ("bell", "L"):
        assert np.array_equal(run[name].position, whole[name].position)
        assert np.array_equal(run[name].orientation, whole[name].orientation)
    assert np.array_equal(run.contacts, whole.contacts)
    assert set(np.unique(whole.contacts["second"])) == {"bell", "L"}


def test_geometry_is_proved() -> None:
    """Contact points lie on the surfaces of the pieces that touch; all other pieces are apart."""
    scene = tumbling()
    model = Model(scene)
    stepper, state = EulerStepper(model), model.initial_state()
    touched = 0
    for _ in range(40):
        attempt = stepper.step(state, 0.01)
        for solve in attempt.solves:
            found = geometry_residual(model, solve)
            assert max(found.contact, found.normal, found.overlap) < 1e-8
            touched += len(solve.contacts)
        state = attempt.solves[-1].end
    assert touched > 0


@pytest.mark.parametrize(
    ("stepper", "impacts"),
    [("implicit-euler", "stages")]
    + [(f"implicit-rattle{order}", impacts) for order in ("", "-4") for impacts in ("stages", "events")],
)
def test_compiled_as_the_steppers_own(stepper: str, impacts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled and native steps of unions are the steppers' own, and most are taken so."""
    from implicit_geom.compiled.runner import Runner
    from implicit_geom.engine.native_runner import NativeRunner

    taken = []
    kind: Any = NativeRunner if impacts == "events" else Runner
    original = kind.run

    def counted(self: Any, *args: Any) -> Any:
        out = original(self, *args)
        taken.append(len(out[2]))
        return out

    monkeypatch.setattr(kind, "run", counted)
    scene = Scene()
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    bell = shapes.union(shapes.sphere(0.1).moved((0.3, 0, 0)), shapes.sphere(0.1).moved((-0.3, 0, 0)))
    scene.add(
        "bell", bell, mass=1.0, position=(0, 0, 0.1), velocity=(0.3, 1, 0), angular_velocity=(-9, 0, 0.1)
    )
    # (where sliding ends native steps may lag friction otherwise than the stepper: here it does not end)
    scene.friction(mu=0.4 if impacts == "stages" else 0.05)
    # (a body alone has code of its own)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(5, 0, 0.1), velocity=(1, 0, 0))
    options: dict[str, Any] = {"duration": 0.4, "step": 0.01, "stepper": stepper, "impacts": impacts}
    fast = simulate(scene, **options)
    assert sum(taken) > 30
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    slow = simulate(scene, **options)
    np.testing.assert_allclose(fast["bell"].position, slow["bell"].position, atol=1e-9)


def test_many_at_once() -> None:
    """A batch of a scene with a union equals its runs one by one."""
    scene, _ = read_scene(_plain())
    speeds = [0.0, 0.5, 1.0]
    batch = simulate_batch(
        scene,
        {"bodies.bell.velocity": [(v, 0, 0) for v in speeds]},
        duration=0.5,
        step=0.01,
        impacts="stages",
    )
    assert batch.status.tolist() == ["done"] * 3
    for k, v in enumerate(speeds):
        plain = _plain()
        plain["bodies"]["bell"]["velocity"] = [v, 0, 0]
        run = simulate(read_scene(plain)[0], duration=0.5, step=0.01, impacts="stages")
        np.testing.assert_allclose(batch["bell"].position[k], run["bell"].position, atol=1e-9)


def _plain() -> dict[str, Any]:
    import tomllib

    return tomllib.loads(TEXT)


def test_a_given_inertia_needs_no_volume() -> None:
    """com= and inertia= of a union are taken as given, also where they cannot be computed."""
    scene = Scene()
    thin = shapes.union(shapes.cylinder(1, 0), shapes.cylinder(1, 0).moved(None, unit((1, 1, 0, 0))))
    scene.add("discs", thin, mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    assert scene.bodies["discs"].inertia[0, 0] == 1
    with pytest.raises(shapes.ShapeError, match="without thickness"):
        scene.add("again", thin, mass=1.0)


def test_overlap_at_the_start_names_the_bodies() -> None:
    """A piece that starts inside another body is refused; pieces of one body may overlap."""
    scene, _ = read_scene(_plain())
    ball = scene.bodies["bell"].position - scene.bodies["bell"].com + (0.3, 0, 0)
    scene.add("post", shapes.sphere(0.1), fixed=True, position=ball + (0, 0, 0.1))
    with pytest.raises(SceneError, match=r"'bell' and 'post' overlap by 0\.1 m"):
        simulate(scene, duration=0.1, step=0.01)


def test_unbounded_pieces() -> None:
    """A fixed union of half-planes leaves a valley: a disc comes to rest between its two sides."""
    scene = Scene(dim=2)
    slopes = [shapes.halfplane((s * 0.5, 1)) for s in (-1, 1)]
    scene.add("valley", shapes.union(*slopes), fixed=True)
    r = 0.1
    scene.add("ball", shapes.disc(r), mass=1.0, position=(0.05, 0.3))
    run = simulate(scene, duration=2.0, step=0.01)
    np.testing.assert_allclose(run["ball"].position[-1], (0, r * np.sqrt(1.25)), atol=1e-6)
    assert len(run.contacts[run.contacts["time"] == run.time[-1]]) == 2
    scene.add("other", shapes.halfplane((1, 0), -5), mass=1.0, com=(0, 0), inertia=1.0)
    with pytest.raises(SceneError, match="both unbounded"):
        simulate(scene, duration=0.1, step=0.01)
