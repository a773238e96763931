"""What the user describes: bodies, friction, applied forces. No equations here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from implicit_geom.interface import numbers
from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import hint, name_of, number, quaternion, vector
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.words import shown
from implicit_geom.rotation import unit
from implicit_geom.scene.limits import SMALLEST
from implicit_geom.shapes.shape import Shape

Vector = Sequence[float] | np.ndarray
Applied = Vector | float | Callable[[float], Any]


@dataclass(frozen=True)
class Body:
    """A rigid body: its shape, its mass properties and where it starts.

    position is the centre of mass (the shape's origin for a fixed body), orientation a quaternion
    (an angle in the plane), velocities in the world frame. com and inertia are in the shape's
    frame, inertia about the centre of mass.
    """

    name: str
    shape: Shape
    fixed: bool
    mass: float
    com: np.ndarray
    inertia: np.ndarray  # (3, 3), (1, 1) in the plane
    position: np.ndarray
    orientation: np.ndarray  # (4,), () in the plane
    velocity: np.ndarray
    angular_velocity: np.ndarray  # (3,), () in the plane


@dataclass(frozen=True)
class Friction:
    """The contact law of a pair: friction ellipsoid (mu; e_t, e_o; e_r in metres) and restitution."""

    mu: float = 0.0
    e_t: float = 1.0
    e_o: float = 1.0
    e_r: float = 0.0
    restitution: float = 0.0
    direction: tuple[float, ...] | None = None
    frame: str | None = None


class Scene:
    """Bodies, contact laws and loads.

    >>> scene = Scene(gravity=(0, 0, -9.81))
    >>> scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    >>> scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1))
    """

    @checked_call(CallError)
    def __init__(self, *, dim: int = 3, gravity: Vector | None = None) -> None:
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim not in (2, 3):
            raise SceneError(f"dim = {shown(dim)} must be 2 or 3")
        self.dim = dim = int(dim)
        default = (0.0,) * (dim - 1) + (-9.81,)
        self.gravity = vector("gravity", default if gravity is None else gravity, dim)
        self.bodies: dict[str, Body] = {}
        self._default_friction = Friction()
        self._pair_friction: dict[frozenset[str], dict[str, Any]] = {}
        self._applied: dict[str, tuple[Applied, Applied]] = {}
        self.friction_given = False  # whether `friction` was called
        self.told: set[str] = set()  # notices that were given, see `implicit_geom.scene.notices`

    @checked_call(CallError)
    def add(
        self,
        name: str,
        shape: Shape,
        *,
        mass: float | None = None,
        position: Vector | None = None,
        orientation: Vector | float | None = None,
        velocity: Vector | None = None,
        angular_velocity: Vector | float | None = None,
        com: Vector | None = None,
        inertia: Any = None,
        fixed: bool = False,
    ) -> None:
        """Add a body. A fixed body needs no mass; any other needs one, its inertia follows from its shape."""
        field = f"bodies.{name_of('name', name)}"
        if name in self.bodies:
            raise SceneError(f"{field}: there is a body of that name already; choose another")
        if not isinstance(shape, Shape):
            raise SceneError(f"{field}.shape = {shown(shape)} must be a shape, such as shapes.sphere(0.1)")
        if shape.dim != self.dim:
            raise SceneError(f"{field}.shape: a {shape.dim}-D {shape.kind} does not fit a {self.dim}-D scene")
        if not isinstance(fixed, bool):
            raise SceneError(f"{field}.fixed = {shown(fixed)} must be true or false")
        spatial = self.dim == 3
        turn = _orientation(f"{field}.orientation", orientation, spatial)
        spin = _spin(f"{field}.angular_velocity", angular_velocity, spatial)
        speed = _vector(f"{field}.velocity", velocity, self.dim)
        place = _vector(f"{field}.position", position, self.dim)
        if fixed:
            for label, given in (("mass", mass), ("com", com), ("inertia", inertia)):
                if given is not None:
                    raise SceneError(
                        f"{field}.{label} = {shown(given)}: a fixed body takes none; leave it out"
                    )
            for label, motion in (("velocity", speed), ("angular_velocity", spin)):
                if np.any(motion):
                    raise SceneError(f"{field}.{label}: a fixed body does not move; leave it out")
            m, centre = math.inf, np.zeros(self.dim)
            J = np.full((3, 3) if spatial else (1, 1), np.inf)
        else:
            m, centre, J = _mass_properties(field, shape, mass, com, inertia)
        self.bodies[name] = Body(name, shape, fixed, m, centre, J, place, turn, speed, spin)

    @checked_call(CallError)
    def friction(
        self,
        *pair: str,
        mu: float | None = None,
        e_t: float | None = None,
        e_o: float | None = None,
        e_r: float | None = None,
        restitution: float | None = None,
        direction: Vector | None = None,
        frame: str | None = None,
    ) -> None:
        """Set the contact law of every pair, or of the one pair named; what is left out keeps its value.

        The friction impulse stays in (p_t/e_t)^2 + (p_o/e_o)^2 + (p_r/e_r)^2 <= (mu p_n)^2 [C07].
        e_t and e_o are numbers, e_r is a length in metres; e = 0 means no such friction. For
        e_t != e_o, `direction` (in the axes of the body `frame`, world axes without it) gives t.
        """
        given = {
            "mu": mu,
            "e_t": e_t,
            "e_o": e_o,
            "e_r": e_r,
            "restitution": restitution,
            "direction": direction,
            "frame": frame,
        }
        label = "friction" + (f"({', '.join(map(str, pair))})" if pair else "")
        values = {k: _friction_value(label, k, v, self.dim) for k, v in given.items() if v is not None}
        if not pair:
            self._default_friction = replace(self._default_friction, **values)
            self.friction_given = True
            return
        if len(pair) != 2 or pair[0] == pair[1]:
            raise SceneError(f"{label}: name two different bodies, or none for every pair")
        for name in pair:
            self.require(name, label)
        if frame is not None and frame not in pair:
            raise SceneError(f"{label}.frame = {shown(frame)} must be {pair[0]!r} or {pair[1]!r}")
        self._pair_friction.setdefault(frozenset(pair), {}).update(values)
        self.friction_given = True

    @checked_call(CallError)
    def applied(self, name: str, *, force: Applied | None = None, torque: Applied | None = None) -> None:
        """Apply a force (N, world axes, at the centre of mass) and a torque (N m), constant or of time."""
        body = self.require(name, "applied")
        if body.fixed:
            raise SceneError(f"applied.{name}: a fixed body takes no force")
        loads: list[Applied] = []
        for label, load, length in (
            ("force", force, self.dim),
            ("torque", torque, 3 if self.dim == 3 else 1),
        ):
            if load is None:
                loads.append(np.zeros(length))
            elif callable(load):
                loads.append(load)
            else:
                loads.append(_load(f"applied.{name}.{label}", load, length))
        self._applied[name] = (loads[0], loads[1])

    def load(self, name: str, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Applied force and torque of a body at a time, without gravity."""
        if name not in self._applied:
            return np.zeros(self.dim), np.zeros(3 if self.dim == 3 else 1)
        out = []
        lengths = (self.dim, 3 if self.dim == 3 else 1)
        for label, given, length in zip(("force", "torque"), self._applied[name], lengths, strict=True):
            value = self._evaluate(f"applied.{name}.{label}", given, time) if callable(given) else given
            out.append(_load(f"applied.{name}.{label} at t = {time:g}", value, length))
        return out[0], out[1]

    @staticmethod
    def _evaluate(field: str, function: Callable[[float], Any], time: float) -> Any:
        try:
            return function(time)
        except SceneError:
            raise
        except Exception as error:
            raise SceneError(
                f"{field}: the function failed at t = {time:g} s ({type(error).__name__}: {error}); "
                "it must take the time in seconds and return numbers"
            ) from error

    @property
    def constant_loads(self) -> bool:
        """Whether no applied load is a function of time (only such scenes can be written to a file)."""
        return not any(callable(load) for loads in self._applied.values() for load in loads)

    def pair_friction(self, first: str, second: str) -> Friction:
        """The contact law of a pair."""
        given = self._pair_friction.get(frozenset((first, second)), {})
        law = replace(self._default_friction, **given)
        if law.frame is not None and law.frame not in (first, second):
            if "frame" in given:
                raise SceneError(f"friction.frame = {law.frame!r} must be {first!r} or {second!r}")
            law = replace(law, frame=None, direction=None)
        if law.e_t != law.e_o and law.direction is None and self.dim == 3 and law.mu > 0:
            raise SceneError(
                f"friction({first}, {second}): e_t = {law.e_t:g} and e_o = {law.e_o:g} differ; "
                "give direction= (and frame=) so that t has a meaning"
            )
        return law

    def require(self, name: str, field: str) -> Body:
        """The body of that name, or an error that suggests the nearest one."""
        if not isinstance(name, str) or name not in self.bodies:
            raise SceneError(f"{field}: no body named {shown(name)}{hint(name, self.bodies)}")
        return self.bodies[name]


FRICTION_FIELDS = tuple(f.name for f in fields(Friction))


def _friction_value(label: str, key: str, value: Any, dim: int) -> Any:
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


def _mass_properties(
    field: str, shape: Shape, mass: Any, com: Any, inertia: Any
) -> tuple[float, np.ndarray, np.ndarray]:
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


def _orientation(field: str, value: Any, spatial: bool) -> np.ndarray:
    if not spatial:
        return np.array(number(field, 0.0 if value is None else value))
    return unit(quaternion(field, (1, 0, 0, 0) if value is None else value))


def _spin(field: str, value: Any, spatial: bool) -> np.ndarray:
    if not spatial:
        return np.array(number(field, 0.0 if value is None else value))
    return _vector(field, value, 3)


def _vector(field: str, value: Any, length: int) -> np.ndarray:
    """Finite numbers; zeros where nothing is given."""
    return np.zeros(length) if value is None else vector(field, value, length)


def _load(field: str, value: Any, length: int) -> np.ndarray:
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
