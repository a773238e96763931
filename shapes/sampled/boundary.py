"""Points on the boundary of a body seen from inside: even samples, edges, corners, farthest points.

Where neighbouring rays leave through different constraints the edge between them is located too,
and where three constraints meet, the corner.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.shapes.sampled.rays import Rays, crossing

ENDLESS = 1e-10  # smallest over largest gauge below which a body counts as unbounded
SHARP = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def sphere_directions(n: int, dim: int, turn: float = 0.0) -> np.ndarray:
    """n nearly even unit vectors: equal angles in the plane, a golden-angle spiral in space."""
    k = np.arange(n) + 0.5
    if dim == 2:
        angle = 2 * np.pi * (k - 0.5) / n + turn
        return np.column_stack([np.cos(angle), np.sin(angle)])
    z = 1 - 2 * k / n
    angle = np.pi * (3 - np.sqrt(5)) * k + turn
    return np.column_stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z])


def unbounded(rays: Rays) -> bool:
    """Whether some ray never leaves: the smallest gauge over all directions, by pattern search."""
    d = sphere_directions(256, rays.dim, turn=0.1)
    s = rays.gauge(d).max(axis=1)
    largest = float(s.max())
    order = np.argsort(s)[:4]
    for best, value in zip(d[order], s[order], strict=True):
        width = 0.3
        for _ in range(300):  # each round gains a factor or narrows the search
            if width < 1e-13 or value <= ENDLESS * largest:
                break
            trial = best + width * sphere_directions(16, rays.dim)
            trial /= np.linalg.norm(trial, axis=1, keepdims=True)
            g = rays.gauge(trial).max(axis=1)
            k = int(np.argmin(g))
            gained = g[k] < 0.9 * value
            if g[k] < value:
                best, value = trial[k], g[k]
            if not gained:
                width /= 2.5
        if value <= ENDLESS * largest:
            return True
    return False


def spread(rays: Rays, n: int, turn: float) -> tuple[np.ndarray, np.ndarray]:
    """Directions even over the body rather than over the sphere, and neighbouring rows of them.

    The unit sphere's directions are stretched by the square root of the boundary points'
    covariance, so that a long thin body is not seen end-on by a few rays only.
    """
    from scipy.spatial import ConvexHull

    points, _ = rays.cast(sphere_directions(256, rays.dim, turn=0.1))
    y = points - rays.origin
    w, V = np.linalg.eigh(y.T @ y / len(y))
    unit = sphere_directions(n, rays.dim, turn)
    d = unit @ (V * np.sqrt(np.maximum(w, 1e-12 * w.max()))) @ V.T
    cells = ConvexHull(unit).simplices
    return d / np.linalg.norm(d, axis=1, keepdims=True), cells


def edge_points(rays: Rays, d: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points where two constraints meet between neighbouring rays, and which two; (E, dim), (E, 2)."""
    first = np.argmax(rays.gauge(d), axis=1)
    pairs = np.vstack([cells[:, [a, b]] for a in range(rays.dim) for b in range(a)])
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    pairs = pairs[first[pairs[:, 0]] != first[pairs[:, 1]]]
    if len(pairs) == 0:
        return np.empty((0, rays.dim)), np.empty((0, 2), int)
    start, end = d[pairs[:, 0]], d[pairs[:, 1]]
    both = first[pairs]
    t = crossing(rays.gauge, start, end, both[:, 0], both[:, 1])
    points, leaving = rays.cast(start + t[:, None] * (end - start))
    real = (leaving == both[:, 0]) | (leaving == both[:, 1])
    return points[real], both[real]


def corner_points(rays: Rays, d: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Points where three constraints meet inside a triangle of rays, by Newton; (C, 3)."""
    if rays.dim == 2:
        return np.empty((0, 2))
    points, first = rays.cast(d)
    three = first[cells]
    distinct = (three[:, 0] != three[:, 1]) & (three[:, 1] != three[:, 2]) & (three[:, 0] != three[:, 2])
    cells, three = cells[distinct], three[distinct]
    if len(cells) == 0:
        return np.empty((0, 3))
    x = points[cells].mean(axis=1)
    rows = np.arange(len(x))[:, None]
    for _ in range(12):
        f, J = rays.values(x)[rows, three], rays.gradients(x)[rows, three]
        regular = np.abs(np.linalg.det(J)) > 1e-9
        J[~regular] = np.eye(3)
        x = x - np.where(regular[:, None], np.linalg.solve(J, f[:, :, None])[:, :, 0], 0.0)
    good = np.isfinite(x).all(axis=1) & (np.abs(rays.values(x)[rows, three]).max(axis=1) < 1e-9 * rays.length)
    return rays.cast(x[good] - rays.origin)[0]


def boundary_points(rays: Rays, n: int, turn: float = 0.0) -> np.ndarray:
    """About n boundary points, with edges and corners resolved; (M, dim)."""
    d, cells = spread(rays, n, turn)
    edges, _ = edge_points(rays, d, cells)
    return np.vstack([rays.cast(d)[0], edges, corner_points(rays, d, cells)])


def touching(rays: Rays, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Fresh boundary points with unit normals for which they are the support points; (M, dim) twice."""
    d, cells = spread(rays, n, turn=0.7)
    points, first = rays.cast(d)
    normals = rays.gradients(points)[np.arange(len(points)), first]
    found = [(points, normals)]
    edges, both = edge_points(rays, d, cells)
    if len(edges):
        g = rays.gradients(edges)
        rows = np.arange(len(edges))
        one, other = unit_rows(g[rows, both[:, 0]]), unit_rows(g[rows, both[:, 1]])
        found += [(edges, (1 - w) * one + w * other) for w in (0.1, 0.3, 0.5, 0.7, 0.9)]
    return np.vstack([p for p, _ in found]), unit_rows(np.vstack([v for _, v in found]))


def unit_rows(v: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(v, axis=1, keepdims=True)
    return np.asarray(v / np.where(norm > 0, norm, 1.0))


def farthest(rays: Rays, samples: np.ndarray, n: np.ndarray) -> float:
    """max n . x over the body from above, to 1e-9 of its size, by cutting planes.

    Every boundary point x_k gives a cut, grad f . (x - x_k) <= 0, that holds for the whole body.
    The farthest point of the cuts bounds the answer from above, its ray's boundary point from
    below and as a new cut; kinks and cone tips need no care.
    """
    from scipy.optimize import linprog

    length = float(np.max(np.ptp(samples, axis=0)))
    norm = float(np.linalg.norm(n))
    value = samples @ (n / norm)
    rim = np.vstack([samples[np.argsort(-value)[:60]], rays.cast(sphere_directions(60, rays.dim))[0]])
    y = (rim - rays.origin) / length
    lower, upper = -np.inf, np.inf
    for _ in range(100):
        g = leading_gradients(rays, rays.origin + length * y)
        answer = linprog(-n / norm, g, np.einsum("ij,ij->i", g, y), bounds=(-2, 2), options=SHARP)
        if answer.x is None:
            break
        upper = float(-answer.fun)
        point, _ = rays.cast(answer.x[None, :])
        hit = (point - rays.origin) / length
        lower = max(lower, float(hit[0] @ n) / norm)
        if upper - lower < 1e-9:
            break
        y = np.vstack([y, hit])
    return norm * length * upper + float(n @ rays.origin)


def leading_gradients(rays: Rays, points: np.ndarray) -> np.ndarray:
    """Unit normal of the constraint that is largest at each point; (N, dim) -> (N, dim)."""
    first = np.argmax(rays.values(points), axis=1)
    return unit_rows(rays.gradients(points)[np.arange(len(points)), first])
