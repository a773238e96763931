"""Files that are whole or not there: written beside their place, flushed to the disk, then renamed.

A full disk, a quota or a lost mount is an ordinary error here: what stood in the place before stays.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.interface.words import shown


def file_name(path: Any) -> Path:
    """A path that can be one; SceneError for anything else."""
    try:
        name = Path(path)
        if "\0" in str(name):
            raise ValueError
        os.fsencode(name)
        name.exists()
    except OSError as error:
        raise SceneError(f"{shown(str(path))} cannot be the name of a file: {error.strerror}") from None
    except (TypeError, ValueError):
        raise SceneError(
            f"{shown(path)} cannot be the name of a file; give a text such as 'run.h5'"
        ) from None
    return name


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to, before any work is done."""
    folder = path.parent
    if not folder.is_dir():
        raise SceneError(f"{path}: there is no directory {str(folder)!r}; make it first")
    if path.is_dir():
        raise SceneError(f"{path}: is a directory; give a file name in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SceneError(f"{path}: the directory {str(folder)!r} cannot be written to; choose another")


def check_replaceable(path: Path, ours: Callable[[Path], bool], what: str) -> None:
    """Refuse to overwrite a file that is not `what`; an empty one holds nothing that could be lost."""
    if not path.exists():
        return
    if not path.is_file():
        raise SceneError(f"{path}: is no ordinary file; choose another name")
    try:
        kept = path.stat().st_size > 0 and not ours(path)
    except OSError as error:
        raise SceneError(
            f"{path}: exists and cannot be read: {error.strerror}; choose another name"
        ) from None
    if kept:
        raise SceneError(
            f"{path}: exists and is not {what}; choose another name, or overwrite it (force=True, --force)"
        )


def check_input_kept(source: Path, *outputs: Path) -> None:
    """Refuse outputs that are the input file itself, by whatever name."""
    for output in outputs:
        if output.exists() and source.exists() and os.path.samefile(source, output):
            raise SceneError(f"{output}: is the input file {str(source)!r} itself; choose another output")


def write_whole(path: Path, *parts: bytes | memoryview) -> None:
    """Write the parts one after the other; SimulationError where the disk does not take them.

    Where the place is a link, what it leads to is replaced.
    """
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        _write(beside, parts)
        os.replace(beside, path)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError):
            raise SimulationError(
                f"{path}: could not be written: {error.strerror or error}; nothing was changed; "
                "free some space, or choose another place"
            ) from None
        raise
    _flush_folder(path.parent)


def _write(path: Path, parts: tuple[bytes | memoryview, ...]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o666)
    try:
        for part in parts:
            rest = memoryview(part)
            while rest:
                rest = rest[os.write(handle, rest) :]
        os.fsync(handle)  # a rename may reach the disk before the data would
    finally:
        os.close(handle)


def _flush_folder(folder: Path) -> None:
    """Have the new name on the disk, too, where the system can do that for folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
