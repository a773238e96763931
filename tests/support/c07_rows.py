"""C07's own contact conditions (6), (9), (19), (22), and its friction (5), (11), in NumPy and as printed.

Nothing here is used by the simulator, and nothing of it is used here. Bodies are lists of convex functions in
the paper's own scale: an ellipsoid is (x/a)^2 + (y/b)^2 + (z/c)^2 - 1 [C07, section V-C]. Every function
returns what is left of its equations; a complementarity 0 <= a _|_ b >= 0 leaves min(a, b).

Errata: the signs that (22) lacks are those of (9), and its brackets are unit vectors. The minus sign of the
friction law covers all of its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

Function = Callable[[np.ndarray], float]
Gradient = Callable[[np.ndarray], np.ndarray]
Surface = tuple[Function, Gradient]  # f <= 0 inside, in the body's own axes

ACTIVE = 1e-7  # |f| of a constraint that may carry a multiplier


def quadric(*axes: float) -> list[Surface]:
    """A disc, sphere, ellipse or ellipsoid; an axis that is infinite makes it a cylinder."""
    a = np.array(axes)
    return [(lambda x: float(np.sum((x / a) ** 2)) - 1, lambda x: 2 * x / a**2)]


def plane(normal: Sequence[float], offset: float) -> list[Surface]:
    """The half-space n . x <= offset."""
    n = np.array(normal, float)
    return [(lambda x: float(n @ x) - offset, lambda x: n)]


def slabs(*half: float) -> list[Surface]:
    """A box, or a rectangle, with these half lengths: two planes an axis."""
    axes = np.eye(len(half))
    return [s for k, h in enumerate(half) for sign in (1, -1) for s in plane(sign * axes[k], h)]


def lens(radius: float, apart: float) -> list[Surface]:
    """Two balls with centres at z = -apart and z = apart."""
    centres = (np.array((0, 0, -apart)), np.array((0, 0, apart)))
    return [
        (lambda x, c=c: float((x - c) @ (x - c)) / radius**2 - 1, lambda x, c=c: 2 * (x - c) / radius**2)
        for c in centres
    ]


@dataclass
class Body:
    """Convex functions at a pose: x_W = centre + R x."""

    surfaces: list[Surface]
    centre: np.ndarray
    R: np.ndarray

    def values(self, a: np.ndarray) -> np.ndarray:
        """f_j at a point of the world."""
        return np.array([f(self.R.T @ (a - self.centre)) for f, _ in self.surfaces])

    def directions(self, a: np.ndarray) -> np.ndarray:
        """grad f_j / |grad f_j| in world axes, a row each."""
        rows = np.array([self.R @ g(self.R.T @ (a - self.centre)) for _, g in self.surfaces])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def row_6(one: Body, two: Body, a1: np.ndarray, a2: np.ndarray, p_n: float) -> np.ndarray:
    """0 <= lambda _|_ f(a2) >= 0 and 0 <= lambda _|_ g(a1) >= 0; bodies of one surface."""
    (f,), (g,) = one.values(a2), two.values(a1)
    return np.array([min(p_n, f), min(p_n, g)])


def row_9(one: Body, two: Body, a1: np.ndarray, a2: np.ndarray) -> np.ndarray:
    """Closest points of bodies of one surface, by unit vectors."""
    (n_f,), (n_g,) = one.directions(a1), two.directions(a2)
    apart = a1 - a2
    return np.concatenate([apart + np.linalg.norm(apart) * n_f, n_f + n_g, one.values(a1), two.values(a2)])


def row_19(one: Body, two: Body, a1: np.ndarray, a2: np.ndarray, p_n: float) -> np.ndarray:
    """0 <= lambda _|_ max f_j(a2) >= 0 and 0 <= lambda _|_ max g_j(a1) >= 0."""
    return np.array([min(p_n, one.values(a2).max()), min(p_n, two.values(a1).max())])


def row_22(one: Body, two: Body, a1: np.ndarray, a2: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Closest points of intersections, by unit vectors; n, from body 1 to body 2, decides the multipliers.

    The last rows are f_k(a1) and g_k(a2) of the active constraints, and what others exceed zero by.
    """
    f, g = one.values(a1), two.values(a2)
    n_f = bracket(one.directions(a1)[np.abs(f) < ACTIVE], n)
    n_g = bracket(two.directions(a2)[np.abs(g) < ACTIVE], -n)
    apart = a1 - a2
    surfaces = [np.where(np.abs(v) < ACTIVE, v, np.maximum(v, 0)) for v in (f, g)]
    inside = [min(f.max(), 0.0), min(g.max(), 0.0)]  # (a point with no active constraint)
    return np.concatenate([apart + np.linalg.norm(apart) * n_f, n_f + n_g, *surfaces, inside])


def bracket(directions: np.ndarray, n: np.ndarray) -> np.ndarray:
    """d_k1 + sum of l_k d_k over the other active constraints, l_k >= 0, as a unit vector.

    Multipliers are those that come nearest to n; the largest is set to 1, as the paper does.
    """
    if not len(directions):
        return np.zeros_like(n)
    weights = nnls(directions.T, n)[0]
    if not np.any(weights):
        return np.zeros_like(n)
    weights /= weights.max()
    found = weights @ directions
    return np.asarray(found / np.linalg.norm(found))


def friction_rows(p_n: float, p: np.ndarray, v: np.ndarray, mu: float, e: np.ndarray) -> np.ndarray:
    """(5) and (11): e^2 mu p_n v + p sigma = 0 of each component, 0 <= sigma _|_ zeta >= 0.

    p and v are (t, o, r); a component with e = 0 has no impulse. sigma = |e v| is the multiplier.
    """
    kept = e > 0
    sigma = float(np.linalg.norm(e * v))
    zeta = (mu * p_n) ** 2 - float(np.sum((p[kept] / e[kept]) ** 2))
    return np.array([*(e**2 * mu * p_n * v + p * sigma), min(sigma, zeta)])
