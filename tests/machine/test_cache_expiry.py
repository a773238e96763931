"""Compiled code on disk goes when nobody has used it for long, or when it is too much; nothing else goes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cached_code import Maker, load_anew, works

from implicit_geom.machine import disk, expiry, object_cache
from implicit_geom.machine.expiry import DAY, MAGIC, NEW, UNUSED, clean, mark_used
from implicit_geom.process.building import Kept


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, not yet cleaned by this process."""
    monkeypatch.setenv(disk.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr(object_cache, "_LOADED", Kept(8))
    monkeypatch.setattr(disk, "_cleaned", set())
    (tmp_path / "cache").mkdir(mode=0o700)
    return tmp_path / "cache"


def name(number: int, ending: str = ".o") -> str:
    return f"{number:064x}{ending}"


def put(folder: Path, called: str, age: float, size: int = 40, begun: bytes = MAGIC) -> Path:
    """A file that was last used `age` seconds ago."""
    path = folder / called
    path.write_bytes(begun + bytes(size - len(begun)))
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_what_was_not_used_for_long_goes(folder: Path) -> None:
    """Files of other names, links and folders stay, however old they are."""
    put(folder, name(1), UNUSED + DAY)
    put(folder, NEW + "abc", 2 * DAY)
    put(folder, NEW + "begun", 2 * DAY, 7, MAGIC[:7])
    put(folder, NEW + "empty", 2 * DAY, 0, b"")
    kept = {put(folder, name(3), UNUSED - DAY).name, put(folder, NEW + "def", DAY / 2).name}
    kept |= {put(folder, called, 2 * UNUSED).name for called in ("notes.o", "a" * 64, name(4) + ".txt.old")}
    (folder / name(5)).mkdir()
    os.utime(folder / name(5), (0, 0))
    (folder / name(6)).symlink_to(folder / "notes.o")
    clean(folder)
    assert {path.name for path in folder.iterdir()} == kept | {name(5), name(6)}


def test_files_of_others_stay(folder: Path) -> None:
    """Whatever they are called: what does not begin as this package begins its files is not removed."""
    names = [name(k, ending) for k, ending in enumerate((".json", ".lock", ".pdf", ".o", ".siconos"))]
    names += [".new-york.csv", ".new-project-notes.txt", NEW + "paper", NEW + "notes.txt", "mine.txt"]
    for called in names:
        put(folder, called, 2 * UNUSED, 40, b"%PDF")
    put(folder, name(9, ".pdf"), 2 * UNUSED)
    clean(folder)
    assert {path.name for path in folder.iterdir()} == {*names, name(9, ".pdf")}


def test_files_of_earlier_versions_go(folder: Path) -> None:
    """They began with the hash of their other lines."""
    rest = b"{}\ncode"
    head = hashlib.sha256(rest).hexdigest().encode()
    for number, begun in enumerate((head + b"\n" + rest, head + b"\n" + rest + b"!", b"")):
        put(folder, name(number), UNUSED + DAY, len(begun), begun)
    clean(folder)
    assert {path.name for path in folder.iterdir()} == {name(1), name(2)}


def test_beyond_its_size_the_least_recent_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used within a day stays, even if that alone is too much."""
    monkeypatch.setattr(expiry, "LARGEST", 250)
    for i in range(6):
        put(folder, name(i), (6 - i) * 2 * DAY, 100)
    clean(folder)
    assert sorted(path.name for path in folder.iterdir()) == [name(4), name(5)]
    for i in range(6):
        put(folder, name(i), DAY / 2, 100)
    clean(folder)
    assert len(list(folder.iterdir())) == 6


def test_use_is_noted(folder: Path) -> None:
    """By reading through `load`, to within a day, and without harm where the file is gone."""
    make = Maker()
    assert works(load_anew(make))
    (path,) = folder.iterdir()
    put(folder, "other", 0)
    os.utime(path, (time.time() - UNUSED - DAY,) * 2)
    assert works(load_anew(make))
    clean(folder)
    assert path.exists()
    assert make.count == 1
    recent = time.time() - DAY / 4
    os.utime(path, (recent, recent))
    mark_used(path)
    assert path.stat().st_mtime == pytest.approx(recent, abs=1e-3)
    mark_used(folder / name(9))
    clean(folder / "no such folder")


def test_the_first_file_that_a_process_writes_cleans(folder: Path) -> None:
    """Files of earlier versions of the package go when a later one compiles."""
    stale = put(folder, name(1), UNUSED + DAY)
    assert works(load_anew(Maker()))
    assert not stale.exists()
    assert len(list(folder.iterdir())) == 1


CLEANER = """
from pathlib import Path
from implicit_geom.machine import disk, expiry
expiry.LARGEST, expiry.DAY = 0, 0.0
for k in range(200):
    digest = f"{k % 20:064x}"
    found = disk.read(digest)
    assert found is None or found == (b"code" * 5000, {"of": k % 20})
    disk.write(digest, b"code" * 5000, {"of": k % 20})
    expiry.clean(disk.folder())
"""


def test_processes_that_clean_and_write_at_once(folder: Path) -> None:
    """With every file to be removed at any time, whoever reads finds a whole one or none."""
    runs = [subprocess.Popen([sys.executable, "-c", CLEANER]) for _ in range(3)]
    assert [run.wait() for run in runs] == [0, 0, 0]
