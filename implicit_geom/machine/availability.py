"""Whether machine code can be made and is wanted."""

from __future__ import annotations

import importlib.util
import os
from functools import cache

SWITCH = "IMPLICIT_GEOM_COMPILED"  # environment variable: 0 leaves all steps to the steppers


@cache
def _installed() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


def available() -> bool:
    """Whether steps may be taken in compiled code."""
    return os.environ.get(SWITCH, "1") != "0" and _installed()
