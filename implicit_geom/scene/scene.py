"""What the user describes: bodies, friction, applied forces. No equations here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import hint, name_of, vector
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.words import shown
from implicit_geom.scene.body_values import (
    friction_value,
    load_of,
    mass_properties,
    orientation_of,
    spin_of,
    vector_or_zero,
)
from implicit_geom.scene.scene_description import describe
from implicit_geom.shapes.shape import Shape

Vector = Sequence[float] | np.ndarray
Applied = Vector | float | Callable[[float], Any]


@dataclass(frozen=True)
class Body:
    """A rigid body as it was added to a scene; see `Scene.add` for units and frames.

    mass is inf, com zero and inertia inf of a fixed body; position is then that of the shape's own origin.
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
    """The contact law of a pair, see `Scene.friction`: friction ellipsoid and restitution."""

    mu: float = 0.0
    e_t: float = 1.0
    e_o: float = 1.0
    e_r: float = 0.0
    restitution: float = 0.0
    direction: tuple[float, ...] | None = None
    frame: str | None = None


class Scene:
    """What is simulated: bodies, contact laws and loads.

    dim       3, or 2 for a scene in the plane
    gravity   (dim,) m/s^2, world frame; (0, 0, -9.81) if left out, (0, -9.81) in the plane
    bodies    by name, in the order in which they were added

    SI units, z up (y up in the plane). A run takes the scene as it is at the call. What is wrong raises
    SceneError.

    >>> scene = Scene(gravity=(0, 0, -9.81))
    >>> scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    >>> scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1))
    >>> scene.friction(mu=0.4)
    >>> scene
    Scene: 2 bodies, dim = 3, gravity = (0, 0, -9.81) m/s^2
      ground  halfspace(normal=(0.0, 0.0, 1.0), offset=0.0), fixed, at (0, 0, 0) m
      ball    sphere(r=0.1), 1 kg, at (0, 0, 0.1) m
      friction: mu = 0.4
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

    def __repr__(self) -> str:
        return describe(self)

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
        """Add a rigid body.

        name               a text of visible characters, not yet taken
        shape              of `shapes`, of the scene's dimension
        fixed              True: it never moves, and takes neither mass, com, inertia nor velocities
        mass               kg; every body that is not fixed needs one
        position           of the centre of mass, world frame, m; of the shape's own origin for a fixed body
        orientation        unit quaternion w, x, y, z from the shape's axes to the world's; in the plane an
                           angle, rad
        velocity           of the centre of mass, world frame, m/s
        angular_velocity   world frame, rad/s; in the plane one number
        com                centre of mass in the shape's frame, m
        inertia            about the centre of mass, in the shape's axes, kg m^2: 3 x 3, or 3 numbers for a
                           diagonal; in the plane one number

        If left out, the position is the origin, the body is not turned and at rest, and com and inertia are
        those of uniform density. SceneError names what is wrong.

        >>> scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 2), velocity=(1, 0, 0))
        >>> scene.bodies["ball"].inertia.diagonal().round(6)
        array([0.004, 0.004, 0.004])
        """
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
        turn = orientation_of(f"{field}.orientation", orientation, spatial)
        spin = spin_of(f"{field}.angular_velocity", angular_velocity, spatial)
        speed = vector_or_zero(f"{field}.velocity", velocity, self.dim)
        place = vector_or_zero(f"{field}.position", position, self.dim)
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
            m, centre, J = mass_properties(field, shape, mass, com, inertia)
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

        pair          none, or the names of two bodies
        mu            coefficient of friction: 0 unless set, contacts are then without friction
        e_t, e_o      numbers, 1 unless set: mu e_t and mu e_o are the coefficients along the tangents t and o
        e_r           a length in metres, 0 unless set: mu e_r p_n bounds the moment about the normal; about
                      2/3 of the radius of a face. With 0 nothing resists spinning about the normal
        restitution   0 unless set, at most 1: the share of the normal velocity that an impact gives back
        direction     gives t where e_t != e_o: in world axes, or in the axes of `frame`
        frame         the body of the pair that `direction` is attached to

        The friction impulse stays in (p_t/e_t)^2 + (p_o/e_o)^2 + (p_r/e_r)^2 <= (mu p_n)^2 [C07]; e = 0 means
        no such friction. SceneError where a value is negative or a name not known.

        >>> scene.friction(mu=0.4, restitution=0.2)
        >>> scene.friction("egg", "ground", mu=0.6, e_r=0.02)
        >>> law = scene.pair_friction("egg", "ground")
        >>> law.mu, law.e_r, law.restitution
        (0.6, 0.02, 0.2)
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
        values = {k: friction_value(label, k, v, self.dim) for k, v in given.items() if v is not None}
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
        """Apply a force and a torque to a body, beside gravity; an earlier call for it is replaced.

        name     of a body that is not fixed
        force    N, world axes, at the centre of mass; (dim,)
        torque   N m, world axes, about the centre of mass; (3,), in the plane a number

        Each is constant or a function of the time in s, zero if left out.

        >>> scene.applied("egg", force=(0, 0, 1), torque=lambda t: (0, 0, 0.1 * t))
        >>> force, torque = scene.load("egg", time=2.0)
        >>> torque
        array([0. , 0. , 0.2])
        """
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
                loads.append(load_of(f"applied.{name}.{label}", load, length))
        self._applied[name] = (loads[0], loads[1])

    def load(self, name: str, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Applied force, N, and torque, N m, of a body at a time in s, world axes, without gravity."""
        if name not in self._applied:
            return np.zeros(self.dim), np.zeros(3 if self.dim == 3 else 1)
        out = []
        lengths = (self.dim, 3 if self.dim == 3 else 1)
        for label, given, length in zip(("force", "torque"), self._applied[name], lengths, strict=True):
            value = self._evaluate(f"applied.{name}.{label}", given, time) if callable(given) else given
            out.append(load_of(f"applied.{name}.{label} at t = {time:g}", value, length))
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
        """The contact law of a pair: mu, e_t, e_o, e_r, restitution, direction and frame, see `friction`.

        SceneError where e_t and e_o differ and there is no direction.

        >>> scene.pair_friction("ground", "egg").mu
        0.4
        """
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
        """The body of that name, or a SceneError that starts with `field` and suggests the nearest one."""
        if not isinstance(name, str) or name not in self.bodies:
            raise SceneError(f"{field}: no body named {shown(name)}{hint(name, self.bodies)}")
        return self.bodies[name]


FRICTION_FIELDS = tuple(f.name for f in fields(Friction))
