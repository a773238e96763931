"""Numbers that are none, too large or too small, in fields of the public face: one line that names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, ShapeError, distance, shapes, simulate, simulate_batch, sweep

MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
NO_NUMBERS: list[Any] = [
    "1", b"1", True, 1j, None, [1], {}, np.array([1.0, 2.0]), 10**400, 10**5000, 1e200, float("nan"),
    float("inf"), np.bool_(True), np.complex128(1), MASKED,
]  # fmt: skip
NO_VECTORS: list[Any] = [
    "abc", 3, {}, [1, 2], [1, [2], 3], ["1", "2", "3"], [True, 0, 0], [1j, 0, 0], [10**400, 0, 0],
    [None, 0, 0], [float("nan"), 0, 0], MASKED, np.zeros((3, 1)), np.array([1, 2j, 0]),
    np.array(["1", "2", "3"]), [10**5000, 0, 0], [[0, 0], [0], [0, 0]], object(),
]  # fmt: skip


def scene(**start: Any) -> Scene:
    made = Scene()
    made.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    made.add("ball", shapes.sphere(1.0), **{"mass": 1.0, "position": (0, 0, 1), **start})
    return made


def refused(call: Any, field: str) -> None:
    with pytest.raises((SceneError, ShapeError)) as caught:
        call()
    told = str(caught.value)
    assert field in told
    assert told.isprintable()
    assert len(told) < 300


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda v: str(type(v).__name__))
def test_no_number(value: Any) -> None:
    """A text, a truth, a list, an integer beyond 1e308: refused by the field's name."""
    given = value is not None  # None means: not given
    if given:
        refused(lambda: scene(mass=value), "bodies.ball.mass")
        refused(lambda: Scene().friction(mu=value), "friction.mu")
        refused(lambda: Scene().friction(restitution=value), "friction.restitution")
    refused(lambda: simulate(scene(), duration=value, step=0.1), "duration")
    refused(lambda: simulate(scene(), duration=1.0, step=value), "step")
    refused(lambda: simulate(scene(), duration=1.0, step=0.1, tolerance=value), "tolerance")
    refused(lambda: shapes.sphere(value), "sphere: r = ")
    if not isinstance(value, np.ndarray | list):
        refused(lambda: simulate_batch(scene(), {"friction.mu": value}, duration=1, step=0.1), "friction.mu")
    refused(
        lambda: simulate_batch(scene(), {"bodies.ball.mass": [1.0, value]}, duration=1, step=0.1), "row 1"
    )
    if given:
        refused(
            lambda: sweep(scene(), {"friction.mu": [value]}, "steps", duration=1, step=0.1), "friction.mu"
        )


@pytest.mark.parametrize("value", NO_VECTORS, ids=range(len(NO_VECTORS)))
def test_no_vector(value: Any) -> None:
    """Ragged, masked, complex, of texts, of the wrong length: refused by the field's name."""
    refused(lambda: Scene(gravity=value), "gravity")
    for field in ("position", "velocity", "angular_velocity", "com", "inertia"):
        refused(lambda field=field: scene(**{field: value}), f"bodies.ball.{field}")
    refused(lambda: scene().applied("ball", force=value), "applied.ball.force")
    refused(lambda: Scene().friction(direction=value), "friction.direction")
    refused(lambda: shapes.halfspace(value), "halfspace: normal")
    refused(lambda: shapes.sphere(1).moved(value), "moved: position")
    still = ((0, 0, 0), (1, 0, 0, 0))
    refused(lambda: distance(shapes.sphere(1), still, shapes.sphere(1), (value, (1, 0, 0, 0))), "position")


def test_dimension_and_flags() -> None:
    """3.0 is no dimension, 1 is not true, and a frame is a name."""
    for dim in (3.0, True, "3", 4, None, np.array([2, 3]), 10**5000):
        refused(lambda dim=dim: Scene(dim=dim), "dim = ")
    assert Scene(dim=np.int64(2)).dim == 2
    refused(lambda: scene(fixed=1), "bodies.ball.fixed")
    refused(lambda: Scene().friction(frame=3), "friction.frame")
    refused(lambda: scene().friction("ground", 3, mu=0.1), "no body named 3")
    refused(lambda: scene().friction("ground", ["ball"], mu=0.1), "no body named ['ball']")


def test_a_fixed_body_is_told_which_motion_it_has() -> None:
    """The field that is given is the one that is named."""
    for field in ("velocity", "angular_velocity"):
        with pytest.raises(SceneError, match=rf"bodies.wall.{field}: a fixed body"):
            Scene().add("wall", shapes.sphere(1), fixed=True, **{field: (1, 0, 0)})


