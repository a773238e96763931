"""Contact problems of random entries, and files as FCLIB's C library writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import scipy.sparse as sp

from implicit_geom import ContactProblem

RNG = np.random.default_rng(11)
SEEDED = RNG.bit_generator.state


def seed() -> None:
    """The same numbers again."""
    RNG.bit_generator.state = SEEDED


def put(group: h5py.Group, name: str, A: Any, form: str | None = "csc", room: int = 0) -> None:
    """A matrix as FCLIB's C library stores it: triplets, compressed columns or rows; with room for more."""
    own = group.create_group(name)
    A = sp.coo_matrix(A) if form is None else sp.csc_matrix(A) if form == "csc" else sp.csr_matrix(A)
    parts = (A.row, A.col) if form is None else (A.indptr, A.indices)
    sizes = {"m": A.shape[0], "n": A.shape[1], "nzmax": A.nnz + room}
    sizes["nz"] = A.nnz if form is None else -1 if form == "csc" else -2
    for key, size in sizes.items():
        own.create_dataset(key, data=np.array([size], np.int32))
    more = np.full(room, -7, np.int32)
    own.create_dataset("p", data=parts[0].astype(np.int32))
    own.create_dataset("i", data=np.concatenate([parts[1].astype(np.int32), more]))
    own.create_dataset("x", data=np.concatenate([A.data, np.zeros(room)]))
    own.create_dataset("comment", data=np.bytes_(b"a matrix"))
    own.create_dataset("conditioning", data=np.array([1.0]))
    own.create_dataset("determinant", data=np.array([1.0]))
    own.create_dataset("rank", data=np.array([3], np.int32))


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Every dataset of a file."""
    found: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if hasattr(item, "shape") else None)
    return found


def masses(bodies: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M, H of four contacts and G of two rows, all of random entries."""
    A = RNG.normal(size=(bodies, 6, 6))
    M = np.asarray(sp.block_diag(list(A @ A.transpose(0, 2, 1) + 3 * np.eye(6))).toarray())
    return M, RNG.normal(size=(6 * bodies, 12)), RNG.normal(size=(6 * bodies, 2))


def local_file(path: Path, form: str | None = "csc", bilateral: bool = True) -> dict[str, np.ndarray]:
    """A local problem as FCLIB writes it; the matrices behind it."""
    M, H, G = masses()
    f, w, b = RNG.normal(size=18), RNG.normal(size=12), RNG.normal(size=2)
    inverse = np.linalg.inv(M)
    given = {"W": H.T @ inverse @ H, "q": H.T @ inverse @ f + w, "mu": np.array([0.1, 0.5, 0.7, 1.0])}
    if bilateral:
        given |= {"V": H.T @ inverse @ G, "R": G.T @ inverse @ G, "s": G.T @ inverse @ f + b}
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_local")
        group.create_dataset("spacedim", data=np.array([3], np.int32))
        for name, value in given.items():
            if value.ndim == 2:
                put(group, name, value, form, room=2 if form == "csc" else 0)
            else:
                group.create_dataset(f"vectors/{name}", data=value)
        group.create_dataset("info/title", data=np.bytes_(b"four contacts"))
    return given | {"M": M, "H": H, "G": G, "f": f, "w": w, "b": b}


def whole(**more: Any) -> ContactProblem:
    """A problem of four contacts with bilateral rows."""
    M, H, G = masses()
    given: dict[str, Any] = {"M": M, "H": H, "v_free": RNG.normal(size=18), "w": RNG.normal(size=12)}
    return ContactProblem(**{**given, "mu": np.full(4, 0.4), "G": G, "b": RNG.normal(size=2), **more})


def rolling() -> ContactProblem:
    H = RNG.normal(size=(18, 10))
    return whole(H=H, w=RNG.normal(size=10), mu=[0.3, 0.4], mu_r=[0.01, 0.02])
