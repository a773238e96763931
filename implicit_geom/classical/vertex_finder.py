"""Vertices near convex polygons: a row for every facet of the polygon [NT12, section II].

A contact is a vertex of one piece and the whole convex piece of another body. Its rows are the pairs of the
vertex and each facet, with the signed distance psi_i of the vertex from the facet's line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.classical.contact_finder import ContactFinder, Vertices, no_contacts
from implicit_geom.classical.contacts import ON_FIRST, ON_SECOND, Contacts
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.geometry.polytopes import polytope
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Model, State


@dataclass(frozen=True)
class FacetRows:
    """n rows of m contacts, those of a contact one after another.

    contact   (n,) which contact a row belongs to
    first     (m,) the first row of each contact
    close     (n,) whether the vertex is near the facet itself, not only near its line
    """

    facets: Contacts
    contact: np.ndarray
    first: np.ndarray
    close: np.ndarray

    def largest(self, psi: np.ndarray) -> np.ndarray:
        """(m,) rows of the facet from which each vertex is farthest out, the first of equals."""
        if not len(psi):
            return np.zeros(0, int)
        top = np.maximum.reduceat(psi, self.first)
        at = np.where(psi == top[self.contact], np.arange(len(psi)), len(psi))
        return np.asarray(np.minimum.reduceat(at, self.first))


class VertexFinder(ContactFinder):
    """Finds the rows of a planar model whose pieces are polygons, inscribed ones where they are not."""

    def __init__(self, model: Model, facets: int) -> None:
        if model.dim != 2:
            raise SceneError(
                "stepper = 'nguyen-trinkle' is planar: a vertex against a convex polygon; "
                "with dim = 3 take an implicit stepper, or stewart-trinkle where no body is a union"
            )
        super().__init__(model, None)
        self.vertices: list[np.ndarray] = []  # of pieces, (V, 2) from the centre of mass, body axes
        self.planes: list[np.ndarray] = []  # (F, 3) outward normals and offsets; facet i from vertex i on
        for piece, owner in zip(model.pieces.shapes, model.pieces.owner, strict=True):
            com = model.com[owner]
            if is_halfspace(piece):
                n = piece.values[:-1]
                self.vertices.append(np.zeros((0, 2)))
                self.planes.append(np.append(n, piece.values[-1] - n @ com)[None])
                continue
            if not piece.bounded:
                raise SceneError(
                    f"bodies.{model.names[owner]}.shape: an unbounded {piece.kind} has no facets; "
                    "take half-planes"
                )
            corners, planes = polytope(piece.faceted(facets))
            self.vertices.append(corners - com)
            self.planes.append(np.column_stack([planes[:, :-1], planes[:, -1] - planes[:, :-1] @ com]))

    def contacts(self, state: State, travel: np.ndarray) -> Contacts:
        """One row a contact: the facet from which the vertex is farthest out, nearer than `travel`."""
        rows = self.rows(state, travel)
        return rows.facets.take(rows.largest(rows.facets.gap))

    def rows(self, state: State, travel: np.ndarray) -> FacetRows:
        """The rows of all vertices nearer to a piece than the sum of their bodies' `travel` (B,), m."""
        found: list[Vertices] = []
        sizes: list[np.ndarray] = []  # facets of each contact
        close: list[np.ndarray] = []
        near = self.near(state, travel)
        pairs = self.model.pairs
        for pair, i, j in zip(near.tolist(), *(side.tolist() for side in pairs.pieces(near)), strict=True):
            count = 0
            for side, other, own in ((ON_SECOND, i, j), (ON_FIRST, j, i)):
                facets, bound = len(self.planes[other]), travel[self._owner(own)] + travel[self._owner(other)]
                points = self._seen_from(state, own, other)
                planes = self.planes[other]
                above = points @ planes[:, :-1].T - planes[:, -1]
                chosen = np.flatnonzero(above.max(axis=1, initial=-np.inf) < bound)
                if chosen.size:
                    feature = (count + chosen[:, None]) * facets + np.arange(facets)
                    anchor = np.repeat(self.vertices[own][chosen], facets, axis=0)
                    found.append((pair, side, feature.ravel(), anchor, np.tile(planes, (chosen.size, 1))))
                    sizes.append(np.full(chosen.size, facets))
                    close.append(self._distances(points[chosen], other).ravel() < bound)
                count += len(self.vertices[own]) * facets
        if not found:
            empty = np.zeros(0, int)
            return FacetRows(no_contacts(2), empty, empty, np.zeros(0, bool))
        size = np.concatenate(sizes)
        contact = np.repeat(np.arange(len(size)), size)
        return FacetRows(
            self._from_vertices(state, found), contact, np.cumsum(size) - size, np.concatenate(close)
        )

    def corners(self, piece: int) -> tuple[np.ndarray, np.ndarray]:
        return self.vertices[piece], self.planes[piece]

    def _owner(self, piece: int) -> int:
        return int(self.model.pieces.owner[piece])

    def _seen_from(self, state: State, own: int, other: int) -> np.ndarray:
        """The vertices of piece `own` in the axes of the body of `other`, (V, 2)."""
        a, b = self._owner(other), self._owner(own)
        turn = state.R[a].T
        return np.asarray(self.vertices[own] @ (turn @ state.R[b]).T + turn @ (state.x[b] - state.x[a]))

    def _distances(self, points: np.ndarray, piece: int) -> np.ndarray:
        """(V, F) of points from the facets of a piece, which end at its vertices."""
        corners = self.vertices[piece]
        if not len(corners):
            planes = self.planes[piece]
            return np.abs(points @ planes[:, :-1].T - planes[:, -1])
        edge = np.roll(corners, -1, axis=0) - corners
        away = points[:, None] - corners
        along = np.sum(away * edge, axis=2) / np.sum(edge * edge, axis=1)
        foot = np.clip(along, 0.0, 1.0)[:, :, None] * edge
        return np.asarray(np.linalg.norm(away - foot, axis=2))
