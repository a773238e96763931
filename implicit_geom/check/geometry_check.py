"""Gaps recomputed from poses and shapes: no pair overlaps, and closed contacts are where bodies touch.

Along any direction n the distance between the planes that touch two convex bodies,

    separation(n) = min over b of n . x  -  max over a of n . x,

is at most their signed distance, which is its maximum over n. So one n with separation(n) >= 0 proves that
they are apart; a point on both surfaces with separation(n) = 0 proves that they touch there, with the normal
n. The normals of recorded contacts are tried first, then those of the other steps; where none is good enough,
or a shape knows its support by samples alone, `distance()`'s method is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.check.geometry_proof import normal_cone_distance
from implicit_geom.check.motion_arrays import apply, dot, transposed
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.supports import overlapping_spheres
from implicit_geom.model.model import Model
from implicit_geom.model.placed_shape import PlacedShape
from implicit_geom.model.records import EULER, IMPACT, VELOCITY

CLOSE = 1e-11  # over the smaller body's size: an overlap that need not be known better
AT_THE_END = (EULER, VELOCITY, IMPACT)  # stages whose contacts are closed at the end of their solve


@dataclass(frozen=True)
class Poses:
    """Poses of all bodies at some instants: x (T, B, dim) and R (T, B, dim, dim)."""

    model: Model
    x: np.ndarray
    R: np.ndarray

    def placed(self, piece: int, at: int) -> PlacedShape:
        """A piece at its body's pose."""
        body = self.model.pieces.owner[piece]
        return PlacedShape(
            self.model.pieces.shapes[piece], self.x[at, body], self.R[at, body], self.model.com[body]
        )

    def separation(self, i: int, j: int, at: np.ndarray, n: np.ndarray) -> np.ndarray:
        """(K,) m: of the pieces i and j at some instants, along (K, dim) unit vectors from i to j."""
        return -self.reach(i, at, n) - self.reach(j, at, -n)

    def gaps(self, pair: int, at: np.ndarray, n: np.ndarray) -> np.ndarray:
        """(K,) m: separation of a pair along normals as contacts have them, or over the plane it has."""
        i, j = (int(side[0]) for side in self.model.pairs.pieces(np.array([pair])))
        if self.model.pieces.half[i]:
            return _above(self, i, j, at)
        return self.separation(i, j, at, -n if self.model.pairs[pair].swapped else n)

    def size(self, pair: int) -> float:
        """Of the smaller piece of a pair, m."""
        return float(min(self.model.pieces.size[list(self.model.pairs[pair].pieces)]))

    def reach(self, piece: int, at: np.ndarray, n: np.ndarray) -> np.ndarray:
        """(K,) m: the largest n . x over a piece."""
        body = self.model.pieces.owner[piece]
        local = apply(transposed(self.R[at, body]), n)
        own = self.model.pieces.shapes[piece].support_value(local) - local @ self.model.com[body]
        return np.asarray(own + dot(n, self.x[at, body]))


def overlaps(poses: Poses, contacts: np.ndarray) -> np.ndarray:
    """(T,) m: the deepest overlap of any two bodies at each instant, zero where there is none.

    `contacts` are rows of `SolveArrays.contacts` whose `solve` is the number of an instant.
    """
    out = np.zeros(len(poses.x))
    i, j, at = _near_pairs(poses)
    number = poses.model.pairs.number(i, j)
    order = np.lexsort((at, number))
    number, at = number[order], at[order]
    cuts = np.flatnonzero(np.diff(number, prepend=-1))
    for first, last in zip(cuts, [*cuts[1:], len(number)], strict=True):
        pair = int(number[first])
        own = contacts[contacts["pair"] == pair] if len(contacts) else contacts
        np.maximum.at(out, at[first:last], _overlap(poses, pair, at[first:last], own))
    return out


