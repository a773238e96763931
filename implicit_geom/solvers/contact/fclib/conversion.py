"""FCLIB's arrays to a `ContactProblem` and back.

FCLIB's global problem is ours with f = M v_free. Its local problem has no masses: with

    [W    V]
    [V^T  R]  =  [H G]^T [H G]

it is ours with M = I, v_free = 0, w = q, b = s, where H and G are a factor of rank many rows. Its velocities
are then in sqrt(J), those of the contacts in m/s as they were.
"""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from implicit_geom.solvers.contact.fclib.arrays import Arrays
from implicit_geom.solvers.contact.problem import ContactProblem

GLOBAL, ROLLING, LOCAL, OURS = "fclib_global", "fclib_global_rolling", "fclib_local", "implicit_geom_global"
DIMENSIONS = {GLOBAL: (2, 3), ROLLING: (5,), LOCAL: (2, 3), OURS: (2, 3, 4, 5)}
UNSYMMETRIC = 1e-8  # |A - A^T| over |A| that rounding and other programs' formats may leave
FACTORED = 1e-8  # |A - F^T F| of a matrix scaled to a diagonal of ones that still counts as a factor
MOST_ENTRIES = 50_000_000  # of the dense blocks of M, or of W and R: 400 MB


def problem_of(arrays: Arrays) -> ContactProblem:
    """The problem of a file; where it holds several, the first of `DIMENSIONS`."""
    group = next((name for name in DIMENSIONS if name in arrays), None)
    if group is None:
        raise arrays.wrong("", f"holds no contact problem: no group {', '.join(DIMENSIONS)}")
    d = arrays.integer(f"{group}/spacedim", 2, 5)
    if d not in DIMENSIONS[group]:
        wanted = " or ".join(map(str, DIMENSIONS[group]))
        more = "; rolling contacts in the plane are not read" if (group, d) == (ROLLING, 3) else ""
        raise arrays.wrong(f"{group}/spacedim", f"= {d} must be {wanted}{more}")
    problem = _local(arrays, d) if group == LOCAL else _global(arrays, group, d)
    problem.stored = arrays.below(group)
    return problem


def _global(a: Arrays, group: str, d: int) -> ContactProblem:
    M = a.matrix(f"{group}/M")
    n = M.shape[0]
    if M.shape[1] != n:
        raise a.wrong(f"{group}/M/n", f"= {M.shape[1]} must be {n}: a mass matrix is square")
    H = a.matrix(f"{group}/H", rows=n)
    contacts = _contacts(a, f"{group}/H/n", H.shape[1], d)
    G = a.matrix(f"{group}/G", rows=n) if f"{group}/G" in a else None
    at = f"{group}/vectors"
    f, w = a.vector(f"{at}/f", n), a.vector(f"{at}/w", d * contacts)
    mu = a.vector(f"{at}/mu", contacts, negative=False)
    mu_r = a.vector(f"{at}/mu_r", contacts, negative=False) if d == 5 else None
    b = None if G is None else a.vector(f"{at}/b", G.shape[1])
    e = np.ones((contacts, d - 1))
    if group == OURS:
        e = a.vector(f"{at}/e", contacts * (d - 1), negative=False).reshape(contacts, d - 1)
    v_free = _solved(a, f"{group}/M", M, f)
    return ContactProblem(M=M, H=H, v_free=v_free, w=w, mu=mu, e=e, mu_r=mu_r, G=G, b=b, dim=d)


def _local(a: Arrays, d: int) -> ContactProblem:
    W = a.matrix(f"{LOCAL}/W")
    rows = W.shape[0]
    if W.shape[1] != rows:
        raise a.wrong(f"{LOCAL}/W/n", f"= {W.shape[1]} must be {rows}: W is square")
    contacts = _contacts(a, f"{LOCAL}/W/m", rows, d)
    q = a.vector(f"{LOCAL}/vectors/q", rows)
    mu = a.vector(f"{LOCAL}/vectors/mu", contacts, negative=False)
    if (f"{LOCAL}/V" in a) != (f"{LOCAL}/R" in a):
        missing = "V" if f"{LOCAL}/R" in a else "R"
        raise a.wrong(f"{LOCAL}/{missing}", "is missing: V and R come together")
    if f"{LOCAL}/V" in a:
        V = a.matrix(f"{LOCAL}/V", rows=rows)
        more = V.shape[1]
        R = a.matrix(f"{LOCAL}/R", rows=more, columns=more)
        s = a.vector(f"{LOCAL}/vectors/s", more)
        F = _factor(a, f"{LOCAL}/W, V, R", sp.csc_matrix(sp.bmat([[W, V], [V.T, R]])))
        G: sp.csc_matrix | None = F[:, rows:]
    else:
        F, G, s = _factor(a, f"{LOCAL}/W", W), None, None
    n = F.shape[0]
    M = sp.identity(n, format="csc")
    return ContactProblem(M=M, H=F[:, :rows], v_free=np.zeros(n), w=q, mu=mu, G=G, b=s, dim=d)


