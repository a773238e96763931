"""Object files on disk, by hash: only whole files that this user wrote are read.

A file is `MAGIC`, the hash of its name and its contents, notes as JSON, machine code. The name is the hash of
all that decides the code (sources, versions, processor), so that a file under another one's name is
refused. It is written under another name and then renamed: readers see a whole file or none, and one that was
damaged all the same is made again.

Machine code is run as it is. Nothing is read, therefore, that another user could have written: the file and
its folder belong to this user and nobody else may write to them, nor replace any folder above. A folder that
fails this is left alone, and a warning says so once. Where there is no home folder, or nothing can be
written, nothing is kept, without a word: code is then made anew by every process.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from implicit_geom.machine import expiry
from implicit_geom.machine.expiry import MAGIC, NEW, SUFFIX

FOLDER = "IMPLICIT_GEOM_CACHE"  # environment variable: where to keep object files
NOT_USED = "compiled code is not kept"  # how the warning begins
OTHERS = stat.S_IWGRP | stat.S_IWOTH

_told: set[Path] = set()  # folders that a warning was given for
_cleaned: set[Path] = set()  # once a process is enough


def folder() -> Path | None:
    """Where object files are to be kept; None where there is no home folder."""
    given = os.environ.get(FOLDER)
    if given:
        return Path(given)
    if os.environ.get("HOME") == "" and not os.environ.get("XDG_CACHE_HOME"):
        return None  # (it would be taken for the root folder)
    try:
        found = Path(platformdirs.user_cache_dir("implicit-geom"))
    except RuntimeError:
        return None
    return found if found.is_absolute() else None


def private_folder(*, make: bool = False) -> Path | None:
    """The folder, where it is there (or can be made) and is this user's alone; links are resolved."""
    wanted = folder()
    if wanted is None:
        return None
    try:
        path = Path(os.path.realpath(wanted))
        if make:
            _make(path)
        if not path.is_dir():
            return None
        fault = next(_faults(path), "")
    except OSError:
        return None
    if fault and path not in _told:
        _told.add(path)
        warnings.warn(
            f"{NOT_USED}: {fault}; set {FOLDER} to a folder of your own, with mode 0700", stacklevel=2
        )
    return None if fault else path


def read(digest: str) -> tuple[bytes, dict[str, Any]] | None:
    """Code and notes kept under a name; None where there is none, a damaged one, or not this user's own."""
    kept = private_folder()
    if kept is None:
        return None
    path = kept / f"{digest}{SUFFIX}"
    try:
        with open(path, "rb", opener=_opened) as file:
            if not owned_by_user(os.fstat(file.fileno())):
                return None
            magic, head, rest = file.read().split(b"\n", 2)
        if magic != MAGIC or head != _head(digest, rest):
            return None
        notes, data = rest.split(b"\n", 1)
        found = data, json.loads(notes)
    except (OSError, ValueError):
        return None
    expiry.mark_used(path)
    return found


def write(digest: str, data: bytes, notes: dict[str, Any]) -> None:
    """Keep code; where nothing can be written, nothing is kept."""
    kept = private_folder(make=True)
    if kept is None:
        return
    rest = json.dumps(notes).encode() + b"\n" + data
    name = None
    try:
        handle, name = tempfile.mkstemp(prefix=NEW, dir=kept)
        with os.fdopen(handle, "wb") as file:
            file.write(b"\n".join([MAGIC, _head(digest, rest), rest]))
        os.replace(name, kept / f"{digest}{SUFFIX}")
    except OSError:
        if name is not None:
            with suppress(OSError):
                os.unlink(name)
    if kept not in _cleaned:
        _cleaned.add(kept)
        expiry.clean(kept)


def owned_by_user(seen: os.stat_result) -> bool:
    """Whether this is a file of this user that nobody else may write to (true where there are no users)."""
    if not hasattr(os, "geteuid"):
        return stat.S_ISREG(seen.st_mode)
    return stat.S_ISREG(seen.st_mode) and seen.st_uid == os.geteuid() and not seen.st_mode & OTHERS


def _head(digest: str, rest: bytes) -> bytes:
    return hashlib.sha256(digest.encode() + b"\n" + rest).hexdigest().encode()


def _opened(path: str, flags: int) -> int:
    """Open a file itself, never what a link or a pipe in its place leads to."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _make(path: Path) -> None:
    """A folder and those above, for this user alone."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)


def _faults(path: Path) -> Iterator[str]:
    """Who else could have written there: to the folder itself, or in place of it."""
    if not hasattr(os, "geteuid"):
        return
    own = path.lstat()
    if own.st_uid != os.geteuid():
        yield f"{path} belongs to another user"
    elif own.st_mode & OTHERS:
        yield f"{path} may be written to by other users"
    for parent in path.parents:
        seen = parent.lstat()
        if seen.st_uid not in (0, os.geteuid()):
            yield f"{path} is in {parent}, which belongs to another user"
        elif _writers(seen) and not seen.st_mode & stat.S_ISVTX:
            yield f"{path} is in {parent}, where other users may put another folder in its place"


def _writers(seen: os.stat_result) -> bool:
    """Whether anybody else may write to a folder; the group of a user's own name, with nobody else, is none.

    (Where every user has such a group, home folders are often made with mode 0775.)
    """
    if not seen.st_mode & stat.S_IWGRP or seen.st_mode & stat.S_IWOTH or _root():
        return bool(seen.st_mode & OTHERS)
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(seen.st_gid)
    except KeyError:
        return True
    alone = not set(group.gr_mem) - {user.pw_name}
    return not (user.pw_gid == group.gr_gid and group.gr_name == user.pw_name and alone)


def _root() -> bool:
    return os.geteuid() == 0
