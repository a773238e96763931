"""The bytes of a saved run: any change is found, other programs read them, older files load."""

from __future__ import annotations

import io
import json
from pathlib import Path

import h5py
import numpy as np
import pytest

from implicit_geom import Scene, SceneError, Trajectory, replay, shapes, simulate
from implicit_geom.experiments.fuzz.hostile_hdf5 import ATTACKS, put
from implicit_geom.experiments.fuzz.saved_runs import (
    attacked,
    content,
    index_of,
    originals,
    with_new_hash,
    without_hash,
)
from implicit_geom.model.solve_arrays import STEP
from implicit_geom.run.storage import run_file
from implicit_geom.run.storage.run_content import table_of
from implicit_geom.run.storage.run_file import unseal

REFERENCES = Path(__file__).parents[1] / "references"


@pytest.fixture
def refused(tmp_path: Path):
    """The line with which the bytes of a file are refused."""

    def load(data: bytes) -> str:
        (tmp_path / "case.h5").write_bytes(data)
        with pytest.raises(SceneError) as error:
            Trajectory.load(tmp_path / "case.h5")
        assert "\n" not in str(error.value)
        return str(error.value)

    return load


def test_every_changed_byte_is_found(refused) -> None:
    """A flipped bit anywhere, a byte less, a byte more."""
    data = originals()[2]
    rng = np.random.default_rng(0)
    places = [*range(130), *rng.integers(len(data), size=300).tolist(), len(data) - 1]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        refused(bytes(changed))
    for cut in (data[:-1], data + b"\0", data[:200], data[:3], data[1:]):
        refused(cut)


def test_hdf5_tools_read_the_file(tmp_path: Path) -> None:
    """h5py finds everything behind the block; what it then changes is found by the hash."""
    path = tmp_path / "run.h5"
    path.write_bytes(originals()[1])
    run = Trajectory.load(path)
    assert h5py.is_hdf5(path)
    with h5py.File(path) as file:
        assert file.userblock_size >= 512
        assert np.array_equal(file["motion/position"][:, 1], run["disc"].position)
        assert json.loads(file["scene"][()])["dim"] == 2
        assert file["solves/x"].compression == "gzip"
        for name in ("steps", "contacts"):
            table = run.steps if name == "steps" else run.solves.contacts
            for column in table.dtype.names:
                own = table[column]
                assert np.array_equal(
                    file[name][column][()], own.astype("S") if own.dtype.kind == "U" else own
                )
    with h5py.File(path, "a") as file:
        file["mine"] = np.arange(3.0)
    with pytest.raises(SceneError, match=r"not those that were written|bytes were written"):
        Trajectory.load(path)
    with h5py.File(path) as file:
        assert file["mine"][2] == 2.0


@pytest.mark.parametrize("chunk", [100, 1000, 7000])
def test_long_columns_in_several_chunks(chunk: int) -> None:
    """Rows are compressed in chunks; a last chunk that is not full and chunks that do not shrink are read."""
    arrays = {name: array for name, array in unseal(originals()[1]).arrays.items() if "/" in name}
    noise = np.frombuffer(np.random.default_rng(0).bytes(8000), "<i8").reshape(-1, 2)
    arrays["solves/noise"] = noise
    image = io.BytesIO()
    groups = {name.split("/")[0] for name in arrays}
    with h5py.File(image, "w") as file:
        for group in groups:
            members = ((name.split("/")[1], a) for name, a in arrays.items() if name.startswith(group + "/"))
            run_file.put(file.create_group(group), members, chunk)
        rows = file["solves/noise"].chunks[0]
        assert rows < len(noise)
        assert len(noise) % rows
        index = run_file.described(file, tuple(groups), ())
    back = unseal(b"".join(run_file.seal(image.getbuffer(), index, {}))).arrays
    assert {name: a.tobytes() for name, a in back.items()} == {
        name: a.tobytes() for name, a in arrays.items()
    }


def test_runs_of_the_last_version_load(tmp_path: Path) -> None:
    """A file without a hash: the same motion as HDF5 gives, it can be continued, and saved with a hash."""
    path = REFERENCES / "run_format_4.hdf5"
    run = Trajectory.load(path)
    with h5py.File(path) as file:
        assert np.array_equal(file["motion/position"][:, 1], run["ball"].position)
        assert run.memory == json.loads(file["memory"][()])
    assert np.isinf(run.memory["history"][1][-1][-1])
    assert len(run.resume(duration=0.02).time) == 8
    run.save(tmp_path / "again.h5")
    assert content(tmp_path / "again.h5") == content(path)


def test_replay_files_of_the_last_version_load() -> None:
    """A file without a hash, with NaN and Infinity where they may be."""
    assert replay(REFERENCES / "failed_step_1.json").solves


AT_TIMES = ("wrong_number", "other_filter", "odd_attributes")  # leave a run: `tests/fuzz` tries them
HARMFUL = [attack for attack in ATTACKS if attack.__name__ not in AT_TIMES]


