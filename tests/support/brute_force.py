"""Support functions written from the sets' definitions, apart from `shapes`, and brute force on top of them.

A body is a pair (support, pose): support(n) gives the points farthest along each row of n in the
shape's own frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

Support = Callable[[np.ndarray], np.ndarray]


def _unit(v: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(norm > 0, norm, 1.0)


def ellipsoid(*axes: float) -> Support:
    a = np.array(axes)
    return lambda n: a * _unit(a * n)


def superellipsoid(*axes_p: float) -> Support:
    """max n.x over |x/a|^p <= 1: x = a sign(n) |a n|^(q-1) / |a n|_q^(q-1), 1/p + 1/q = 1."""
    a, p = np.array(axes_p[:-1]), axes_p[-1]
    q = p / (p - 1)

    def support(n: np.ndarray) -> np.ndarray:
        y = np.abs(a * n)
        y = y / y.max(axis=1, keepdims=True)
        return a * np.sign(n) * y ** (q - 1) / np.sum(y**q, axis=1, keepdims=True) ** (1 / p)

    return support


def cylinder(r: float, length: float) -> Support:
    return lambda n: np.column_stack([r * _unit(n[:, :2]), length / 2 * np.sign(n[:, 2])])


def capsule(r: float, length: float) -> Support:
    def support(n: np.ndarray) -> np.ndarray:
        x = r * _unit(n)
        x[:, 2] += length / 2 * np.sign(n[:, 2])
        return x

    return support


def cone(r: float, height: float) -> Support:
    """The hull of the base circle and the apex."""

    def support(n: np.ndarray) -> np.ndarray:
        rim = np.column_stack([r * _unit(n[:, :2]), np.zeros(len(n))])
        apex = np.array([0, 0, height])
        return np.where((n @ apex > np.sum(n * rim, axis=1))[:, None], apex, rim)

    return support


def polytope(vertices: np.ndarray) -> Support:
    v = np.asarray(vertices, float)
    return lambda n: v[np.argmax(n @ v.T, axis=1)]


def box(*half: float) -> Support:
    a = np.array(half)
    return lambda n: a * np.where(n < 0, -1.0, 1.0)


def half_ellipsoid(a: float, b: float, c: float) -> Support:
    """The part z <= 0 of an ellipsoid: where n points up the farthest point is on the rim of the lid."""
    axes = np.array([a, b, c])

    def support(n: np.ndarray) -> np.ndarray:
        m = np.column_stack([n[:, :2], np.minimum(n[:, 2], 0.0)])
        return axes * _unit(axes * m)

    return support


def text_surface(a: float, b: float) -> Support:
    """(x/a)^2 + (y/b)^4 + z^2 <= 1: with multiplier t, x and z go as 1/t, y as its cube root.

    u = t^(-2/3) solves the cubic A u^3 + B u^2 = 1; Newton's method from above converges monotonically.
    """

    def support(n: np.ndarray) -> np.ndarray:
        A = ((a * n[:, 0]) ** 2 + n[:, 2] ** 2) / 4
        B = np.abs(b * n[:, 1] / 4) ** (4 / 3)
        u = np.minimum(np.maximum(A, 1e-30) ** (-1 / 3), np.maximum(B, 1e-30) ** (-1 / 2))
        for _ in range(8):
            u = u - (A * u**3 + B * u**2 - 1) / (3 * A * u**2 + 2 * B * u)
        t = u**-1.5
        return np.column_stack(
            [a**2 * n[:, 0] / (2 * t), b * np.cbrt(b * n[:, 1] / (4 * t)), n[:, 2] / (2 * t)]
        )

    return support


@dataclass(frozen=True)
class Placed:
    """A support function at a pose."""

    own: Support
    x: np.ndarray
    R: np.ndarray

    def __call__(self, n: np.ndarray) -> np.ndarray:
        return self.own(n @ self.R) @ self.R.T + self.x


def separation(a: Placed, b: Placed, n: np.ndarray) -> np.ndarray:
    """phi(n) = min_B n.b - max_A n.a for each row of n."""
    return np.sum(n * (b(-n) - a(n)), axis=1)


def brute_distance(a: Placed, b: Placed, tolerance: float = 1e-10) -> tuple[float, float]:
    """Lower and upper bound on the distance of two sets that are apart.

    Fully corrective Frank-Wolfe: the shortest vector in the hull of the support points of B - A met
    so far is an upper bound, the support plane across it a lower one.
    """
    x = b.x - a.x
    points: list[np.ndarray] = []
    lower, upper = -np.inf, np.inf
    for _ in range(400):
        n = x / np.linalg.norm(x)
        s = (b(-n[None]) - a(n[None]))[0]
        lower = max(lower, float(n @ s))
        if upper - lower < tolerance:
            break
        points.append(s)
        P = np.array(points)
        # the shortest vector in a hull: min |P' l|^2, sum l = 1, as a non-negative least-squares problem
        scale = np.linalg.norm(P, axis=1).max()
        weights = nnls(np.vstack([P.T / scale, np.ones(len(P))]), np.append(np.zeros(x.size), 1.0))[0]
        keep = weights > 0
        x = weights @ P / weights.sum()
        upper = min(upper, float(np.linalg.norm(x)))
        points = [p for p, k in zip(points, keep) if k]
    return lower, upper


def sampled_separation(a: Placed, b: Placed, rng: np.random.Generator, count: int = 2000) -> float:
    """The largest phi over random directions, refined around the best ones."""
    dim = a.x.size
    n = _unit(rng.normal(size=(count, dim)))
    phi = separation(a, b, n)
    best = n[np.argsort(-phi)[:20]]
    value = float(phi.max())
    radius = 0.2
    for _ in range(25):
        cloud = _unit(np.repeat(best, 10, axis=0) + radius * rng.normal(size=(10 * len(best), dim)))
        cloud = np.vstack([best, cloud])
        phi = separation(a, b, cloud)
        order = np.argsort(-phi)
        best, value = cloud[order[:20]], max(value, float(phi[order[0]]))
        radius *= 0.6
    return value
