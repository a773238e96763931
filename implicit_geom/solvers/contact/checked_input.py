"""What a contact problem is made of, checked: matrices, vectors, coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.words import shown

SYMMETRY = 1e-9  # by which entries of a mass matrix may differ from their mirror images, over its largest


def matrix(name: str, value: Any) -> sp.csc_matrix:
    """A matrix of finite numbers, sparse."""
    _refuse_complex(name, value)
    try:
        found = sp.csc_matrix(value, dtype=float, copy=True)
    except (TypeError, ValueError):
        raise SceneError(f"{name} = {shown(value)} must be a matrix of numbers, sparse or dense") from None
    found.sum_duplicates()
    if not np.all(np.isfinite(found.data)):
        raise SceneError(f"{name} holds a number that is not finite")
    return found


def mass_matrix(value: Any) -> sp.csc_matrix:
    """A square, symmetric matrix; that it is positive definite is seen where its blocks are inverted."""
    found = matrix("M", value)
    if found.shape[0] != found.shape[1]:
        raise SceneError(f"M has the shape {found.shape}; a mass matrix is square")
    if abs(found - found.T).max() > SYMMETRY * abs(found).max() if found.nnz else False:
        raise SceneError("M is not symmetric; a mass matrix is")
    return found


def vector(name: str, value: Any, size: int) -> np.ndarray:
    """`size` finite numbers."""
    found = _numbers(name, value)
    if found.shape != (size,):
        raise SceneError(f"{name} has the shape {found.shape}; it must be ({size},)")
    if not np.all(np.isfinite(found)):
        raise SceneError(f"{name} holds a number that is not finite")
    return found


def not_negative(name: str, value: Any, size: int) -> np.ndarray:
    """`size` numbers, or one for all, none of them negative."""
    found = _numbers(name, value)
    if found.shape not in ((), (size,)):
        raise SceneError(f"{name} has the shape {found.shape}; it must be one number, or ({size},)")
    if not np.all(np.isfinite(found) & (found >= 0)):
        raise SceneError(f"{name} must be zero or positive, and finite")
    return np.broadcast_to(found, (size,)).copy()


def ellipsoids(e: Any, contacts: int, dim: int) -> np.ndarray:
    """(contacts, dim - 1) axes of the friction ellipsoids."""
    try:
        axes = np.broadcast_to(_numbers("e", e), (contacts, dim - 1)).copy()
    except ValueError as error:
        if isinstance(error, SceneError):
            raise
        raise SceneError(f"e must be one number, {dim - 1} numbers, or {dim - 1} for each contact") from None
    if not np.all(np.isfinite(axes) & (axes >= 0)):
        raise SceneError("e must be zero or positive, and finite")
    return axes


def _refuse_complex(name: str, value: Any) -> None:
    """numpy would leave out imaginary parts."""
    if np.iscomplexobj(value):
        raise SceneError(f"{name} = {shown(value)} must be real numbers")


def _numbers(name: str, value: Any) -> np.ndarray:
    _refuse_complex(name, value)
    try:
        return np.array(value, float)
    except (TypeError, ValueError):
        raise SceneError(f"{name} = {shown(value)} must be numbers") from None
