"""Random drops with fixed seeds: a body just above the plane, or one more just above it.

Every drop is placed with its support points (its closest points for the upper body) a step or two
away from touching and given an approach velocity there, so that contact starts at once also for a
body of 100 m at h = 1e-3 s. Speeds scale with sqrt(g size), spins with sqrt(g / size).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom import Scene, distance, rotation, shapes

KINDS = ("ellipsoid", "superellipsoid", "box", "cylinder", "cone")
STEPS = (1e-3, 1e-2, 5e-2)
ONTO = ("plane", "body")
SEED = 2007
GRAVITY = 9.81
SMALLEST, LARGEST = 1e-2, 1e2  # m
SLENDER = 20.0  # longest to shortest axis of an ellipsoid


@dataclass(frozen=True)
class Drop:
    """One random drop; `size` in m is the scale of its bodies, `step` in s."""

    number: int
    kind: str
    onto: str
    size: float
    step: float
    mu: float
    scene: Scene


@dataclass(frozen=True)
class _Placed:
    """A body where it starts."""

    shape: shapes.Shape
    position: np.ndarray
    orientation: np.ndarray

    @property
    def pose(self) -> tuple[np.ndarray, np.ndarray]:
        """Pose of the shape's own frame."""
        return self.position - rotation.matrix(self.orientation) @ self.shape.com, self.orientation

    def arm(self, direction: np.ndarray) -> np.ndarray:
        """From the centre of mass to the point farthest along `direction`."""
        R = rotation.matrix(self.orientation)
        return R @ (self.shape.support((R.T @ direction)[None])[0] - self.shape.com)


def drop(number: int) -> Drop:
    """Drop `number`: kinds, steps and what is hit in turn, everything else at random."""
    rng = np.random.default_rng([SEED, number])
    kind = KINDS[number % 5]
    step = STEPS[(number // 5) % 3]
    onto = ONTO[(number // 15) % 2]
    size = float(10 ** rng.uniform(np.log10(SMALLEST), np.log10(LARGEST)))
    mu = 0.0 if rng.random() < 0.1 else float(rng.uniform(0, 1.5))
    scene = Scene(gravity=(0, 0, -GRAVITY))
    scene.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    lower = _above_plane(rng, kind, size, step)
    motion = _add(scene, rng, "lower", lower, size, np.array([0.0, 0.0, 1.0]), lower.arm(_DOWN), None)
    if onto == "body":
        upper, normal, arm, other = _above_body(rng, lower, size, step)
        touched = motion[0] + np.cross(motion[1], other)
        _add(scene, rng, "upper", upper, size, normal, arm, touched)
    scene.friction(mu=mu, e_r=0.1 * size if rng.random() < 0.5 else 0.0)
    return Drop(number, kind, onto, size, step, mu, scene)


_DOWN = np.array([0.0, 0.0, -1.0])


def random_shape(rng: np.random.Generator, kind: str, size: float) -> shapes.Shape:
    """A shape of that kind whose longest half-axis is about `size`."""
    if kind == "ellipsoid":
        axes = np.exp(rng.uniform(0, np.log(SLENDER), 3))
        if rng.random() < 0.3:
            axes = np.array([1.0, 1.0, SLENDER])
        return shapes.ellipsoid(*(size * axes / axes.max()))
    if kind == "superellipsoid":
        return shapes.superellipsoid(*(size * rng.uniform(0.3, 1, 3)), p=rng.uniform(2, 10))
    if kind == "box":
        return shapes.box(*(size * rng.uniform(0.2, 1, 3)))
    if kind == "cylinder":
        return shapes.cylinder(size * rng.uniform(0.2, 1), 2 * size * rng.uniform(0.1, 1))
    return shapes.cone(size * rng.uniform(0.3, 1), size * rng.uniform(0.5, 1.5))


def _turn(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def _approach(size: float) -> float:
    return 0.5 * np.sqrt(GRAVITY * size)


def _start_gap(rng: np.random.Generator, size: float, step: float) -> float:
    """A distance that the approach covers within two steps."""
    return float(rng.uniform(0.2, 2) * _approach(size) * step)


def _above_plane(rng: np.random.Generator, kind: str, size: float, step: float) -> _Placed:
    body = _Placed(random_shape(rng, kind, size), np.zeros(3), _turn(rng))
    height = _start_gap(rng, size, step) - body.arm(_DOWN)[2]
    return _Placed(body.shape, np.array([0.0, 0.0, height]), body.orientation)


def _above_body(
    rng: np.random.Generator, lower: _Placed, size: float, step: float
) -> tuple[_Placed, np.ndarray, np.ndarray, np.ndarray]:
    """A second body near the first and clear of the plane; the normal and both arms to the closest points."""
    shape = random_shape(rng, KINDS[rng.integers(len(KINDS))], size)
    wanted = _start_gap(rng, size, step)
    for _ in range(100):
        along = np.array([*rng.normal(scale=0.3, size=2), 1.0])
        along /= np.linalg.norm(along)
        body = _Placed(shape, np.zeros(3), _turn(rng))
        apart = along @ (lower.arm(along) - body.arm(-along)) + wanted
        body = _Placed(shape, lower.position + apart * along, body.orientation)
        # the gap shrinks by no more than the way: approach without ever touching
        for _ in range(50):
            found = distance(lower.shape, lower.pose, shape, body.pose)
            if found.gap <= 1.5 * wanted:
                break
            body = _Placed(shape, body.position - (found.gap - wanted) * along, body.orientation)
        if (body.position + body.arm(_DOWN))[2] > wanted:
            normal = np.asarray(found.normal)
            return body, normal, found.point_b - body.position, found.point_a - lower.position
    raise ArithmeticError("no place for the upper body in 100 tries")


def _add(
    scene: Scene,
    rng: np.random.Generator,
    name: str,
    body: _Placed,
    size: float,
    normal: np.ndarray,
    arm: np.ndarray,
    touched: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Add the body with a random motion whose point at `arm` approaches what it meets along -normal."""
    speed = np.sqrt(GRAVITY * size)
    spin = rng.normal(size=3) * np.sqrt(GRAVITY / size)
    velocity = 0.4 * speed * rng.normal(size=3)
    met: Any = np.zeros(3) if touched is None else touched
    relative = velocity + np.cross(spin, arm) - met
    velocity = velocity - (normal @ relative + _approach(size)) * normal
    scene.add(
        name,
        body.shape,
        mass=float(rng.uniform(0.1, 10)),
        position=body.position,
        orientation=body.orientation,
        velocity=velocity,
        angular_velocity=spin,
    )
    return velocity, spin
