"""Ray casting from an interior point, by the gauge of each constraint.

From a point o inside the body, the ray o + r d leaves the constraint f(x) <= 0 at r(d); the gauge is

    s(d) = 1 / r(d),      s = 0 where the ray never leaves,

positively homogeneous in d. The gauge of the body is the largest of its constraints' gauges, and
its boundary point along d is o + d / s(d). Affine, quadratic and cone constraints have a closed
form; for any other convex f the root of the perspective

    h(s) = s f(o + d/s),      convex and decreasing in s,      h' = f - r grad f . d <= f(o) < 0,

is found by Newton's method, which converges from the side h > 0 without a line search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.shapes.sampled.evaluation import Allowance, Pointwise
from implicit_geom.shapes.shape import ConeConstraint, Inequality, Shape, Slab

TINY = 1e-30  # keeps the square root of a cone differentiable at its apex
KINKED = (ca.OP_FABS, ca.OP_SIGN, ca.OP_FMIN, ca.OP_FMAX, ca.OP_IF_ELSE_ZERO)
FAR = 1e-13  # gauge times body length below which a ray counts as never leaving
RAY = 50  # instructions that a ray takes beside its constraints
CLOSE = 1e-9  # relative step after which the next one, quadratically smaller, would be below rounding
PATIENCE = 4  # steps of Newton's method alone
MAX_NEWTON = 200  # polynomials of degree p approach from far away by a factor (1 - 1/p) a step

Gauge = Callable[[np.ndarray], np.ndarray]


def columns(shape: Shape, x: ca.SX, *, smoothing: float = 0.0) -> list[tuple[ca.SX, Any]]:
    """Each constraint as f(x) <= 0 for the shape's own numbers, a slab as two; cones with their parts."""
    theta = ca.SX(ca.DM(shape.values))
    found: list[tuple[ca.SX, Any]] = []
    for c in shape.constraints(x, theta):
        if isinstance(c, Inequality):
            found.append((c.f, None))
        elif isinstance(c, Slab):
            found += [(c.f - c.bound, None), (-c.f - c.bound, None)]
        elif isinstance(c, ConeConstraint):
            found.append((ca.sqrt(ca.sumsqr(c.u) + max(TINY, smoothing**2)) - c.t, c))
    return found


