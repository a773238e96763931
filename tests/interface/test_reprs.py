"""What is shown at a prompt says what a thing is, in few words, at once and whatever state it is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import implicit_geom
from implicit_geom import (
    Scene,
    Stepper,
    Trajectory,
    advise,
    attribution,
    compare,
    shapes,
    simulate,
    simulate_batch,
    sweep,
)

SHAPES = [
    "sphere(r=0.1)",
    "ellipsoid(a=0.5, b=0.4, c=0.3)",
    "superellipsoid(a=0.5, b=0.4, c=0.3, p=4.0)",
    "cylinder(radius=0.1, length=0.0)",
    "halfspace(normal=(0.0, 0.0, 1.0), offset=-0.5)",
    "polygon([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])",
    "regular_polygon(n=64, r=1.0)",
    "surface('x**2 + (y/a)**2 - 1', dim=2, a=0.3)",
    "box(a=1.0, b=1.0, c=1.0).moved(position=(0.0, 0.0, 2.0))",
    "disc(r=1.0).moved(position=(0.0, 2.0), orientation=0.5)",
    "union(sphere(r=0.1), sphere(r=0.1).moved(position=(0.3, 0.0, 0.0)))",
    "intersection(sphere(r=1.0), box(a=0.9, b=0.9, c=0.9))",
]


@pytest.mark.parametrize("text", SHAPES)
def test_shapes_as_they_are_typed(text: str) -> None:
    """A shape's repr is the call that makes it."""
    shape = eval(text, vars(shapes))
    assert repr(shape) == text


def deep(depth: int) -> shapes.Shape:
    shape = shapes.sphere(1)
    for _ in range(depth):
        shape = shape.moved(position=(1, 0, 0))
    return shape


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (shapes.polygon([(np.cos(a), np.sin(a)) for a in np.arange(0, 6.2, 0.01)]), "polygon(["),
        (shapes.union(*[shapes.sphere(k + 1) for k in range(200)]), "... 196 more"),
        (shapes.union(*[shapes.sphere(1 / 3).moved((1 / 3, 1 / 7, k / 9)) for k in range(9)]), "..."),
        (deep(15), "moved(...)"),
    ],
)  # fmt: skip
def test_large_shapes_are_short(shape: shapes.Shape, words: str) -> None:
    assert len(repr(shape)) <= 300
    assert words in repr(shape)


@pytest.mark.parametrize("kind", [shapes.Box, shapes.Polygon, shapes.Moved, shapes.Union, Scene, Trajectory])
def test_half_made_things_can_be_shown(kind: Any) -> None:
    """An error or a debugger may show a thing whose constructor has not come to its end."""
    assert repr(kind.__new__(kind)) == f"<{getattr(kind, 'kind', kind.__name__)}>"


def test_scene_lists_bodies_and_friction(eggs: Scene) -> None:
    assert repr(eggs).splitlines() == [
        "Scene: 3 bodies, dim = 3, gravity = (0, 0, -9.81) m/s^2",
        "  ground  halfspace(normal=(0.0, 0.0, 1.0), offset=0.0), fixed, at (0, 0, 0) m",
        "  low     ellipsoid(a=0.5, b=0.4, c=0.3), 1 kg, at (0, 0, 0.31) m",
        "  high    ellipsoid(a=0.5, b=0.4, c=0.3), 2 kg, at (0.1, 0, 0.95) m",
        "  friction: mu = 0.4, e_o = 0.5, e_r = 0.01, direction = "
        "(0.2672612419124244, 0.5345224838248488, 0.8017837257372732)",
        "  friction of low and high: mu = 0.2, e_o = 1",
    ]


def test_scene_of_many_bodies_is_short() -> None:
    """The first few and a count, also of pairs."""
    scene = Scene(dim=2)
    for k in range(100):
        scene.add(f"disc {k}", shapes.disc(1), mass=1.0, position=(3 * k, 0))
    for k in range(1, 99):
        scene.friction(f"disc {k}", f"disc {k + 1}", mu=0.1)
    lines = repr(scene).splitlines()
    assert lines[0].startswith("Scene: 100 bodies, dim = 2")
    assert "  ... 92 more bodies" in lines
    assert lines[-1] == "  ... 94 more pairs with friction of their own"
    assert len(lines) < 20


def test_runs_tell_how_they_ended(disc: Callable[[], Scene], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies, duration, steps, stepper and outcome; neither residuals nor energies are computed for it."""
    run = simulate(disc(), duration=0.1, step=0.01)
    monkeypatch.setattr(Trajectory, "assess", lambda _: pytest.fail("assessed"))
    assert repr(run) == "<Trajectory of 'ground', 'disc': 0.1 s in 10 steps, implicit-rattle, 10 converged>"
    assert "time" not in vars(run)
    run.failure = "step at t = 0.1 s failed: no luck"
    assert repr(run).endswith("10 steps, implicit-rattle, FAILED: step at t = 0.1 s failed: no luck>")


def test_motions_tell_their_sizes(disc: Callable[[], Scene]) -> None:
    """Of a run, and of a batch with its scenes in front."""
    run = simulate(disc(), duration=0.1, step=0.01)
    text = "position (11, 2), orientation (11,), velocity (11, 2), angular_velocity (11,)"
    assert repr(run["disc"]) == f"<BodyMotion of 'disc': {text}>"
    batch = simulate_batch(disc(), {"friction.mu": [0.2, 0.4, 0.6]}, duration=0.1, step=0.01)
    assert "of 'disc': position (3, 11, 2)" in repr(batch["disc"])


def test_keys_are_completed(disc: Callable[[], Scene]) -> None:
    """run["<tab> offers the bodies."""
    run = simulate(disc(), duration=0.1, step=0.01)
    batch = simulate_batch(disc(), {"friction.mu": [0.2, 0.4]}, duration=0.1, step=0.01)
    for result in (run, batch):
        assert result._ipython_key_completions_() == ["ground", "disc"]


def test_studies_tell_their_outcome(disc: Callable[[], Scene]) -> None:
    """Comparison, attribution, advice and sweep in a line each."""
    how: dict[str, Any] = {"duration": 0.1, "step": 0.01}
    compared = compare(disc(), **how, steppers="all")
    start = "<Comparison at step 0.01 s of 16 steppers, 16 finished: ----, "
    assert repr(compared).startswith(start)
    assert repr(compared).endswith(", ... 10 more>")
    assert repr(compared.found["SGWF"]) == "<Compared: SGWF, finished>"
    assert repr(attribution(compared)["energy"]).startswith("<Attribution of the energy error 0.0")
    advice = advise(disc(), **how, tolerance=1e-2, steppers=["implicit-rattle"])
    assert repr(advice).startswith("<Advice for tolerance 0.01 of ")
    assert "trials: implicit-rattle, step = 0.0" in repr(advice)
    found = sweep(disc(), {"friction.mu": [0.2, 0.4]}, ["energy_lost"], **how, workers=1)
    assert repr(found).startswith("<Sweep of 2 runs, 0 failed: run, digest, friction.mu, status, reason")


@pytest.mark.parametrize(
    "text",
    [
        "Stepper.named('implicit-euler')",
        "Stepper.named('anitescu-hart')",
        "Stepper(gap='linearised', facets=9)",
    ],
)
def test_steppers_as_they_are_typed(text: str) -> None:
    assert repr(eval(text, {"Stepper": Stepper})) == text


@pytest.mark.parametrize("module", [implicit_geom, shapes])
def test_dir_shows_public_names_only(module: Any) -> None:
    assert dir(module) == sorted(module.__all__)
    assert not [name for name in dir(module) if not hasattr(module, name)]
