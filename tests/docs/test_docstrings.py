"""Every public name says what it does, and every example in it gives what it shows."""

from __future__ import annotations

import doctest
import functools
import inspect
import pydoc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import implicit_geom
from implicit_geom import Scene, Stepper, Trajectory, shapes, simulate

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def made(module: Any) -> dict[str, Any]:
    """The public classes and functions of a module, each once, under its shortest name."""
    found: dict[int, str] = {}
    for name in sorted(module.__all__, key=str.islower):
        if callable(getattr(module, name)) and not isinstance(getattr(module, name), type(int | str)):
            found[id(getattr(module, name))] = name
    return {f"{module.__name__}.{name}": getattr(module, name) for name in found.values()}


def returned(function: Any) -> type:
    """What a function says that it returns."""
    return inspect.signature(function, eval_str=True).return_annotation


RESULTS = {  # what public functions give, though nobody makes one
    "distance(...)": returned(implicit_geom.distance),
    "run[...]": returned(Trajectory.__getitem__),
    "advice.trials[0]": inspect.getmodule(implicit_geom.Advice).Trial,
    "comparison.found[...]": inspect.getmodule(implicit_geom.Comparison).Compared,
}
PUBLIC = {**made(implicit_geom), **made(shapes)}


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class of this project defines."""
    for name, value in vars(kind).items():
        described = callable(value) or isinstance(value, staticmethod | property | functools.cached_property)
        if not name.startswith("_") and described:
            yield name, value


def inherited(kind: type, name: str) -> str:
    """A member's docstring, its own or that of the class it comes from, as `help` shows it."""
    docs = (getattr(vars(base)[name], "__doc__", None) for base in kind.__mro__ if name in vars(base))
    return next((doc for doc in docs if doc), "")


def texts() -> Iterator[tuple[str, str]]:
    """Name and docstring of everything public."""
    yield "implicit_geom", implicit_geom.__doc__ or ""
    yield "shapes", shapes.__doc__ or ""
    for name, value in {**PUBLIC, **RESULTS}.items():
        yield name, value.__doc__ or ""
        if isinstance(value, type):
            yield from ((f"{name}.{label}", member.__doc__ or "") for label, member in members(value))


def egg_scene() -> Scene:
    """The scene of the package's docstring."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.31))
    scene.friction(mu=0.4)
    return scene


@functools.cache
def egg_run() -> Trajectory:
    return simulate(egg_scene(), duration=0.5, step=0.01)


EXAMPLES = {name: text for name, text in texts() if ">>>" in text}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples run as they stand, given the public names, NumPy, and the `scene` and `run` of an egg."""
    monkeypatch.chdir(tmp_path)
    known = {n: getattr(implicit_geom, n) for n in implicit_geom.__all__}
    known |= {"np": np, "scene": egg_scene(), "run": egg_run()}
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], known, name, None, 0)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize("name", {**PUBLIC, **RESULTS})
def test_every_public_name_is_described(name: str) -> None:
    """A public name and all its public methods and properties have a docstring."""
    value = {**PUBLIC, **RESULTS}[name]
    assert value.__doc__
    if isinstance(value, type):
        assert [label for label, _ in members(value) if not inherited(value, label)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (PUBLIC[name].__doc__ or "")


def shown(value: Any) -> str:
    """What `help` prints, without line breaks."""
    return " ".join(pydoc.plain(pydoc.render_doc(value)).split())


def test_help_shows_signatures() -> None:
    """What wraps a function keeps its signature and its words."""
    assert "duration" in inspect.signature(simulate).parameters
    assert "*, duration: 'float', step: 'float'" in shown(simulate).replace('"', "'")
    assert list(inspect.signature(shapes.box).parameters) == ["a", "b", "c"]
    assert list(inspect.signature(Scene.add).parameters)[:3] == ["self", "name", "shape"]
    assert list(inspect.signature(Trajectory.load).parameters) == ["path"]
    assert "facets" in inspect.signature(Stepper).parameters


def test_help_of_simulate_names_all_steppers() -> None:
    """Every stepper by its name, also every option."""
    text = shown(simulate)
    names = inspect.getmodule(Stepper).NAMED  # type: ignore[union-attr]
    assert [name for name in names if f" {name} " not in text] == []
    assert [name for name in inspect.signature(simulate).parameters if text.count(name) < 2] == []


def test_help_of_sweep_names_all_quantities() -> None:
    from implicit_geom.studies.sweeps import summaries

    text = shown(implicit_geom.sweep)
    assert [name for name in (*summaries.NAMED, *summaries.BODY) if name not in text] == []


PROMISES = {
    Scene.add: [
        "position of the centre of mass, world frame",
        "of the shape's own origin for a fixed body",
        "velocity of the centre of mass, world frame",
        "angular_velocity world frame",
        "com centre of mass in the shape's frame",
        "inertia about the centre of mass, in the shape's axes",
    ],
    Scene.friction: ["0 unless set", "e_t, e_o", "e_r a length in metres"],
    shapes.box: ["half-lengths"],
    shapes.rectangle: ["half-lengths"],
    shapes.cylinder: ["length whole length, m", "The origin is its centre"],
    shapes.capsule: ["of the cylindrical part alone", "The origin is its centre"],
    shapes.cone: ["The origin is the centre of the base, the apex is up"],
    shapes.superellipsoid: ["p exponent, at least 2"],
    shapes.superellipse: ["p exponent, at least 2"],
}


@pytest.mark.parametrize("value", PROMISES, ids=lambda value: value.__qualname__)
def test_help_says_frames_and_sizes(value: Any) -> None:
    """Whose frame, whose length: what a reader would otherwise have to try out."""
    text = shown(value)
    assert [words for words in PROMISES[value] if words not in text.replace("|", "")] == []
