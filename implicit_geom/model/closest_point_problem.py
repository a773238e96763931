"""The closest-point equations at given poses, ready for the Newton core."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from implicit_geom.equations.closest_point import is_halfspace, sign_mask
from implicit_geom.equations.thresholds import POINT_SHIFT
from implicit_geom.equations.unknowns import PairKind, Symbols, closest_point, flat
from implicit_geom.machine.vectorized import ThreadSafeFunction
from implicit_geom.process.building import Kept
from implicit_geom.process.lazy import cached_property
from implicit_geom.process.threads import BUILDING
from implicit_geom.shapes.shape import Cone, Shape, Slab

TOLERANCE = 1e-13  # on the closest-point rows, relative to the smaller body
TINY = 1e-30  # keeps a square root differentiable at zero
KINDS = 64  # pairs of kinds of shape whose functions are kept


@dataclass(frozen=True)
class ClosestPoints:
    """What `distance` found.

    gap                m, negative where the shapes overlap
    point_a, point_b   the closest point of each, world frame, m
    normal             unit vector from a to b, world frame
    """

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

    def violation(self, point: np.ndarray) -> float:
        """The largest constraint value at a world point, m; about its distance from the body."""
        return float(self.shape.violation((self.R.T @ (point - self.x) + self.com)[None])[0])

    @property
    def centre(self) -> np.ndarray:
        """A point inside the body, world frame."""
        return self.x + self.R @ (self.shape.interior - self.com)


def halfspace_plane(a: Placed) -> tuple[np.ndarray, float]:
    """World normal and offset of a placed half-space: {n . x <= offset}."""
    theta = a.shape.values
    n = a.R @ theta[:-1]
    return n, float(theta[-1] + n @ a.x - theta[:-1] @ a.com)


class GeometrySystem:
    """The closest-point rows at fixed poses as a system for the Newton core."""

    def __init__(self, a: Placed, b: Placed) -> None:
        self.a, self.b = a, b
        self.kernel = geometry_kernel(a.shape, b.shape)
        layout = self.kernel.kind.layout
        self.layout = layout
        smaller = min(a.shape.size, b.shape.size)
        self.length = smaller if np.isfinite(smaller) else 1.0
        s = self.kernel.symbols
        p = np.zeros(s.parameters.numel())
        values = {
            "h": 1.0,
            "L": self.length,
            "c": self.length,
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
        self.shift[layout.at["r"]] = POINT_SHIFT
        self.proximal = np.zeros(n)
        self.tolerance = np.full(n, TOLERANCE)

    def _p(self, eps: float) -> np.ndarray:
        self.parameters[self.kernel.symbols.at["eps"]] = eps
        return self.parameters

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        return self.kernel.call(z, self._p(eps), eps > 0)[0]

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        F, J = self.kernel.call(z, self._p(eps), eps > 0)
        return F, J

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        """A closest point moves by at most the smaller body's size at once."""
        dz = dz.copy()
        shorten(dz[None, self.layout.at["r"]])
        return dz

    def gap(self, z: np.ndarray) -> float:
        return float(self.kernel.report(z, self.parameters)[0][0])

    def points(self, z: np.ndarray) -> ClosestPoints:
        seen = self.kernel.report(z, self.parameters)[0].copy()
        r1, r2, n = seen[1:].reshape(3, -1)
        return ClosestPoints(float(seen[0]), self.a.x + r1, self.b.x + r2, n)

    def certified(self, z: np.ndarray) -> bool:
        """Multipliers of the right sign: the normal points out of A and into B."""
        at = self.layout.at
        signs = np.concatenate([self.kernel.signs[0] * z[at["l"]], self.kernel.signs[1] * z[at["k"]]])
        return bool(np.all(signs >= -1e-9))

    def starts(self, n: np.ndarray) -> Iterator[np.ndarray]:
        """Unknowns to start from, given nearly the right direction; the best guess first."""
        if not self.b.shape.bounded:
            support_a = self.a.support(n[None])[0]
            yield self._start(n, support_a, support_a + self.b.violation(support_a) * n)
            return
        support_b = self.b.support(-n[None])[0]
        if self.layout.known_normal:
            yield self._start(n, support_b, support_b)
            return
        if not self.a.shape.bounded:
            yield self._start(n, support_b - self.a.violation(support_b) * n, support_b)
            return
        yield self._start(n, *matched_support(self.a, self.b, n))
        support_a = self.a.support(n[None])[0]
        across = (n @ (support_b - support_a)) * n
        for point in (support_a, support_b - across, (support_a + support_b - across) / 2):
            yield self._start(n, point, point + across)

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