@pytest.mark.parametrize("attack", HARMFUL, ids=lambda a: a.__name__)
def test_hostile_files_without_a_hash(attack, refused) -> None:
    """Links, storage elsewhere, bombs, other types and shapes are refused in one line."""
    for seed in range(3):
        data = attacked(without_hash(originals()[0]), attack, np.random.default_rng(seed))
        assert "case.h5: " in refused(data)


WRONG = {
    "NaN in a state": ("solves/x", lambda a: _set(a, np.nan), "not finite"),
    "a pair that is not there": ("contacts/pair", lambda a: a + 5, "do not belong to its pairs"),
    "a quaternion of length zero": ("solves/q", lambda a: a * 0, "quaternion"),
    "velocities that are not those of the motion": ("solves/v", lambda a: a + 1, "motion/velocity"),
    "fewer rows": ("solves/w", lambda a: a[:-1], "shape"),
    "other bodies": ("initial/x", lambda a: a[:-1], "shape"),
    "a step that does not exist": ("solves/step", lambda a: a + 1, "do not belong to its steps"),
    "a solve that does not exist": ("contacts/solve", lambda a: a + 10**6, "do not belong to its solves"),
    "a body that does not exist": ("contacts/second", lambda a: a + 10, "do not belong to its bodies"),
    "times that fall": ("steps/time", lambda a: a[::-1], "do not rise"),
    "an unknown status": ("steps/status", lambda a: np.full(len(a), b"odd"), "status"),
    "smaller numbers": ("steps/wall_time", lambda a: a.astype("i4"), "wall_time"),
}  # fmt: skip


def _set(array: np.ndarray, value: float) -> np.ndarray:
    array[-1] = value
    return array


@pytest.mark.parametrize("what", WRONG)
def test_contents_that_do_not_fit(what: str, refused) -> None:
    """Finite numbers, ranges and sizes are checked before a run is made."""
    name, change, words = WRONG[what]

    def attack(file: h5py.File, _: np.random.Generator) -> None:
        put(file, name, data=change(file[name][()]))

    assert words in refused(attacked(without_hash(originals()[0]), attack, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("99", None, "names pair 99"),
        ("0", {"unknowns": [1.0]}, "1 numbers, where"),
        ("0", {"direction": [1.0]}, "1 numbers, where 3"),
    ],
)
def test_memory_of_other_pairs(key: str, value, words: str, tmp_path: Path) -> None:
    """A solver's memory that is not of the scene's pairs is refused when the run is to go on."""

    def attack(file: h5py.File, _: np.random.Generator) -> None:
        memory = json.loads(file["memory"][()])
        start = memory["warm"].pop("0")
        memory["warm"][key] = {**start, **(value or {})}
        put(file, "memory", data=json.dumps(memory))

    path = tmp_path / "run.h5"
    path.write_bytes(attacked(without_hash(originals()[0]), attack, np.random.default_rng(0)))
    run = Trajectory.load(path)
    with pytest.raises(SceneError, match=words):
        run.resume(duration=0.05)


def test_lists_of_arrays_that_overlap(refused) -> None:
    """With a hash that fits: the same bytes for two arrays, more than the file has, bombs."""
    data = originals()[1]
    index = index_of(data)
    image = data[index["block"] :]
    rows = index["arrays"]["solves/x"]
    for change in (
        lambda a: a.update({"solves/v": a["solves/x"]}),
        lambda a: a["solves/x"][3][0].__setitem__(0, len(image)),
        lambda a: a["solves/x"].__setitem__(1, [10**9, 2, 2]),
        lambda a: a["solves/x"].__setitem__(2, 10**9),
        lambda a: a["solves/x"].__setitem__(3, rows[3] * 2),
    ):
        other = json.loads(json.dumps(index))
        change(other["arrays"])
        assert "a damaged run" in refused(with_new_hash(other, image))


def test_columns_that_come_and_go() -> None:
    """A column that is newer than the file gets a default, one that this version does not know is refused."""
    parts = unseal(originals()[0])
    more = np.dtype([*STEP.descr, ("later", "f8"), ("number", "i8"), ("word", "U4")])
    steps = table_of(parts, "steps", more)
    assert np.array_equal(steps["time"], parts.arrays["steps/time"])
    assert np.all(np.isnan(steps["later"]))
    assert not steps["number"].any()
    assert set(steps["word"]) == {""}
    less = np.dtype([d for d in STEP.descr if d[0] != "guard"])
    with pytest.raises(run_file.Damaged, match="'guard' that this version does not know; update"):
        table_of(parts, "steps", less)


def test_solutions_that_are_not_known_yet(tmp_path: Path) -> None:
    """A compiled march that has just begun remembers NaN in places; saved, it goes on like the run itself."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1, 0, 0))
    run = simulate(scene, duration=0.02, step=0.01, progress=False)
    run.memory["history"][1][-1][1:] = [float("nan")] * (len(run.memory["history"][1][-1]) - 1)
    run.save(tmp_path / "run.h5")
    again = Trajectory.load(tmp_path / "run.h5").resume(duration=0.05)
    assert again.states.x.tobytes() == run.resume(duration=0.05).states.x.tobytes()
