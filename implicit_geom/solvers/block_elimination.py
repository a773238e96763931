"""Block elimination: each contact is eliminated from the Newton matrix, a Schur complement is factorised.

A contact's own unknowns couple to its two bodies only.

With the rows and unknowns of contact c written o, those of bodies b,

    [ A_oo  A_ob ] [dz_o]     [F_o]
    [ A_bo  A_bb ] [dz_b] = - [F_b],          S = sum_c (A_bb - A_bo A_oo^-1 A_ob) + momentum blocks

each contact is eliminated by itself and the sparse Schur complement S on the velocities is factorised.
The shift on the diagonal of A_oo is what makes that possible: the law of a sticking contact does not
contain its impulse. It leaves S as stiff as the shift is small, hence one correction of every solution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# an ordering for patterns that are symmetric, with pivots on the diagonal as far as they are not small
FACTORS: dict[str, Any] = {
    "permc_spec": "MMD_AT_PLUS_A",
    "diag_pivot_thresh": 0.01,
    "options": {"SymmetricMode": True},
}
CORRECTIONS = 1  # of a solution, from the residual of the linear equations


NOTHING = 1e-15  # entries over the root of their two diagonal ones that are left out


def factorised(matrix: Any) -> Any:
    """Sparse factors of a matrix on the velocities; open contacts leave no entries in them."""
    from scipy.sparse.linalg import splu

    matrix = matrix.copy()  # (the pattern is shared)
    root = np.sqrt(np.abs(matrix.diagonal()))
    column = np.repeat(root, np.diff(matrix.indptr))
    matrix.data[np.abs(matrix.data) <= NOTHING * root[matrix.indices] * column] = 0.0
    matrix.eliminate_zeros()
    return splu(matrix, **FACTORS)


class GroupPattern:
    """Where the entries of one group's contacts go."""

    def __init__(self, inputs: np.ndarray, own: int) -> None:
        self.n, width = inputs.shape
        self.own, self.ends = own, width - own  # unknowns of a contact, velocities of its bodies
        self.at_ends, self.at_own = inputs[:, : self.ends], inputs[:, self.ends :]
        self._places: dict[int, tuple[Any, np.ndarray]] = {}

    def blocks(self, sparsity: Any, entries: np.ndarray) -> np.ndarray:
        """The dense blocks (n, own + ends rows, ends + own columns) of a kernel's Jacobian entries."""
        key = id(sparsity)
        if key not in self._places:
            row, column = np.array(sparsity.row(), int), np.array(sparsity.get_col(), int)
            self._places[key] = (sparsity, row * (self.own + self.ends) + column)
        out = np.zeros((self.n, (self.own + self.ends) ** 2))
        out[:, self._places[key][1]] = entries
        return out.reshape(self.n, self.own + self.ends, self.ends + self.own)


class BlockPattern:
    """Index arrays of a set of candidates, made once."""

    def __init__(self, size: int, bodies: int, velocities: int, groups: list[GroupPattern]) -> None:
        self.size, self.velocities, self.groups = size, velocities, groups
        self.moving = bodies * velocities
        nv = velocities
        rows, columns = [], []
        own = np.arange(self.moving).reshape(bodies, nv)
        # momentum blocks are written by columns
        rows.append(np.broadcast_to(own[:, None, :], (bodies, nv, nv)).ravel())
        columns.append(np.broadcast_to(own[:, :, None], (bodies, nv, nv)).ravel())
        for g in groups:
            shape = (g.n, g.ends, g.ends)
            rows.append(np.broadcast_to(g.at_ends[:, :, None], shape).ravel())
            columns.append(np.broadcast_to(g.at_ends[:, None, :], shape).ravel())
        row, column = np.concatenate(rows), np.concatenate(columns)
        places, self.entry = np.unique(column * self.moving + row, return_inverse=True)
        self.indices = (places % self.moving).astype(np.int32)
        count = np.bincount(places // self.moving, minlength=self.moving)
        self.indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)

    def bodies(self, group: GroupPattern) -> np.ndarray:
        """The bodies of a group's contacts that move, (n, 1 or 2)."""
        return group.at_ends[:, :: self.velocities] // self.velocities

    def schur(self, values: list[np.ndarray]) -> Any:
        """The Schur complement on the velocities from its blocks, momentum first."""
        data = np.bincount(self.entry, np.concatenate([v.ravel() for v in values]), len(self.indices))
        from scipy.sparse import csc_matrix  # (here: it takes long to import)

        return csc_matrix((data, self.indices, self.indptr), shape=(self.moving, self.moving))


