"""Volume, centre of mass and inertia of a bounded convex body by adaptive quadrature.

With r(d) = 1/s(d) the distance from an interior point o to the boundary along the unit vector d,

    V = int r^3/3 dS,    int y dV = int d r^4/4 dS,    int y y^T dV = int d d^T r^5/5 dS,    y = x - o,

over the unit sphere (r^2/2, r^3/3, r^4/4 over the circle in the plane). r is smooth except where
the active constraint changes. The integral over the polar angle is split exactly at those kinks,
found as roots; then both it and the integral over the azimuth are Gauss-Kronrod with bisection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.sampled.rays import Rays, crossing

TOLERANCE = 1e-10  # error per panel relative to the whole; the sum stays below 1e-8
SHORTEST = 1e-9  # panels below this many radians are accepted as they are
MAX_LEVELS = 40
END = 1 - 1e-6  # where the ends of a panel are probed; a cut is exact to much less

# Gauss-Kronrod rule with 7 and 15 nodes on [-1, 1]
NODES = np.array(
    [0.991455371120812639, 0.949107912342758524, 0.864864423359769072,
     0.741531185599394439, 0.586087235467691130, 0.405845151377397166,
     0.207784955007898467, 0.0]
)  # fmt: skip
KRONROD = np.array(
    [0.022935322010529224, 0.063092092629978553, 0.104790010322250183,
     0.140653259715525918, 0.169004726639267902, 0.190350578064785409,
     0.204432940075298892, 0.209482141084727828]
)  # fmt: skip
GAUSS = np.array([0.129484966168869693, 0.279705391489276667,
                  0.381830050505118944, 0.417959183673469387])  # fmt: skip
T15 = np.concatenate([-NODES[:-1], NODES[::-1]])
K15 = np.concatenate([KRONROD[:-1], KRONROD[::-1]])
G15 = np.zeros(15)
G15[1::2] = np.concatenate([GAUSS[:-1], GAUSS[::-1]])
# the 14th divided difference, zero for polynomials below that degree, in the size of K15 - G15:
# a second witness, since a kink at an unlucky place can make K15 and G15 agree by accident
N15 = np.array([1 / np.prod([t - u for u in T15 if u != t]) for t in T15])
N15 *= np.linalg.norm(K15 - G15) / np.linalg.norm(N15)
# both ends are looked at too, without weight: near a corner of the body a third constraint may be
# active between the end of a panel and its first node only
PROBES = np.concatenate([[-END], T15, [END]])

# (rows, angles) -> values (N, K), active constraint (N,)
Integrand = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
# (rows, start, end, i, j) -> angle of the change
Split = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Moments:
    """Volume, centre of mass and mean of (x - com)(x - com)^T at uniform density."""

    volume: float
    com: np.ndarray
    second: np.ndarray

    def inertia(self, mass: float) -> Any:
        """mass * (trace(S) I - S) for the mean square S; mass * trace(S) in the plane."""
        if len(self.com) == 2:
            return float(mass * np.trace(self.second))
        return mass * (np.trace(self.second) * np.eye(3) - self.second)


def moments(rays: Rays) -> Moments:
    """Mass properties of the body seen from an interior point, to a relative 1e-8."""
    dim = rays.dim
    scale = float(np.mean(1 / rays.gauge(np.vstack([np.eye(dim), -np.eye(dim)])).max(axis=1)))
    weight = scale ** -np.array([dim] + [dim + 1] * dim + [dim + 2] * (dim * (dim + 1) // 2), float)

    if dim == 2:
        total = integrate(*_circle(rays, weight), rows=1, panels=np.linspace(0, 2 * np.pi, 9))[0]
    else:

        def meridian(_: np.ndarray, phi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            f, split = _meridians(rays, weight, phi)
            panels = np.linspace(0, np.pi, 3)
            return integrate(f, split, rows=len(phi), panels=panels), np.zeros(len(phi), int)

        total = integrate(meridian, None, rows=1, panels=np.linspace(0, 2 * np.pi, 5))[0]
    total = total / weight
    volume, first = float(total[0]), total[1 : 1 + dim] / total[0]
    second = np.zeros((dim, dim))
    second[np.triu_indices(dim)] = total[1 + dim :] / total[0]
    second = second + np.triu(second, 1).T
    return Moments(volume, rays.origin + first, second - np.outer(first, first))


def integrate(f: Integrand, split: Split | None, *, rows: int, panels: np.ndarray) -> np.ndarray:
    """Integrals of f over [panels[0], panels[-1]] for each row, all rows refined together; (rows, K)."""
    row = np.repeat(np.arange(rows), len(panels) - 1)
    a, b = np.tile(panels[:-1], rows), np.tile(panels[1:], rows)
    total: np.ndarray | None = None
    size = np.zeros(rows)
    for level in range(MAX_LEVELS):
        half, middle = (b - a) / 2, (a + b) / 2
        probes = T15 if split is None else PROBES
        t = middle[:, None] + half[:, None] * probes
        flat, active = f(np.repeat(row, len(probes)), t.ravel())
        values = flat.reshape(len(row), len(probes), -1) * half[:, None, None]
        values = values if split is None else values[:, 1:-1]
        active = active.reshape(len(row), len(probes))
        fine = np.einsum("k,nkc->nc", K15, values)
        doubt = np.einsum("sk,nkc->snc", np.stack([K15 - G15, N15]), values)
        error = np.max(np.abs(doubt), axis=(0, 2))
        if total is None:
            total = np.zeros((rows, values.shape[2]))
            np.add.at(size, row, np.max(np.abs(fine), axis=1))
        change = active[:, 1:] != active[:, :-1]
        changes = change.sum(axis=1)
        short = (half < SHORTEST) | (level == MAX_LEVELS - 1)
        done = short | ((changes == 0) & (error <= TOLERANCE * size[row]))
        np.add.at(total, row[done], fine[done])
        if done.all():
            return total
        cut = middle.copy()
        once = np.flatnonzero(~done & (changes == 1))
        if split is not None and len(once):
            k = np.argmax(change[once], axis=1)
            at = split(row[once], t[once, k], t[once, k + 1], active[once, k], active[once, k + 1])
            # a cut on top of an end would leave the panel as it was
            cut[once] = np.clip(at, a[once] + 1e-8 * half[once], b[once] - 1e-8 * half[once])
        row, cut, a, b = row[~done], cut[~done], a[~done], b[~done]
        row, a, b = np.tile(row, 2), np.concatenate([a, cut]), np.concatenate([cut, b])
    raise ShapeError("mass properties: the quadrature did not converge")


def _circle(rays: Rays, weight: np.ndarray) -> tuple[Integrand, Split]:
    def directions(_: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.column_stack([np.cos(t), np.sin(t)])

    return _radial(rays, weight, directions, None), _splitter(rays, directions)


def _meridians(rays: Rays, weight: np.ndarray, phi: np.ndarray) -> tuple[Integrand, Split]:
    c, s = np.cos(phi), np.sin(phi)

    def directions(row: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.column_stack([np.sin(t) * c[row], np.sin(t) * s[row], np.cos(t)])

    return _radial(rays, weight, directions, np.sin), _splitter(rays, directions)


Directions = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _radial(rays: Rays, weight: np.ndarray, directions: Directions, jacobian: Any) -> Integrand:
    """r^k/k, d r^(k+1)/(k+1), d d^T r^(k+2)/(k+2) for k = dim, scaled by `weight`."""
    k = rays.dim
    i, j = np.triu_indices(k)

    def f(row: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d = directions(row, t)
        gauge = rays.gauge(d)
        r = 1 / gauge.max(axis=1)[:, None]
        parts = [r**k / k, d * r ** (k + 1) / (k + 1), d[:, i] * d[:, j] * r ** (k + 2) / (k + 2)]
        out = np.hstack(parts) * weight
        return (out if jacobian is None else out * jacobian(t)[:, None]), np.argmax(gauge, axis=1)

    return f


def _splitter(rays: Rays, directions: Directions) -> Split:
    def split(row: np.ndarray, a: np.ndarray, b: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        start, end = directions(row, a), directions(row, b)
        t = crossing(rays.gauge, start, end, i, j)
        # the fraction t runs along the chord; turn it into an angle between the two directions
        along = start + t[:, None] * (end - start)
        cosine = np.einsum("ij,ij->i", start, along)
        sine = np.sqrt(np.maximum(np.einsum("ij,ij->i", along, along) - cosine**2, 0.0))
        return a + np.arctan2(sine, cosine)

    return split


def polytope_moments(vertices: np.ndarray) -> Moments:
    """Exact moments of the convex hull: simplices from the mean vertex to every facet."""
    from scipy.spatial import ConvexHull

    dim = vertices.shape[1]
    centre = vertices.mean(axis=0)
    y = vertices - centre
    corners = y[ConvexHull(y).simplices]
    volume = np.abs(np.linalg.det(corners)) / (2 if dim == 2 else 6)
    total = corners.sum(axis=1)
    # the simplex also has the corner 0; mean y = sum / (dim+1), mean y y^T by the same symmetry
    first = volume @ total / (dim + 1)
    outer = np.einsum("nki,nkj->nij", corners, corners) + np.einsum("ni,nj->nij", total, total)
    second = np.einsum("n,nij->ij", volume, outer) / ((dim + 1) * (dim + 2))
    whole = float(volume.sum())
    mean = first / whole
    return Moments(whole, centre + mean, second / whole - np.outer(mean, mean))
