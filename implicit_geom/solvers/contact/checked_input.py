"""What a contact problem is made of, checked: matrices, vectors, coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from implicit_geom.interface.errors import SceneError


def matrix(name: str, value: Any) -> sp.csc_matrix:
    found = sp.csc_matrix(value, dtype=float, copy=True)
    found.sum_duplicates()
    if not np.all(np.isfinite(found.data)):
        raise SceneError(f"{name} holds a number that is not finite")
    return found


def vector(name: str, value: Any, size: int) -> np.ndarray:
    found = np.array(value, float)
    if found.shape != (size,):
        raise SceneError(f"{name} has the shape {found.shape}; it must be ({size},)")
    if not np.all(np.isfinite(found)):
        raise SceneError(f"{name} holds a number that is not finite")
    return found


def not_negative(name: str, value: Any, size: int) -> np.ndarray:
    found = np.broadcast_to(np.asarray(value, float), (size,)).copy()
    if not np.all(np.isfinite(found) & (found >= 0)):
        raise SceneError(f"{name} must be zero or positive, and finite")
    return found


def ellipsoids(e: Any, contacts: int, dim: int) -> np.ndarray:
    try:
        axes = np.broadcast_to(np.asarray(e, float), (contacts, dim - 1)).copy()
    except ValueError:
        raise SceneError(f"e must be one number, {dim - 1} numbers, or {dim - 1} for each contact") from None
    if not np.all(np.isfinite(axes) & (axes >= 0)):
        raise SceneError("e must be zero or positive, and finite")
    return axes