def _contacts(a: Arrays, name: str, rows: int, d: int) -> int:
    if rows % d:
        raise a.wrong(name, f"= {rows} must be a multiple of spacedim = {d}")
    return rows // d


def _check_symmetric(a: Arrays, name: str, A: sp.csc_matrix) -> None:
    largest = abs(A).max() if A.nnz else 0.0
    if A.nnz and abs(A - A.T).max() > UNSYMMETRIC * largest:
        raise a.wrong(name, "must be symmetric")


def _components(a: Arrays, name: str, A: sp.csc_matrix) -> tuple[np.ndarray, list[int]]:
    """An order of the rows in which coupled ones stand together, and where each block of them begins."""
    count, label = connected_components(A, directed=False)
    sizes = np.bincount(label, minlength=count)
    if float(np.sum(sizes.astype(float) ** 2)) > MOST_ENTRIES:
        raise a.wrong(name, f"couples up to {sizes.max()} rows; its blocks are too large to be read")
    return np.argsort(label, kind="stable"), [0, *np.cumsum(sizes).tolist()]


def _solved(a: Arrays, name: str, M: sp.csc_matrix, f: np.ndarray) -> np.ndarray:
    """M^-1 f, where M is symmetric and positive definite."""
    _check_symmetric(a, name, M)
    order, bounds = _components(a, name, M)
    permuted = sp.csr_matrix(M)[order][:, order]
    out = np.zeros(len(f))
    for begin, end in itertools.pairwise(bounds):
        block = permuted[begin:end, begin:end].toarray()
        try:
            np.linalg.cholesky(block)
        except np.linalg.LinAlgError:
            raise a.wrong(name, "must be positive definite") from None
        out[order[begin:end]] = np.linalg.solve(block, f[order[begin:end]])
    return out


def _factor(a: Arrays, name: str, A: sp.csc_matrix) -> sp.csc_matrix:
    """F with F^T F = A, of as many rows as A has rank: Cholesky's, with pivots, of each coupled block."""
    from scipy.linalg.lapack import dpstrf

    _check_symmetric(a, name, A)
    order, bounds = _components(a, name, A)
    permuted = sp.csr_matrix(A)[order][:, order]
    blocks = []
    for begin, end in itertools.pairwise(bounds):
        block = permuted[begin:end, begin:end].toarray()
        diagonal = np.diagonal(block)
        if np.any(diagonal < 0):
            raise a.wrong(name, "must be positive semi-definite")
        # to ones on the diagonal, so that rows of heavy bodies are no rounding beside those of light ones
        scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        block = (block + block.T) / (2 * np.outer(scale, scale))
        upper, pivots, rank, _ = dpstrf(block)
        F = np.zeros((rank, end - begin))
        F[:, pivots - 1] = np.triu(upper)[:rank]
        if np.max(np.abs(F.T @ F - block), initial=0.0) > FACTORED:
            raise a.wrong(name, "must be positive semi-definite")
        blocks.append(F * scale)
    stacked = sp.block_diag(blocks, format="csc") if blocks else sp.csc_matrix((0, 0))
    return sp.csc_matrix(stacked[:, np.argsort(order)])


def arrays_of(problem: ContactProblem, title: str, description: str) -> dict[str, np.ndarray]:
    """What is written of a problem, by path: what was read of it, where it was read."""
    group = OURS
    if np.all(problem.e == 1) and problem.dim != 4:
        group = ROLLING if problem.dim == 5 else GLOBAL
    out: dict[str, np.ndarray] = {}
    if problem.stored is not None:
        out |= problem.stored
        group = next(iter(out)).split("/")[0]
    else:
        out[f"{group}/spacedim"] = np.array([problem.dim], np.int32)
        matrices = {"M": problem.M, "H": problem.H} | ({"G": problem.G} if problem.G.shape[1] else {})
        for name, matrix in matrices.items():
            out |= _compressed(f"{group}/{name}", matrix)
        vectors = {"f": problem.M @ problem.v_free, "w": problem.w, "mu": problem.mu}
        vectors |= {"b": problem.b} if problem.G.shape[1] else {}
        vectors |= {"mu_r": problem.mu_r} if problem.mu_r is not None else {}
        vectors |= {"e": problem.e.ravel()} if group == OURS else {}
        out |= {f"{group}/vectors/{name}": np.asarray(values) for name, values in vectors.items()}
    for name, text in (("title", title), ("description", description)):
        if text:
            out[f"{group}/info/{name}"] = np.array(text.encode())
    return out


def _compressed(name: str, A: sp.csc_matrix) -> dict[str, np.ndarray]:
    """Compressed columns, as FCLIB has them."""
    A = A.sorted_indices()
    sizes = {"m": A.shape[0], "n": A.shape[1], "nz": -1, "nzmax": A.nnz}
    out = {f"{name}/{key}": np.array([size], np.int32) for key, size in sizes.items()}
    parts = {"p": A.indptr.astype(np.int32), "i": A.indices.astype(np.int32), "x": A.data.astype(float)}
    return out | {f"{name}/{key}": array for key, array in parts.items()}
