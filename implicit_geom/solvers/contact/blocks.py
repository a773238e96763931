"""A contact problem as dense blocks: a mass matrix for each body, a matrix of directions for each contact.

Velocities are kept by body, each body with the same number of rows, and one body more at the end that never
moves: a contact with fewer bodies than others has that one in place of them. Bodies are blocks of M, merged
to six rows in space or three in the plane where M allows it (a diagonal M would give bodies of one row each).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from implicit_geom.interface.errors import SceneError


def body_labels(M: sp.csc_matrix, rigid: int) -> np.ndarray:
    """(n,) the body of each row of M, consecutive rows each; `rigid` rows a body where M allows it."""
    n = M.shape[0]
    if n == 0:
        return np.zeros(0, np.intp)
    columns = np.repeat(np.arange(n), np.diff(M.indptr))
    if n % rigid == 0 and np.array_equal(M.indices // rigid, columns // rigid):
        return np.arange(n) // rigid
    last = np.arange(n)
    np.maximum.at(last, columns, M.indices)
    np.maximum.at(last, M.indices, columns)
    begins = np.maximum.accumulate(last)[:-1] < np.arange(1, n)
    return np.concatenate([[0], np.cumsum(begins)])


class Blocks:
    """Dense blocks of a problem; H has the scaled directions, in which friction ellipsoids are balls.

    size, count   rows of a body, and number of bodies
    place         (n,) where each velocity of the problem is among those by body
    mass          (count, size, size), unit rows where a body has fewer
    inverse       of each
    ends          (n_c, k) bodies of each contact; `count` for none
    rows          (n_c, k size) where the velocities of a contact's bodies are
    H, MH         (n_c, k size, d) directions of impulses, and what unit impulses do to these bodies
    own           (n_c, d, d) H^T M^-1 H of each contact
    """

    def __init__(
        self, M: sp.csc_matrix, H: sp.csc_matrix, scaling: np.ndarray, dim: int, label: np.ndarray
    ) -> None:
        n, contacts = M.shape[0], H.shape[1] // dim
        counts = np.bincount(label) if n else np.zeros(0, int)
        self.count, self.size = len(counts), int(counts.max(initial=1))
        first = np.concatenate([[0], np.cumsum(counts)])[:-1]
        local = np.arange(n) - first[label]
        self.place = label * self.size + local
        self.mass = np.tile(np.eye(self.size), (self.count, 1, 1))
        at = np.repeat(np.arange(n), np.diff(M.indptr))
        short = np.flatnonzero(counts < self.size)
        self.mass[label, local, local] = 0.0
        np.add.at(self.mass, (label[at], local[M.indices], local[at]), M.data)  # (entries may come twice)
        try:
            np.linalg.cholesky(self.mass)
        except np.linalg.LinAlgError:
            raise SceneError("M is not positive definite: masses and inertias must be above zero") from None
        self.inverse = np.linalg.inv(self.mass)
        if short.size:  # rows that are not there do not move
            there = np.arange(self.size) < counts[:, None]
            self.inverse *= there[:, :, None] & there[:, None, :]
        column = np.repeat(np.arange(H.shape[1]), np.diff(H.indptr))
        contact = column // dim
        key = contact * max(self.count, 1) + label[H.indices]
        found, which = np.unique(key, return_inverse=True)
        owner = found // max(self.count, 1)
        number = np.arange(len(found)) - np.searchsorted(owner, owner)
        width = int(number.max(initial=0)) + 1
        self.ends = np.full((contacts, width), self.count)
        self.ends[owner, number] = found % max(self.count, 1)
        blocks = np.zeros((contacts, width, self.size, dim))
        into = contact, number[which], local[H.indices], column % dim
        np.add.at(blocks, into, H.data * scaling[column])
        padded = np.concatenate([self.inverse, np.zeros((1, self.size, self.size))])
        shape = (contacts, width * self.size, dim)
        self.H = blocks.reshape(shape)
        self.MH = (padded[self.ends] @ blocks).reshape(shape)
        self.own = np.swapaxes(self.H, 1, 2) @ self.MH
        self.rows = (self.ends[:, :, None] * self.size + np.arange(self.size)).reshape(shape[:2])

    @property
    def length(self) -> int:
        """Number of velocities by body, those of the body that never moves among them."""
        return (self.count + 1) * self.size

    def spread(self, v: np.ndarray) -> np.ndarray:
        """The problem's velocities by body."""
        out = np.zeros(self.length)
        out[self.place] = v
        return out

    def gather(self, v: np.ndarray) -> np.ndarray:
        """The problem's velocities of those by body."""
        return v[self.place]

    def pushed(self, s: np.ndarray) -> np.ndarray:
        """M^-1 H s, as the problem's velocities."""
        moved = self.MH @ s.reshape(*self.own.shape[:2], 1)
        return np.bincount(self.rows.ravel(), moved.ravel(), self.length)[self.place]
