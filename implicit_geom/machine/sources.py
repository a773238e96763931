"""Source files of modules, and their hash: compiled code is kept under the hash of what made it."""

from __future__ import annotations

import hashlib
import importlib
from functools import cache
from pathlib import Path

Names = tuple[str, ...]  # of modules, and of packages with all that is in them


def source_files(names: Names) -> dict[str, Path]:
    """Files by module; a package is where it was imported from, and so need not lie beside the others."""
    found = {}
    for name in names:
        module = importlib.import_module(name)
        if not hasattr(module, "__path__"):
            found[name] = Path(str(module.__file__))
            continue
        for root in map(Path, module.__path__):
            for path in root.rglob("*.py"):
                parts = path.relative_to(root).with_suffix("").parts
                found[".".join((name, *parts))] = path
    return found


@cache
def hash_of_sources(names: Names) -> str:
    """The hash of the files' names and contents."""
    digest = hashlib.sha256()
    for name, path in sorted(source_files(names).items()):
        digest.update(name.encode() + b"\n")
        digest.update(path.read_bytes())
    return digest.hexdigest()
