"""Scene and sweep files: valid ones with mutations, and tables put together from the words of the format."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from implicit_geom.experiments.fuzz.judge import verdict
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene_file import read_scene
from implicit_geom.studies.sweeps.grid import grid
from implicit_geom.studies.sweeps.summaries import read_summary
from implicit_geom.studies.sweeps.sweep_file import read_sweep

SCENE = """dim = 3
gravity = [0, 0, -9.81]

[bodies.ground]
shape = { kind = "halfspace", normal = [0, 0, 1] }
fixed = true

[bodies.egg]
shape = { kind = "ellipsoid", a = 0.5, b = 0.4, c = 0.3 }
mass = 1.0
position = [0, 0, 0.31]
orientation = [1, 0, 0, 0]
velocity = [1, 0, 0]
angular_velocity = [0, 0, 1]

[bodies.pair]
shape = { kind = "union", shapes = [{ kind = "sphere", r = 0.1 }, { kind = "moved", shape = { kind = "box", a = 0.1, b = 0.1, c = 0.1 }, position = [0.3, 0, 0] }] }
mass = 2.0
com = [0.1, 0, 0]
inertia = [0.1, 0.1, 0.1]
position = [3, 0, 1]

[friction]
mu = 0.4
e_r = 0.1

[[friction.pairs]]
bodies = ["egg", "ground"]
mu = 0.2
restitution = 0.5

[applied.egg]
force = [0, 0, 1]
torque = [0, 0, 0]

[simulation]
duration = 2.0
step = 0.01
stepper = "implicit-rattle"
"""  # noqa: E501
PLANE = """dim = 2

[bodies.floor]
shape = { kind = "halfplane", normal = [0, 1] }
fixed = true

[bodies.wheel]
shape = { kind = "regular_polygon", n = 7, r = 1.0 }
mass = 1.0
position = [0, 1]
orientation = 0.1
velocity = [1, 0]
angular_velocity = -1

[simulation]
duration = 1
step = 0.1
[simulation.stepper]
name = "stewart-trinkle"
facets = 12
"""
TEXT = """[bodies.egg]
shape = { kind = "surface", text = "(x/a)**2 + y**2 + z**2 - 1", a = 2 }
mass = 1
[simulation]
duration = 1
step = 0.1
"""
SWEEP = """scene = "scene.toml"
summary = ["energy_lost", "final_position.egg"]
[simulation]
duration = 0.1
[values]
bodies.egg.shape.a = [0.4, 0.5]
friction.mu = { start = 0.1, stop = 0.5, count = 5 }
"simulation.step, simulation.tolerance" = [[0.01, 1e-10], [0.02, 1e-9]]
"""
VALUES = (
    "1", "-1", "0", "3.0", "true", "nan", "-inf", "1e308", "1e400", "9" * 400, "9" * 5000, "0x" + "f" * 300,
    '""', '"x"', '"\\u0000"', '"\\u001b[31m"', '"\\u202eabc"', '"a\\nb"', "'raw'", '"""m\nl"""', "[]", "{}",
    "[[]]", "[1]", "[1, 2]", "[1, 2, 3]", "[1, 2, 3, 4]", "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]",
    "[true, 0, 0]", "[1, [2], 3]", '["1", 2, 3]', "[1e200, 0, 0]", "[1e20, 0, 0]", "1979-05-27", "07:32:00",
    "{ a = 1 }", '{ kind = "sphere", r = 1 }', '{ kind = "spher", r = 1 }', '{ kind = "sphere", r = -1 }',
    "[nan, 0, 0]", "{ start = 0, stop = 1, count = 1000000000 }", "{ start = 'a', stop = 1, count = 3 }",
    "1e-320", "1e50", '{ kind = "surface", text = "((((3*x)**99)**99)**99)**99-1" }',
    '"' + "a" * 3000 + '"', "1e-60", "2", "1_0",
)  # fmt: skip
KEYS = (
    "a", "kind", "shape", "mass", "position", "bodies", "friction", "simulation", "step", "duration", "r",
    "values", "dim", "gravity", "stepper", "fixed", "pairs", "mu", "e_t", "frame", "direction", "egg", "''",
    '"\\u0000"', '"\\u001b[2J"', '"a b"', '"\\u2028"', '"\\u202e"', "a" * 500, ".".join("a" * 40),
    ".".join("ab" * 3000), "massa", "postion", "inertia", "com", "summary", "scene", "tolerance", "applied",
    "restitution",
)  # fmt: skip
JUNK = (
    "\x00", "\x1b", "\u202e", "\ufeff", "[", "]", "{", "}", "=", '"', "'", "#", "\n", ".", ",", "[[", "]]",
    '"""', "[" * 500, "{a=" * 500, "\r", "\t", "\x7f", "=" * 9, "[a]\n[a]\n", "9" * 50, "-", "+", "e",
    "inf",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    kind: str  # scene or sweep
    text: str


def cases(seed: int, count: int) -> Iterator[Case]:
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.choice(("scene", "scene", "sweep"))
        good = SWEEP if kind == "sweep" else rng.choice((SCENE, SCENE, PLANE, TEXT))
        made = rng.random()
        if made < 0.15:
            text = _tables(rng)
        else:
            text = good
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                text = rng.choice((_value, _value, _key, _lines, _characters))(rng, text)
        yield Case(kind, text)


def check(case: Case) -> str:
    """Read the file as the command line does, up to the first step."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "scene.toml").write_text(SCENE)
        path = Path(folder) / "case.toml"
        path.write_bytes(case.text.encode("utf-8", "surrogatepass"))

        def read() -> None:
            if case.kind == "scene":
                _, options = read_scene(path)
                SimulationOptions(**{"duration": 1.0, "step": 0.1, **options})
                return
            scene, options, values, summary = read_sweep(path)
            read_summary(scene, summary)
            grid(scene, values, options)

        return verdict(read)


def _value(rng: random.Random, text: str) -> str:
    """Another value for a key."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if " = " in line]
    if places:
        i = rng.choice(places)
        lines[i] = f"{lines[i].split(' = ')[0]} = {rng.choice(VALUES)}"
    return "\n".join(lines)


def _key(rng: random.Random, text: str) -> str:
    """Another key for a value, in a table or in braces."""
    words = [word for word in set(text.replace("[", " ").replace(".", " ").split()) if word.isidentifier()]
    return text.replace(rng.choice(words), rng.choice(KEYS), rng.choice((1, 1, -1))) if words else text


def _lines(rng: random.Random, text: str) -> str:
    """A line left out, twice, elsewhere or new."""
    lines = text.split("\n")
    line = lines.pop(rng.randrange(len(lines)))
    at = rng.randrange(len(lines) + 1)
    new = f"{rng.choice(KEYS)} = {rng.choice(VALUES)}"
    lines[at:at] = rng.choice(([], [line], [line, line], [new, line]))
    return "\n".join(lines)


def _characters(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(JUNK) + text[at + rng.choice((0, 1, 5)) :]
    return text


def _tables(rng: random.Random) -> str:
    lines = []
    for _ in range(rng.randint(1, 12)):
        names = ".".join(rng.choice(KEYS) for _ in range(rng.randint(1, 3)))
        lines.append(rng.choice((f"[{names}]", f"{names} = {rng.choice(VALUES)}", f"[[{names}]]")))
    return "\n".join(lines)
