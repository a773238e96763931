"""Steps in machine code: SX functions lowered to LLVM, and the loops around them.

    lowering         SX functions to LLVM code
    code             a small language for loops and branches
    blocks           what is kept in memory of a body and of a pair
    body_functions   SX functions of one body
    pair_functions   SX functions of one pair
    solver           Newton's method
    march            steps and trajectories
    objects          compiled code, kept on disk
    library          which functions are compiled together
    engine           a scene's memory, and back to the steppers' objects

Everything here repeats what the steppers do, for their ordinary steps; the steppers are the
reference, and take every other step. Without llvmlite they take all of them.
"""

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
