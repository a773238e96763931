"""The file of a run as bytes: an HDF5 file behind a block of text that says what is in it, and its hash.

    implicit-geom run 6 sha256=... bytes=...      the format, the hash of all that follows and its length
    {"block": ..., "notes": ..., "arrays": ...}   where the bytes of each array are, as JSON in one line
    blanks up to byte `block`, a power of two
    HDF5

HDF5 allows such a block before its data (a "user block", as MATLAB's files have one): h5py, h5dump and
pandas find the data behind it. A program that changes the HDF5 part leaves the block alone, so that the
hash no longer fits; a hash at the end of the file could be cut off or overwritten without a trace.

The hash finds damage. It is no signature: whoever means harm can compute it anew. So reading takes nothing
on trust, and HDF5, a large library that damaged bytes can crash, is not asked at all: the arrays are cut
out of the bytes by the list above, after every number in it was checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from implicit_geom.interface.strict_json import read_json

if TYPE_CHECKING:
    import h5py

MAGIC = b"implicit-geom run "
VERSION = 6
OLDEST = 5  # that is still read
HEAD = re.compile(rb"implicit-geom run (\d{1,9}) sha256=([0-9a-f]{64}) bytes=(\d{1,18})\n")
CHUNK = 1 << 20  # bytes of rows that are compressed together
SMALL = 256  # entries: arrays up to this are stored as they are
RATIO = 1100  # deflate makes nothing smaller than by 1032
KINDS = re.compile(r"<f8|<i8|\|b1|\|S([1-9]\d{0,9})")


class Damaged(ValueError):
    """Why bytes are no run; one line."""


class Newer(ValueError):
    """A run of a version that is still to come."""


@dataclass(frozen=True)
class Parts:
    """What a file holds: its arrays by name, and notes, plain data that is in no array."""

    notes: dict[str, Any]
    arrays: dict[str, np.ndarray]


def described(file: h5py.File, groups: tuple[str, ...], texts: tuple[str, ...]) -> dict[str, list[Any]]:
    """Where the bytes of each array of an HDF5 file are, by name."""
    file.flush()
    named = {name: file[name] for name in texts}
    named |= {f"{group}/{name}": member for group in groups for name, member in file[group].items()}
    return {name: _where(dataset) for name, dataset in named.items()}


def seal(
    image: bytes | memoryview, arrays: dict[str, list[Any]], notes: dict[str, Any]
) -> list[bytes | memoryview]:
    """The bytes of an HDF5 file, with the block before them, in pieces to be written."""
    notes = {**notes, "version": VERSION}  # (the first line is not part of what is hashed)
    plain = json.dumps({"notes": notes, "arrays": arrays}, separators=(",", ":")).encode()
    block = 512
    while block < len(plain) + 200:  # the first line, `block` itself
        block *= 2
    index = b'{"block":%d,' % block + plain[1:]
    line = _line(b"0" * 64, 0)
    index = index.ljust(block - len(line) - 1) + b"\n"
    digest = hashlib.sha256(index)
    digest.update(image)
    return [_line(digest.hexdigest().encode(), len(index) + len(image)), index, image]


def put(group: h5py.Group, arrays: Iterable[tuple[str, np.ndarray]], chunk: int = CHUNK) -> None:
    """Write arrays by name, one after the other, long ones compressed by rows, `chunk` bytes together."""
    for name, array in arrays:
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        options: dict[str, Any] = {}
        if array.size > SMALL:
            rows = max(1, chunk * len(array) // array.nbytes)
            chunks = (min(rows, len(array)), *array.shape[1:])
            options = {"compression": "gzip", "shuffle": True, "chunks": chunks}
        group.create_dataset(name, data=array, **options)


def unseal(data: bytes) -> Parts:
    """What the bytes of a file hold; Damaged where they are not as they were written."""
    head = HEAD.match(data)
    if head is None:
        raise Damaged("its first line is not as it was written")
    version, wanted, length = int(head[1]), head[2], int(head[3])
    if version > VERSION:
        raise Newer
    rest = memoryview(data)[head.end() :]
    if len(rest) != length:
        raise Damaged(f"{length} bytes were written after its first line, and {len(rest)} are there")
    if version < OLDEST or hashlib.sha256(rest).hexdigest().encode() != wanted:
        raise Damaged("its bytes are not those that were written")
    end = data.find(b"\n", head.end())
    index = read_index(data[head.end() : end])
    block = index.get("block")
    if not isinstance(block, int) or not head.end() < block <= len(data):
        raise Damaged(f"block = {block!r} does not fit the file")
    if index["notes"].get("version", OLDEST) != version:
        raise Damaged("its first line is not as it was written")
    return cut(index, memoryview(data)[block:])


def read_index(text: bytes) -> dict[str, Any]:
    """The list of arrays."""
    try:
        index = read_json(text)
    except ValueError as error:
        raise Damaged(f"the list of its arrays cannot be read: {error}") from None
    if not isinstance(index, dict) or not all(isinstance(index.get(k), dict) for k in ("notes", "arrays")):
        raise Damaged("the list of its arrays is incomplete")
    return index


def cut(index: dict[str, Any], image: memoryview) -> Parts:
    """The arrays that a list describes, out of the bytes it speaks of; each byte belongs to one of them."""
    found = [(str(name), _described(str(name), entry)) for name, entry in index["arrays"].items()]
    pieces = sorted(piece[:2] for _, (_, _, _, pieces) in found for piece in pieces)
    ends = [0, *(offset + size for offset, size in pieces)]
    if any(offset < end for (offset, _), end in zip(pieces, ends)) or ends[-1] > len(image):
        raise Damaged("the list of its arrays does not fit the file")
    needed = sum(dtype.itemsize * math.prod(shape) for _, (dtype, shape, _, _) in found)
    if needed > memory_limit():
        raise Damaged(f"it says that it holds {needed:.2g} bytes, more than this computer's memory")
    return Parts(index["notes"], {name: _array(name, image, *entry) for name, entry in found})


def memory_limit() -> int:
    """Bytes of memory that this computer has; where it does not say, 2^40."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 40


