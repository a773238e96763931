"""Which vertices of a polytope may touch a half-space or another polygon."""

from __future__ import annotations

import numpy as np

from implicit_geom.classical.contacts import ON_FIRST, ON_SECOND
from implicit_geom.classical.surfaces import Surfaces
from implicit_geom.model.model import State

# Vertex contacts of a pair before their geometry: pair, side, features, anchors, planes (`Contacts`).
Vertices = tuple[int, int, np.ndarray, np.ndarray, np.ndarray]


def world_plane(state: State, body: int, plane: np.ndarray) -> tuple[np.ndarray, float]:
    """World normal and offset of a plane in a body's axes."""
    n = state.R[body] @ plane[:-1]
    return n, float(plane[-1] + n @ state.x[body])


def halfspace_contacts(s: Surfaces, state: State, pair: int, i: int, j: int, bound: float) -> list[Vertices]:
    """Vertices of polytope j above half-space i by less than `bound`."""
    n, offset = world_plane(state, i, s.planes[i][0])
    V = s.vertices[j]
    near = np.flatnonzero(V @ (state.R[j].T @ n) < bound + offset - n @ state.x[j])
    if not near.size:
        return []
    planes = np.broadcast_to(s.planes[i], (near.size, n.size + 1))
    return [(pair, ON_SECOND, near, V[near], planes)]


def polygon_contacts(s: Surfaces, state: State, pair: int, i: int, j: int, bound: float) -> list[Vertices]:
    """Vertices of polygon j that are near polygon i, and the other way round."""
    out: list[Vertices] = []
    for side, one, two, count in ((ON_SECOND, i, j, 0), (ON_FIRST, j, i, len(s.vertices[j]))):
        # vertices of `two` in the axes of `one`
        turn = state.R[one].T
        points = s.vertices[two] @ (turn @ state.R[two]).T + turn @ (state.x[two] - state.x[one])
        planes = s.planes[one]
        above = points @ planes[:, :-1].T - planes[:, -1]
        face = np.argmax(above, axis=1)
        near = np.flatnonzero(above[np.arange(len(face)), face] < bound)
        if near.size:
            out.append((pair, side, near + count, s.vertices[two][near], planes[face[near]]))
    return out