def matched_support(a: Placed, b: Placed, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of the two bodies' support sets along n that face each other across the gap.

    On a flat face or an edge the support point is not unique. Support points for directions round
    n span that face or edge; convex combinations of them with b - a along n are what is wanted.
    """
    from scipy.optimize import nnls

    around = n + _RING[n.size] @ np.linalg.svd(n[None])[2][1:]
    directions = np.vstack([n, around / np.linalg.norm(around, axis=1, keepdims=True)])
    from_a, from_b = a.support(directions), b.support(-directions)
    across = float(n @ (from_b[0] - from_a[0])) * n
    origin = from_a[0]
    size = max(float(np.ptp(from_a)), float(np.ptp(from_b)), float(np.linalg.norm(across)), 1e-300)
    columns = np.hstack([-(from_a - origin).T, (from_b - origin - across).T]) / size
    sums = np.kron(np.eye(2), np.ones(len(directions)))
    weights, _ = nnls(np.vstack([columns, sums]), np.concatenate([np.zeros(n.size), [1.0, 1.0]]))
    alpha, beta = np.split(weights, 2)
    return from_a.T @ alpha / alpha.sum(), from_b.T @ beta / beta.sum()


# Directions round a normal, in its tangent plane: a thousandth of a radian off reaches the corners
# of any face or edge and moves the support point of a smooth body by a thousandth of its size.
_ANGLES = 2 * np.pi * np.arange(16) / 16
_RING = {2: 1e-3 * np.array([[-1.0], [1.0]]), 3: 1e-3 * np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])}


def outward_normals(body: Placed, point: np.ndarray) -> np.ndarray:
    """Unit normals of the constraints at a point, world axes, their sum where violated first; (m, dim)."""
    gradients, slack, basis = constraint_gradients(body, point)
    each = (body.R @ gradients @ basis).T
    each = each / np.linalg.norm(each, axis=1, keepdims=True)
    together = np.maximum(-slack, 0) @ each
    norm = np.linalg.norm(together)
    return np.vstack([together / norm, each]) if norm > 0 else each


def constraint_gradients(body: Placed, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients by multiplier (dim, l), slack of each outward normal (m,), its multipliers (l, m)."""
    flat_gradients, slack, flat_basis = (
        out.copy()
        for out in _gradients(body.shape)(body.R.T @ (point - body.x) + body.com, body.shape.values)
    )
    basis = flat_basis.reshape(slack.size, -1).T
    return flat_gradients.reshape(basis.shape[0], -1).T, slack, basis


def multipliers(body: Placed, point: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Multipliers of the right sign with sum_i l_i grad f_i = n as nearly as may be, small where slack.

    Each column of `basis` turns the weight of one outward normal into multipliers; weights >= 0.
    """
    gradients, slack, basis = constraint_gradients(body, point)
    size = body.shape.size if np.isfinite(body.shape.size) else 1.0
    weight = np.diag(1e-6 + np.maximum(slack, 0) / size)
    right = np.concatenate([body.R.T @ n, np.zeros(slack.size)])
    return np.asarray(basis @ _nonnegative(np.vstack([gradients @ basis, weight]), right))


def _nonnegative(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Least squares with x >= 0."""
    if A.shape[1] == 1:  # a single smooth surface, without the time that scipy.optimize takes to import
        return np.maximum(A.T @ b / np.sum(A * A), 0.0)
    from scipy.optimize import nnls

    return np.asarray(nnls(A, b)[0])


def shorten(steps: np.ndarray) -> None:
    """Shorten each row to length one, in place: a Newton step along a flat face has no scale."""
    length = np.linalg.norm(steps, axis=-1, keepdims=True)
    steps /= np.maximum(length, 1.0)


class GeometryKernel:
    """The closest-point functions of two kinds of shape."""

    def __init__(self, first: Shape, second: Shape) -> None:
        self.kind = PairKind(first, second, components=(), moves=(False, False))
        self.symbols = s = Symbols(self.kind)
        self._exact = self._function(smooth=False)
        c = closest_point(self.kind, s, smooth=False)
        seen = ca.densify(ca.vertcat(c.d, c.r1, c.r2, c.n))
        self.report = ThreadSafeFunction(ca.Function("report", [self._unknowns, s.parameters], [seen]))
        self.signs = (sign_mask(first) if not is_halfspace(first) else np.zeros(0), sign_mask(second))

    @property
    def _unknowns(self) -> ca.SX:
        return self.symbols.u[: self.kind.layout.geometry]

    @cached_property
    def _smooth(self) -> ThreadSafeFunction:
        """The smoothed functions, built only when a search needs the path."""
        with BUILDING:
            return self._function(smooth=True)

    def _function(self, smooth: bool) -> ThreadSafeFunction:
        z = self._unknowns
        rows = ca.densify(closest_point(self.kind, self.symbols, smooth).rows)
        # the transpose, because NumPy reads CasADi's columns as rows
        jacobian = ca.densify(ca.jacobian(rows, z).T)
        return ThreadSafeFunction(ca.Function("geometry", [z, self.symbols.parameters], [rows, jacobian]))

    def call(self, z: np.ndarray, p: np.ndarray, smooth: bool) -> tuple[np.ndarray, np.ndarray]:
        F, J = (self._smooth if smooth else self._exact)(z, p)
        return F.copy(), J.reshape(z.size, z.size).copy()


_KERNELS: Kept[GeometryKernel] = Kept(KINDS)
_GRADIENTS: Kept[ThreadSafeFunction] = Kept(KINDS)


def geometry_kernel(first: Shape, second: Shape) -> GeometryKernel:
    """The kernel of two kinds of shape, built on first use and kept."""
    return _KERNELS.get((shape_key(first), shape_key(second)), lambda: GeometryKernel(first, second))


def shape_key(shape: Shape) -> Hashable:
    """Shapes of one key share their symbolic constraints."""
    return (shape.dim, shape.structure, shape.values.size)


def _gradients(shape: Shape) -> ThreadSafeFunction:
    """(point, theta) -> gradients by multiplier, slack of each outward normal, its multipliers (`basis`)."""
    return _GRADIENTS.get(shape_key(shape), lambda: ThreadSafeFunction(_gradient_function(shape)))


def _gradient_function(shape: Shape) -> ca.Function:
    x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
    columns, slack, basis = [], [], []
    for c in shape.constraints(x, theta):
        if isinstance(c, Cone):
            radius = ca.sqrt(ca.sumsqr(c.u) + TINY)
            columns += [-ca.gradient(c.t, x), ca.jacobian(c.u, x).T]
            slack.append(c.t - radius)
            basis.append(ca.vertcat(1, c.u / radius))
        else:
            columns.append(ca.gradient(c.f, x))
            slack.append(c.bound - ca.fabs(c.f) if isinstance(c, Slab) else -c.f)
            basis.append(ca.if_else(c.f < 0, -1, 1) if isinstance(c, Slab) else ca.SX(1))
    outputs = [ca.horzcat(*columns), ca.vertcat(*slack), ca.diagcat(*basis)]
    return ca.Function("gradients", [x, theta], [ca.densify(o) for o in outputs])