Entry = tuple[np.dtype, tuple[int, ...], int, list[tuple[int, int, int]]]


def _described(name: str, entry: Any) -> Entry:
    """dtype, shape, rows in a chunk (0: not compressed), and offset, size and filter mask of each chunk."""
    wrong = Damaged(f"{name} is not described as an array")
    if not isinstance(entry, list) or len(entry) != 4:
        raise wrong
    kind, shape, rows, pieces = entry
    if not isinstance(kind, str) or not KINDS.fullmatch(kind) or not isinstance(pieces, list):
        raise wrong
    if not isinstance(shape, list) or len(shape) > 3 or not all(_whole(n) for n in shape) or not _whole(rows):
        raise wrong
    if not all(isinstance(p, list) and len(p) == 3 and all(_whole(n) for n in p) for p in pieces):
        raise wrong
    dtype = np.dtype(kind)
    bytes_a_row = dtype.itemsize * math.prod(shape[1:])
    if rows == 0:
        sizes = [bytes_a_row * (shape[0] if shape else 1)]
        fits = [p[1] for p in pieces] == [size for size in sizes if size]
    else:
        fits = bool(shape) and len(pieces) == -(-shape[0] // rows)
        fits = fits and all(rows * bytes_a_row <= RATIO * max(p[1], 1) for p in pieces)
    if not fits:
        raise Damaged(f"{name} has another size than its shape {tuple(shape)} needs")
    return dtype, tuple(shape), rows, [(p[0], p[1], p[2]) for p in pieces]


def _array(
    name: str, image: memoryview, dtype: np.dtype, shape: tuple[int, ...], rows: int, pieces: list[Any]
) -> np.ndarray:
    if rows == 0:
        data = b"".join(image[offset : offset + size] for offset, size, _ in pieces)
        return _typed(name, np.frombuffer(data, np.uint8), dtype, shape)
    row = dtype.itemsize * math.prod(shape[1:])
    out = np.empty(row * shape[0], np.uint8)
    for k, (offset, size, mask) in enumerate(pieces):
        chunk = np.frombuffer(_inflated(name, image[offset : offset + size], rows * row, mask), np.uint8)
        if not mask & 1:
            chunk = chunk.reshape(dtype.itemsize, -1).T.reshape(-1)  # HDF5's shuffle: byte by byte
        place = out[k * rows * row : (k + 1) * rows * row]
        place[:] = chunk[: len(place)]  # the last chunk is written in full
    return _typed(name, out, dtype, shape)


def _inflated(name: str, piece: memoryview, size: int, mask: int) -> bytes:
    if mask & 2:  # HDF5 leaves a chunk as it is where deflate would make it longer
        data, whole = bytes(piece), True
    else:
        inflate = zlib.decompressobj()
        try:
            data = inflate.decompress(piece, size)
            data += inflate.decompress(inflate.unconsumed_tail, 1)  # reads the checksum; gives nothing more
        except zlib.error:
            raise Damaged(f"{name} cannot be decompressed") from None
        whole = inflate.eof and not inflate.unused_data
    if len(data) != size or not whole:
        raise Damaged(f"{name} cannot be decompressed")
    return data


def _typed(name: str, data: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if dtype.kind == "b" and data.max(initial=0) > 1:
        raise Damaged(f"{name} holds something else than true and false")
    array = data.view(dtype).reshape(shape)
    return np.array(array, dtype.newbyteorder("="))


def _where(dataset: h5py.Dataset) -> list[Any]:
    """The description of a dataset."""
    kind = dataset.dtype.str
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        pieces = [] if offset is None else [[offset, dataset.nbytes, 0]]
        return [kind, list(dataset.shape), 0, pieces]
    found = [dataset.id.get_chunk_info(i) for i in range(dataset.id.get_num_chunks())]
    found.sort(key=lambda chunk: chunk.chunk_offset)
    pieces = [[chunk.byte_offset, chunk.size, chunk.filter_mask] for chunk in found]
    return [kind, list(dataset.shape), dataset.chunks[0], pieces]


def _line(digest: bytes, length: int) -> bytes:
    return MAGIC + b"%d sha256=%s bytes=%018d\n" % (VERSION, digest, length)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48
