"""Saved runs that were damaged or made to do harm: with their hash, with a new one, and without any."""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from implicit_geom import shapes
from implicit_geom.experiments.fuzz.files import BYTES, Alone, Case, outcome
from implicit_geom.experiments.fuzz.hostile_hdf5 import ATTACKS
from implicit_geom.run.record.solve_log import ARRAYS
from implicit_geom.run.simulate import simulate
from implicit_geom.run.storage.run_file import HEAD, MAGIC, VERSION
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import to_dict

SUFFIX = ".h5"


def cases(seed: int, count: int) -> Iterator[Case]:
    """Damage to files with their hash (six of ten), changes with a new hash (two), files without (two)."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        original = originals()[int(rng.integers(len(originals())))]
        old = without_hash(original)
        if k % 10 < 6:
            change = BYTES[rng.integers(len(BYTES))]
            yield Case(f"{change.__name__} {k}", change(original, rng), original, True, False)
        elif k % 10 < 8:
            yield Case(f"new hash {k}", _with_new_hash(original, rng), original, False, False)
        elif k % 20 < 10:
            change = BYTES[rng.integers(len(BYTES))]
            yield Case(f"no hash, {change.__name__} {k}", change(old, rng), old, False, True)
        else:
            attack = ATTACKS[rng.integers(len(ATTACKS))]
            yield Case(f"{attack.__name__} {k}", attacked(old, attack, rng), old, False, True)


def check(case: Case) -> str:
    """ "" where the file is refused in one line, or read as it is; otherwise what went wrong."""
    if case.alone:
        return _alone().outcome(case.data)
    return outcome(content, case.data, case.original, case.hashed, SUFFIX)


def look(data: bytes) -> str:
    """`check` of a file without a hash, where another process asks for it."""
    return outcome(content, data, data, False, SUFFIX)


def content(path: Path) -> bytes:
    """All that a run holds; what follows from it is asked for, too."""
    run = Trajectory.load(path)
    with np.errstate(all="ignore"):
        _ = run.energy, run.contacts, run.impacts, run.states, run.steps
    solves = [getattr(run.solves, name).tobytes() for name in ARRAYS]
    start = [np.float64(run.initial.time).tobytes(), *(getattr(run.initial, p).tobytes() for p in "xqvw")]
    texts = json.dumps([to_dict(run.scene), run.options.as_dict(), run.memory, run.failure]).encode()
    return b"".join([*solves, *start, run.steps.tobytes(), texts])


@cache
def originals() -> list[bytes]:
    """Good files: of two eggs, of a disc in the plane with compressed arrays, of a classical stepper."""
    eggs = Scene(gravity=(0, 0, -9.81))
    eggs.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    eggs.add("low", egg, mass=1.0, position=(0, 0, 0.31), velocity=(1, 0.3, 0), angular_velocity=(1, 2, 3))
    eggs.add("high", egg, mass=2.0, position=(0.1, 0, 0.95), orientation=(1, 0.1, 0.2, 0.3))
    eggs.friction(mu=0.4, e_r=0.01)
    disc = Scene(dim=2, gravity=(0, -9.81))
    disc.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    disc.add("disc", shapes.disc(1.0), mass=1.0, position=(0, 1), velocity=(-3, 0), angular_velocity=2.0)
    disc.friction(mu=0.4)
    runs = [
        simulate(eggs, duration=0.1, step=0.01, impacts="stages", progress=False),  # (it keeps warm starts)
        simulate(disc, duration=3.0, step=0.01, progress=False),
        simulate(disc, duration=0.05, step=0.01, stepper="stewart-trinkle", progress=False),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for k, run in enumerate(runs):
            run.save(Path(folder) / f"{k}.h5")
        return [(Path(folder) / f"{k}.h5").read_bytes() for k in range(len(runs))]


def without_hash(data: bytes) -> bytes:
    """The HDF5 part alone, as earlier versions wrote it."""
    return data[index_of(data)["block"] :]


def with_new_hash(index: dict[str, Any], image: bytes) -> bytes:
    """A file of this list of arrays and these bytes, with a hash that fits."""
    index = {"block": 1 << 16, **{k: v for k, v in index.items() if k != "block"}}
    head = len(MAGIC + b"%d sha256=%064d bytes=%018d\n" % (VERSION, 0, 0))
    rest = json.dumps(index).encode().ljust((1 << 16) - head - 1) + b"\n" + image
    return (
        MAGIC
        + b"%d sha256=%s bytes=%018d\n" % (VERSION, hashlib.sha256(rest).hexdigest().encode(), len(rest))
        + rest
    )


def attacked(old: bytes, attack: Any, rng: np.random.Generator) -> bytes:
    """An HDF5 file changed by means of h5py."""
    file = io.BytesIO(old)
    with h5py.File(file, "r+") as opened:
        attack(opened, rng)
    return file.getvalue()


def _with_new_hash(data: bytes, rng: np.random.Generator) -> bytes:
    """A number or a name in the list of arrays changed, or the bytes of an array."""
    index = index_of(data)
    image = data[index["block"] :]
    if rng.random() < 0.3:
        return with_new_hash(index, BYTES[rng.integers(3)](image, rng))
    names = list(index["arrays"])
    name = names[rng.integers(len(names))]
    entry = index["arrays"][name]
    odd: list[Any] = [
        0,
        1,
        -1,
        7,
        2**31,
        2**62,
        10**19,
        1e300,
        None,
        "x",
        [],
        {},
        True,
        [2**40],
        [[0, 8, 0]] * 5,
    ]
    value = odd[rng.integers(len(odd))]
    what = int(rng.integers(7))
    if what == 0:
        entry[rng.integers(4)] = value
    elif what == 1 and entry[1]:
        entry[1][rng.integers(len(entry[1]))] = value
    elif what == 2 and entry[3]:
        entry[3][0][rng.integers(3)] = value
    elif what == 3:
        entry[0] = str(rng.choice(["<f8", "<i8", "|b1", "|S9", "|O", "<f4", ">f8", "|V8", "|S0", "<U4"]))
    elif what == 4:
        index["arrays"][name] = index["arrays"][names[rng.integers(len(names))]]
    elif what == 5:
        index["arrays"][f"{name}x"] = index["arrays"].pop(name)
    else:
        index[str(rng.choice(["notes", "arrays"]))] = value
    return with_new_hash(index, image)


def index_of(data: bytes) -> Any:
    """The list of arrays of a file."""
    head = HEAD.match(data)
    assert head is not None
    return json.loads(data[head.end() : data.index(b"\n", head.end())])


@cache
def _alone() -> Alone:
    process = Alone(__name__)
    atexit.register(process.close)
    return process
