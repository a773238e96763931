"""The velocity system (M + H D H^T) dv = -R of a problem, in the way that suits it.

`BlockSystem` eliminates body by body in machine code, and serves where a contact has two bodies at most and
there are no bilateral rows; `JointSystem` solves with the bilateral rows, dense or sparse.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from implicit_geom.process.lazy import cached_property
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.systems.ordering import Pattern

LARGEST = 6  # rows of a body for which code is made
DENSE = 200  # rows up to which a matrix with bilateral rows is dense


class System(ABC):
    """Impulses of the proximal problem and what is left of momentum, velocities by body.

    turn   (n_c, d, d) to other axes of the friction rows, in which impulses and D are then given
    """

    def __init__(self, problem: ContactProblem, turn: np.ndarray | None = None) -> None:
        blocks, d, nc = problem.blocks, problem.dim, problem.contacts
        self.problem, self.blocks = problem, blocks
        width = 2 * blocks.size
        self.H = blocks.H if turn is None else blocks.H @ turn
        self.rows = blocks.rows.astype(np.int64)
        if self.rows.shape[1] < width:  # room for a second body, which does not move
            self.H = np.concatenate([self.H, np.zeros((nc, width - self.H.shape[1], d))], axis=1)
            still = np.full((nc, width - self.rows.shape[1]), blocks.length - 1)
            self.rows = np.concatenate([self.rows, still], axis=1)
        self.H, self.rows = np.ascontiguousarray(self.H), np.ascontiguousarray(self.rows)
        self.turn, self.w = turn, problem.w_ball
        if turn is not None:
            self.w = np.ascontiguousarray((self.w.reshape(nc, 1, d) @ turn).ravel())
        self.mu = np.ascontiguousarray(np.stack([mu for _, mu in problem.coefficients], axis=1))
        self.mass, self.inverse = np.ascontiguousarray(blocks.mass), np.ascontiguousarray(blocks.inverse)
        self.free = blocks.spread(problem.v_free)
        self._square = np.zeros(1)
        self._terms, self._momentum = compiled_law(d)
        self.factorisations = 0

    def terms(self, v: np.ndarray, pb: np.ndarray, rho: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P and D at v."""
        P, D = np.empty_like(pb), np.empty((self.problem.contacts, self.problem.dim, self.problem.dim))
        arrays = (self.rows, self.H, self.w, rho, self.mu, v, pb, P, D)
        self._terms(self.problem.contacts, self.rows.shape[1], *[a.ctypes.data for a in arrays])
        return P, D

    def momentum(self, v: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """R = M (v - v_free) - H P, X = M^-1 R and R . X."""
        R, X, blocks = np.zeros(len(v)), np.zeros(len(v)), self.blocks
        change = v - self.free
        arrays = (self.rows, self.H, self.mass, self.inverse, change, P, R, X, self._square)
        self._momentum(
            self.problem.contacts,
            self.rows.shape[1],
            blocks.count,
            blocks.size,
            *[a.ctypes.data for a in arrays],
        )
        return R, X, float(self._square[0])

    def shifted(self, inverse: Callable[[np.ndarray], np.ndarray], g: np.ndarray) -> np.ndarray:
        """(W + S)^-1 g from the factors for D = S^-1, which `inverse` applies to (n_c, d) arrays as g is."""
        problem, blocks = self.problem, self.blocks
        v = self.solve(blocks.spread(problem.H_ball @ inverse(g).ravel()))
        return inverse(g - (problem.H_ball.T @ blocks.gather(v)).reshape(g.shape))

    @property
    @abstractmethod
    def work(self) -> float:
        """Multiplications of a factorisation, roughly."""

    @abstractmethod
    def factor(self, D: np.ndarray) -> None:
        """Factorise K = M + H D H^T."""

    @abstractmethod
    def solve(self, R: np.ndarray) -> np.ndarray:
        """K^-1 R with the last factors."""


class BlockSystem(System):
    """Block LU by body."""

    def __init__(self, problem: ContactProblem, turn: np.ndarray | None = None) -> None:
        super().__init__(problem, turn)
        blocks = self.blocks
        ends = blocks.ends
        if ends.shape[1] < 2:
            ends = np.concatenate([ends, np.full((len(ends), 1), blocks.count)], axis=1)
        moves = ends < blocks.count
        both = moves[:, 0] & moves[:, 1]
        i, j = ends[both, 0], ends[both, 1]
        low, high = np.divmod(np.unique(np.minimum(i, j) * blocks.count + np.maximum(i, j)), blocks.count)
        self.pattern = pattern = Pattern(blocks.count, np.stack([low, high], axis=1))
        places = np.full((len(ends), 4), -1, np.int64)
        places[:, ::3] = np.where(moves, ends, -1)
        places[both, 1], places[both, 2] = pattern.at(i, j), pattern.at(j, i)
        self.places = places
        self.values = np.empty((pattern.blocks, blocks.size, blocks.size))
        self.room = np.zeros((blocks.size, blocks.size))
        self._factor, self._substitute = compiled_lu(blocks.size, problem.dim)

    @cached_property
    def _given(self) -> list[int]:
        p = self.pattern
        given = (p.order, p.first, p.upper, p.lower, p.corner, p.targets, self.values, self.room)
        return [a.ctypes.data for a in given]

    @cached_property
    def _solving(self) -> list[int]:
        p = self.pattern
        return [a.ctypes.data for a in (p.order, p.first, p.ties, p.upper, p.lower, self.values)]

    @property
    def work(self) -> float:
        size, pattern = self.blocks.size, self.pattern
        products = len(pattern.targets) + len(pattern.ties) + self.blocks.count
        return float(products * size**3 + 4 * self.problem.contacts * size**2 * self.problem.dim)

    def factor(self, D: np.ndarray) -> None:
        self.factorisations += 1
        arrays = (self.mass, self.H, D, self.places)
        contacts, count = self.problem.contacts, self.blocks.count
        places = [a.ctypes.data for a in arrays]
        self._factor(contacts, count, self.pattern.blocks, *places, *self._given)

    def solve(self, R: np.ndarray) -> np.ndarray:
        x = R.copy()
        self._substitute(self.blocks.count, *self._solving, x.ctypes.data, self.room.ctypes.data)
        return x


class JointSystem(System):
    """The system with bilateral rows, which the velocities given obey: G^T dv = 0."""

    def __init__(self, problem: ContactProblem, turn: np.ndarray | None = None) -> None:
        super().__init__(problem, turn)
        self.G = _independent(problem)
        self._solve: Any = None

    def momentum(self, v: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        R, X, square = super().momentum(v, P)
        joints, blocks = self.problem.joints, self.blocks
        if joints is None:
            return R, X, square
        MG, inverse = joints
        own = blocks.gather(X)
        own = own - MG @ (inverse @ (self.problem.G.T @ own))
        return R, blocks.spread(own), float(blocks.gather(R) @ own)

    @property
    def work(self) -> float:
        return float(min(self.problem.n + self.G.shape[1], DENSE) ** 3)  # (sparse factors: not known)

    def factor(self, D: np.ndarray) -> None:
        self.factorisations += 1
        problem, G, d = self.problem, self.G, self.problem.dim
        if self.turn is not None:
            D = self.turn @ D @ np.swapaxes(self.turn, 1, 2)
        contacts, H = problem.contacts, problem.H_ball
        if problem.n + G.shape[1] <= DENSE:
            H3 = H.toarray().reshape(problem.n, contacts, d)
            HD = np.einsum("nki,kij->nkj", H3, D).reshape(problem.n, -1)
            K, bilateral = problem.M.toarray() + HD @ H3.reshape(problem.n, -1).T, G.toarray()
            K = np.block([[K, bilateral], [bilateral.T, np.zeros((G.shape[1], G.shape[1]))]])
            factors = scipy.linalg.lu_factor(K, check_finite=False)
            self._solve = lambda x: scipy.linalg.lu_solve(factors, x, check_finite=False)
            return
        size, which = contacts * d, np.arange(contacts + 1)
        middle = sp.bsr_matrix((D, which[:-1], which), shape=(size, size))
        K = sp.csc_matrix(problem.M + H @ middle @ H.T)
        if G.shape[1]:
            K = sp.csc_matrix(sp.bmat([[K, G], [G.T, None]]))
        self._solve = splu(K).solve

    def solve(self, R: np.ndarray) -> np.ndarray:
        right = np.concatenate([self.blocks.gather(R), np.zeros(self.G.shape[1])])
        return self.blocks.spread(self._solve(right)[: self.problem.n])


def _independent(problem: ContactProblem) -> sp.csc_matrix:
    """Bilateral rows without those that follow from others."""
    G = problem.G
    if not G.shape[1]:
        return G
    scaled = G.toarray() / np.sqrt(problem.M.diagonal())[:, None]
    _, r, order = scipy.linalg.qr(scaled, mode="economic", pivoting=True)
    size = np.abs(np.diag(r))
    return G[:, np.sort(order[: int(np.sum(size > 1e-10 * size[0]))])]


def system_of(problem: ContactProblem, turn: np.ndarray | None = None) -> System:
    """The system that suits a problem."""
    blocks = problem.blocks
    plain = problem.joints is None and blocks.size <= LARGEST and blocks.ends.shape[1] <= 2
    return BlockSystem(problem, turn) if plain else JointSystem(problem, turn)


@cache
def compiled_law(d: int) -> tuple[Callable[..., int], Callable[..., int]]:
    """`terms` and `momentum` for contacts of d rows."""
    from implicit_geom.machine.object_cache import load
    from implicit_geom.solvers.contact.sources import EMITTING
    from implicit_geom.solvers.contact.systems.law_code import law_module

    code = load(f"contact law {d}", lambda: (law_module(d), {}), EMITTING)
    return code.function("terms", 11), code.function("momentum", 13)


@cache
def compiled_lu(size: int, d: int) -> tuple[Callable[..., int], Callable[..., int]]:
    """`factor` and `substitute` for bodies of `size` rows and contacts of d rows."""
    from implicit_geom.machine.object_cache import load
    from implicit_geom.solvers.contact.sources import EMITTING
    from implicit_geom.solvers.contact.systems.lu_code import lu_module

    code = load(f"block lu {size} {d}", lambda: (lu_module(size, d), {}), EMITTING)
    return code.function("factor", 15), code.function("substitute", 9)
