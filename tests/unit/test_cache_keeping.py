"""Compiled code on disk goes when nobody has used it for long, or when it is too much; nothing else goes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_object_cache import Maker, load_anew, works

from implicit_geom.building import Kept
from implicit_geom.compiled import keeping, objects
from implicit_geom.compiled.keeping import DAY, UNUSED, clean, use


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, not yet cleaned by this process."""
    monkeypatch.setenv(objects.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr(objects, "_LOADED", Kept(8))
    objects._clean.cache_clear()
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def name(number: int, ending: str = ".o") -> str:
    return f"{number:064x}{ending}"


def put(folder: Path, called: str, age: float, size: int = 10) -> Path:
    """A file that was last used `age` seconds ago."""
    path = folder / called
    path.write_bytes(bytes(size))
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_what_was_not_used_for_long_goes(folder: Path) -> None:
    """Files of other names, links and folders stay, however old they are."""
    put(folder, name(1), UNUSED + DAY)
    put(folder, name(2, ".siconos"), UNUSED + DAY)
    put(folder, ".new-abc", 2 * DAY)
    kept = {put(folder, name(3), UNUSED - DAY).name, put(folder, ".new-def", DAY / 2).name}
    kept |= {put(folder, called, 2 * UNUSED).name for called in ("notes.o", "a" * 64, name(4) + ".txt.old")}
    (folder / name(5)).mkdir()
    os.utime(folder / name(5), (0, 0))
    (folder / name(6)).symlink_to(folder / "notes.o")
    clean(folder)
    assert {path.name for path in folder.iterdir()} == kept | {name(5), name(6)}


def test_beyond_its_size_the_least_recent_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was used within a day stays, even if that alone is too much."""
    monkeypatch.setattr(keeping, "LARGEST", 250)
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
    use(path)
    assert path.stat().st_mtime == pytest.approx(recent, abs=1e-3)
    use(folder / name(9))
    clean(folder / "no such folder")


def test_the_first_file_that_a_process_writes_cleans(folder: Path) -> None:
    """Files of earlier versions of the package go when a later one compiles."""
    stale = put(folder, name(1), UNUSED + DAY)
    assert works(load_anew(Maker()))
    assert not stale.exists()
    assert len(list(folder.iterdir())) == 1


CLEANER = """
import sys
from pathlib import Path
from implicit_geom.building import Kept
from implicit_geom.compiled import keeping, objects
folder, keeping.LARGEST, keeping.DAY = Path(sys.argv[1]), 0, 0.0
for k in range(200):
    path = folder / f"{k % 20:064x}.o"
    found = objects._read(path)
    assert found is None or found == (b"code" * 5000, {"of": k % 20})
    objects._write(path, b"code" * 5000, {"of": k % 20})
    keeping.use(path)
    keeping.clean(folder)
"""


def test_processes_that_clean_and_write_at_once(folder: Path) -> None:
    """With every file to be removed at any time, whoever reads finds a whole one or none."""
    runs = [subprocess.Popen([sys.executable, "-c", CLEANER, str(folder)]) for _ in range(3)]
    assert [run.wait() for run in runs] == [0, 0, 0]
