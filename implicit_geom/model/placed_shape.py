"""A shape at a pose: support points, outward normals, and multipliers of a normal in its normal cone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from implicit_geom.machine.vectorized import ThreadSafeFunction
from implicit_geom.process.building import Kept
from implicit_geom.shapes.shape import ConeConstraint, Shape, Slab

TINY = 1e-30  # keeps a square root differentiable at zero
KINDS = 64  # pairs of kinds of shape whose functions are kept


@dataclass(frozen=True)
class PlacedShape:
    """A shape at a pose: centre x, rotation R, and the centre's place in the shape's frame."""

    shape: Shape
    x: np.ndarray
    R: np.ndarray
    com: np.ndarray

    def support(self, directions: np.ndarray) -> np.ndarray:
        """Support points in the world frame; (N, dim) -> (N, dim)."""
        return (self.shape.support(directions @ self.R) - self.com) @ self.R.T + self.x

    def from_centre(self, directions: np.ndarray, exact: bool = False) -> np.ndarray:
        """Support points relative to x, world axes, to rounding of the body's own size.

        exact   also of shapes whose support points are samples, in a time that is long
        """
        own = directions @ self.R
        points = self.shape.farthest_points(own) if exact else self.shape.support(own)
        return np.asarray((points - self.com) @ self.R.T)

    def violation(self, point: np.ndarray) -> float:
        """The largest constraint value at a world point, m; about its distance from the body."""
        return float(self.shape.violation((self.R.T @ (point - self.x) + self.com)[None])[0])

    @property
    def centre(self) -> np.ndarray:
        """A point inside the body, world frame."""
        return self.x + self.R @ (self.shape.interior - self.com)


def halfspace_plane(a: PlacedShape) -> tuple[np.ndarray, float]:
    """World normal and offset of a placed half-space: {n . x <= offset}."""
    theta = a.shape.values
    n = a.R @ theta[:-1]
    return n, float(theta[-1] + n @ a.x - theta[:-1] @ a.com)


def matched_support(a: PlacedShape, b: PlacedShape, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def outward_normals(body: PlacedShape, point: np.ndarray) -> np.ndarray:
    """Unit normals of the constraints at a point, world axes, their sum where violated first; (m, dim)."""
    gradients, slack, basis = constraint_gradients(body, point)
    each = (body.R @ gradients @ basis).T
    each = each / np.linalg.norm(each, axis=1, keepdims=True)
    together = np.maximum(-slack, 0) @ each
    norm = np.linalg.norm(together)
    return np.vstack([together / norm, each]) if norm > 0 else each


def constraint_gradients(body: PlacedShape, point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients by multiplier (dim, l), slack of each outward normal (m,), its multipliers (l, m)."""
    flat_gradients, slack, flat_basis = (
        out.copy()
        for out in _gradients(body.shape)(body.R.T @ (point - body.x) + body.com, body.shape.values)
    )
    basis = flat_basis.reshape(slack.size, -1).T
    return flat_gradients.reshape(basis.shape[0], -1).T, slack, basis


def multipliers(body: PlacedShape, point: np.ndarray, n: np.ndarray) -> np.ndarray:
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


_GRADIENTS: Kept[ThreadSafeFunction] = Kept(KINDS)


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
        if isinstance(c, ConeConstraint):
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
