"""FCLIB's files by strangers: damaged, incomplete or wrong, refused in one line that names the dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from fclib_files import local_file, rolling, seed, whole

from implicit_geom import ContactProblem, SceneError
from implicit_geom.solvers.contact.fclib import arrays as fclib_arrays


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test has the same numbers, whatever ran before it."""
    seed()


def change(name: str, value: Any) -> Any:
    def act(file: h5py.File) -> None:
        del file[name]
        if value is not None:
            file[name] = value

    return act


def link(file: h5py.File) -> None:
    del file["fclib_global/vectors/f"]
    file["fclib_global/vectors/f"] = h5py.ExternalLink("/etc/passwd", "/f")


def larger(file: h5py.File) -> None:
    """A dataset that is stored nowhere."""
    del file["fclib_global/vectors/f"]
    file.create_dataset("fclib_global/vectors/f", (10**7,), "f8", chunks=(10**6,))


def fewer(name: str) -> Any:
    """One column of a matrix less, all else in order."""

    def act(file: h5py.File) -> None:
        starts = file[f"fclib_global/{name}/p"][()]
        change(f"fclib_global/{name}/n", np.array([len(starts) - 2], np.int32))(file)
        change(f"fclib_global/{name}/p", starts[:-1])(file)

    return act


def group(file: h5py.File) -> None:
    del file["fclib_global/vectors/f"]
    file.create_group("fclib_global/vectors/f/x")


