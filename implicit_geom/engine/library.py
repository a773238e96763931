"""The engine's shared library, by ctypes."""

from __future__ import annotations

import ctypes
import sysconfig
from functools import lru_cache
from pathlib import Path

import numpy as np

MOST = 32  # points of a patch, as `cpp/geometry.hpp` has it


class PatchPoints(ctypes.Structure):
    """`geometry::Patch`."""

    _fields_ = (
        ("count", ctypes.c_int),
        ("n", ctypes.c_double * 3),
        ("a", ctypes.c_double * (3 * MOST)),
        ("b", ctypes.c_double * (3 * MOST)),
        ("own", ctypes.c_double * (3 * MOST)),
        ("gap", ctypes.c_double * MOST),
        ("tag", ctypes.c_int * MOST),
        ("fixed", ctypes.c_int * MOST),
    )


NUMBERS = ctypes.POINTER(ctypes.c_double)
Foreign = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, NUMBERS, NUMBERS, NUMBERS, NUMBERS, ctypes.POINTER(PatchPoints)
)


@lru_cache
def library() -> ctypes.CDLL | None:
    """The library; None where the package was installed without it."""
    path = Path(__file__).parent / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not path.exists():
        return None
    found = ctypes.CDLL(str(path))
    found.ig_scene.restype = ctypes.c_void_p
    for name in ("free", "piece", "laws", "pairs", "foreign"):
        getattr(found, f"ig_scene_{name}").restype = None
    for name in ("ig_solves", "ig_contacts", "ig_press"):
        getattr(found, name).restype = None
    return found


def address(array: np.ndarray) -> ctypes.c_void_p:
    """Where an array lies; it must be contiguous and outlive the call."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)
