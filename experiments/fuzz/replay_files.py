"""Files of failed steps that were damaged or made to do harm: with their hash, a new one, and without any."""

from __future__ import annotations

import atexit
import copy
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom import shapes
from implicit_geom.experiments.fuzz.files import BYTES, Alone, Case, outcome
from implicit_geom.run.simulate import simulate
from implicit_geom.run.storage.replay import prepare, replay
from implicit_geom.run.storage.replay_file import FORMAT, digest, read_record
from implicit_geom.run.storage.step_failed import StepFailed
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import to_dict

SUFFIX = ".json"
# what may stand where something else was; the texts that JSON does not have are put in by `_text`
ODD: list[Any] = [None, True, "x", "", 0, -1, 2**62, 1e308, -1e-308, [], {}, [[]], {"a": 1}, "\x1b[2J"]
WORDS = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "9" * 5000,
    "[" * 10**5,
    '{"a":' * 10**5,
    '{"a": 1, "a": 2}',
]


def cases(seed: int, count: int) -> Iterator[Case]:
    """Damage to files with their hash (five of ten), content changed with a new hash, and without (five)."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        original = originals()[int(rng.integers(len(originals())))]
        change = BYTES[rng.integers(len(BYTES))]
        if k % 10 < 3:
            yield Case(f"{change.__name__} {k}", change(original, rng), original, True, False)
        elif k % 10 < 5:
            yield Case(f"content {k}", _text(_changed(json.loads(original), rng), rng), original, True, False)
        elif k % 10 < 7:
            old = without_hash(original)
            yield Case(f"no hash, {change.__name__} {k}", change(old, rng), old, False, True)
        elif k % 10 < 9:
            record = _changed(json.loads(without_hash(original)), rng)
            yield Case(f"no hash, content {k}", _text(record, rng), original, False, True)
        else:
            yield Case(
                f"new hash {k}", with_new_hash(_changed(json.loads(original), rng)), original, False, True
            )


def check(case: Case) -> str:
    """ "" where the file is refused in one line, or the step repeated; otherwise what went wrong."""
    if case.alone:
        return _alone().outcome(case.data)
    return outcome(content, case.data, case.original, case.hashed, SUFFIX)


def look(data: bytes) -> str:
    """Read a file and repeat its step, where another process asks for it.

    Files have to be read in little time; the step of a scene with absurd numbers may take long to fail.
    """
    words = outcome(_prepared, data, data, False, SUFFIX) or outcome(repeat, data, data, False, SUFFIX)
    return words if not words.startswith("hangs in repeat") else ""


def content(path: Path) -> bytes:
    """All that a file says."""
    return json.dumps(read_record(path), sort_keys=True).encode()


def _prepared(path: Path) -> bytes:
    return prepare(path)[3].x.tobytes()


def repeat(path: Path) -> bytes:
    """The end of the step."""
    attempt = replay(path)
    return attempt.solves[-1].end.x.tobytes()


@cache
def originals() -> list[bytes]:
    """Good files: of a ball and of two eggs, of a disc in the plane under a classical stepper."""
    ball, eggs = Scene(gravity=(0, 0, -9.81)), Scene(gravity=(0, 0, -9.81))
    egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    for scene in (ball, eggs):
        scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
        scene.friction(mu=0.4, e_r=0.01)
    ball.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1, 0, 0))
    eggs.add("low", egg, mass=1.0, position=(0, 0, 0.31), velocity=(1, 0.3, 0), angular_velocity=(1, 2, 3))
    eggs.add("high", egg, mass=2.0, position=(0.1, 0, 0.95), orientation=(1, 0.1, 0.2, 0.3))
    disc = Scene(dim=2, gravity=(0, -9.81))
    disc.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    disc.add("disc", shapes.disc(1.0), mass=1.0, position=(0, 1), velocity=(-3, 0))
    disc.friction(mu=0.4)
    return [_file(ball, "implicit-rattle"), _file(eggs, "implicit-euler"), _file(disc, "stewart-trinkle")]


def _file(scene: Scene, stepper: str) -> bytes:
    """The file that a failure of the step after a short run would write."""
    run = simulate(scene, duration=0.1, step=0.01, stepper=stepper, progress=False)
    state = {part: getattr(run.final, part).tolist() for part in ("x", "q", "v", "w")}
    record = {"format": FORMAT, "scene": to_dict(scene), "state": state, "solver": run.memory, "step": 0.01}
    record["options"] = run.options.as_dict()
    history = [[1.0, 0.5, float("nan")], [float("inf")]]
    failure = StepFailed("no solution", time=run.final.time, state={}, history=history, replay=record)
    with tempfile.TemporaryDirectory() as folder:
        failure.write(Path(folder) / "step.json")
        return (Path(folder) / "step.json").read_bytes()


def without_hash(data: bytes) -> bytes:
    """The file as earlier versions wrote it."""
    record = json.loads(data)
    return _text({k: v for k, v in record.items() if k not in ("sha256", "format_version")}, None)


def with_new_hash(record: dict[str, Any]) -> bytes:
    """A file of this content, with a hash that fits."""
    content = {k: v for k, v in record.items() if k != "sha256"}
    return json.dumps({**content, "sha256": digest(content)}).encode()


def _changed(record: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Something else in one place, or nothing, or more."""
    record = copy.deepcopy(record)
    here: Any = record
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = keys[rng.integers(len(keys))]
        below = here[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.15:
            break
        here = below
    what = int(rng.integers(8))
    if what == 0:
        del here[key]
    elif what == 1 and isinstance(here, list):
        here.append(here[key])
    elif what == 1:
        here[f"{key}x"] = here[key]
    elif what == 2 and isinstance(below, float | int):
        here[key] = below * float(rng.choice([-1, 0, 2, 1e150, 1 + 1e-15]))
    else:
        here[key] = ODD[rng.integers(len(ODD))]
    return record


def _text(record: dict[str, Any], rng: np.random.Generator | None) -> bytes:
    """JSON, at times with one of the words that it does not have in the place of a number."""
    text = json.dumps(record, indent=1).encode()
    if rng is None or rng.random() < 0.7:
        return text
    lines = text.split(b"\n")
    numbers = [i for i, line in enumerate(lines) if line.rstrip(b",").strip()[-1:].isdigit()]
    i = numbers[rng.integers(len(numbers))]
    before = lines[i][: lines[i].find(b":") + 1] if b":" in lines[i] else b""
    word = WORDS[rng.integers(len(WORDS))].encode()
    lines[i] = before + word + (b"," if lines[i].endswith(b",") else b"")
    return b"\n".join(lines)


@cache
def _alone() -> Alone:
    process = Alone(__name__)
    atexit.register(process.close)
    return process
