"""A program of its own: reads the arrays of an FCLIB file from standard input, in a process of its own.

Such files come from strangers and have no hash; damaged bytes can crash HDF5 or keep it busy for ever, so
this happens where it harms nobody (`fclib.arrays` starts it). No file is opened: HDF5 gets the bytes from
memory, and only what is stored in them is read. Attributes and unknown groups are passed over.
It writes one line, names, types and shapes of the arrays as JSON, then their bytes.
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import suppress

import h5py
import numpy as np

GROUPS = (
    "fclib_global",
    "fclib_global_rolling",
    "fclib_local",
    "implicit_geom_global",
    "solution",
    "guesses",
)
DEPTH = 3  # fclib_global/M/x
DATASETS = 2000  # of a file: some hundred guesses
LONGEST_TEXT = 100_000
RATIO = 1100  # deflate makes nothing smaller than by 1032
DEFLATE, SHUFFLE = 1, 2  # HDF5's numbers of filters


class Refused(Exception):
    """What is wrong with a file, in words."""


def main() -> None:
    image = sys.stdin.buffer.read()
    memory = int(sys.argv[1])
    limits(len(image), memory)
    with h5py.File(h5py.h5f.open_file_image(image)) as file:
        found: dict[str, h5py.Dataset] = {}
        for name in GROUPS:
            if name in file:
                walk(member(file, name), name, found)
        stored = sum(check(name, dataset) for name, dataset in found.items())
        needed = sum(d.dtype.itemsize * int(np.prod(d.shape, dtype=float)) for d in found.values())
        if stored > len(image):
            raise Refused("holds arrays larger than itself")
        if needed > memory:
            raise Refused(f"holds arrays of {needed:.3g} bytes; at most {memory:.3g} are read")
        arrays = {name: value(dataset) for name, dataset in found.items()}
    out = sys.stdout.buffer
    described = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    out.write(json.dumps(described).encode() + b"\n")
    for array in arrays.values():
        out.write(array.tobytes())
    out.flush()


def limits(size: int, memory: int) -> None:
    """Little time, no more memory than the content may need, nothing written: where the system has limits."""
    with suppress(ImportError):
        import resource as r

        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process
        signal.setitimer(signal.ITIMER_PROF, 2.0 + size / 2e6)  # s of processor time
        for what, most in ((r.RLIMIT_AS, (2 << 30) + 3 * memory), (r.RLIMIT_CORE, 0), (r.RLIMIT_FSIZE, 0)):
            with suppress(ValueError, OSError):
                r.setrlimit(what, (most, most))


def walk(item: h5py.Group | h5py.Dataset, name: str, found: dict[str, h5py.Dataset], depth: int = 0) -> None:
    """All datasets below an item, by their paths."""
    if isinstance(item, h5py.Dataset):
        found[name] = item
    elif depth < DEPTH:
        for below in item:
            walk(member(item, below), f"{name}/{below}", found, depth + 1)
            if len(found) > DATASETS:
                raise Refused(f"holds more than {DATASETS} arrays")
    else:
        raise Refused(f"/{name} is a group; groups are not nested so deeply")


def member(group: h5py.Group, name: str) -> h5py.Group | h5py.Dataset:
    """A member that is in the file itself: no soft or external link."""
    where = f"{group.name.rstrip('/')}/{name}"
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise Refused(f"{where} is a link to elsewhere")
    found = group[name]
    if not isinstance(found, h5py.Group | h5py.Dataset):
        raise Refused(f"{where} is neither a group nor a dataset")
    return found


def check(name: str, dataset: h5py.Dataset) -> int:
    """Bytes that a dataset is stored in; refuses what is stored elsewhere, and what is not stored at all."""
    if dataset.is_virtual or dataset.external:
        raise Refused(f"/{name} is stored in another file")
    create = dataset.id.get_create_plist()
    filters = [create.get_filter(i)[0] for i in range(create.get_nfilters())]
    if any(f not in (DEFLATE, SHUFFLE) for f in filters) or len(filters) > 2:
        raise Refused(f"/{name} is stored with filters {filters}; deflate and shuffle are read")
    stored = int(dataset.id.get_storage_size())
    if h5py.check_string_dtype(dataset.dtype) is not None:
        if dataset.size not in (None, 1) or dataset.dtype.itemsize > LONGEST_TEXT:
            raise Refused(f"/{name} must be one text of at most {LONGEST_TEXT} bytes")
        return stored
    kind = dataset.dtype
    if dataset.shape is None or kind.kind not in "fiu" or kind.itemsize > 8 or kind.subdtype is not None:
        raise Refused(f"/{name} has the type {kind}; it must hold numbers of at most 8 bytes")
    if len(dataset.shape) > 2:
        raise Refused(f"/{name} has {len(dataset.shape)} axes; a dataset has one")
    if dataset.nbytes > (RATIO if DEFLATE in filters else 1) * stored:
        raise Refused(f"/{name} is larger than what is stored of it")
    return stored


def value(dataset: h5py.Dataset) -> np.ndarray:
    if h5py.check_string_dtype(dataset.dtype) is None:
        return np.ascontiguousarray(dataset[()], dataset.dtype.newbyteorder("<"))
    text = b"" if dataset.shape is None else np.ravel(dataset[()])[0]
    text = text if isinstance(text, bytes) else str(text).encode()
    if len(text) > LONGEST_TEXT:
        raise Refused(f"{dataset.name} must be one text of at most {LONGEST_TEXT} bytes")
    return np.array(text.rstrip(b"\0") or b"\0")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        words = " ".join(str(error).split()) or type(error).__name__
        sys.stderr.write(words if isinstance(error, Refused) else f"is damaged: HDF5 says {words!r}")
        raise SystemExit(3) from None