G_ = "fclib_global"
INT = np.int32
MISTAKES = {
    "no problem": (lambda f: f.move(G_, "other"), "holds no contact problem"),
    "no vector": (change(f"{G_}/vectors/w", None), "/fclib_global/vectors/w is missing"),
    "no spacedim": (change(f"{G_}/spacedim", None), "spacedim is missing"),
    "spacedim 4": (change(f"{G_}/spacedim", np.array([4], INT)), "/fclib_global/spacedim = 4 must be 2 or 3"),
    "spacedim 2": (change(f"{G_}/spacedim", np.array([2], INT)), r"mu has the shape \(4,\); it must"),
    "several": (change(f"{G_}/spacedim", np.array([3, 3], INT)), r"spacedim has the shape \(2,\)"),
    "text": (change(f"{G_}/spacedim", "three"), "spacedim holds"),
    "not finite": (change(f"{G_}/vectors/f", np.full(18, np.nan)), "f holds a number that is not finite"),
    "negative mu": (change(f"{G_}/vectors/mu", np.full(4, -0.1)), "vectors/mu holds a negative number"),
    "wrong size": (change(f"{G_}/vectors/f", np.ones(3)), r"f has the shape \(3,\); it must be \(18,\)"),
    "not square": (change(f"{G_}/M/n", np.array([17], INT)), "/fclib_global/M"),
    "one column less of M": (fewer("M"), "/fclib_global/M/n = 17 must be 18: a mass matrix is square"),
    "one column less of H": (fewer("H"), "/fclib_global/H/n = 11 must be a multiple of spacedim = 3"),
    "huge": (change(f"{G_}/M/m", np.array([2**31 - 1], INT)), "M/m = 2147483647 must be between"),
    "negative size": (change(f"{G_}/M/m", np.array([-1], INT)), "M/m = -1 must be between"),
    "unknown form": (change(f"{G_}/H/nz", np.array([-3], INT)), "H/nz = -3 must be between"),
    "index too large": (change(f"{G_}/H/i", np.full(216, 18, INT)), "H/i holds an index outside 0 to 17"),
    "index below zero": (change(f"{G_}/H/i", np.full(216, -1, INT)), "H/i holds an index outside"),
    "pointers that fall": (change(f"{G_}/H/p", np.arange(13, 0, -1).astype(INT)), "H/p must begin with 0"),
    "pointers beyond": (change(f"{G_}/H/p", (100 * np.arange(13)).astype(INT)), "H/i has the shape"),
    "values missing": (change(f"{G_}/H/x", np.ones(3)), "H/x has the shape"),
    "fractions for indices": (change(f"{G_}/H/i", np.ones(216)), "H/i holds float64; it must hold whole"),
    "infinite values": (change(f"{G_}/H/x", np.full(216, np.inf)), "H/x holds a number that is not finite"),
    "too many columns": (change(f"{G_}/H/n", np.array([13], INT)), "/fclib_global/H"),
    "not symmetric": (change(f"{G_}/M/x", np.arange(108.0)), "/fclib_global/M must be symmetric"),
    "not positive": (change(f"{G_}/M/x", -np.ones(108)), "/fclib_global/M must be positive definite"),
    "bilateral rows without b": (change(f"{G_}/vectors/b", None), "vectors/b is missing"),
    "a group": (group, "/fclib_global/vectors/f/x is a group; groups are not nested so deeply"),
    "external link": (link, "/fclib_global/vectors/f is a link to elsewhere"),
    "nothing stored": (larger, "/fclib_global/vectors/f is larger than what is stored"),
    "complex numbers": (change(f"{G_}/vectors/f", np.ones(18, complex)), "vectors/f has the type"),
    "a cube": (change(f"{G_}/vectors/f", np.ones((18, 1, 1))), "vectors/f has 3 axes"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path: Path, name: str) -> None:
    """Each is refused in one line that names the file and the dataset."""
    path = tmp_path / "p.hdf5"
    whole().write(path)
    act, words = MISTAKES[name]
    with h5py.File(path, "r+") as file:
        act(file)
    with pytest.raises(SceneError, match=words) as told:
        ContactProblem.read(path)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, or what is packed in it, that is larger than what is read."""
    path = tmp_path / "p.hdf5"
    whole().write(path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("fclib_global/more", data=np.zeros(100_000), compression="gzip")
    monkeypatch.setattr(fclib_arrays, "MEMORY", 400_000)
    with pytest.raises(SceneError, match=r"holds arrays of 8\.\S+ bytes; at most 4e\+05 are read"):
        ContactProblem.read(path)
    monkeypatch.setattr(fclib_arrays, "MEMORY", 10_000)
    with pytest.raises(SceneError, match=r"has \d+ bytes; at most 10000 are read"):
        ContactProblem.read(path)


LOCAL_MISTAKES = {
    "V without R": (change("fclib_local/R", None), "/fclib_local/R is missing: V and R come together"),
    "V of other rows": (change("fclib_local/V/m", np.array([11], INT)), "V/m = 11 must be 12"),
    "not symmetric": (change("fclib_local/W/x", np.arange(146.0)), "W, V, R must be symmetric"),
    "not positive": (change("fclib_local/R/x", np.zeros(6)), "W, V, R must be positive semi-definite"),
}


@pytest.mark.parametrize("name", LOCAL_MISTAKES)
def test_mistakes_of_local_problems(tmp_path: Path, name: str) -> None:
    path = tmp_path / "local.hdf5"
    local_file(path)
    act, words = LOCAL_MISTAKES[name]
    with h5py.File(path, "r+") as file:
        act(file)
    with pytest.raises(SceneError, match=words):
        ContactProblem.read(path)


def test_rolling_in_the_plane_is_refused(tmp_path: Path) -> None:
    rolling().write(tmp_path / "p.hdf5")
    with h5py.File(tmp_path / "p.hdf5", "r+") as file:
        change("fclib_global_rolling/spacedim", np.array([3], INT))(file)
    with pytest.raises(
        SceneError, match="spacedim = 3 must be 5; rolling contacts in the plane are not read"
    ):
        ContactProblem.read(tmp_path / "p.hdf5")


def test_files_that_are_none(tmp_path: Path) -> None:
    """Missing, a folder, no HDF5, cut off: one line each; nothing that is no problem is overwritten."""
    text, cut = tmp_path / "text.hdf5", tmp_path / "cut.hdf5"
    text.write_text("hello")
    whole().write(cut)
    cut.write_bytes(cut.read_bytes()[:3000])
    cases = ((tmp_path / "none.hdf5", "cannot be read: No such file"), (tmp_path, "is no regular file"))
    for path, words in (*cases, (text, "is no HDF5 file"), (cut, "is damaged: HDF5")):
        with pytest.raises(SceneError, match=words):
            ContactProblem.read(path)
    with pytest.raises(SceneError, match="exists and is not a contact problem"):
        whole().write(text)
    whole().write(text, force=True)
    whole().write(text)
    with pytest.raises(SceneError, match="ends in"):
        whole().write(tmp_path / "p.txt")
    with pytest.raises(SceneError, match="there is no directory"):
        whole().write(tmp_path / "no" / "p.hdf5")


def test_damaged_files(tmp_path: Path) -> None:
    """Bytes that flipped: another problem, or one line; never a crash."""
    path = tmp_path / "p.hdf5"
    whole().write(path)
    good = path.read_bytes()
    rng = np.random.default_rng(3)
    refused: list[str] = []
    for _ in range(15):
        data = bytearray(good)
        for at in rng.integers(0, min(len(data), 4000), 3):
            data[at] = int(rng.integers(256))
        path.write_bytes(bytes(data))
        try:
            ContactProblem.read(path)
        except SceneError as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in words for words in refused)