class Rays:
    """Gauge, values and gradients of a shape's constraints about the interior point `origin`."""

    def __init__(
        self, shape: Shape, origin: np.ndarray, length: float, allowed: Allowance | None = None
    ) -> None:
        self.origin = np.asarray(origin, float)
        self.allowed = allowed or Allowance()
        self.length = length
        x = ca.SX.sym("x", shape.dim)
        parts = columns(shape, x)
        f = ca.vertcat(*[e for e, _ in parts])
        self.count = len(parts)
        self.dim = shape.dim
        self._values = ca.Function("f", [x], [f])
        self._gradients = ca.Function("g", [x], [ca.reshape(ca.jacobian(f, x).T, -1, 1)])
        self.all_affine = all(c is None and not kinked(e, x) and ca.is_linear(e, x) for e, c in parts)
        self.kinked = any(c is None and kinked(e, x) for e, c in parts)
        self._gauges = [self._gauge_of(e, cone, x) for e, cone in parts]

    def gauge(self, directions: np.ndarray) -> np.ndarray:
        """Gauge of every constraint in 1/m for |d| = 1; (N, dim) -> (N, m)."""
        self.allowed.spend(RAY * len(directions))
        return np.column_stack([g(directions) for g in self._gauges])

    def cast(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Boundary points and the constraint that each ray leaves first; (N, dim), (N,)."""
        s = self.gauge(directions)
        first = np.argmax(s, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.origin + directions / s.max(axis=1)[:, None], first

    def values(self, points: np.ndarray) -> np.ndarray:
        """Every constraint's f; (N, dim) -> (N, m)."""
        return np.asarray(self._values(points.T)).reshape(self.count, -1).T

    def gradients(self, points: np.ndarray) -> np.ndarray:
        """Every constraint's gradient; (N, dim) -> (N, m, dim)."""
        flat = np.asarray(self._gradients(points.T)).reshape(self.count * self.dim, -1).T
        return flat.reshape(-1, self.count, self.dim)

    def _gauge_of(self, f: ca.SX, cone: ConeConstraint | None, x: ca.SX) -> Gauge:
        at = self.origin
        if cone is not None:
            u0, U = _affine(cone.u, x, at)
            t0, T = _affine(cone.t, x, at)
            return lambda d: _cone_gauge(u0, U, t0, T, d)
        smooth = not kinked(f, x)  # CasADi calls |x| quadratic: its second derivative is zero
        if smooth and ca.is_linear(f, x):
            f0, g = _affine(f, x, at)
            return lambda d: np.maximum(d @ g.ravel(), 0.0) / -f0[0]
        if smooth and ca.is_quadratic(f, x):
            f0, g = _affine(f, x, at)
            H = np.array(ca.DM(ca.substitute(ca.hessian(f, x)[0], x, ca.DM(at))))
            return lambda d: _quadratic_gauge(float(f0[0]), d @ g.ravel(), np.einsum("ni,ij,nj->n", d, H, d))
        d = ca.SX.sym("d", x.shape[0])
        along = Pointwise(
            ca.Function("along", [x, d], [ca.densify(ca.vertcat(f, ca.jtimes(f, x, d)))]), self.allowed
        )
        return lambda directions: self._newton(along, directions)

    def _newton(self, along: Pointwise, directions: np.ndarray) -> np.ndarray:
        norm = np.linalg.norm(directions, axis=1)
        unit = directions / norm[:, None]
        s = np.full(len(unit), 1.0 / self.length)
        outside, inside = np.zeros_like(s), np.full_like(s, np.inf)  # bracket: h > 0 and h < 0
        todo, last = np.arange(len(s)), np.full_like(s, np.inf)
        for step in range(MAX_NEWTON):
            now = s[todo]
            points = self.origin + unit[todo] / now[:, None]
            f, df = along(points, unit[todo]).T
            with np.errstate(all="ignore"):
                new = now - now * f / (f - df / now)
            bad = ~np.isfinite(f) | ~np.isfinite(new)
            high = bad | (f > 0)  # overflow happens far outside only
            outside[todo[high]] = np.maximum(outside[todo[high]], now[high])
            inside[todo[~high]] = np.minimum(inside[todo[~high]], now[~high])
            upper = inside[todo]
            bisect = np.where(
                np.isfinite(upper), np.sqrt(now * np.where(np.isfinite(upper), upper, 1)), 2 * now
            )
            new = np.where(bad, bisect, np.maximum(new, now / 64))
            if step >= PATIENCE:  # high powers: halve the bracket while Newton's steps do not get shorter
                middle = np.sqrt(now * np.where(np.isfinite(upper), upper, 0))
                slow = high & ~bad & (new < middle) & (new - now > last[todo] / 2) & (new - now > CLOSE * new)
                new = np.where(slow, middle, new)
            last[todo] = np.abs(new - now)
            s[todo] = new
            gone = new * self.length < FAR
            s[todo[gone]] = 0.0
            done = gone | (np.abs(new - now) <= CLOSE * new) | (high & ~bad & (new <= now))
            todo = todo[~done]
            if todo.size == 0:
                break
        return s * norm


def kinked(f: ca.SX, x: ca.SX) -> bool:
    """Whether an expression holds an operation without a derivative somewhere."""
    function = ca.Function("f", [x], [f])
    return any(function.instruction_id(k) in KINKED for k in range(function.n_instructions()))


def _affine(e: ca.SX, x: ca.SX, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Value (k,) and Jacobian (k, dim) at a point."""
    f = ca.Function("f", [x], [e, ca.jacobian(e, x)])
    value, jacobian = f(at)
    return np.array(value).ravel(), np.array(jacobian)


def _quadratic_gauge(c: float, b: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Largest root of c s^2 + b s + a/2 = 0, c < 0, a >= 0; written without cancellation."""
    root = np.sqrt(np.maximum(b * b - 2 * c * a, 0.0))
    q = np.abs(b) + root
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(b >= 0, q / (-2 * c), np.where(q > 0, a / q, 0.0))
    return np.maximum(s, 0.0)


def _cone_gauge(u0: np.ndarray, U: np.ndarray, t0: np.ndarray, T: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Largest root of |u0 s + U d|^2 = (t0 s + T d)^2: the first nappe met from the inside."""
    u, t = d @ U.T, d @ T.ravel()
    lead = float(u0 @ u0 - t0[0] ** 2)
    half = u @ u0 - t0[0] * t
    rest = np.einsum("ij,ij->i", u, u) - t * t
    disc = half * half - lead * rest
    root = np.sqrt(np.maximum(disc, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        stable = np.where(half >= 0, (half + root) / -lead, rest / (root - half))
    return np.where(disc < 0, 0.0, np.maximum(np.nan_to_num(stable), 0.0))


def crossing(gauge: Gauge, start: np.ndarray, end: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Fraction of the way from start to end where the gauges of constraints i and j are equal.

    `i` leads at the start and `j` at the end. False position with the Illinois correction, all
    rows together; (N, dim), (N, dim), (N,), (N,) -> (N,).
    """
    rows = np.arange(len(start))

    def lead(t: np.ndarray) -> np.ndarray:
        s = gauge(start + t[:, None] * (end - start))
        return np.asarray(s[rows, i] - s[rows, j])

    a, b = np.zeros(len(start)), np.ones(len(start))
    fa, fb = lead(a), lead(b)
    side = np.zeros(len(start), int)
    for _ in range(14):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(fa - fb > 0, (a * fb - b * fa) / (fb - fa), (a + b) / 2)
        t = np.clip(t, a, b)
        ft = lead(t)
        up = ft > 0
        fb = np.where(up & (side == 1), fb / 2, fb)
        fa = np.where(~up & (side == -1), fa / 2, fa)
        a, fa = np.where(up, t, a), np.where(up, ft, fa)
        b, fb = np.where(up, b, t), np.where(up, fb, ft)
        side = np.where(up, 1, -1)
    return t
