"""Support functions of many bodies at once, and pairs of overlapping bounding spheres."""

from __future__ import annotations

import numpy as np

from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.model.model import Model, State
from implicit_geom.shapes.planar import Ellipse
from implicit_geom.shapes.shape import Shape
from implicit_geom.shapes.spatial import Ellipsoid

FEW = 32  # spheres


class Supports:
    """How far the convex pieces of a model's bodies extend along given directions."""

    def __init__(self, model: Model) -> None:
        self.model = model
        P, dim = len(model.pieces), model.dim
        self.axes = np.zeros((P, dim))  # of ellipses and ellipsoids
        self.planes_B = np.zeros((P, dim + 1))  # normal and offset of half-spaces, shape's frame
        self.other = np.full(P, -1)  # any other shape, by number
        self.shapes: list[Shape] = []
        known: dict[Shape, int] = {}
        for i, shape in enumerate(model.pieces.shapes):
            if isinstance(shape, Ellipse | Ellipsoid):
                self.axes[i] = shape.axes
            elif is_halfspace(shape):
                self.planes_B[i] = shape.values
            else:
                self.other[i] = known.setdefault(shape, len(known))
        self.shapes = list(known)

    def __call__(self, state: State, pieces: np.ndarray, n: np.ndarray) -> np.ndarray:
        """max n . x over each of the pieces, world frame; (K,)."""
        bodies = self.model.pieces.owner[pieces]
        R = state.R[bodies]
        local = np.einsum("kji,kj->ki", R, n)
        values = np.linalg.norm(self.axes[pieces] * local, axis=1)
        other = self.other[pieces]
        for s in np.unique(other[other >= 0]):
            chosen = other == s
            values[chosen] = self.shapes[s].support_value(local[chosen])
        centre = np.einsum("ki,ki->k", n, state.x[bodies])
        return np.asarray(centre + values - np.einsum("ki,ki->k", local, self.model.com[bodies]))

    def points(self, state: State, pieces: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Points of the pieces farthest along n, world frame; (K, dim)."""
        bodies = self.model.pieces.owner[pieces]
        R, axes, other = state.R[bodies], self.axes[pieces], self.other[pieces]
        scaled = axes * np.einsum("kji,kj->ki", R, n)
        local = axes * scaled / np.maximum(np.linalg.norm(scaled, axis=1), 1e-300)[:, None]
        for s in np.unique(other):
            if s >= 0:
                chosen = other == s
                local[chosen] = self.shapes[s].support(np.einsum("kji,kj->ki", R[chosen], n[chosen]))
        return np.asarray(np.einsum("kij,kj->ki", R, local - self.model.com[bodies]) + state.x[bodies])

    def planes(self, state: State, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """World normals and offsets of half-spaces {n . x <= offset}."""
        bodies, own = self.model.pieces.owner[pieces], self.planes_B[pieces]
        n = np.einsum("kij,kj->ki", state.R[bodies], own[:, :-1])
        shift = np.einsum("ki,ki->k", own[:, :-1], self.model.com[bodies])
        return n, own[:, -1] + np.einsum("ki,ki->k", n, state.x[bodies]) - shift


def overlapping_spheres(
    x: np.ndarray, radius: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """All i < j of `chosen` with |x_i - x_j| <= radius_i + radius_j, and perhaps some more.

    Spheres are sorted by size, a factor of two a class, so that few large ones do not make the search
    for small ones a search among all. Few spheres are all compared.
    """
    if chosen.size <= FEW:
        i, j = (chosen[side] for side in np.triu_indices(chosen.size, 1))
        return _those_close(x, radius, i, j)
    from scipy.spatial import cKDTree  # (here: it takes long to import)

    size = np.frexp(np.maximum(radius[chosen], 1e-300))[1]
    trees = []
    for k in np.unique(size):
        members = chosen[size == k]
        trees.append((members, cKDTree(x[members]), float(radius[members].max())))
    first, second = [np.zeros(0, int)], [np.zeros(0, int)]
    for k, (members, tree, largest) in enumerate(trees):
        found = tree.query_pairs(2 * largest, output_type="ndarray")
        first.append(members[found[:, 0]])
        second.append(members[found[:, 1]])
        for more, other, extent in trees[k + 1 :]:
            near = tree.sparse_distance_matrix(other, largest + extent, output_type="ndarray")
            first.append(members[near["i"]])
            second.append(more[near["j"]])
    return _those_close(x, radius, np.concatenate(first), np.concatenate(second))


def _those_close(
    x: np.ndarray, radius: np.ndarray, i: np.ndarray, j: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    close = np.linalg.norm(x[j] - x[i], axis=1) <= radius[i] + radius[j]
    i, j = i[close], j[close]
    return np.minimum(i, j), np.maximum(i, j)
