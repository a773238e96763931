"""Mistyped, missing and superfluous arguments of the public calls: one line with the nearest name."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from implicit_geom import (
    Scene,
    SceneError,
    ShapeError,
    SimulationError,
    Stepper,
    advise,
    distance,
    shapes,
    simulate,
    simulate_batch,
    sweep,
)
from implicit_geom.commands.cli import main
from implicit_geom.interface.words import LONGEST_LINE, hint, one_line, shown

BALL = shapes.sphere(1.0)
POSE = ((0, 0, 0), (1, 0, 0, 0))
CALLS: dict[str, tuple[Any, str]] = {
    "Scene": (lambda: Scene(dims=3), "Scene: dims = 3: .* did you mean 'dim'"),
    "Scene in order": (lambda: Scene(3), "Scene: takes no values in order, 1 were given; .* dim=, gravity="),
    "add": (lambda: Scene().add("a", BALL, postion=(0, 0, 0)), "Scene.add: .* did you mean 'position'"),
    "add without": (lambda: Scene().add("a"), "Scene.add: shape is missing"),
    "friction": (lambda: Scene().friction(nu=0.3), "Scene.friction: nu = 0.3: .* did you mean 'mu'"),
    "applied": (lambda: Scene().applied("a", fource=1), "Scene.applied: .* did you mean 'force'"),
    "simulate": (lambda: simulate(Scene(), duration=1, step=1, tol=1e-9), "did you mean 'tolerance'"),
    "simulate in order": (
        lambda: simulate(Scene(), 1.0, 0.1),
        r"simulate: takes 1 in order \(scene\), 3 were",
    ),
    "simulate without": (lambda: simulate(Scene(), duration=1), "simulate: step is missing"),
    "batch": (lambda: simulate_batch(Scene(), {}, duration=1, stp=1), "did you mean 'step'"),
    "sweep": (lambda: sweep(Scene(), {}, [], duraton=1), "did you mean 'duration'"),
    "sweep without": (lambda: sweep(Scene(), {}), "sweep: summary is missing"),
    "distance": (lambda: distance(BALL, POSE, BALL, pose_bb=POSE), "distance: .* did you mean 'pose_b'"),
    "advise": (lambda: advise(Scene(), tol=1e-3), "advise: .* did you mean 'tolerance'"),
    "Stepper": (lambda: Stepper(facet=3), "Stepper: .* did you mean 'facets'"),
    "sphere": (lambda: shapes.sphere(radius=1), "sphere: radius = 1: .* did you mean 'r'"),
    "sphere in order": (lambda: shapes.sphere(1, 2), r"sphere: takes 1 in order \(r\), 2 were given"),
    "box": (lambda: shapes.box(1, 2), "box: c is missing; it takes a, b, c"),
    "cylinder": (lambda: shapes.cylinder(1, lenght=2), "cylinder: .* did you mean 'length'"),
    "capsule": (lambda: shapes.capsule(1, lenght=2), "capsule: .* did you mean 'length'"),
    "twice": (lambda: shapes.cone(1, radius=2), "cone: radius is given twice"),
    "surface": (lambda: shapes.surface("x", "y"), "surface: takes 1 in order"),
    "moved": (lambda: BALL.moved(postion=(0, 0, 1)), "shape.moved: .* did you mean 'position'"),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_told(name: str) -> None:
    """A SceneError or ShapeError that is a TypeError, too."""
    call, words = CALLS[name]
    with pytest.raises((SceneError, ShapeError), match=words) as caught:
        call()
    assert isinstance(caught.value, TypeError)


def test_signatures_stay_visible() -> None:
    """help() and tools see the arguments as they were written; functions can be sent to processes."""
    assert list(inspect.signature(shapes.sphere).parameters) == ["r"]
    assert "friction_tolerance" in inspect.signature(simulate).parameters
    assert "position" in inspect.signature(Scene.add).parameters
    assert simulate.__doc__.startswith("Simulate a scene")
    assert pickle.loads(pickle.dumps(simulate)) is simulate


def test_a_type_error_inside_stays_one() -> None:
    """Only the call itself is judged: an error of a user's own code is passed on."""

    class Odd(shapes.Sphere):
        def __init__(self, r: float) -> None:
            super().__init__(r)
            raise TypeError("my own")

    with pytest.raises(TypeError, match="my own") as caught:
        Odd(1.0)
    assert not isinstance(caught.value, ShapeError)


def test_messages_are_one_short_printable_line() -> None:
    """Whatever a message is made of; wrapping it once more changes nothing."""
    nasty = "a\x1b[31mb\nc\u202ed\u2028e\x00" + "f" * 1_000_000 + " the fix"
    for kind in (SceneError, ShapeError, SimulationError):
        told = str(kind(f"field = {nasty}"))
        assert told.isprintable()
        assert len(told) <= LONGEST_LINE
        assert told.startswith("field = a\\x1b[31mb c\\u202ed e\\x00")
        assert told.endswith("the fix")
        assert one_line(told) == told
        assert str(pickle.loads(pickle.dumps(kind(nasty)))) == str(kind(nasty))


def test_values_are_shown_short() -> None:
    """Escaped, cut and never an error themselves."""

    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shown("a\nb") == "'a\\nb'"
    assert shown(10**5000) == "(an integer of about 5000 digits)"
    assert shown(Bad()).startswith("<")
    for value in ("x" * 10**6, list(range(10**5)), {i: i for i in range(10**4)}, "\u202e" * 1000):
        assert len(shown(value)) <= 80
        assert shown(value).isprintable()
    assert hint("nu", ["mu", "e_t"]) == "; did you mean 'mu'?"
    assert len(hint("q", [f"body {i}" for i in range(10_000)])) < 500


def test_the_command_line_shows_no_control_characters(tmp_path, capsys) -> None:
    """File names and arguments are a user's texts as well."""
    for arguments in (["run", "\x1b[31mnone.toml"], ["run", "a\nb.json"], ["\x1b[31mfly"]):
        try:
            status = main(arguments)
        except SystemExit as leaving:
            status = int(leaving.code or 0)
        told = capsys.readouterr().err
        assert status == 2
        assert told.rstrip("\n").isprintable()
        assert told.count("\n") == 1
