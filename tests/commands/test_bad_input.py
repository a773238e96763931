"""Bad input: one line on stderr that says what to change, status 2, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

GROUND = 'shape = { kind = "halfspace", normal = [0, 0, 1] }\nfixed = true'
EGG = '{ kind = "ellipsoid", a = 0.5, b = 0.4, c = 0.3 }'
EMPTY = (
    '{ kind = "intersection", shapes = [{ kind = "sphere", r = 1 }, '
    '{ kind = "moved", shape = { kind = "sphere", r = 1 }, position = [5, 0, 0] }] }'
)
CALLS = "{ kind = \"surface\", text = \"__import__('os').mkdir('out')\" }"
ATTRIBUTE = '{ kind = "surface", text = "x.real**2 + y**2 + z**2 - 1" }'
MOVES = "mass = 1.0\nposition = [0, 0, 0.31]\nvelocity = [1, 0, 0]"
PAIR = '\n[[friction.pairs]]\nbodies = ["egg", "moon"]\n[simulation]'

CASES = {
    "NaN in the state": ("velocity = [1, 0, 0]", "velocity = [nan, 0, 0]", "bodies.egg.velocity"),
    "infinite position": ("position = [0, 0, 0.31]", "position = [0, 0, inf]", "bodies.egg.position"),
    "no mass": ("mass = 1.0\n", "", "bodies.egg.mass is missing"),
    "zero mass": ("mass = 1.0", "mass = 0", "bodies.egg.mass = 0"),
    "negative mass": ("mass = 1.0", "mass = -2", "bodies.egg.mass = -2"),
    "negative friction": ("mu = 0.4", "mu = -0.1", "friction.mu = -0.1"),
    "restitution above one": ("mu = 0.4", "mu = 0.4\nrestitution = 1.5", "friction.restitution = 1.5"),
    "negative restitution": ("mu = 0.4", "mu = 0.4\nrestitution = -0.5", "friction.restitution = -0.5"),
    "unknown body in a pair": ("\n[simulation]", PAIR, "no body named 'moon'"),
    "overlap at the start": ("[0, 0, 0.31]", "[0, 0, 0.2]", "'ground' and 'egg' overlap by 0.1 m"),
    "unbounded body that moves": (EGG, '{ kind = "halfspace", normal = [0, 0, 1] }', "unbounded halfspace"),
    "shape in the wrong place": ("[bodies.", "[applied.", "key 'shape'"),
    "fixed body with velocity": ("mass = 1.0", "fixed = true", "bodies.egg.velocity"),
    "nothing moves": (MOVES, "fixed = true", "no body can move"),
    "empty intersection": (EGG, EMPTY, "bodies.egg.shape"),
    "unknown key": ("position =", "positon =", "did you mean 'position'?"),
    "unknown kind": ('"ellipsoid"', '"elipsoid"', "did you mean 'ellipsoid'?"),
    "surface that calls": (EGG, CALLS, "bodies.egg.shape"),
    "surface with attribute": (EGG, ATTRIBUTE, "bodies.egg.shape"),
    "unknown stepper": ("step = 0.01", 'step = 0.01\nstepper = "euler"', "stepper = 'euler'"),
    "negative step": ("step = 0.01", "step = -0.01", "step = -0.01"),
    "no step": ("step = 0.01", "", "simulation.step is missing"),
    "duration in words": ("duration = 0.2", 'duration = "long"', "duration = 'long'"),
    "no TOML": ("mu = 0.4", "mu = = 0.4", "line 15"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_scene(case: str, call, scene: str, folder: Path) -> None:
    """Each kind of bad scene file is refused in one line, and nothing is written."""
    old, new, words = CASES[case]
    assert old in scene
    (folder / "egg.toml").write_text(scene.replace(old, new))
    outcome = call("run", "egg.toml", "-o", "out.h5")
    assert outcome.status == 2, outcome
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.err.startswith("implicit-geom: ")
    assert outcome.out == ""
    assert [p.name for p in folder.iterdir()] == ["egg.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "none.toml"], "none.toml: cannot be read: No such file"),
        (["run", "."], "cannot be read"),
        (["run", "none.json"], "none.json: cannot be read"),
        (["run", "egg.toml", "-o", "no/where/out.h5"], "there is no directory 'no/where'"),
        (["run", "egg.toml", "-o", "."], "is a directory"),
        (["run", "egg.toml", "-o", "out.png"], "ends in .h5"),
        (["run", "egg.toml", "--step", "fast"], "--step"),
        (["run", "egg.toml", "--step", "nan"], "step = nan"),
        (["run", "egg.toml", "--duration", "0"], "duration = 0"),
        (["run", "egg.toml", "--stepper", "implicit-eulr"], "did you mean 'implicit-euler'?"),
        (["run"], "SCENE.toml"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "COMMAND"),
        (["reproduce", "no-such-figure"], "no experiment named 'no-such-figure'"),
        (["bench", "no-such-bench"], "no benchmark named 'no-such-bench'"),
        (["demo", "-o", "no/where.png"], "there is no directory"),
    ],
)
def test_bad_arguments(arguments: list[str], words: str, call, scene, folder: Path) -> None:
    """Each kind of bad command line is refused in one line, and nothing is written."""
    outcome = call(*arguments)
    assert outcome.status == 2, outcome
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert [p.name for p in folder.iterdir()] == ["egg.toml"]
