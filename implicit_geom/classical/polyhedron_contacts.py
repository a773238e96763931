"""Polyhedra against each other: closest points by `coal`, and the points of a face that lies on a face.

Where the direction of the closest points is the normal of a face, that face is the plane and the other
body's nearest face, clipped to the prism over it, gives the vertices (Sutherland and Hodgman's method).
Otherwise there is one contact: where two edges cross, or, at a corner, at the closest points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from implicit_geom.classical.contacts import ON_FIRST, ON_SECOND
from implicit_geom.classical.surfaces import Surfaces
from implicit_geom.classical.vertex_contacts import Vertices
from implicit_geom.geometry.polytopes import ON_PLANE, rings
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import State

ALIGNED = 1 - 1e-8  # cosine of the angle to a face's normal that counts as the face's: 1.4e-4 rad
CROSSING = 1_000_000  # features from here on are points where edges cross
PRECISION = 1e-10  # of coal's closest points


def require_coal() -> Any:
    """The library, or an error that says how to get it."""
    try:
        import coal
    except ImportError:
        raise SceneError(
            "a classical stepper finds the contacts of polyhedra by coal, which is not installed; "
            "get it with pip install 'implicit-geom[facets]'"
        ) from None
    return coal


def polyhedron_contacts(
    surfaces: Surfaces, state: State, pair: int, i: int, j: int, bound: float
) -> list[Vertices]:
    """Contacts of the polyhedra i and j that are nearer than `bound`."""
    gap, n, p1, p2 = closest_polyhedra(surfaces, state, i, j)
    if not gap < bound:
        return []
    best = []
    for side, own, other, sign in ((ON_SECOND, i, j, 1.0), (ON_FIRST, j, i, -1.0)):
        planes = surfaces.planes[own]
        cosine = planes[:, :-1] @ (state.R[own].T @ (sign * n))
        best.append((float(cosine.max()), side, own, other, int(np.argmax(cosine))))
    cosine, side, own, other, face = best[0] if best[0][0] >= min(best[1][0], ALIGNED) else best[1]
    if cosine >= ALIGNED:
        found = _on_face(surfaces, state, own, other, face, bound)
        if found is not None:
            feature, anchor = found
            shift = 0 if side == ON_SECOND else len(surfaces.vertices[j])
            plane = np.broadcast_to(surfaces.planes[own][face], (len(anchor), 4))
            return [(pair, side, feature + shift, anchor, plane)]
    crossing = _crossing_edges(surfaces, state, i, j, n)
    if crossing is not None:
        p1, p2, n = crossing
    n_B = state.R[i].T @ n
    plane = np.append(n_B, n_B @ (state.R[i].T @ (p1 - state.x[i])))
    anchor = state.R[j].T @ (p2 - state.x[j])
    return [(pair, ON_SECOND, np.array([2 * CROSSING]), anchor[None], plane[None])]


def closest_polyhedra(
    surfaces: Surfaces, state: State, i: int, j: int
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Signed gap of the polyhedra i and j, the normal from i to j, and the closest points, world axes."""
    coal = require_coal()
    one, two = (coal.Transform3s(state.R[b], state.x[b]) for b in (i, j))
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = PRECISION
    gap = float(coal.distance(hull(surfaces, i), one, hull(surfaces, j), two, request, result))
    points = (np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2()))
    return gap, np.array(result.normal), *points


def _crossing_edges(
    surfaces: Surfaces, state: State, i: int, j: int, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Closest points and normal of the edges that support i and j along n; None where they are no edges.

    Coal's answer is good to its tolerance only; that of two edges is exact.
    """
    ends = []
    for b, sign in ((i, 1.0), (j, -1.0)):
        V = surfaces.vertices[b]
        height = V @ (state.R[b].T @ (sign * n))
        top = np.flatnonzero(height > height.max() - 1e-6 * np.ptp(height))
        if top.size != 2:
            return None
        ends.append(V[top] @ state.R[b].T + state.x[b])
    (a, b), (c, d) = ends
    across = np.cross(b - a, d - c)
    length = float(np.linalg.norm(across))
    if length < 1e-6 * float(np.linalg.norm(b - a) * np.linalg.norm(d - c)):
        return None
    across *= np.sign(across @ n) / length
    s, t = np.linalg.lstsq(np.column_stack([b - a, c - d]), c - a, rcond=None)[0]
    return a + s * (b - a), c + t * (d - c), across


def hull(surfaces: Surfaces, b: int) -> Any:
    """Body b as coal knows it, from its centre of mass."""
    V = surfaces.vertices[b]
    return _hull(V.tobytes(), len(V))


@lru_cache(maxsize=1024)
def _hull(data: bytes, count: int) -> Any:
    coal = require_coal()
    points = coal.StdVec_Vec3s()
    for p in np.frombuffer(data).reshape(count, 3):
        points.append(p.copy())
    return coal.Convex.convexHull(points, False, "Qt")


def faces(surfaces: Surfaces, b: int) -> list[np.ndarray]:
    """The vertices of every face of body b, in order round its normal."""
    V, planes = surfaces.vertices[b], surfaces.planes[b]
    return _faces(V.tobytes(), planes.tobytes(), len(V))


@lru_cache(maxsize=1024)
def _faces(vertices: bytes, planes: bytes, count: int) -> list[np.ndarray]:
    return rings(np.frombuffer(vertices).reshape(count, 3), np.frombuffer(planes).reshape(-1, 4))


def _on_face(
    surfaces: Surfaces, state: State, own: int, other: int, face: int, bound: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Points of `other` over a face of `own`: features, and points in its own axes; None where none."""
    plane = surfaces.planes[own][face]
    turn = state.R[own].T @ state.R[other]  # axes of `other` to those of `own`
    shift = state.R[own].T @ (state.x[other] - state.x[own])
    incident = int(np.argmin(surfaces.planes[other][:, :-1] @ (turn.T @ plane[:-1])))
    ring = faces(surfaces, other)[incident]
    points = [(int(k), surfaces.vertices[other][k] @ turn.T + shift) for k in ring]
    base = surfaces.vertices[own][faces(surfaces, own)[face]]
    size = float(np.max(np.ptp(base, axis=0)))
    for a, b in zip(base, np.roll(base, -1, axis=0), strict=True):
        outward = np.cross(b - a, plane[:-1])
        outward /= np.linalg.norm(outward)
        points = _clipped(points, outward, float(outward @ a) + ON_PLANE * size)
    near = [(k, p) for k, p in points if plane[:-1] @ p - plane[-1] < bound]
    if not near:
        return None
    feature = np.array([k if k >= 0 else CROSSING + c for c, (k, _) in enumerate(near)])
    return feature, (np.array([p for _, p in near]) - shift) @ turn


def _clipped(
    points: list[tuple[int, np.ndarray]], n: np.ndarray, offset: float
) -> list[tuple[int, np.ndarray]]:
    """The part of a convex polygon with n . p <= offset; new corners have the feature -1."""
    out: list[tuple[int, np.ndarray]] = []
    for (k, p), (_, q) in zip(points, points[1:] + points[:1], strict=True):
        here, there = float(n @ p) - offset, float(n @ q) - offset
        if here <= 0:
            out.append((k, p))
        if (here < 0 < there) or (there < 0 < here):
            out.append((-1, p + here / (here - there) * (q - p)))
    return out
