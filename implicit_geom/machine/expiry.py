"""Object files on disk that were not used for long, or are too many, are removed.

Every change of the package leaves files that nobody asks for again.

Files that were not used for UNUSED go, and beyond LARGEST bytes in all the ones unused longest. When a file
was last used is its time of modification, kept to within a day. Only files that this package has written are
looked at: they have its names, and begin as it begins them.

Safe beside other processes: a reader has a file whole or not at all and makes it again where it is gone, two
that clean at once find some files gone already, and what was used within the last day (also a file that is
just being written) is never removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path

DAY = 86400.0  # s
UNUSED = 30 * DAY
LARGEST = 256 * 2**20  # bytes
MAGIC = b"implicit-geom object file 2"  # the first line of a file
SUFFIX = ".o"
NEW = ".implicit-geom-new-"  # how the names of files begin that are being written
NAME = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}")
LEFT = re.compile(rf"{re.escape(NEW)}\w+")


def mark_used(path: Path) -> None:
    """Note that a file is used now."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > DAY / 2:
            os.utime(path)


def clean(folder: Path) -> None:
    """Remove what was not used for long, and of the rest what is too much."""
    now = time.time()
    found = []
    with suppress(OSError):
        for entry in os.scandir(folder):
            with suppress(OSError):
                if _written_here(entry):
                    seen = entry.stat(follow_symlinks=False)
                    found.append((seen.st_mtime, seen.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    for modified, size, path in sorted(found):
        age = now - modified
        leftover = os.path.basename(path).startswith(NEW)
        if age > DAY and (leftover or age > UNUSED or total > LARGEST):
            with suppress(OSError):
                os.unlink(path)
                total -= size


def _written_here(entry: os.DirEntry[str]) -> bool:
    """Whether a file has a name and a beginning that this package gives, and nobody else."""
    if not entry.is_file(follow_symlinks=False):
        return False
    if LEFT.fullmatch(entry.name):  # (whoever wrote it was ended after so much of it)
        return MAGIC.startswith(_first(entry.path, len(MAGIC)))
    if not NAME.fullmatch(entry.name):
        return False
    return _first(entry.path, len(MAGIC)) == MAGIC or _earlier(entry)


def _first(path: str, count: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(count)


def _earlier(entry: os.DirEntry[str]) -> bool:
    """Whether earlier versions wrote it: the hash of all other lines was their first."""
    if time.time() - entry.stat(follow_symlinks=False).st_mtime < UNUSED:
        return False  # (not to be read in whole before it is time)
    head, _, rest = Path(entry.path).read_bytes().partition(b"\n")
    return head == hashlib.sha256(rest).hexdigest().encode()
