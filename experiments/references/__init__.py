"""Reference solutions that no time stepper made: JSON files beside this one, each saying what it is."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def reference(name: str) -> dict[str, Any]:
    """The reference of that name; lists of numbers as they were written."""
    return json.loads((files(__name__) / f"{name}.json").read_text())
