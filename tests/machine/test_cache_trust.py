"""Compiled code on disk is loaded only where nobody else could have written it; else code is made anew."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from cached_code import NAME, Maker, load_anew, works

from implicit_geom.machine import disk, object_cache
from implicit_geom.process.building import Kept

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no users here")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds the code of one name, with no warning given yet."""
    path = tmp_path / "above" / "cache"
    monkeypatch.setenv(disk.FOLDER, str(path))
    monkeypatch.setattr(object_cache, "_LOADED", Kept(8))
    monkeypatch.setattr(disk, "_told", set())
    object_cache.load(NAME, Maker())
    return path


def file_of(folder: Path) -> Path:
    (path,) = folder.glob("*.o")
    return path


def owned_by_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were another user's, in every way that its owner can be asked for."""
    seen = path.stat()
    kind = type(seen)

    def changed(found: os.stat_result) -> os.stat_result:
        if (found.st_dev, found.st_ino) != (seen.st_dev, seen.st_ino):
            return found
        return kind([*found[:4], os.geteuid() + 1, *found[5:]])

    for name in ("stat", "lstat", "fstat"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, _real=real, **k: changed(_real(*a, **k)))


def test_folders_are_made_for_this_user_alone(folder: Path) -> None:
    """Also those above, whatever the mask says."""
    for path in (folder, folder.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert not file_of(folder).stat().st_mode & 0o077


@pytest.mark.parametrize(
    ("which", "mode", "words"),
    [
        ("", 0o777, "may be written to by other users"),
        ("", 0o1777, "may be written to by other users"),
        ("", 0o770, "may be written to by other users"),
        ("..", 0o777, "other users may put another folder in its place"),
        ("..", 0o775, "other users may put another folder in its place"),
    ],
)
def test_a_folder_that_others_may_write_to(
    which: str, mode: int, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is not read, not written to and not cleaned; one warning says so, and what to do."""
    shared_group(monkeypatch, ["somebody"])
    os.chmod(folder / which, mode)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    make = Maker()
    with pytest.warns(UserWarning, match=words) as caught:
        assert works(load_anew(make))
    assert works(load_anew(make))  # (a second warning would be an error here)
    assert make.count == 2
    assert len(caught) == 1
    assert "set IMPLICIT_GEOM_CACHE to a folder of your own" in str(caught[0].message)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def shared_group(monkeypatch: pytest.MonkeyPatch, members: list[str]) -> None:
    """An ordinary user, in a group of the same name with these others."""
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    gid = os.getegid()
    user, group = SimpleNamespace(pw_name="user", pw_gid=gid), SimpleNamespace(gr_name="user", gr_gid=gid)
    group.gr_mem = members
    monkeypatch.setattr(pwd, "getpwuid", lambda _: user)
    monkeypatch.setattr(grp, "getgrgid", lambda _: group)
    monkeypatch.setattr(disk, "_root", lambda: False)


def test_a_group_of_one_above_is_good(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Home folders of mode 0775, where every user has a group alone."""
    shared_group(monkeypatch, [])
    os.chmod(folder.parent, 0o775)
    make = Maker()
    assert works(load_anew(make))
    assert make.count == 0


def test_a_sticky_folder_above_is_good(folder: Path) -> None:
    """As /tmp is: others may write there, but not replace what is this user's."""
    os.chmod(folder.parent, 0o1777)
    make = Maker()
    assert works(load_anew(make))
    assert make.count == 0


@pytest.mark.parametrize("which", [".", ".."])
def test_a_folder_of_another_user(which: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, whatever its mode; so is one within the folder of another."""
    owned_by_another((folder / which).resolve(), monkeypatch)
    make = Maker()
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert works(load_anew(make))
    assert make.count == 1


@pytest.mark.parametrize("how", ["owner", "mode", "link", "pipe", "folder"])
def test_a_file_that_another_may_have_written(
    how: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is made again, and replaced by one of this user's."""
    path = file_of(folder)
    if how == "owner":
        owned_by_another(path, monkeypatch)
    elif how == "mode":
        path.chmod(0o666)
    elif how == "link":
        path.symlink_to(path.rename(folder.parent / "elsewhere.o"))
    else:
        path.unlink()
        os.mkfifo(path) if how == "pipe" else path.mkdir()
    make = Maker()
    assert works(load_anew(make))
    assert make.count == 1
    assert works(load_anew(make))
    assert make.count == (2 if how == "folder" else 1)  # (a folder cannot be replaced)


def test_a_file_under_the_name_of_another(folder: Path) -> None:
    """Whole and this user's own, but of other code: refused, made again and replaced."""
    whole = file_of(folder).read_bytes()
    object_cache.load("another name", Maker())
    other = next(path for path in folder.glob("*.o") if path.read_bytes() != whole)
    other.write_bytes(whole)
    assert disk.read(other.stem) is None
    make = Maker()
    object_cache._LOADED = Kept(8)
    assert works(object_cache.load("another name", make))
    assert make.count == 1


HOMELESS = """
import os, pwd
def gone(uid):
    raise KeyError(uid)
pwd.getpwuid = gone  # what a user without an entry gets
from implicit_geom import shapes
from implicit_geom import Scene
from implicit_geom import simulate
from implicit_geom.machine import disk
scene = Scene(gravity=(0, 0, -9.81))
scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1))
scene.friction(mu=0.3)
run = simulate(scene, duration=0.1, step=0.01)
print(run.failed, disk.folder(), os.listdir())
"""


@pytest.mark.parametrize("home", [{}, {"HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
def test_without_a_home_folder(home: dict[str, str], tmp_path: Path) -> None:
    """Simulations run, nothing is kept, nothing is said and nothing is made in the working folder."""
    env = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    env.pop(disk.FOLDER, None)
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HOMELESS],
        env={**env, "PYTHONPATH": root, **home},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("False None []\n", "")


def test_without_users_files_are_read_as_they_are(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems that know no owners and no modes."""
    monkeypatch.delattr(os, "geteuid")
    folder.chmod(0o777)
    make = Maker()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert works(load_anew(make))
    assert make.count == 0


SWEPT = """
from implicit_geom import shapes
from implicit_geom import Scene, sweep
if __name__ == "__main__":
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1))
    found = sweep(scene, {"friction.mu": [0.1, 0.2]}, ["steps"], duration=0.1, step=0.01, workers=2)
    print(found.failed.any())
"""


def test_a_sweep_says_it_once(folder: Path, tmp_path: Path) -> None:
    """Not in every process that it starts."""
    folder.chmod(0o777)
    (tmp_path / "swept.py").write_text(SWEPT)
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "swept.py"],
        env={**os.environ, "PYTHONPATH": root},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "False\n"
    assert done.stderr.count(disk.NOT_USED) == 1
    assert done.stderr.count("\n") == 2
