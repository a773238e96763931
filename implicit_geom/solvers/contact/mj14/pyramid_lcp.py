"""Contact with friction pyramids as a mixed linear complementarity problem [MJ14, eqs. 14 to 22].

    z = (p_b, [F_n, beta] of each contact, sigma),    F_f = D beta
    G^T v + b = 0,    0 <= F_n _|_ u_n >= 0
    0 <= beta _|_ sigma + D^T u_f >= 0,    0 <= sigma _|_ mu F_n - sum beta >= 0

Its size is n_b + n_c (k + 2) for k directions.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.solvers.contact.mj14.directions import corners
from implicit_geom.solvers.contact.mj14.mixed_lcp import MixedLCP
from implicit_geom.solvers.contact.mj14.operational_space import operational_space
from implicit_geom.solvers.contact.problem import ContactProblem


def unknowns(problem: ContactProblem, directions: int) -> int:
    """The size of the problem, known before it is made."""
    corners = {1: 2, 2: directions, 3: directions + 2}
    own = 1 + sum(corners[rows.stop - rows.start] + 1 for rows, _ in problem.coefficients)
    return int(problem.G.shape[1]) + problem.contacts * own


class PyramidLCP:
    """The problem `lcp` of a contact problem, a start for it, and the way back to impulses."""

    def __init__(
        self,
        problem: ContactProblem,
        *,
        directions: int = 4,
        turn: float | np.ndarray = 0.0,
        aligned: bool = False,
        slip: np.ndarray | None = None,
        scaled: bool = False,
    ) -> None:
        self.problem = problem
        self.space = operational_space(problem, scaled=scaled)
        self.corners = corners(problem, directions, turn, aligned, slip)
        n_c, n_b = problem.contacts, self.space.bilateral
        widths = [D.shape[1] for _, D in self.corners]
        self.own = 1 + sum(widths)  # unknowns of a contact without sigma: F_n, beta
        self.D = self._impulse_columns()
        inner, discs = n_b + n_c * self.own, len(self.corners)
        self.inner = inner
        size = inner + n_c * discs
        M, q = np.zeros((size, size)), np.zeros(size)
        M[:inner, :inner] = self.D.T @ self.space.A @ self.D
        q[:inner] = self.D.T @ self.space.r
        first = n_b + self.own * np.arange(n_c)
        self.beta = []  # unknowns of each disc, (n_c, k)
        start = 1
        for disc, (width, (_, mu)) in enumerate(zip(widths, problem.coefficients)):
            beta = first[:, None] + start + np.arange(width)
            sigma = inner + disc * n_c + np.arange(n_c)
            M[beta, sigma[:, None]] = 1.0
            M[sigma[:, None], beta] = -1.0
            M[sigma, first] = mu
            self.beta.append(beta)
            start += width
        self.first = first
        self.lcp = MixedLCP(M, q, n_b)

    def _impulse_columns(self) -> np.ndarray:
        """(n_b + d n_c, n_b + n_c own): impulses from p_b, F_n and beta [MJ14, eq. 19]."""
        n_c, d, n_b = self.problem.contacts, self.problem.dim, self.space.bilateral
        out = np.zeros((n_b + d * n_c, n_b + n_c * self.own))
        out[:n_b, :n_b] = np.eye(n_b)
        for c in range(n_c):
            row, column = n_b + d * c, n_b + self.own * c
            out[row, column] = 1.0
            column += 1
            for rows, D in self.corners:
                k = D.shape[1]
                out[row + rows.start : row + rows.stop, column : column + k] = D[c].T
                column += k
        return out

    def impulses(self, z: np.ndarray) -> np.ndarray:
        """(d n_c,) scaled impulses s."""
        space = self.space
        return np.asarray((space.unit * (self.D @ z[: self.inner]))[space.bilateral :])

    def start(self, s: np.ndarray | None) -> np.ndarray:
        """Unknowns near the impulses s: friction goes to the nearest corner; bilateral rows are held."""
        space, problem = self.space, self.problem
        z = np.zeros(self.lcp.q.size)
        y = np.zeros(len(space.r))
        if s is not None:
            y[space.bilateral :] = s / space.unit[space.bilateral :]
        y = space.bilateral_start(y)
        z[: space.bilateral] = y[: space.bilateral]
        if s is None:
            return z
        own = y[space.bilateral :].reshape(problem.contacts, problem.dim)
        u = (space.A @ y + space.r)[space.bilateral :].reshape(own.shape)
        z[self.first] = np.maximum(own[:, 0], 0.0)
        each = np.arange(problem.contacts)
        for disc, (rows, D) in enumerate(self.corners):
            along = np.einsum("nkw,nw->nk", D, own[:, rows])
            best = np.argmax(along, axis=1)
            z[self.beta[disc][each, best]] = np.maximum(along[each, best], 0.0)
            sigma = self.inner + disc * problem.contacts + each
            z[sigma] = np.maximum(np.max(-np.einsum("nkw,nw->nk", D, u[:, rows]), axis=1), 0.0)
        return z
