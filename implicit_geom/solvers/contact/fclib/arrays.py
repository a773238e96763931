"""The arrays of an FCLIB file, read by a process of its own; each is checked when it is asked for."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from implicit_geom.interface.errors import SceneError, SimulationError, one_line

READER = Path(__file__).with_name("reader_program.py")
REFUSED = 3  # the exit status with which the reader says why
WAIT = 60.0  # s, and one more a megabyte: for slow disks and busy machines, the reader limits its own time
MEMORY = 1 << 30  # bytes of all arrays, and of a file: some hundred thousand contacts
MOST_ROWS = 10_000_000  # of a matrix
SIGNATURE = b"\x89HDF\r\n\x1a\n"


class Arrays:
    """Arrays by their paths in a file; SceneError that names the dataset for what does not belong there."""

    def __init__(self, path: Path, found: dict[str, np.ndarray]) -> None:
        self.path = path
        self.found = found

    def __contains__(self, name: str) -> bool:
        return name in self.found or any(key.startswith(f"{name}/") for key in self.found)

    def below(self, name: str) -> dict[str, np.ndarray]:
        """All arrays of a group, by their paths in the file."""
        return {key: array for key, array in self.found.items() if key.startswith(f"{name}/")}

    def wrong(self, name: str, words: str) -> SceneError:
        return SceneError(f"{self.path}: /{name} {words}")

    def array(self, name: str, kinds: str) -> np.ndarray:
        if name not in self.found:
            raise self.wrong(name, "is missing" if name not in self else "is a group; it must be a dataset")
        array = self.found[name]
        if array.dtype.kind not in kinds:
            wanted = "numbers" if "f" in kinds else "whole numbers"
            raise self.wrong(name, f"holds {array.dtype}; it must hold {wanted}")
        return array

    def integer(self, name: str, lowest: int, highest: int) -> int:
        """One whole number."""
        array = self.array(name, "iu")
        if array.size != 1:
            raise self.wrong(name, f"has the shape {array.shape}; it must be one number")
        number = int(array.ravel()[0])
        if not lowest <= number <= highest:
            raise self.wrong(name, f"= {number} must be between {lowest} and {highest}")
        return number

    def vector(self, name: str, size: int, *, negative: bool = True) -> np.ndarray:
        """(size,) finite numbers."""
        array = self.array(name, "fiu")
        if array.shape != (size,):
            raise self.wrong(name, f"has the shape {array.shape}; it must be ({size},)")
        numbers = array.astype(float)
        if not np.all(np.isfinite(numbers)):
            raise self.wrong(name, "holds a number that is not finite")
        if not negative and np.any(numbers < 0):
            raise self.wrong(name, "holds a negative number; it must be zero or positive")
        return numbers

    def matrix(self, name: str, rows: int | None = None, columns: int | None = None) -> sp.csc_matrix:
        """A sparse matrix, of triplets or compressed."""
        m, n = (self.integer(f"{name}/{key}", 0, MOST_ROWS) for key in "mn")
        for key, size, wanted in (("m", m, rows), ("n", n, columns)):
            if wanted is not None and size != wanted:
                raise self.wrong(f"{name}/{key}", f"= {size} must be {wanted}")
        nz = self.integer(f"{name}/nz", -2, MEMORY)
        if nz >= 0:
            row, column = (self._indices(f"{name}/{key}", nz, size) for key, size in (("p", m), ("i", n)))
            values = self._values(name, nz)
            return sp.csc_matrix(sp.coo_matrix((values, (row, column)), shape=(m, n)))
        major, minor = (n, m) if nz == -1 else (m, n)
        starts = self._starts(f"{name}/p", major)
        count = int(starts[-1])
        inner = self._indices(f"{name}/i", count, minor)
        outer = np.repeat(np.arange(major), np.diff(starts))
        where = (inner, outer) if nz == -1 else (outer, inner)
        return sp.csc_matrix(sp.coo_matrix((self._values(name, count), where), shape=(m, n)))

    def _starts(self, name: str, major: int) -> np.ndarray:
        starts = self.array(name, "iu")
        if starts.shape != (major + 1,):
            raise self.wrong(name, f"has the shape {starts.shape}; it must be ({major + 1},)")
        starts = starts.astype(np.int64)
        if starts[0] != 0 or np.any(np.diff(starts) < 0):
            raise self.wrong(name, "must begin with 0 and never fall")
        return starts

    def _indices(self, name: str, count: int, below: int) -> np.ndarray:
        """The first `count` indices; FCLIB may keep room for more."""
        array = self.array(name, "iu")
        if array.ndim != 1 or array.size < count:
            raise self.wrong(name, f"has the shape {array.shape}; it needs {count} entries")
        indices = array[:count].astype(np.int64)
        if count and (indices.min() < 0 or indices.max() >= below):
            raise self.wrong(name, f"holds an index outside 0 to {below - 1}")
        return indices

    def _values(self, name: str, count: int) -> np.ndarray:
        array = self.array(f"{name}/x", "fiu")
        if array.ndim != 1 or array.size < count:
            raise self.wrong(f"{name}/x", f"has the shape {array.shape}; it needs {count} entries")
        return self.vector(f"{name}/x", array.size)[:count]


def read_arrays(path: Path) -> Arrays:
    """All arrays of an FCLIB file; SceneError where it is none."""
    data = _bytes(path)
    if not data.startswith(SIGNATURE):
        raise SceneError(f"{path}: is no HDF5 file; a contact problem is one, in FCLIB's layout")
    command = [sys.executable, "-P", str(READER), str(MEMORY)]
    # no plugins for filters, no threads: neither is needed
    environment = {**os.environ, "HDF5_PLUGIN_PRELOAD": "::", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=WAIT + len(data) / 1e6, env=environment
        )
    except subprocess.TimeoutExpired:
        raise SceneError(f"{path}: is damaged: HDF5 does not come to an end with it") from None
    except OSError as error:
        raise SimulationError(f"the reader of contact problems cannot be started: {error}") from None
    if done.returncode == REFUSED:
        raise SceneError(f"{path}: {one_line(done.stderr)}")
    if done.returncode > 0:
        raise SimulationError(f"the reader of contact problems does not work: {one_line(done.stderr[-200:])}")
    if done.returncode < 0:
        raise SceneError(f"{path}: is damaged: HDF5 cannot read it")
    line, _, rest = done.stdout.partition(b"\n")
    return Arrays(path, _cut(json.loads(line), rest))


def _bytes(path: Path) -> bytes:
    """The content of a regular file; pipes and devices are refused, not waited for."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise SceneError(f"{path}: cannot be read: is no regular file")
        if found.st_size > MEMORY:
            raise SceneError(f"{path}: has {found.st_size} bytes; at most {MEMORY} are read")
        return path.read_bytes()
    except OSError as error:
        raise SceneError(f"{path}: cannot be read: {error.strerror or error}") from None


def _cut(described: list[Any], data: bytes) -> dict[str, np.ndarray]:
    found, place = {}, 0
    for name, kind, shape in described:
        count = int(np.prod(shape, dtype=np.int64))
        found[name] = (np.frombuffer(data, kind, count, place) if count else np.zeros(0, kind)).reshape(shape)
        place += found[name].nbytes
    return found
