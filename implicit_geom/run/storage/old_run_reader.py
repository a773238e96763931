"""A program of its own: reads a run without a hash (HDF5 alone) from standard input, in a process of its own.

Such files are as old as the first version, or made by somebody else; damaged bytes can crash HDF5 or keep it
busy for ever, so this happens where it harms nobody (`run.storage.old_runs` starts it). No file is opened:
HDF5 gets the bytes from memory, and only what is stored in them is read.
It writes one line, the list of arrays as in `implicit_geom.run.storage.run_file`, then their bytes.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress

import h5py
import numpy as np

TEXTS = ("scene", "options", "memory")
GROUPS = ("initial", "solves", "contacts", "steps", "motion")
MEMBERS = 200  # of a group
RATIO = 1100  # deflate makes nothing smaller than by 1032
DEFLATE, SHUFFLE = 1, 2  # HDF5's numbers of filters


def main() -> None:
    image = sys.stdin.buffer.read()
    limits(len(image), int(sys.argv[1]))
    with h5py.File(h5py.h5f.open_file_image(image)) as file:
        notes = {name: plain(file.attrs.get(name)) for name in ("format", "format_version", "failure")}
        arrays: dict[str, np.ndarray] = {}
        oldest, newest = int(sys.argv[3]), int(sys.argv[4])
        version = notes["format_version"]
        known = isinstance(version, int) and oldest <= version <= newest
        if notes["format"] == sys.argv[2] and known:
            notes["time"] = plain(member(file, "initial", h5py.Group).attrs["time"])
            arrays = read(file, len(image), int(sys.argv[1]))
    described, place = {}, 0
    for name, array in arrays.items():
        described[name] = [
            array.dtype.str,
            list(array.shape),
            0,
            [[place, array.nbytes, 0]] if array.nbytes else [],
        ]
        place += array.nbytes
    out = sys.stdout.buffer
    out.write(json.dumps({"notes": notes, "arrays": described}).encode() + b"\n")
    for array in arrays.values():
        out.write(array.tobytes())
    out.flush()


def limits(size: int, memory: int) -> None:
    """Little time, no more memory than the content may need, nothing written: where the system has limits."""
    with suppress(ImportError):
        import resource as r

        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process
        signal.setitimer(signal.ITIMER_PROF, 1.0 + size / 2e6)  # s of processor time
        bytes_allowed = min(memory, (2 << 30) + 3 * RATIO * size)
        for what, most in (
            (r.RLIMIT_AS, bytes_allowed),
            (r.RLIMIT_CORE, 0),
            (r.RLIMIT_FSIZE, 0),
        ):
            with suppress(ValueError, OSError):
                r.setrlimit(what, (most, most))


def read(file: h5py.File, size: int, memory: int) -> dict[str, np.ndarray]:
    """All arrays by name, once it is known that they are ordinary and no larger than they can be."""
    found = {name: member(file, name, h5py.Dataset) for name in TEXTS}
    for group in GROUPS:
        inside = member(file, group, h5py.Group)
        names = list(inside)
        if len(names) > MEMBERS:
            raise ValueError(f"{group} has {len(names)} members")
        found |= {f"{group}/{name}": member(inside, name, h5py.Dataset) for name in names}
    stored = sum(check(name, dataset) for name, dataset in found.items())
    needed = sum(
        dataset.dtype.itemsize * int(np.prod(dataset.shape, dtype=float)) for dataset in found.values()
    )
    if stored > size or needed > memory:
        raise ValueError("arrays larger than the file, or than the memory")
    return {name: as_bytes(name, dataset) for name, dataset in found.items()}


def member(group: h5py.Group, name: str, kind: type) -> h5py.Group | h5py.Dataset:
    """A member that is in the file itself: no soft or external link."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise ValueError(f"{name} is a link to elsewhere, or missing")
    found = group[name]
    if not isinstance(found, kind):
        raise ValueError(f"{name} is something else")
    return found


def check(name: str, dataset: h5py.Dataset) -> int:
    """Bytes that a dataset is stored in; refuses what is stored elsewhere, and what is not stored at all."""
    if dataset.is_virtual or dataset.external:
        raise ValueError(f"{name} is stored in another file")
    create = dataset.id.get_create_plist()
    filters = [create.get_filter(i)[0] for i in range(create.get_nfilters())]
    if any(f not in (DEFLATE, SHUFFLE) for f in filters) or len(filters) > 2:
        raise ValueError(f"{name} is stored with filters {filters}")
    if name in TEXTS:
        if dataset.shape != () or h5py.check_string_dtype(dataset.dtype) is None:
            raise ValueError(f"{name} is no text")
        return int(dataset.id.get_storage_size())
    if dataset.dtype.kind not in "fibS" or len(dataset.shape) > 3 or dataset.dtype.subdtype is not None:
        raise ValueError(f"{name} has the type {dataset.dtype} and {len(dataset.shape)} axes")
    stored = int(dataset.id.get_storage_size())
    if dataset.nbytes > (RATIO if DEFLATE in filters else 1) * stored:
        raise ValueError(f"{name} is larger than what is stored of it")
    return stored


def as_bytes(name: str, dataset: h5py.Dataset) -> np.ndarray:
    value = dataset[()]
    if name in TEXTS:
        return np.array(value if isinstance(value, bytes) else str(value).encode())
    return np.ascontiguousarray(value, value.dtype.newbyteorder("<"))


def plain(value: object) -> object:
    """An attribute as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float) else None


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        words = " ".join(str(error).split())
        sys.stderr.write(words or type(error).__name__)
        raise SystemExit(3) from None
