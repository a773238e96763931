"""`simulate_batch`: the runs of `simulate`, scene by scene, whatever runs beside them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread, get_ident
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, shapes, simulate
from implicit_geom.compiled import lanes
from implicit_geom.experiments.benchmarks.threads import KINDS, row_bits, tumbling
from implicit_geom.machine.availability import SWITCH
from implicit_geom.rotation import unit
from implicit_geom.run.batch import Batch, simulate_batch
from implicit_geom.scene.options import IMPLICIT
from implicit_geom.scene.values import Variants, variants
from implicit_geom.shapes import ShapeError

PARTS = ("position", "orientation", "velocity", "angular_velocity")
BOUND = 1e-12  # a step


@pytest.fixture
def egg() -> Scene:
    """An egg that lands, slides and rolls."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add(
        "egg",
        shapes.ellipsoid(0.5, 0.4, 0.3),
        mass=1.0,
        position=(0, 0, 0.55),
        orientation=unit((1, 0.1, 0.2, 0.3)),
        velocity=(1, 0.3, 0),
        angular_velocity=(1, 2, 3),
    )
    scene.friction(mu=0.4)
    return scene


def many(count: int) -> dict[str, Any]:
    """Other shape, mass, friction and start in every row."""
    rng = np.random.default_rng(3)
    return {
        "bodies.egg.shape.a": rng.uniform(0.3, 0.5, count),
        "bodies.egg.shape.c": rng.uniform(0.2, 0.5, count),
        "bodies.egg.mass": 10 ** rng.uniform(-2, 2, count),
        "bodies.egg.velocity": rng.normal(size=(count, 3)) * (1, 1, 0),
        "bodies.egg.orientation": [unit(q) for q in rng.normal(size=(count, 4))],
        "friction.mu": rng.uniform(0.05, 1.5, count),
    }


def assert_same(batch: Batch, i: int, other: Any, steps: int, allowed: float = BOUND) -> None:
    """Scene i of a batch is the run `other`, up to `allowed` for every step, relative to sizes and speeds."""
    for name in batch.names:
        ours, theirs = batch[name], other[name]
        speed = 1.0 + float(np.max(np.abs(theirs.velocity))) + float(np.max(np.abs(theirs.angular_velocity)))
        for part in PARTS:
            a, b = getattr(ours, part)[i][: steps + 1], getattr(theirs, part)[: steps + 1]
            assert a.shape == b.shape
            assert np.max(np.abs(a - b)) <= allowed * steps * speed, (name, part)


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_a_batch_is_simulate_scene_by_scene(stepper: str, egg: Scene) -> None:
    """Shapes, masses, friction and starts differ; more scenes than lanes; most steps in compiled code."""
    options: dict[str, Any] = {"duration": 0.3, "step": 0.01, "stepper": stepper, "progress": False}
    values = many(11)
    batch = simulate_batch(egg, values, threads=1, **options)
    assert list(batch.status) == ["done"] * 11
    assert len(batch) == 11
    assert np.mean(batch.solved) < 0.3 * 30
    for i, scene in enumerate(variants(egg, values)):
        run = simulate(scene, **options)
        assert np.any(run.steps["contacts"] > 0)
        np.testing.assert_array_equal(batch.time, run.time)
        assert_same(batch, i, run, 30)
        np.testing.assert_allclose(batch.energy[i], run.energy, rtol=1e-9)


def test_scenes_of_other_structure_share_a_batch(egg: Scene) -> None:
    """Rows without friction have other unknowns; a body that never meets another has none."""
    values = {
        "friction.mu": [0.4, 0.0, 0.2, 0.0, 0.7],
        "bodies.egg.position": [(0, 0, 0.55), (0, 0, 0.6), (0, 0, 90.0), (0, 0, 0.7), (0, 0, 0.55)],
    }
    batch = simulate_batch(egg, values, duration=0.2, step=0.01, threads=1, progress=False)
    for i, scene in enumerate(variants(egg, values)):
        assert_same(batch, i, simulate(scene, duration=0.2, step=0.01, progress=False), 20)


def bouncing(egg: Scene) -> dict[str, Any]:
    return {
        "friction.restitution": [0.0, 0.9, 0.0, 0.5, 0.0, 0.0, 0.9, 0.0, 0.0, 0.3],
        "friction.mu": np.linspace(0.1, 1.0, 10),
    }


