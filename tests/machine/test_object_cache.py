"""Object files on disk: kept, loaded, made again where damaged, and never shared by what differs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from cached_code import NAME, Maker, load_anew, works

from implicit_geom.machine import disk, object_cache
from implicit_geom.machine.object_cache import LOWERING
from implicit_geom.process.building import Kept


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv(disk.FOLDER, str(tmp_path / "cache"))
    monkeypatch.setattr(object_cache, "_LOADED", Kept(8))
    return tmp_path / "cache"


def test_made_once_and_then_read(folder: Path) -> None:
    """The second process compiles nothing, the same process not even reads; notes are kept, too."""
    make = Maker()
    first = object_cache.load(NAME, make)
    assert works(first)
    assert object_cache.load(NAME, make) is first
    assert works(load_anew(make))
    assert make.count == 1
    assert len(list(folder.iterdir())) == 1


def test_an_unknown_function_is_named(folder: Path) -> None:
    """A missing function is an error, not address zero."""
    with pytest.raises(KeyError, match="triple"):
        object_cache.load(NAME, Maker()).address("triple")


@pytest.mark.parametrize(
    "damage", ["empty", "truncated", "flipped", "headless", "text", "swapped notes", "no magic"]
)
def test_a_damaged_file_is_made_again(damage: str, folder: Path) -> None:
    """Whatever happened to the file: it is noticed, made again and replaced by a whole one."""
    make = Maker()
    object_cache.load(NAME, make)
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    magic, head, notes, data = whole.split(b"\n", 3)
    spoiled = {
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "flipped": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
        "headless": magic + b"\n" + notes + b"\n" + data,
        "text": b"no object file\nat all\n",
        "swapped notes": magic + b"\n" + head + b"\n{}\n" + data,
        "no magic": head + b"\n" + notes + b"\n" + data,
    }[damage]
    path.write_bytes(spoiled)
    assert works(load_anew(make))
    assert make.count == 2
    assert path.read_bytes() == whole
    assert works(load_anew(make))
    assert make.count == 2


WRITER = """
import sys
from implicit_geom.machine import disk
fill = sys.argv[1].encode()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(300):
    disk.write("shared", fill * 20000, {"by": sys.argv[1]})
    data, notes = disk.read("shared")
    assert data == notes["by"].encode() * 20000
"""


def test_two_processes_that_write_at_once(folder: Path) -> None:
    """Both succeed, whoever reads finds a whole file of one of them, and nothing else is left behind."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for w in writers:
        assert w.stdout is not None
        assert w.stdin is not None
        assert w.stdout.readline() == "ready\n"
    for w in writers:
        w.stdin.write("\n")  # type: ignore[union-attr]
        w.stdin.flush()  # type: ignore[union-attr]
    seen = set()
    while any(w.poll() is None for w in writers):
        found = disk.read("shared")
        if found is not None:
            seen.add(found[1]["by"])
            assert found[0] == found[1]["by"].encode() * 20000
        else:
            assert not seen
    assert [w.wait() for w in writers] == [0, 0]
    for w in writers:
        w.stdin.close()  # type: ignore[union-attr]
        w.stdout.close()  # type: ignore[union-attr]
    assert [p.name for p in folder.iterdir()] == ["shared.o"]


@pytest.mark.parametrize("why", ["a file in the way", "not allowed", "disk full", "cannot rename"])
def test_a_folder_that_cannot_be_written(why: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code works all the same, nothing half-written is left, and it is made again the next time."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise PermissionError(13, why)

    if why == "a file in the way":
        folder.write_text("not a folder")
        monkeypatch.setenv(disk.FOLDER, str(folder / "below"))
    elif why == "not allowed":
        monkeypatch.setattr(tempfile, "mkstemp", refuse)
    elif why == "cannot rename":
        monkeypatch.setattr(os, "replace", refuse)
    else:
        real = os.fdopen

        def full(handle: int, mode: str) -> Any:
            file = real(handle, mode)
            file.close()

            class Full:
                def __enter__(self) -> Any:
                    return self

                def __exit__(self, *_: Any) -> None:
                    pass

                def write(self, _: bytes) -> None:
                    raise OSError(28, "No space left on device")

            return Full()

        monkeypatch.setattr(os, "fdopen", full)
    make = Maker()
    assert works(object_cache.load(NAME, make))
    assert works(load_anew(make))
    assert make.count == 2
    assert folder.is_file() or not list(folder.iterdir())


def test_another_processor_or_version_is_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for one processor is not loaded on another, nor that of another LLVM, CasADi or level."""
    monkeypatch.setattr(object_cache, "_made_from", object_cache._made_from.__wrapped__)
    names = [object_cache._digest(NAME, LOWERING), object_cache._digest(NAME + "!", LOWERING)]
    cpu, features = object_cache._processor()
    for target, name, value in (
        (object_cache, "_processor", lambda: ("another", features)),
        (object_cache, "_processor", lambda: (cpu, features + ",+more")),
        (object_cache, "LEVEL", 3),
        (object_cache.llvmlite, "__version__", "0.0"),
        (object_cache.ca, "__version__", "0.0"),
    ):
        with monkeypatch.context() as m:
            m.setattr(target, name, value)
            names.append(object_cache._digest(NAME, LOWERING))
    assert len(set(names)) == len(names)
    assert object_cache._digest(NAME, LOWERING) == names[0]
    assert all(len(name) == len(hashlib.sha256().hexdigest()) for name in names)


def test_the_folder_is_the_one_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """IMPLICIT_GEOM_CACHE where it is set, the user's cache folder otherwise."""
    monkeypatch.setenv("IMPLICIT_GEOM_CACHE", str(tmp_path / "here"))
    assert disk.folder() == tmp_path / "here"
    for unset in (True, False):
        if unset:
            monkeypatch.delenv("IMPLICIT_GEOM_CACHE")
        else:
            monkeypatch.setenv("IMPLICIT_GEOM_CACHE", "")
        assert disk.folder() == Path(platformdirs.user_cache_dir("implicit-geom"))
