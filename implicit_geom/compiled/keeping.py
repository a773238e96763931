"""How long compiled code stays on disk: every change of the package leaves files that nobody asks for again.

Files that were not used for UNUSED go, and beyond LARGEST bytes in all the ones unused longest. When a file
was last used is its time of modification, kept to within a day. Only names that this package gives are
looked at.

Safe beside other processes: a reader has a file whole or not at all and makes it again where it is gone, two
that clean at once find some files gone already, and what was used within the last day (also a file that is
just being written) is never removed.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

DAY = 86400.0  # s
UNUSED = 30 * DAY
LARGEST = 256 * 2**20  # bytes
NEW = ".new-"  # how the names of files begin that are being written
OURS = re.compile(rf"[0-9a-f]{{64}}\.\w+|{re.escape(NEW)}.*")


def use(path: Path) -> None:
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
                if OURS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
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
