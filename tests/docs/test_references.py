"""Names of modules and their functions in backquotes, in docstrings and comments, are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from implicit_geom import Scene, Trajectory

ROOT = Path(__file__).resolve().parents[2]
ROOMS = sorted(p.name for p in (ROOT / "implicit_geom").iterdir() if (p / "__init__.py").exists())
NAMED = re.compile(rf"`(?:implicit_geom\.)?((?:{'|'.join([*ROOMS, 'shapes'])})(?:\.\w+)+)`")
NEEDED = ("coal", "llvmlite", "h5py")  # packages that a module may need and not find


OBJECTS = {"run": Trajectory, "scene": Scene}  # what users call so, beside the rooms of these names


def missing(name: str) -> str:
    """The part of a dotted name that does not exist; empty where all of it does."""
    parts = name.split(".")
    if hasattr(OBJECTS.get(parts[0]), parts[1]):
        return ""
    found = importlib.import_module("implicit_geom")
    for k, part in enumerate(parts):
        try:
            found = importlib.import_module(".".join(["implicit_geom", *parts[: k + 1]]))
        except ImportError as error:
            if error.name in NEEDED:
                return ""
            if not hasattr(found, part):
                return part
            found = getattr(found, part)
    return ""


@pytest.mark.parametrize("folder", ["implicit_geom", "shapes", "experiments"])
def test_dotted_names_exist(folder: str) -> None:
    """Whoever follows a pointer gets somewhere."""
    lost = [
        f"{path.relative_to(ROOT)}: `{name}`"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in sorted(set(NAMED.findall(path.read_text())))
        if missing(name)
    ]
    assert lost == []


def test_a_name_that_is_not_there_is_missed() -> None:
    """The control."""
    assert missing("steppers.guard.EnergyGuard.excess") == ""
    assert missing("steppers.guard.NoGuard") == "NoGuard"
    assert missing("steppers.no_module") == "no_module"