def _near_pairs(poses: Poses) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pieces i < j of bodies whose bounding balls meet, and the instants; half-spaces are near everything."""
    model = poses.model
    bodies = np.arange(len(model.bodies))
    fixed = np.isin(bodies, model.moving, invert=True)
    bounded = bodies[np.isfinite(model.reach)]
    endless = bodies[~np.isfinite(model.reach)]
    always = [(min(u, b), max(u, b)) for u in endless.tolist() for b in bodies.tolist() if u != b]
    pairs = np.array(sorted(set(always)), int).reshape(-1, 2)
    found = []
    for k, x in enumerate(poses.x):
        near = np.column_stack(overlapping_spheres(x, model.reach, bounded)).reshape(-1, 2)
        both = np.concatenate([np.sort(near, axis=1), pairs])
        both = both[~(fixed[both[:, 0]] & fixed[both[:, 1]])]
        found.append(np.column_stack([both, np.full(len(both), k)]))
    a, b, at = np.concatenate(found).T
    i, j = model.pieces.of_pairs(a, b)
    count = np.bincount(model.pieces.owner)
    return i, j, np.repeat(at, count[a] * count[b])


def _overlap(poses: Poses, pair: int, at: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """(K,) m: overlap of the pieces of a pair at some instants, which rise."""
    pieces = poses.model.pieces
    i, j = (int(side[0]) for side in poses.model.pairs.pieces(np.array([pair])))  # (a half-space is first)
    exact = pieces.shapes[i].support_exact and pieces.shapes[j].support_exact
    if pieces.half[i] and exact:
        return np.maximum(-_above(poses, i, j, at), 0.0)
    best = np.full(len(at), -np.inf)  # the largest separation found so far
    settled = np.zeros(len(at), bool)
    close = -CLOSE * poses.size(pair)
    if exact:
        for rows, n in _first_normals(poses, (i, j), at, contacts, poses.model.pairs[pair].swapped):
            np.maximum.at(best, rows, poses.separation(i, j, at[rows], n))
    settled |= best >= close
    while not np.all(settled):
        k = int(np.argmin(settled))
        points = find_closest_points(poses.placed(i, int(at[k])), poses.placed(j, int(at[k]))).points
        left = np.flatnonzero(~settled)
        if exact:
            for n in _carried(poses, (i, j), points.normal, at, k, left):
                best[left] = np.maximum(best[left], poses.separation(i, j, at[left], n))
        else:
            best[k] = points.gap
        settled |= best >= close
        settled[k] = True  # (the deepest it can be proved to be apart)
    return np.maximum(-best, 0.0)


def _above(poses: Poses, half: int, piece: int, at: np.ndarray) -> np.ndarray:
    """(K,) m: height of a piece over the plane of a half-space."""
    owner = poses.model.pieces.owner[half]
    values = poses.model.pieces.shapes[half].values
    n = poses.R[at, owner] @ values[:-1]
    plane = values[-1] + dot(n, poses.x[at, owner]) - values[:-1] @ poses.model.com[owner]
    return -poses.reach(piece, at, -n) - plane


def _first_normals(
    poses: Poses, pieces: tuple[int, int], at: np.ndarray, contacts: np.ndarray, swapped: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Instants and normals that are likely to tell two pieces apart: of contacts, and between the centres."""
    place = np.minimum(np.searchsorted(at, contacts["solve"]), len(at) - 1)
    here = at[place] == contacts["solve"]
    sign = -1.0 if swapped else 1.0  # (normals of contacts are in the scene's order of bodies)
    found = [(place[here], sign * contacts["normal"][here])]
    a, b = (poses.model.pieces.owner[piece] for piece in pieces)
    line = poses.x[at, b] - poses.x[at, a]
    length = np.linalg.norm(line, axis=1)
    some = np.flatnonzero(length > 0)
    return [*found, (some, line[some] / length[some, None])]


def _carried(
    poses: Poses, pieces: tuple[int, int], n: np.ndarray, at: np.ndarray, k: int, left: np.ndarray
) -> list[np.ndarray]:
    """A normal at instant k at other instants: the same, or turned with either body."""
    out = [np.broadcast_to(n, (len(left), n.size))]
    for piece in pieces:
        body = poses.model.pieces.owner[piece]
        out.append(poses.R[at[left], body] @ (poses.R[at[k], body].T @ n))
    return out


def contact_residuals(poses: Poses, contacts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far closed contacts are from touching where they say, (C,) m, and their normals from it, (C,) rad.

    The larger of the point's distances from both surfaces; that of the normal from both normal cones.
    `solve` of a contact is the number of an instant.
    """
    off, turned = np.zeros(len(contacts)), np.zeros(len(contacts))
    model = poses.model
    for pair in np.unique(contacts["pair"]).tolist():
        rows = np.flatnonzero(contacts["pair"] == pair)
        c = contacts[rows]
        at = c["solve"]
        sides = [int(side[0]) for side in model.pairs.ends(np.array([pair]))]
        for sign, piece in zip((1.0, -1.0), sides, strict=True):
            body, shape = model.pieces.owner[piece], model.pieces.shapes[piece]
            R_BW = transposed(poses.R[at, body])
            local = apply(R_BW, c["point"] - poses.x[at, body]) + model.com[body]
            off[rows] = np.maximum(off[rows], np.abs(shape.violation(local)))
            for k, n in enumerate(apply(R_BW, sign * c["normal"])):
                placed = poses.placed(piece, int(at[k]))
                turned[rows[k]] = max(turned[rows[k]], normal_cone_distance(placed, local[k], n))
    return off, turned