class BlockMatrix:
    """A Newton matrix by blocks."""

    def __init__(self, pattern: BlockPattern, momentum: np.ndarray, contacts: list[np.ndarray]) -> None:
        self.pattern = pattern
        self.momentum = momentum.reshape(-1, pattern.velocities, pattern.velocities)  # column-major each
        self.contacts = contacts

    @property
    def size(self) -> int:
        return self.pattern.size

    def shifted(self, diagonal: np.ndarray) -> BlockMatrix:
        """This matrix with more on its diagonal."""
        p = self.pattern
        contacts = []
        for g, block in zip(p.groups, self.contacts, strict=True):
            block = block.copy()
            k = np.arange(g.own)
            block[:, k, g.ends + k] += diagonal[g.at_own]
            contacts.append(block)
        momentum = self.momentum.copy()
        k = np.arange(p.velocities)
        momentum[:, k, k] += diagonal[: p.moving].reshape(-1, p.velocities)
        return BlockMatrix(p, momentum, contacts)

    def __matmul__(self, z: np.ndarray) -> np.ndarray:
        p = self.pattern
        bodies = np.einsum("bji,bj->bi", self.momentum, z[: p.moving].reshape(-1, p.velocities))
        out = np.zeros(p.size)
        out[: p.moving] = bodies.ravel()
        for g, block in zip(p.groups, self.contacts, strict=True):
            rows = (block @ np.concatenate([z[g.at_ends], z[g.at_own]], axis=1)[:, :, None])[:, :, 0]
            out[g.at_own] = rows[:, : g.own]
            out += np.bincount(g.at_ends.ravel(), rows[:, g.own :].ravel(), p.size)
        return out

    def dense(self) -> np.ndarray:
        """All of it."""
        p = self.pattern
        out = np.zeros((p.size, p.size))
        nv = p.velocities
        for i, block in enumerate(self.momentum):
            out[nv * i : nv * i + nv, nv * i : nv * i + nv] = block.T
        for g, blocks in zip(p.groups, self.contacts, strict=True):
            for ends, own, block in zip(g.at_ends, g.at_own, blocks, strict=True):
                out[np.ix_(own, np.concatenate([ends, own]))] += block[: g.own]
                out[np.ix_(ends, np.concatenate([ends, own]))] += block[g.own :]
        return out

    def step(self, F: np.ndarray, shift: np.ndarray) -> np.ndarray | None:
        """The solution of (J + diag(shift)) dz = -F; None where there is none."""
        matrix = self.shifted(shift)
        try:
            factors = SchurFactors(matrix)
        except (np.linalg.LinAlgError, RuntimeError):
            return None
        dz = factors.solve(-F)
        for _ in range(CORRECTIONS):
            dz = dz + factors.solve(-F - matrix @ dz)
        return dz if np.all(np.isfinite(dz)) else None


class SchurFactors:
    """The Schur complement on the velocities, factorised, and what carries solutions back to the contacts."""

    def __init__(self, matrix: BlockMatrix) -> None:
        self.matrix, p = matrix, matrix.pattern
        self.inverse, self.out, self.back = [], [], []
        values = [matrix.momentum]
        for g, block in zip(p.groups, matrix.contacts, strict=True):
            inverse = np.linalg.inv(block[:, : g.own, g.ends :])
            out = block[:, g.own :, g.ends :] @ inverse  # A_bo A_oo^-1
            self.inverse.append(inverse)
            self.out.append(out)
            self.back.append(inverse @ block[:, : g.own, : g.ends])  # A_oo^-1 A_ob
            values.append(block[:, g.own :, : g.ends] - out @ block[:, : g.own, : g.ends])
        schur = p.schur(values)
        if not np.all(np.isfinite(schur.data)):
            raise np.linalg.LinAlgError("the matrix has entries that are not finite")
        self.factors = factorised(schur)

    def solve(self, right: np.ndarray) -> np.ndarray:
        p = self.matrix.pattern
        condensed = right[: p.moving].copy()
        for g, out in zip(p.groups, self.out, strict=True):
            part = (out @ right[g.at_own][:, :, None])[:, :, 0]
            condensed -= np.bincount(g.at_ends.ravel(), part.ravel(), p.moving)
        z = np.zeros(p.size)
        z[: p.moving] = self.factors.solve(condensed)
        for g, inverse, back in zip(p.groups, self.inverse, self.back, strict=True):
            own = inverse @ right[g.at_own][:, :, None] - back @ z[g.at_ends][:, :, None]
            z[g.at_own] = own[:, :, 0]
        return z