def test_what_double_precision_cannot_keep() -> None:
    """Masses, places and steps at which a gap would be rounding are refused."""
    refused(lambda: scene(mass=1e200), "bodies.ball.mass = 1e+200 must be at most 1e+50")
    refused(lambda: scene(mass=1e-60), "at least 1e-50 kg")
    refused(lambda: scene(inertia=[1e-300] * 3), "bodies.ball.inertia")
    far = scene(position=(0, 0, 1e20))
    refused(lambda: simulate(far, duration=1, step=0.1), "bodies.ball.position: 1e+20 m from the origin")
    refused(lambda: simulate(scene(), duration=1e12, step=1e11), "step = 1e+11 s")
    refused(lambda: simulate(scene(velocity=(1e30, 0, 0)), duration=1, step=0.1), "take a shorter step")
    refused(lambda: simulate(scene(), duration=1e9, step=1e-3), "more than 1e+08 steps")
    refused(lambda: simulate_batch(scene(), {"friction.mu": [0.1] * 9}, duration=1e6, step=0.01), "GB")
    still, there = ((0, 0, 0), (1, 0, 0, 0)), ((0, 0, 1e20), (1, 0, 0, 0))
    refused(lambda: distance(shapes.sphere(1), still, shapes.sphere(1), there), "1e+20 m from the origin")


@pytest.mark.parametrize(
    ("size", "mass", "place"), [(1e-3, 1e-6, 1e6), (1e3, 1e6, 0.0), (1e-3, 1e6, 1e6), (1.0, 1e-6, -1e6)]
)
def test_what_is_far_light_or_small_stays_legal(size: float, mass: float, place: float) -> None:
    """Sizes of 1 mm to 1 km, masses of 1 mg to 1000 t, a thousand kilometres away."""
    made = Scene()
    made.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    made.add("big", shapes.sphere(1e3), mass=1.0, position=(0, -5e3, 1e3))
    made.add("body", shapes.sphere(size), mass=mass, position=(place, 0, size))
    run = simulate(made, duration=0.05, step=0.01, progress=False)
    assert run["body"].position[-1, 2] == pytest.approx(size, rel=1e-9)


def test_quaternions_far_from_unit_length_are_refused() -> None:
    """A few digits are enough, another quantity is not: bodies and moved shapes; a query takes any length."""
    ball, still = shapes.sphere(1.0), ((0, 0, 0), (1, 0, 0, 0))
    for q in ((1, 1, 0, 0), (0, 0, 0, 0), (0.8, 0.2, 0, 0), (2, 0, 0, 0)):
        refused(lambda q=q: scene(orientation=q), "bodies.ball.orientation")
        refused(lambda q=q: ball.moved((0, 0, 0), q), "moved: orientation")
    refused(lambda: distance(ball, still, ball, ((0, 0, 5), (0, 0, 0, 0))), "must not be zero")
    assert distance(ball, still, ball, ((0, 0, 5), (3, 0, 0, 4))).gap == pytest.approx(3)
    near = scene(orientation=(0.9, 0.3, 0.3, 0)).bodies["ball"].orientation
    assert np.linalg.norm(near) == pytest.approx(1, abs=1e-15)
    assert distance(ball, still, ball, ((0, 0, 5), (0.9, 0.3, 0.3, 0))).gap == pytest.approx(3)


def test_a_step_longer_than_the_motion_is_refused() -> None:
    """Named with the duration; a run that is continued may end with a shorter step."""
    with pytest.raises(SceneError, match=r"step = 2 s is longer than duration = 1 s"):
        simulate(scene(), duration=1, step=2)
    with pytest.raises(SceneError, match="longer than duration"):
        simulate_batch(scene(), {"friction.mu": [0.1]}, duration=1, step=2)
    with pytest.raises(SceneError, match="longer than duration"):
        sweep(scene(), {"simulation.step": [0.1, 2.0]}, "steps", duration=1)
    run = simulate(scene(), duration=0.1, step=0.1, progress=False)
    assert run.resume(duration=0.05, progress=False).time[-1] == pytest.approx(0.15)


def test_a_sweep_of_too_many_runs_is_refused_with_their_number() -> None:
    """Before a value is made."""
    many = list(np.linspace(0.1, 1, 1000))
    with pytest.raises(SceneError, match=r"the grid has 1000000 runs, at most 100000 .* split"):
        sweep(scene(), {"friction.mu": many, "bodies.ball.mass": many}, "steps", duration=1, step=0.1)
    for count in (10**12, 10**6000):
        span = {"start": 0.1, "stop": 1, "count": count}
        with pytest.raises(SceneError, match="at most 100000"):
            sweep(scene(), {"friction.mu": span}, "steps", duration=1, step=0.1)


def test_shapes_of_too_many_parts_are_refused_at_once() -> None:
    """Pieces of a union, members of an intersection, vertices."""
    ball = shapes.sphere(1.0)
    refused(lambda: shapes.union(*[ball] * 257), "union: shapes are 257 pieces; at most 256 are taken")
    refused(lambda: shapes.intersection(*[ball] * 501), "at most 500")
    refused(lambda: shapes.polygon(np.zeros((20_000, 2))), "vertices are 20000 points; at most 10000")
    with pytest.raises(AttributeError, match="did you mean 'sphere'"):
        _ = shapes.shpere
