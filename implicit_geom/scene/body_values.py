"""What a user says of a body, checked: mass properties, pose, velocities, loads and friction."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.interface import numbers
from implicit_geom.interface.choices import name_of, number, quaternion, vector
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.words import shown
from implicit_geom.rotation import unit
from implicit_geom.scene.limits import SMALLEST
from implicit_geom.shapes.shape import Shape


def friction_value(label: str, key: str, value: Any, dim: int) -> Any:
    """A value of `Scene.friction`, checked; `key` is its name."""
    if key == "frame":
        return name_of(f"{label}.frame", value)
    if key == "direction":
        v = vector(f"{label}.direction", value, dim, largest=np.inf)
        if not np.any(v):
            raise SceneError(f"{label}.direction = {shown(value)} must not be zero")
        return tuple(unit(v).tolist())
    given = number(f"{label}.{key}", value)
    if given < 0:
        raise SceneError(f"{label}.{key} = {shown(value)} must be zero or positive")
    if key == "restitution" and given > 1:
        raise SceneError(f"{label}.restitution = {shown(value)} must lie between 0 and 1")
    return given


def mass_properties(
    field: str, shape: Shape, mass: Any, com: Any, inertia: Any
) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, kg, centre of mass, m, and inertia, kg m^2: those given, the others of uniform density."""
    if mass is None:
        raise SceneError(f"{field}.mass is missing: give a mass in kg, or fixed = true")
    m = number(f"{field}.mass", mass)
    if m <= 0:
        raise SceneError(f"{field}.mass = {shown(mass)} must be positive, in kg")
    if m < SMALLEST:
        raise SceneError(f"{field}.mass = {shown(mass)} must be at least {SMALLEST:g} kg")
    if not shape.bounded and (com is None or inertia is None):
        raise SceneError(f"{field}: an unbounded {shape.kind} that moves needs com= and inertia= as well")
    spatial = shape.dim == 3
    centre = shape.com if com is None else vector(f"{field}.com", com, shape.dim)
    if inertia is None:
        # a given com= alone moves the centre only: the inertia about it stays that of uniform density
        return m, np.asarray(centre, float), np.atleast_2d(shape.inertia(m)).astype(float)
    J = _inertia(f"{field}.inertia", inertia, spatial)
    principal = np.linalg.eigvalsh(J)
    if principal[0] <= 0:
        raise SceneError(f"{field}.inertia = {shown(inertia)} must be positive definite")
    if principal[0] < SMALLEST:
        raise SceneError(f"{field}.inertia = {shown(inertia)} must be at least {SMALLEST:g} kg m^2")
    if spatial and principal[2] > (principal[0] + principal[1]) * (1 + 1e-9):
        raise SceneError(
            f"{field}.inertia = {shown(inertia)} belongs to no body: "
            "the largest principal moment must not exceed the sum of the other two"
        )
    return m, np.asarray(centre, float), J


def orientation_of(field: str, value: Any, spatial: bool) -> np.ndarray:
    """A unit quaternion (4,), an angle () in the plane; not turned where nothing is given."""
    if not spatial:
        return np.array(number(field, 0.0 if value is None else value))
    return unit(quaternion(field, (1, 0, 0, 0) if value is None else value))


def spin_of(field: str, value: Any, spatial: bool) -> np.ndarray:
    """An angular velocity (3,), () in the plane; zero where nothing is given."""
    if not spatial:
        return np.array(number(field, 0.0 if value is None else value))
    return vector_or_zero(field, value, 3)


def vector_or_zero(field: str, value: Any, length: int) -> np.ndarray:
    """Finite numbers; zeros where nothing is given."""
    return np.zeros(length) if value is None else vector(field, value, length)


def load_of(field: str, value: Any, length: int) -> np.ndarray:
    """A force or torque; in the plane a torque may be a plain number."""
    if length == 1 and not isinstance(value, list | tuple | np.ndarray):
        value = [value]
    return vector(field, value, length, largest=np.inf)


def _inertia(field: str, value: Any, spatial: bool) -> np.ndarray:
    """(3, 3), of three numbers the diagonal; (1, 1) in the plane."""
    wanted = "3 or 3x3 finite numbers, symmetric" if spatial else "one finite number"
    for shape in ((3, 3), (3,)) if spatial else ((), (1,), (1, 1)):
        try:
            given = numbers.array(value, shape)
        except numbers.NotNumbers:
            continue
        J = np.diag(given) if shape == (3,) else given.reshape((3, 3) if spatial else (1, 1))
        if np.allclose(J, J.T, rtol=1e-12):
            return J
    raise SceneError(f"{field} = {shown(value)} must be {wanted}, at most {numbers.LARGEST:g}")
