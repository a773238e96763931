"""The public distance query: signed gap, closest points and normal of two convex shapes.

The gap is the largest separation over all directions n (from the first body to the second),

    gap = max_n phi(n),   phi(n) = min_{b in B} n.b - max_{a in A} n.a,

positive when the bodies are apart and minus the least penetration when they overlap. Sampled
directions find the neighbourhood of the maximum, the closest-point equations [C07, eq. 22] give its
digits. `d >= 0` together with multipliers >= 0 proves separation: n is then a separating plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom import rotation
from implicit_geom.contact_geometry import is_halfspace, sign_mask
from implicit_geom.errors import SceneError, SimulationError
from implicit_geom.newton import NewtonOptions, follow_path, solve
from implicit_geom.pair import PairKind, Symbols, closest_point, flat
from shapes.shape import Cone, Shape, Slab

TOLERANCE = 1e-13  # on the closest-point rows, relative to the smaller body
ROUNDING = 1e3  # multiple of the tolerance that rounding may leave on the rows
STARTS = 8  # local maxima of phi that are followed up
CLIMB_STEPS = 80
OPTIONS = NewtonOptions(damped_steps=30)


@dataclass(frozen=True)
class ClosestPoints:
    """Signed gap in metres, closest points in the world frame, unit normal from A to B."""

    gap: float
    point_a: np.ndarray
    point_b: np.ndarray
    normal: np.ndarray


@dataclass(frozen=True)
class Placed:
    """A shape at a pose: centre x, rotation R, and the centre's place in the shape's frame."""

    shape: Shape
    x: np.ndarray
    R: np.ndarray
    com: np.ndarray

    def support(self, directions: np.ndarray) -> np.ndarray:
        """Support points in the world frame; (N, dim) -> (N, dim)."""
        return (self.shape.support(directions @ self.R) - self.com) @ self.R.T + self.x


def distance(shape_a: Shape, pose_a: Any, shape_b: Shape, pose_b: Any) -> ClosestPoints:
    """Signed distance of two shapes, each at the pose (position, orientation) of its own frame."""
    if shape_a.dim != shape_b.dim:
        raise SceneError(f"distance: a {shape_a.dim}-D and a {shape_b.dim}-D shape cannot be compared")
    a, b = place(shape_a, pose_a), place(shape_b, pose_b)
    if is_halfspace(shape_a) and is_halfspace(shape_b):
        raise SceneError("distance: two half-spaces have no closest points; give one bounded shape")
    if is_halfspace(shape_b):
        c = distance(shape_b, pose_b, shape_a, pose_a)
        return ClosestPoints(c.gap, c.point_b, c.point_a, -c.normal)
    return closest(a, b).points


def place(shape: Shape, pose: Any) -> Placed:
    """A shape at a pose (position, orientation), both checked."""
    try:
        position, orientation = pose
        x = np.asarray(position, float)
        turn = np.asarray(orientation, float)
    except (TypeError, ValueError):
        raise SceneError(f"pose = {pose!r} must be a pair (position, orientation)") from None
    wanted = (4,) if shape.dim == 3 else ()
    if x.shape != (shape.dim,) or turn.shape != wanted or not np.all(np.isfinite(np.append(x, turn))):
        raise SceneError(
            f"pose = {pose!r} must be ({shape.dim} numbers, "
            + ("a quaternion w, x, y, z)" if shape.dim == 3 else "an angle)")
        )
    if shape.dim == 2:
        return Placed(shape, x, rotation.planar(float(turn)), np.zeros(2))
    norm = np.linalg.norm(turn)
    if norm == 0:
        raise SceneError("pose: the quaternion must not be zero")
    return Placed(shape, x, rotation.matrix(turn / norm), np.zeros(3))


@dataclass(frozen=True)
class Closest:
    """Closest points together with the geometry unknowns (`Layout`, with h = 1) that produced them."""

    points: ClosestPoints
    unknowns: np.ndarray
    lengths: float  # the length scale L of the unknowns


def closest(a: Placed, b: Placed, start: np.ndarray | None = None) -> Closest:
    """Closest points of two placed shapes; a half-space must come first. `start`: a normal to try first."""
    system = GeometrySystem(a, b)
    if start is not None:
        z = _separated(system, start)
        if z is not None:
            return Closest(system.points(z), z, system.length)
    directions = _known_or_sampled(a, b)
    candidates = _local_maxima(directions, separation(a, b, directions))
    z = _separated(system, candidates[0])
    if z is not None:
        return Closest(system.points(z), z, system.length)
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
    return Closest(system.points(z), z, system.length)


class GeometrySystem:
    """The closest-point rows at fixed poses as a system for the Newton core."""

    def __init__(self, a: Placed, b: Placed) -> None:
        self.a, self.b = a, b
        self.kernel = _geometry_kernel(_Key(a.shape, b.shape))
        layout = self.kernel.kind.layout
        self.layout = layout
        self.length = min(s for s in (a.shape.size, b.shape.size, 1e300) if np.isfinite(s) or s == 1e300)
        if self.length == 1e300:
            self.length = 1.0
        s = self.kernel.symbols
        p = np.zeros(s.parameters.numel())
        values = {
            "h": 1.0,
            "L": self.length,
            "U": self.length,
            "offset": b.x - a.x,
            "R1": flat(a.R),
            "R2": flat(b.R),
            "com1": a.com,
            "com2": b.com,
            "theta1": a.shape.values,
            "theta2": b.shape.values,
        }
        for name, value in values.items():
            p[s.at[name]] = value
        self.parameters = p
        n = layout.geometry
        self.shift = np.zeros(n)
        self.shift[layout.at["r"]] = 1e-12
        self.tolerance = np.full(n, TOLERANCE)

    def _p(self, eps: float) -> np.ndarray:
        self.parameters[self.kernel.symbols.at["eps"]] = eps
        return self.parameters

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        return self.kernel.call(z, self._p(eps), eps > 0)[0]

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        F, J = self.kernel.call(z, self._p(eps), eps > 0)
        return F, J

    def limit(self, dz: np.ndarray) -> float:
        """A closest point moves by at most the smaller body's size at once."""
        return float(min(1.0, 1.0 / max(np.max(np.abs(dz[self.layout.at["r"]])), 1e-300)))

    def gap(self, z: np.ndarray) -> float:
        return float(self.kernel.report(z, self.parameters)[0])

    def points(self, z: np.ndarray) -> ClosestPoints:
        d, r1, r2, n = (np.asarray(v).ravel() for v in self.kernel.report(z, self.parameters))
        return ClosestPoints(float(d[0]), self.a.x + r1, self.b.x + r2, n)

    def certified(self, z: np.ndarray) -> bool:
        """Multipliers of the right sign: the normal points out of A and into B."""
        at = self.layout.at
        signs = np.concatenate([self.kernel.signs[0] * z[at["l"]], self.kernel.signs[1] * z[at["k"]]])
        return bool(np.all(signs >= -1e-9))

    def starts(self, n: np.ndarray) -> list[np.ndarray]:
        """Unknowns from a direction, the best guess first.

        On a flat face the support point is an arbitrary corner; the other body's support point,
        moved across the gap, is then the better closest point.
        """
        support_b = self.b.support(-n[None])[0]
        if self.layout.known_normal:
            return [self._start(n, support_b, support_b)]
        support_a = self.a.support(n[None])[0]
        across = (n @ (support_b - support_a)) * n
        guesses = [
            self._start(n, a, a + across)
            for a in (support_a, support_b - across, (support_a + support_b - across) / 2)
        ]
        return sorted(guesses, key=lambda z: float(np.linalg.norm(self.residual(z, 0.0))))

    def _start(self, n: np.ndarray, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        at = self.layout.at
        z = np.zeros(self.layout.geometry)
        if self.layout.known_normal:
            z[at["r"]] = (point_b - self.b.x) / self.length
        else:
            z[at["r"]] = (point_a - self.a.x) / self.length
            z[at["D"]] = n @ (point_b - point_a)
            z[at["n"]] = n
            z[at["l"]] = multipliers(self.a, point_a, n)
        z[at["k"]] = multipliers(self.b, point_b, -n)
        return z


def multipliers(body: Placed, point: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Multipliers with sum_i l_i grad f_i = n as nearly as may be, small where a constraint is slack."""
    gradients, slack = _gradients(body.shape)(body.R.T @ (point - body.x) + body.com, body.shape.values)
    gradients, slack = np.asarray(gradients), np.asarray(slack).ravel()
    size = body.shape.size if np.isfinite(body.shape.size) else 1.0
    weight = np.diag(1e-6 + np.maximum(slack, 0) / size)
    stacked = np.vstack([gradients, weight])
    right = np.concatenate([body.R.T @ n, np.zeros(slack.size)])
    return np.asarray(np.linalg.lstsq(stacked, right, rcond=None)[0])


def separation(a: Placed, b: Placed, directions: np.ndarray) -> np.ndarray:
    """phi(n) for each row of `directions`."""
    towards_b = np.einsum("ij,ij->i", b.support(-directions), directions)
    if is_halfspace(a.shape):
        n, offset = halfspace_plane(a)
        return towards_b - np.where(directions @ n > 1 - 1e-12, offset, np.inf)
    return towards_b - np.einsum("ij,ij->i", a.support(directions), directions)


def halfspace_plane(a: Placed) -> tuple[np.ndarray, float]:
    """World normal and offset of a placed half-space: {n . x <= offset}."""
    theta = a.shape.values
    n = a.R @ theta[:-1]
    return n, float(theta[-1] + n @ a.x - theta[:-1] @ a.com)


def _separated(system: GeometrySystem, n: np.ndarray) -> np.ndarray | None:
    """Closest points found at once from a rough direction: phi has a single maximum where it is positive."""
    s = solve(system, system.starts(n)[0], OPTIONS, damped=False)
    if s.converged and system.certified(s.z) and system.gap(s.z) >= 0:
        return s.z
    return None


def _solve_geometry(system: GeometrySystem, n: np.ndarray, value: float) -> np.ndarray | None:
    """The closest points whose gap is phi(n) = value, where n is nearly the right direction."""
    slack = 1e-5 * system.length + system.a.shape.support_error + system.b.shape.support_error
    starts = system.starts(n)
    fallback = None
    for attempt in (solve, follow_path):
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


def _known_or_sampled(a: Placed, b: Placed) -> np.ndarray:
    if is_halfspace(a.shape):
        return halfspace_plane(a)[0][None]
    centre = (b.x + b.R @ (b.shape.interior - b.com)) - (a.x + a.R @ (a.shape.interior - a.com))
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


def _climb(a: Placed, b: Placed, n: np.ndarray, length: float) -> tuple[np.ndarray, float]:
    """Pattern search for a local maximum of phi: no derivatives, so edges and vertices do no harm."""
    value = float(separation(a, b, n[None])[0])
    if is_halfspace(a.shape):
        return n, value
    radius = 0.15
    pattern = _pattern(n.size)
    # sampled support points are corners of a fine polyhedron: there is no point in finer steps
    finest = 1e-7 if a.shape.support_exact and b.shape.support_exact else 1e-2
    for _ in range(CLIMB_STEPS):
        basis = np.linalg.svd(n[None])[2][1:]
        around = n + radius * pattern @ basis
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        phi = separation(a, b, around)
        k = int(np.argmax(phi))
        gain = phi[k] - value
        if gain > 0:
            n, value = around[k], float(phi[k])
        if gain < 1e-2 * radius**2 * length:
            radius *= 0.4
        if radius < finest:
            break
    return n, value


@lru_cache
def _pattern(dim: int) -> np.ndarray:
    if dim == 2:
        return np.array([[-1.0], [1.0]])
    angle = 2 * np.pi * np.arange(8) / 8
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    return np.vstack([ring, 0.5 * ring @ np.array([[0.92, 0.38], [-0.38, 0.92]])])


class _Key:
    """Two shapes as a cache key: only their structures count."""

    def __init__(self, first: Shape, second: Shape) -> None:
        self.first, self.second = first, second
        sizes = (first.values.size, second.values.size)
        self.key = (first.dim, first.structure, second.structure, sizes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class _GeometryKernel:
    def __init__(self, first: Shape, second: Shape) -> None:
        self.kind = PairKind(first, second, components=(), moves=(False, False))
        self.symbols = Symbols(self.kind)
        self.exact = self._function(smooth=False)
        self._smooth: ca.Function | None = None
        self.signs = (sign_mask(first) if not is_halfspace(first) else np.zeros(0), sign_mask(second))

    def _function(self, smooth: bool) -> ca.Function:
        s = self.symbols
        c = closest_point(self.kind, s, smooth)
        z = s.u[: self.kind.layout.geometry]
        if not smooth:
            self.report = ca.Function("report", [z, s.parameters], [c.d, c.r1, c.r2, c.n])
        rows = ca.densify(c.rows)
        return ca.Function("geometry", [z, s.parameters], [rows, ca.densify(ca.jacobian(rows, z))])

    def call(self, z: np.ndarray, p: np.ndarray, smooth: bool) -> tuple[np.ndarray, np.ndarray]:
        if smooth and self._smooth is None:
            self._smooth = self._function(smooth=True)
        function = self._smooth if smooth else self.exact
        assert function is not None
        F, J = function(z, p)
        return np.asarray(F).ravel(), np.asarray(J)


@lru_cache(maxsize=256)
def _geometry_kernel(key: _Key) -> _GeometryKernel:
    return _GeometryKernel(key.first, key.second)


@lru_cache(maxsize=256)
def _gradients_by_structure(key: _ShapeKey) -> ca.Function:
    shape = key.shape
    x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
    columns, slack = [], []
    for c in shape.constraints(x, theta):
        if isinstance(c, Cone):
            columns += [-ca.gradient(c.t, x), ca.jacobian(c.u, x).T]
            slack += [c.t - ca.sqrt(ca.sumsqr(c.u))] * (1 + c.u.numel())
        else:
            columns.append(ca.gradient(c.f, x))
            slack.append(c.bound - ca.fabs(c.f) if isinstance(c, Slab) else -c.f)
    return ca.Function("gradients", [x, theta], [ca.densify(ca.horzcat(*columns)), ca.vertcat(*slack)])


class _ShapeKey:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.key = (shape.dim, shape.structure, shape.values.size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ShapeKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _gradients(shape: Shape) -> ca.Function:
    return _gradients_by_structure(_ShapeKey(shape))
