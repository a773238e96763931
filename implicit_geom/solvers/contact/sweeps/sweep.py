"""Sweeps over all contacts in machine code: velocities follow every change of an impulse at once.

    b = H_k^T v + w_k - W_kk s_k,    s_k' from the contact's law,    v += M^-1 H_k (s_k' - s_k)

A sweep touches each contact's own numbers only, so that its cost grows as the number of contacts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, isfinite

import numpy as np

from implicit_geom.solvers.contact.law import radii
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.sweeps.arrays import ARRAYS, CERTIFIED, SWEPT

# arrays that the code reads, whose addresses are given to it in this order


class Sweeps:
    """Gauss-Seidel for one problem; impulses in the axes in which the local matrices are diagonal.

    turn          (n_c, d, d) to these axes: s = turn s'
    rows, H, MH   of `Blocks`, in these axes; with bilateral rows all velocities belong to each contact
    free          velocities by body without contact impulses
    """

    def __init__(self, problem: ContactProblem) -> None:
        blocks, d = problem.blocks, problem.dim
        self.problem, self.dim, self.contacts = problem, d, problem.contacts
        rows, H, MH, W = blocks.rows, blocks.H, blocks.MH, problem.W_blocks
        if problem.joints is not None:
            rows, H, MH = _with_joints(problem)
        self.turn, self.values, self.coupling = local_axes(W, d)
        back = np.swapaxes(self.turn, 1, 2)
        self.rows = np.ascontiguousarray(rows, np.int64)
        self.H, self.MH = np.ascontiguousarray(H @ self.turn), np.ascontiguousarray(MH @ self.turn)
        self.W = np.ascontiguousarray(back @ W @ self.turn)
        self.w = self.to_axes(problem.w_ball)
        self.mu = np.ascontiguousarray(np.stack([mu for _, mu in problem.coefficients], axis=1))
        self.mass, self.radius = problem.effective_mass, np.stack(radii(problem), axis=1)
        start = problem.v_free
        if problem.joints is not None:
            start = problem.velocity(np.zeros(d * self.contacts))
        self.free = blocks.spread(start)
        self._out = np.zeros(3)
        self._sweep, self._certify = compiled_sweep(d)
        at = {name: getattr(self, name).ctypes.data for name in ARRAYS}
        self._addresses = np.array(list(at.values()), np.int64)
        self._given = [self.contacts, self.rows.shape[1], *[at[name] for name in SWEPT]]
        self._laws = [self.contacts, self.rows.shape[1], *[at[name] for name in CERTIFIED]]

    def to_axes(self, s: np.ndarray) -> np.ndarray:
        """Scaled impulses or contact velocities in the local axes."""
        return np.ascontiguousarray((s.reshape(-1, 1, self.dim) @ self.turn).ravel())

    def from_axes(self, s: np.ndarray) -> np.ndarray:
        """The reverse of `to_axes`."""
        return np.ascontiguousarray((self.turn @ s.reshape(-1, self.dim, 1)).ravel())

    @property
    def work(self) -> float:
        """Multiplications of a sweep, roughly."""
        return float(self.H.size * 2)

    def run(self, s: np.ndarray, v: np.ndarray, count: int) -> np.ndarray:
        """The impulses after `count` sweeps from s; v by body, which must belong to s, goes with them."""
        own = s.copy()
        contacts, width, *arrays = self._given
        self._sweep(contacts, width, count, *arrays, v.ctypes.data, own.ctypes.data)
        return own

    def certify(self, s: np.ndarray) -> tuple[float, np.ndarray]:
        """The largest residual of the contact laws at impulses s, m/s, and their velocities by body."""
        v = self.free.copy()
        self._certify(*self._laws, v.ctypes.data, s.ctypes.data, self._out.ctypes.data)
        worst, everything, _ = self._out.tolist()
        return (worst if isfinite(everything) else inf), v

    def velocities(self, s: np.ndarray) -> np.ndarray:
        """Velocities by body that belong to impulses s."""
        return self.certify(s)[1] if s.any() else self.free.copy()

    def settle(
        self, s: np.ndarray, v: np.ndarray, count: int, tolerance: float
    ) -> tuple[np.ndarray, float, int]:
        """Over-relaxed sweeps from s, at most `count`, until the largest residual is below the tolerance.

        Impulses, their largest residual and the number of sweeps; v by body goes with them, as in `run`.
        """
        own = s.copy()
        self._out[0] = tolerance
        arrays = (self._addresses, v, own, self._out)
        sizes = (self.contacts, self.rows.shape[1], count, len(v))
        compiled_settle(self.dim)(*sizes, *[a.ctypes.data for a in arrays])
        worst, everything, done = self._out.tolist()
        return own, (worst if isfinite(everything) else inf), int(done)


def local_axes(W: np.ndarray, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rotations (n_c, d, d) of friction rows that make each disc's matrix diagonal, its values, and W_fn."""
    turn = np.zeros_like(W)
    turn[:, 0, 0] = 1.0
    first = slice(1, 3 if d == 5 else d)
    normal = np.maximum(W[:, 0, 0], 1e-300)[:, None, None]
    schur = W[:, first, first] - W[:, first, :1] @ W[:, :1, first] / normal
    values = np.zeros((len(W), d))
    values[:, first], turn[:, first, first] = np.linalg.eigh(schur)
    if d == 5:
        values[:, 3:], turn[:, 3:, 3:] = np.linalg.eigh(W[:, 3:, 3:])
    coupling = (np.swapaxes(turn, 1, 2) @ W[:, :, :1])[:, :, 0]
    return turn, np.maximum(values, 0.0), np.ascontiguousarray(coupling)


def _with_joints(problem: ContactProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """rows, H, MH where an impulse moves, through the joints, bodies that it does not act on."""
    blocks, d, nc = problem.blocks, problem.dim, problem.contacts
    assert problem.joints is not None
    MG, inverse = problem.joints
    dense = problem.H_ball.toarray()
    moved = problem.MH.toarray() - MG @ (inverse @ (problem.G.T @ problem.MH.toarray()))
    rows = np.broadcast_to(blocks.place, (nc, problem.n))
    shaped = [np.swapaxes(A.reshape(problem.n, nc, d), 0, 1) for A in (dense, moved)]
    return rows, shaped[0], shaped[1]


@cache
def compiled_sweep(d: int) -> tuple[Callable[..., int], Callable[..., int]]:
    """`sweep` and `certify` for contacts of d rows, made once."""
    from implicit_geom.machine.object_cache import load
    from implicit_geom.solvers.contact.sources import EMITTING
    from implicit_geom.solvers.contact.sweeps.sweep_code import module

    code = load(f"contact sweep {d}", lambda: (module(d), {}), EMITTING)
    return code.function("sweep", 13), code.function("certify", 12)


@cache
def compiled_settle(d: int) -> Callable[..., int]:
    """`settle` for contacts of d rows."""
    from implicit_geom.machine.object_cache import load
    from implicit_geom.solvers.contact.sources import EMITTING
    from implicit_geom.solvers.contact.sweeps.settle_code import settle_module

    code = load(f"contact settle {d}", lambda: (settle_module(d), {}), EMITTING)
    return code.function("settle", 8)
