"""The public distance query: signed gap, closest points and normal of two convex shapes, or unions of them.

The gap is the largest separation over all directions n (from the first body to the second),

    gap = max_n phi(n),   phi(n) = min_{b in B} n.b - max_{a in A} n.a,

positive when the bodies are apart and minus the least penetration when they overlap. Sampled
directions find the neighbourhood of the maximum, the closest-point equations [C07, eq. 22] give its
digits. `d >= 0` together with multipliers >= 0 proves separation: n is then a separating plane.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import number, vector
from implicit_geom.interface.errors import CallError, SceneError, SimulationError
from implicit_geom.interface.words import shown
from implicit_geom.model.closest_point_problem import ClosestPoints, ClosestPointSystem
from implicit_geom.model.placed_shape import PlacedShape, halfspace_plane, outward_normals
from implicit_geom.scene.limits import check_place
from implicit_geom.shapes.shape import Shape
from implicit_geom.solvers.newton import NewtonOptions, follow_path, solve_by_newton

ROUNDING = 1e3  # multiple of the tolerance that rounding may leave on the rows
STARTS = 8  # local maxima of phi that are followed up
CLIMB_STEPS = 150
MISSES = 3  # patterns without gain before the climb takes shorter steps
OPTIONS = NewtonOptions(damped_steps=30)


@checked_call(CallError, "distance")
def distance(shape_a: Shape, pose_a: Any, shape_b: Shape, pose_b: Any) -> ClosestPoints:
    """Signed distance of two shapes, with closest points and normal.

    shape_a, shape_b   of `shapes`, of one dimension, at least one of them bounded
    pose_a, pose_b     (position, orientation) of the shape's own frame in the world: m, and a quaternion
                       w, x, y, z, of any length but zero (an angle in rad in the plane)

    gap, m, is negative where they overlap: the least that they have to be moved apart. point_a and point_b,
    m, and the unit normal from a to b are in the world frame. Of unions it is the smallest over all pairs of
    their pieces: where several overlap, the deepest. SceneError for bad input, SimulationError where no
    closest points are found.

    >>> upright = (1, 0, 0, 0)
    >>> c = distance(shapes.sphere(1), ((0, 0, 0), upright), shapes.box(1, 1, 1), ((3, 0, 0), upright))
    >>> round(c.gap, 9), c.point_a.round(9), c.normal.round(9)
    (1.0, array([1., 0., 0.]), array([1., 0., 0.]))
    """
    for label, shape in (("first", shape_a), ("second", shape_b)):
        if not isinstance(shape, Shape):
            raise SceneError(
                f"distance: the {label} shape is {shown(shape)}; give one such as shapes.sphere(1)"
            )
    if shape_a.dim != shape_b.dim:
        raise SceneError(f"distance: a {shape_a.dim}-D and a {shape_b.dim}-D shape cannot be compared")
    a, b = place_shape(shape_a, pose_a), place_shape(shape_b, pose_b)
    if not shape_a.bounded and not shape_b.bounded:
        raise SceneError(
            f"distance: {shape_a.kind} and {shape_b.kind} are both unbounded; give one bounded shape"
        )
    pairs = product(shape_a.pieces, shape_b.pieces)
    return min(
        (_pieces_distance(replace(a, shape=one), replace(b, shape=two)) for one, two in pairs), key=_gap
    )


def _pieces_distance(a: PlacedShape, b: PlacedShape) -> ClosestPoints:
    if is_halfspace(b.shape):
        c = find_closest_points(b, a).points
        return ClosestPoints(c.gap, c.point_b, c.point_a, -c.normal)
    return find_closest_points(a, b).points


def _gap(c: ClosestPoints) -> float:
    return c.gap


def place_shape(shape: Shape, pose: Any) -> PlacedShape:
    """A shape at a pose (position, orientation), both checked."""
    if not isinstance(pose, list | tuple | np.ndarray) or len(pose) != 2:
        kind = "a quaternion w, x, y, z" if shape.dim == 3 else "an angle"
        raise SceneError(f"pose = {shown(pose)} must be a pair ({shape.dim} numbers, {kind})")
    x = vector("pose: position", pose[0], shape.dim)
    check_place("pose: position", x, shape.size)
    if shape.dim == 2:
        return PlacedShape(shape, x, rotation.planar(number("pose: orientation", pose[1])), np.zeros(2))
    turn = vector("pose: orientation", pose[1], 4)
    norm = np.linalg.norm(turn)
    if norm == 0:
        raise SceneError("pose: orientation: the quaternion w, x, y, z must not be zero")
    # (any length: poses often come from other programs, and are not kept)
    return PlacedShape(shape, x, rotation.matrix(turn / norm), np.zeros(3))


@dataclass(frozen=True)
class ClosestSolution:
    """Closest points together with the geometry unknowns (`UnknownLayout`, with h = 1) that produced them."""

    points: ClosestPoints
    unknowns: np.ndarray


def find_closest_points(a: PlacedShape, b: PlacedShape, start: np.ndarray | None = None) -> ClosestSolution:
    """Closest points of two placed shapes; a half-space must come first. `start`: a normal to try first."""
    system = ClosestPointSystem(a, b)
    if start is not None:
        z = _separated(system, start)
        if z is not None:
            return ClosestSolution(system.points(z), z)
    if not (a.shape.bounded or is_halfspace(a.shape)) or not b.shape.bounded:
        return _closest_unbounded(system)
    directions = _known_or_sampled(a, b)
    candidates = _local_maxima(directions, separation(a, b, directions))
    z = _separated(system, candidates[0])
    if z is not None:
        return ClosestSolution(system.points(z), z)
    found: list[tuple[float, np.ndarray]] = []
    bound = -np.inf
    for n in candidates:
        n, value = _climb(a, b, n, system.length)
        if value < bound - 1e-6 * system.length:
            continue
        bound = max(bound, value)
        z = _solve_geometry(system, n, value)
        if z is None:
            continue
        gap = system.gap(z)
        found.append((gap, z))
        if gap >= 0:
            break
    slack = 1e-7 * system.length + a.shape.support_error + b.shape.support_error
    good = [(gap, z) for gap, z in found if gap >= bound - slack]
    if not good:
        raise SimulationError(
            f"closest points of {a.shape.kind} and {b.shape.kind} not found: "
            f"best separation {bound:.6g} m, solutions {[round(g, 9) for g, _ in found]}"
        )
    gap, z = max(good, key=lambda item: item[0])
    return ClosestSolution(system.points(z), z)


def _closest_unbounded(system: ClosestPointSystem) -> ClosestSolution:
    """Closest points where one shape is unbounded: from its constraints' normals at the other's centre."""
    a, b = system.a, system.b
    normals = outward_normals(a, b.centre) if b.shape.bounded else -outward_normals(b, a.centre)
    found = []
    for n in normals:
        for z0 in system.starts(n):
            for attempt in (solve_by_newton, follow_path):
                s = attempt(system, z0, OPTIONS)
                if s.converged and system.certified(s.z):
                    found.append((system.gap(s.z), s.z))
                    break
        if found and found[-1][0] >= 0:
            break
    if not found:
        raise SimulationError(f"closest points of {a.shape.kind} and {b.shape.kind} not found")
    z = max(found, key=lambda item: item[0])[1]
    return ClosestSolution(system.points(z), z)


def track_closest_points(a: PlacedShape, b: PlacedShape, guess: np.ndarray) -> ClosestSolution:
    """Closest points near those of a neighbouring pose; keeps to the branch where bodies overlap slightly."""
    system = ClosestPointSystem(a, b)
    s = solve_by_newton(system, guess, OPTIONS, damped=False)
    if s.converged and system.certified(s.z):
        return ClosestSolution(system.points(s.z), s.z)
    return find_closest_points(a, b)


def separation(a: PlacedShape, b: PlacedShape, directions: np.ndarray) -> np.ndarray:
    """The separation phi(n) for each row of `directions`."""
    towards_b = np.einsum("ij,ij->i", b.support(-directions), directions)
    if is_halfspace(a.shape):
        n, offset = halfspace_plane(a)
        return towards_b - np.where(directions @ n > 1 - 1e-12, offset, np.inf)
    return towards_b - np.einsum("ij,ij->i", a.support(directions), directions)


def _separated(system: ClosestPointSystem, n: np.ndarray) -> np.ndarray | None:
    """Closest points at once from a guessed direction: phi has a single maximum where it is positive."""
    s = solve_by_newton(system, next(system.starts(n)), OPTIONS, damped=False)
    if s.converged and system.certified(s.z) and system.gap(s.z) >= 0:
        return s.z
    return None


def _solve_geometry(system: ClosestPointSystem, n: np.ndarray, value: float) -> np.ndarray | None:
    """The closest points whose gap is phi(n) = value, where n is nearly the right direction."""
    slack = 1e-5 * system.length + system.a.shape.support_error + system.b.shape.support_error
    starts = list(system.starts(n))
    fallback = None
    for attempt in (solve_by_newton, follow_path):
        for z0 in starts:
            s = attempt(system, z0, OPTIONS)
            # rounding may keep the rows of a strongly curved body a little above the tolerance
            if not (s.converged or min(s.history) < ROUNDING) or not system.certified(s.z):
                continue
            if abs(system.gap(s.z) - value) < slack:
                return s.z
            if fallback is None or system.gap(s.z) > system.gap(fallback):
                fallback = s.z
    return fallback


def _known_or_sampled(a: PlacedShape, b: PlacedShape) -> np.ndarray:
    if is_halfspace(a.shape):
        return halfspace_plane(a)[0][None]
    centre = b.centre - a.centre
    norm = np.linalg.norm(centre)
    sampled = _sphere(a.shape.dim)
    return np.vstack([centre / norm, sampled]) if norm > 0 else sampled


@lru_cache
def _sphere(dim: int, count: int = 600) -> np.ndarray:
    """Directions spread evenly over the circle or the sphere (Fibonacci lattice)."""
    i = np.arange(count) + 0.5
    if dim == 2:
        angle = 2 * np.pi * i / count
        return np.column_stack([np.cos(angle), np.sin(angle)])
    z = 1 - 2 * i / count
    azimuth = np.pi * (1 + 5**0.5) * i
    rho = np.sqrt(1 - z * z)
    return np.column_stack([rho * np.cos(azimuth), rho * np.sin(azimuth), z])


def _local_maxima(directions: np.ndarray, phi: np.ndarray) -> list[np.ndarray]:
    """The best directions, at least 0.35 rad apart."""
    chosen: list[np.ndarray] = []
    for i in np.argsort(-phi):
        if all(directions[i] @ n < np.cos(0.35) for n in chosen):
            chosen.append(directions[i])
        if len(chosen) == STARTS:
            break
    return chosen


def _climb(a: PlacedShape, b: PlacedShape, n: np.ndarray, length: float) -> tuple[np.ndarray, float]:
    """Pattern search for a local maximum of phi: no derivatives, so edges and vertices do no harm."""
    value = float(separation(a, b, n[None])[0])
    if is_halfspace(a.shape):
        return n, value
    radius, misses = 0.15, 0
    pattern = _pattern(n.size)
    # sampled support points are corners of a fine polyhedron: there is no point in finer steps
    finest = 1e-7 if a.shape.support_exact and b.shape.support_exact else 1e-2
    for k in range(CLIMB_STEPS):
        basis = _turned(np.linalg.svd(n[None])[2][1:], k)
        around = n + radius * pattern @ basis
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        phi = separation(a, b, around)
        best = int(np.argmax(phi))
        gain = phi[best] - value
        if gain > 0:
            n, value = around[best], float(phi[best])
        misses = 0 if gain > 1e-2 * radius**2 * length else misses + 1
        # phi has sharp ridges where edges meet: look in other directions before taking shorter steps
        if misses == MISSES:
            radius, misses = 0.3 * radius, 0
        if radius < finest:
            break
    return n, value


def _turned(basis: np.ndarray, k: int) -> np.ndarray:
    """A basis of the tangent plane turned by k golden angles."""
    if len(basis) == 1:
        return basis
    c, s = np.cos(2.4 * k), np.sin(2.4 * k)
    return np.array([[c, -s], [s, c]]) @ basis


@lru_cache
def _pattern(dim: int) -> np.ndarray:
    if dim == 2:
        return np.array([[-1.0], [1.0]])
    angle = 2 * np.pi * np.arange(24) / 24
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([ring, 0.5 * ring @ np.array([[0.99, 0.13], [-0.13, 0.99]])])
