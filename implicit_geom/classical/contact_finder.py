"""The contacts at a pose: closest points of smooth surfaces, vertices of polytopes.

Smooth surfaces have one contact a pair, at the closest points. A polytope touches by vertices: against a
half-space every vertex that may reach it, in the plane every vertex of either polygon that may reach the
other, against the side from which it is farthest. Polyhedra meet as
`polyhedron_contacts` finds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.classical.contacts import (
    ON_SECOND,
    SMOOTH,
    Contacts,
    PairLaws,
    join_contacts,
    no_contacts,
    stack_contacts,
)
from implicit_geom.classical.surfaces import HALFSPACE, POLYTOPE, ROUND, Surfaces
from implicit_geom.classical.vertex_contacts import (
    Vertices,
    halfspace_contacts,
    polygon_contacts,
    world_plane,
)
from implicit_geom.equations.tangent import references
from implicit_geom.geometry.distance import find_closest_points, track_closest_points
from implicit_geom.geometry.supports import Supports, overlapping_spheres
from implicit_geom.model.model import Model, State

__all__ = ["ContactFinder", "Vertices", "no_contacts"]

FEW = 256  # pairs that are quicker all looked at than found in a tree


class ContactFinder:
    """Finds the contacts of a model; `facets` is None for the shapes as they are.

    `known` holds the closest points of pairs of smooth bodies as they were last found: where to look first.
    """

    def __init__(self, model: Model, facets: int | None = None) -> None:
        self.model = model
        self.surfaces = Surfaces(model, facets)
        self.laws = PairLaws(model)
        self.supports = Supports(model)
        self.known: dict[int, np.ndarray] = {}
        self.references: dict[int, np.ndarray] = {}  # pair: what its tangent is taken along
        self._constant: dict[int, tuple[np.ndarray, ...]] = {}  # of pairs: arrays that no pose changes
        self._numbers = np.arange(len(model.pairs)) if len(model.pairs) <= FEW else None
        self._exact = np.array([b.shape.support_exact for b in model.bodies])

    def contacts(self, state: State, travel: np.ndarray) -> Contacts:
        """All contacts with a gap below the sum of their bodies' `travel` (B,), m."""
        near = self.near(state, travel)
        first, second, _ = self.laws.of(near)
        kinds = self.surfaces.kind
        one, two = kinds[first], kinds[second]
        within = travel[first] + travel[second]
        corners = (two == POLYTOPE) & ((one == HALFSPACE) | (one == POLYTOPE))
        smooth = near[~corners]
        if near.size == 1 and corners[0] and one[0] == HALFSPACE:
            return self._on_plane(state, int(near[0]), int(first[0]), int(second[0]), float(within[0]))
        found: list[Contacts] = []
        vertices: list[Vertices] = []
        for k in np.flatnonzero(corners).tolist():
            i, j, pair, bound = int(first[k]), int(second[k]), int(near[k]), float(within[k])
            if one[k] == HALFSPACE:
                vertices += halfspace_contacts(self.surfaces, state, pair, i, j, bound)
            elif self.model.dim == 2:
                vertices += polygon_contacts(self.surfaces, state, pair, i, j, bound)
            else:
                from implicit_geom.classical.polyhedron_contacts import polyhedron_contacts

                vertices += polyhedron_contacts(self.surfaces, state, pair, i, j, bound)
        if vertices:
            found.append(self._from_vertices(state, vertices))
        if smooth.size:
            c = self._smooth(state, smooth)
            found.append(c.take(np.flatnonzero(c.gap < within[~corners])))
        return join_contacts(found, self.model.dim)

    def _on_plane(self, state: State, pair: int, i: int, j: int, bound: float) -> Contacts:
        """Vertices of polytope j over half-space i: what one body on the ground needs, without detours."""
        V, R, x = self.surfaces.vertices[j], state.R[j], state.x
        plane = self.surfaces.planes[i][0]
        n, offset = world_plane(state, i, plane)
        below = offset - float(n @ x[j])
        height = V @ (n @ R)
        near = np.flatnonzero(height < bound + below)
        size = near.size
        if pair not in self._constant:
            _, _, law = self.laws.of(np.full(len(V), pair))
            whole = [np.full(len(V), k) for k in (pair, i, j, ON_SECOND)]
            planes = np.tile(plane, (len(V), 1))
            self._constant[pair] = (*whole, self.laws.mu[law], self.laws.e[law], planes)
        numbers, first, second, side, mu, e, planes = (a[:size] for a in self._constant[pair])
        anchor, gap = V[near], height[near] - below
        r2, normal = anchor @ R.T, np.tile(n, (size, 1))
        r1 = r2 + (x[j] - x[i]) - gap[:, None] * n
        t, o = self._frames(state, numbers, normal)
        return Contacts(numbers, near, first, second, r1, r2, normal, t, o, gap, mu, e, side, anchor, planes)

    def gaps(self, c: Contacts, state: State) -> np.ndarray:
        """(n,) The gaps of the same contacts at another pose, m."""
        if not len(c) or np.any(c.side != ON_SECOND):
            return self.at_pose(c, state).gap
        i, j = c.first, c.second
        if (j == j[0]).all() and (i == i[0]).all():
            one, two = int(i[0]), int(j[0])
            turn, normals = state.R[one].T, c.plane[:, :-1]
            height = (normals @ (turn @ state.R[two]) * c.anchor).sum(axis=1)
            return np.asarray(height + normals @ (turn @ (state.x[two] - state.x[one])) - c.plane[:, -1])
        return self._placed(state, c).gap

    def at_pose(self, contacts: Contacts, state: State) -> Contacts:
        """The same contacts at another pose: the same vertices and planes, or the closest points there."""
        if not np.any(contacts.side == SMOOTH):
            return self._placed(state, contacts)
        smooth = np.flatnonzero(contacts.side == SMOOTH)
        fresh = self._smooth(state, contacts.pair[smooth])
        if len(smooth) == len(contacts):
            return fresh
        corners = np.flatnonzero(contacts.side != SMOOTH)
        parts = [self._placed(state, contacts.take(corners)), fresh]
        order = np.argsort(np.concatenate([corners, smooth]))
        return stack_contacts(parts).take(order)

    def corners(self, piece: int) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and planes of a piece that is a polytope; no vertices where it is none."""
        return self.surfaces.vertices[piece], self.surfaces.planes[piece]

    # ---- which pairs

    def near(self, state: State, travel: np.ndarray) -> np.ndarray:
        """Pairs whose bounding spheres, larger by `travel`, meet; those with half-spaces by their planes."""
        s, pairs = self.surfaces, self.model.pairs
        if self._numbers is not None:
            numbers = self._numbers
        else:
            reach = np.where(np.isfinite(s.reach), s.reach, 0.0)
            bounded = np.flatnonzero(np.isfinite(s.reach))
            i, j = overlapping_spheres(state.x, (1 + 1e-9) * (reach + travel), bounded)
            for u in np.flatnonzero(~np.isfinite(s.reach)):
                i, j = np.append(i, np.minimum(u, bounded)), np.append(j, np.maximum(u, bounded))
            moving = np.zeros(len(state.x), bool)
            moving[self.model.moving] = True
            kept = moving[i] | moving[j]
            numbers = np.sort(pairs.number(*self.model.pieces.of_pairs(i[kept], j[kept])))
        first, second, _ = self.laws.of(numbers)
        apart = np.sum((state.x[second] - state.x[first]) ** 2, axis=1)
        bound = s.reach[first] + s.reach[second] + travel[first] + travel[second]
        return numbers[apart <= bound**2] if numbers.size > 1 else numbers

    # ---- vertices

    def _from_vertices(self, state: State, rows: list[Vertices]) -> Contacts:
        """Contacts of vertices and planes, placed."""
        sizes = [len(row[2]) for row in rows]
        pair = np.repeat([row[0] for row in rows], sizes)
        side = np.repeat([row[1] for row in rows], sizes)
        feature, anchor, plane = rows[0][2:]
        if len(rows) > 1:
            feature = np.concatenate([row[2] for row in rows])
            anchor = np.concatenate([row[3] for row in rows])
            plane = np.concatenate([row[4] for row in rows])
        first, second, law = self.laws.of(pair)
        empty = np.zeros_like(anchor)
        mu, e = self.laws.mu[law], self.laws.e[law]
        c = Contacts(
            pair,
            feature,
            first,
            second,
            empty,
            empty,
            empty,
            empty,
            empty,
            empty[:, 0],
            mu,
            e,
            side,
            anchor,
            plane,
        )
        return self._placed(state, c)

    def _placed(self, state: State, c: Contacts) -> Contacts:
        """Vertex contacts at the pose of `state`."""
        second = c.side == ON_SECOND
        only = bool(second.all())
        own = c.second if only else np.where(second, c.second, c.first)
        other = c.first if only else np.where(second, c.first, c.second)
        vertex = (state.R[own] @ c.anchor[:, :, None])[:, :, 0] + state.x[own]
        outward = (state.R[other] @ c.plane[:, :-1, None])[:, :, 0]
        gap = np.sum(outward * (vertex - state.x[other]), axis=1) - c.plane[:, -1]
        foot = vertex - gap[:, None] * outward
        one, two, n = foot, vertex, outward
        if not only:
            each = second[:, None]
            one, two = np.where(each, foot, vertex), np.where(each, vertex, foot)
            n = np.where(each, outward, -outward)
        t, o = self._frames(state, c.pair, n)
        return replace(
            c, r1=one - state.x[c.first], r2=two - state.x[c.second], normal=n, tangent=t, binormal=o, gap=gap
        )

    # ---- smooth surfaces

    def _smooth(self, state: State, pairs: np.ndarray) -> Contacts:
        """One contact a pair at the closest points."""
        first, second, law = self.laws.of(pairs)
        dim, x = self.model.dim, state.x
        gap, n = np.zeros(len(pairs)), np.zeros((len(pairs), dim))
        one, two = np.zeros_like(n), np.zeros_like(n)
        kinds = self.surfaces.kind
        plane = (kinds[first] == HALFSPACE) & self._exact[second]
        if plane.any():
            i, j = first[plane], second[plane]
            n[plane], offset = self.supports.planes(state, i)
            two[plane] = self.supports.points(state, j, -n[plane])
            gap[plane] = np.sum(n[plane] * two[plane], axis=1) - offset
            one[plane] = two[plane] - gap[plane][:, None] * n[plane]
        balls = (kinds[first] == ROUND) & (kinds[second] == ROUND)
        if balls.any():
            i, j = first[balls], second[balls]
            c1, c2 = (x[b] + np.einsum("nij,nj->ni", state.R[b], self.surfaces.centre[b]) for b in (i, j))
            apart = np.linalg.norm(c2 - c1, axis=1)
            n[balls] = (c2 - c1) / np.maximum(apart, 1e-300)[:, None]
            gap[balls] = apart - self.surfaces.radius[i] - self.surfaces.radius[j]
            one[balls] = c1 + self.surfaces.radius[i][:, None] * n[balls]
            two[balls] = c2 - self.surfaces.radius[j][:, None] * n[balls]
        for k in np.flatnonzero(~plane & ~balls).tolist():
            a, b = int(first[k]), int(second[k])
            c = int(pairs[k])
            bodies = self.model.placed(state, a), self.model.placed(state, b)
            found = (
                track_closest_points(*bodies, self.known[c])
                if c in self.known
                else find_closest_points(*bodies)
            )
            p = found.points
            gap[k], n[k], one[k], two[k] = p.gap, p.normal, p.point_a, p.point_b
            self.known[c] = found.unknowns
        t, o = self._frames(state, pairs, n)
        zero = np.zeros(len(pairs), int)
        return Contacts(
            pairs, zero, first, second, one - x[first], two - x[second], n, t, o, gap,
            self.laws.mu[law], self.laws.e[law], zero, np.zeros_like(n), np.zeros((len(pairs), dim + 1)),
        )  # fmt: skip

    def _frames(self, state: State, pairs: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tangents and binormals; in space along a world axis that a pair keeps while it is across n."""
        if self.model.dim == 2:
            return np.stack([n[:, 1], -n[:, 0]], axis=1), np.zeros_like(n)
        nothing = np.zeros(3)
        last = np.array([self.references.get(c, nothing) for c in pairs.tolist()]).reshape(-1, 3)
        axes = references(n, last)
        return self.laws.tangents(state, self.laws.of(pairs)[2], n, axes)