@pytest.mark.parametrize("chunk", [lanes.CHUNK, 8])
def test_scenes_that_bounce_leave_the_others_alone(
    chunk: int, egg: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Own steps of some lanes: the others are as in a batch without them, and take no own steps more."""
    monkeypatch.setattr(lanes, "CHUNK", chunk)
    options: dict[str, Any] = {"duration": 0.5, "step": 0.01, "threads": 1, "progress": False}
    values = bouncing(egg)
    smooth = np.flatnonzero(np.array(values["friction.restitution"]) == 0)
    together = simulate_batch(egg, values, **options)
    apart = simulate_batch(egg, {k: np.array(v)[smooth] for k, v in values.items()}, **options)
    assert np.all(together.solved[[1, 3, 6, 9]] > 0)
    assert np.array_equal(together.solved[smooth], apart.solved)
    for part in PARTS:
        ours, theirs = getattr(together["egg"], part)[smooth], getattr(apart["egg"], part)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=50 * 5 * BOUND)
    for i, scene in enumerate(variants(egg, values)):
        run = simulate(scene, duration=0.3, step=0.01, progress=False)
        assert_same(together, i, run, 30)


def test_threads_do_not_change_a_bit(egg: Scene) -> None:
    """One thread or two; twice the same."""
    values = bouncing(egg) | {"bodies.egg.shape.a": np.linspace(0.3, 0.5, 10)}
    runs = [
        simulate_batch(egg, values, duration=0.4, step=0.01, threads=n, progress=False) for n in (1, 2, 2)
    ]
    for run in runs[1:]:
        for part in PARTS:
            assert getattr(run["egg"], part).tobytes() == getattr(runs[0]["egg"], part).tobytes()
        assert run.solved.tolist() == runs[0].solved.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_threads_and_neighbours_do_not_change_a_bit(kind: str) -> None:
    """1, 2, 3 or 8 threads, rows in another order, rows alone: the same; and `simulate` gives it, too."""
    count = 20
    scene, values = tumbling(kind, count)

    def bits(batch: Batch) -> list[bytes]:
        return [row_bits(batch, i) for i in range(len(batch))]

    options: dict[str, Any] = {"duration": 0.5, "step": 0.01, "progress": False}
    first = simulate_batch(scene, values, threads=1, **options)
    assert np.any(first.solved > 0) == kind.startswith(("ellipsoid", "egg"))
    for threads in (2, 3, 8):
        again = simulate_batch(scene, values, threads=threads, **options)
        assert bits(again) == bits(first)
        assert again.solved.tolist() == first.solved.tolist()
    order = np.random.default_rng(0).permutation(count)
    mixed = simulate_batch(scene, {k: np.array(v)[order] for k, v in values.items()}, threads=2, **options)
    assert bits(mixed) == [bits(first)[i] for i in order]
    few = simulate_batch(scene, {k: np.array(v)[3:5] for k, v in values.items()}, threads=2, **options)
    assert bits(few) == bits(first)[3:5]
    for i, one in enumerate(variants(scene, values)):
        run = simulate(one, on_failure="record", **options)
        for part in PARTS:
            ours, theirs = getattr(first["egg"], part)[i], getattr(run["egg"], part)
            np.testing.assert_allclose(ours[: len(theirs)], theirs, rtol=0, atol=1e-11)


def test_a_lane_that_waits_for_others_forgets_nothing() -> None:
    """Long steps, many of which the guard has composed: lanes beside them keep their last solutions."""
    scene, values = tumbling("cylinder", 64)
    options: dict[str, Any] = {"duration": 0.6, "step": 0.03, "threads": 1, "progress": False}
    first = simulate_batch(scene, values, **options)
    order = np.random.default_rng(0).permutation(64)
    mixed = simulate_batch(scene, {k: v[order] for k, v in values.items()}, **options)
    assert [row_bits(mixed, i) for i in range(64)] == [row_bits(first, i) for i in order]


def test_engines_of_threads_write_to_rows_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that one thread used and another takes over writes to the rows of the one that runs it."""
    both, written = Barrier(2, timeout=30), []

    class Held:
        output = (3, 1)

        def write_to(self, rows: np.ndarray) -> None:
            self.rows = rows

    class Group:
        def __init__(self, _: Any, engine: Held, h: float) -> None:
            self.engine = engine

        def run(self) -> None:
            written.append((get_ident(), id(self.engine.rows)))
            both.wait()

        def release(self) -> None:
            pass

    free = [Held(), Held()]
    engines = SimpleNamespace(
        options=SimpleNamespace(step=0.1),
        of=lambda _: free.pop(0),
        back=lambda _, engine: free.append(engine),
    )
    monkeypatch.setattr(lanes, "_LaneGroup", Group)
    own: list[dict[Any, Any]] = [{} for _ in range(2)]
    for _ in range(2):
        waiting: list[Any] = [[SimpleNamespace(key=())]] * 6
        threads = [Thread(target=lanes._run_all, args=(waiting, engines, o, lambda: None)) for o in own]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(written) == 12
    assert len({rows for _, rows in written}) == 2
    for first, second in zip(written[::2], written[1::2], strict=True):
        assert first[1] != second[1]


def test_without_compiled_code_the_batch_is_simulate(egg: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """IMPLICIT_GEOM_COMPILED=0: the steppers' own runs, to the last bit."""
    monkeypatch.setenv(SWITCH, "0")
    values = {"friction.mu": [0.1, 0.4], "friction.restitution": [0.0, 0.5]}
    batch = simulate_batch(egg, values, duration=0.2, step=0.01, progress=False)
    assert batch.solved.tolist() == [20, 20]
    for i, scene in enumerate(variants(egg, values)):
        assert_same(batch, i, simulate(scene, duration=0.2, step=0.01, progress=False), 20, allowed=0.0)


def test_fritz_john_is_left_to_the_stepper(egg: Scene) -> None:
    """What compiled code does not suit is stepped by the steppers, here as in `simulate`."""
    options: dict[str, Any] = {
        "duration": 0.1, "step": 0.01, "friction_residual": "fritz-john", "progress": False,
    }  # fmt: skip
    values = {"friction.mu": [0.1, 0.4]}
    batch = simulate_batch(egg, values, threads=1, **options)
    assert batch.solved.tolist() == [10, 10]
    for i, scene in enumerate(variants(egg, values)):
        assert_same(batch, i, simulate(scene, **options), 10, allowed=0.0)


def test_a_last_step_that_is_shorter(egg: Scene) -> None:
    """A duration that is no multiple of the step ends where `simulate` ends."""
    values = {"friction.mu": [0.1, 0.4, 0.0]}
    batch = simulate_batch(egg, values, duration=0.125, step=0.01, threads=1, progress=False)
    for i, scene in enumerate(variants(egg, values)):
        run = simulate(scene, duration=0.125, step=0.01, progress=False)
        assert batch.time[-1] == run.time[-1] == 0.125
        assert_same(batch, i, run, 13)


def test_a_failed_scene_is_marked_and_disturbs_no_other(egg: Scene) -> None:
    """A direction of friction along the normal has no meaning once there is contact: that row fails alone."""
    egg.friction(mu=0.4, e_o=0.5, direction=(1, 0, 0))
    down = (0.0, 0.0, 1.0)
    directions = [(1.0, 0, 0), (0, 1.0, 0), down, (1.0, 1.0, 0), (1.0, 0, 0.5)]
    options: dict[str, Any] = {"duration": 0.3, "step": 0.01, "threads": 1, "progress": False}
    scenes = []
    batch = _with_directions(egg, directions, options, scenes)
    assert batch.status.tolist() == ["done", "done", "failed", "done", "done"]
    assert list(batch.failures) == [2]
    assert "direction" in batch.failures[2]
    good = np.isfinite(batch["egg"].position[2]).all(axis=1)
    last = int(np.flatnonzero(good)[-1])
    assert 0 < last < 30
    assert not np.any(good[last + 1 :])
    assert np.all(np.isnan(batch.kinetic_energy[2, last + 1 :]))
    for i in (0, 1, 3, 4):
        assert_same(batch, i, simulate(scenes[i], duration=0.3, step=0.01, progress=False), 30)
    failed = simulate(scenes[2], duration=0.3, step=0.01, progress=False, on_failure="record")
    assert len(failed.time) == last + 1
    assert_same(batch, 2, failed, last)


def _with_directions(
    egg: Scene, directions: list[Any], options: dict[str, Any], scenes: list[Scene]
) -> Batch:
    """A batch whose rows differ in the direction of friction, which no field of `values` can say."""
    from implicit_geom.run import batch as module

    def turned(scene: Scene, values: Any) -> list[Scene]:
        for scene_i, direction in zip(variants(scene, values), directions, strict=True):
            scene_i.friction(direction=direction)
            scenes.append(scene_i)
        return scenes

    with pytest.MonkeyPatch.context() as m:
        m.setattr(module, "Scenes", turned)
        return simulate_batch(egg, {"friction.mu": [0.4] * len(directions)}, **options)


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], list[str]]] = {
    "unknown body": ({"bodies.eg.mass": [1.0]}, SceneError, ["bodies.eg", "'egg'"]),
    "unknown field": ({"bodies.egg.mas": [1.0]}, SceneError, ["bodies.egg.mas", "'mass'"]),
    "unknown table": ({"body.egg.mass": [1.0]}, SceneError, ["body", "'bodies'"]),
    "unknown shape field": ({"bodies.egg.shape.aa": [1.0]}, SceneError, ["shape", "'a'"]),
    "a mass of the fixed ground": ({"bodies.ground.mass": [1.0]}, SceneError, ["ground", "mass"]),
    "kind of shape": ({"bodies.egg.shape.kind": [1.0]}, SceneError, ["kind"]),
    "dimension": ({"dim": [3]}, SceneError, ["dim"]),
    "unequal lengths": (
        {"friction.mu": [0.1, 0.2], "bodies.egg.mass": [1.0]},
        SceneError,
        ["friction.mu has 2", "bodies.egg.mass has 1"],
    ),
    "empty": ({"friction.mu": []}, SceneError, ["empty"]),
    "no values": ({}, SceneError, ["at least one"]),
    "a single number": ({"friction.mu": 0.3}, SceneError, ["friction.mu", "array"]),
    "text": ({"friction.mu": ["much"]}, SceneError, ["row 0", "friction.mu", "number"]),
    "NaN": ({"friction.mu": [0.1, np.nan]}, SceneError, ["row 1", "friction.mu", "finite"]),
    "infinite": ({"bodies.egg.velocity": [(0, 0, 0), (0, np.inf, 0)]}, SceneError, ["row 1", "egg.velocity"]),
    "negative mass": ({"bodies.egg.mass": [1.0, 1.0, 1.0, -1.0]}, SceneError, ["row 3", "bodies.egg.mass"]),
    "negative axis": ({"bodies.egg.shape.a": [1.0, 0.4, -0.1]}, ShapeError, ["row 2", "a"]),
    "a vector too short": ({"bodies.egg.velocity": [(0, 0)]}, SceneError, ["row 0", "bodies.egg.velocity"]),
    "a vector for a number": ({"friction.mu": [(0.1, 0.2)]}, SceneError, ["row 0", "friction.mu"]),
    "overlap": (
        {"bodies.egg.position": [(0, 0, 1), (0, 0, 1), (0, 0, 0.1)]},
        SceneError,
        ["row 2", "overlap", "bodies.egg.position"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_with_row_and_field(name: str, egg: Scene) -> None:
    """Errors name the row, the field and what would be right; nothing is simulated."""
    values, kind, told = REFUSED[name]
    with pytest.raises(kind) as caught:
        simulate_batch(egg, values, duration=0.1, step=0.01, progress=False)
    assert all(text in str(caught.value) for text in told), str(caught.value)


def test_loads_of_time_are_refused(egg: Scene) -> None:
    """A load that is a function has no place in a scene file, and in a batch."""
    egg.applied("egg", force=lambda t: (t, 0, 0))
    with pytest.raises(SceneError, match="functions of time"):
        simulate_batch(egg, {"friction.mu": [0.1]}, duration=0.1, step=0.01)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_threads_are_a_whole_number(threads: Any, egg: Scene) -> None:
    """Anything else is refused."""
    with pytest.raises(SceneError, match="threads"):
        simulate_batch(egg, {"friction.mu": [0.1]}, duration=0.1, step=0.01, threads=threads)


def test_more_threads_than_there_is_work_for(egg: Scene) -> None:
    """No thread is started that would find nothing to do."""
    batch = simulate_batch(
        egg, {"friction.mu": [0.1]}, duration=0.1, step=0.01, threads=10**9, progress=False
    )
    assert list(batch.status) == ["done"]


def test_derived_inertia_follows_and_given_inertia_stays(egg: Scene) -> None:
    """A new shape or mass brings its own inertia, unless the scene gave one."""
    rows = variants(egg, {"bodies.egg.mass": [1.0, 4.0]})
    np.testing.assert_allclose(rows[1].bodies["egg"].inertia, 4 * rows[0].bodies["egg"].inertia)
    given = Scene(gravity=(0, 0, -9.81))
    given.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, inertia=(0.1, 0.12, 0.15))
    rows = variants(given, {"bodies.egg.mass": [1.0, 4.0]})
    assert np.array_equal(rows[1].bodies["egg"].inertia, np.diag([0.1, 0.12, 0.15]))


def test_planar_and_piled_scenes(disc: Callable[[], Scene]) -> None:
    """The plane, and several bodies in reach of each other at different times."""
    scene = disc()
    scene.add("upper", shapes.ellipse(0.5, 0.4), mass=0.5, position=(0.1, 2.6))
    values = {"bodies.upper.position": [(0.1 * i, 2.55 + 0.1 * i) for i in range(5)]}
    batch = simulate_batch(scene, values, duration=0.3, step=0.01, threads=1, progress=False)
    for i, one in enumerate(variants(scene, values)):
        run = simulate(one, duration=0.3, step=0.01, progress=False)
        assert_same(batch, i, run, 30)
    assert batch["upper"].angular_velocity.shape == (5, 31)


# ---- rows as arrays


def rolling_rows() -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {
        "bodies.egg.mass": rng.uniform(0.5, 2.0, 9),
        "bodies.egg.shape.c": rng.uniform(0.28, 0.3, 9),
        "bodies.egg.position": rng.normal(size=(9, 3)) * 0.01 + (0, 0, 0.35),
        "bodies.egg.orientation": [[0.6, 0.0, 0.0, 0.8]] * 9,
        "bodies.egg.velocity": rng.normal(size=(9, 3)) * 0.3,
        "bodies.egg.angular_velocity": rng.normal(size=(9, 3)),
        "friction.mu": rng.uniform(0.1, 0.8, 9),
        "friction.e_r": rng.uniform(0.01, 0.1, 9),
        "friction.restitution": rng.uniform(0.0, 0.5, 9),
    }


@pytest.mark.parametrize("stepper", ["implicit-rattle", "implicit-rattle-4", "implicit-euler"])
def test_rows_need_no_scenes_of_their_own(egg: Scene, stepper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever varies of a body over a plane: no scene is made for a row that stays in machine code."""
    made: list[int] = []
    scene = Variants.scene
    monkeypatch.setattr(Variants, "scene", lambda rows, i: made.append(i) or scene(rows, i))
    values = rolling_rows()
    options: dict[str, Any] = {"duration": 0.05, "step": 0.01, "stepper": stepper, "progress": False}
    batch = simulate_batch(egg, values, **options)
    assert made == [0]
    for i, one in enumerate(variants(egg, values)):
        assert_same(batch, i, simulate(one, **options), 5, allowed=0.0)


def test_rows_that_leave_machine_code_get_scenes(egg: Scene) -> None:
    """They bounce: each goes on with a stepper of its own, to the last bit as by itself."""
    values = rolling_rows()
    batch = simulate_batch(egg, values, duration=0.5, step=0.01, progress=False)
    assert np.all(batch.solved > 0)
    for i, one in enumerate(variants(egg, values)):
        assert_same(batch, i, simulate(one, duration=0.5, step=0.01, progress=False), 50, allowed=0.0)


UNUSUAL: dict[str, dict[str, Any]] = {
    "an inertia": {"bodies.egg.inertia": [[0.1, 0.1, 0.1], [0.2, 0.2, 0.2]]},
    "gravity": {"gravity": [[0, 0, -9.81], [0, 0, -1.62]]},
    "no friction in one of them": {"friction.mu": [0.0, 0.4]},
    "a plane that stands elsewhere": {"bodies.ground.position": [[0, 0, 0], [0, 0, -0.1]]},
}


@pytest.mark.parametrize("values", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_rows_are_set_up_one_by_one(egg: Scene, values: dict[str, Any]) -> None:
    batch = simulate_batch(egg, values, duration=0.1, step=0.01, progress=False)
    for i, one in enumerate(variants(egg, values)):
        assert_same(batch, i, simulate(one, duration=0.1, step=0.01, progress=False), 10, allowed=0.0)
