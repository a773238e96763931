"""Changes of a run's HDF5 file that somebody who means harm could make with h5py."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np

SECRET = "/etc/hostname"
Attack = Callable[[h5py.File, np.random.Generator], None]
TABLES = ("initial", "solves", "contacts", "steps", "motion")


def put(file: h5py.File, name: str, **made: Any) -> h5py.Dataset:
    """Another dataset in the place of one."""
    del file[name]
    return file.create_dataset(name, **made)


def _any(file: h5py.File, rng: np.random.Generator) -> str:
    group = str(rng.choice(TABLES))
    return f"{group}/{rng.choice(list(file[group]))}"


def external_storage(file: h5py.File, _: np.random.Generator) -> None:
    """A column whose bytes are those of another file."""
    count = len(file["steps/form"])
    put(file, "steps/form", shape=(count,), dtype="S6", external=[(SECRET, 0, 6 * count)])


def external_link(file: h5py.File, rng: np.random.Generator) -> None:
    name = _any(file, rng)
    del file[name]
    file[name] = h5py.ExternalLink("elsewhere.h5", "/x")


def soft_link(file: h5py.File, rng: np.random.Generator) -> None:
    name, other = _any(file, rng), _any(file, rng)
    del file[name]
    file[name] = h5py.SoftLink(f"/{other}")


def virtual(file: h5py.File, _: np.random.Generator) -> None:
    """A column put together from another file."""
    shape = file["steps/wall_time"].shape
    layout = h5py.VirtualLayout(shape, "f8")
    layout[:] = h5py.VirtualSource("elsewhere.h5", "x", shape)
    del file["steps/wall_time"]
    file.create_virtual_dataset("steps/wall_time", layout)


def never_written(file: h5py.File, _: np.random.Generator) -> None:
    """Gigabytes of which nothing is stored."""
    put(file, "initial/x", shape=(5 * 10**8,), dtype="f8", chunks=(10**6,), compression="gzip")


def bomb(file: h5py.File, _: np.random.Generator) -> None:
    """Gigabytes of which a little is stored, well compressed."""
    dataset = put(file, "initial/x", shape=(3 * 10**8,), dtype="f8", chunks=(10**5,), compression="gzip")
    dataset[: 10**5] = 0.0


def more_rows(file: h5py.File, _: np.random.Generator) -> None:
    put(file, "contacts/solve", shape=(10**7,), dtype="i1", chunks=(10**6,), compression="gzip")


def other_type(file: h5py.File, rng: np.random.Generator) -> None:
    name = _any(file, rng)
    kinds = ["f4", "i1", "u8", "c16", "S3", h5py.string_dtype(), h5py.vlen_dtype("f8"), "V4", "b1"]
    kinds += [np.dtype([("a", "f8")]), h5py.ref_dtype, h5py.enum_dtype({"a": 1}), np.dtype(("f8", (2,)))]
    put(file, name, shape=file[name].shape, dtype=kinds[rng.integers(len(kinds))])


def other_shape(file: h5py.File, rng: np.random.Generator) -> None:
    name = _any(file, rng)
    shapes: list[tuple[int, ...]] = [(), (0,), (1,), (3, 3), (2, 2, 2, 2), (10**4,), (0, 10**6)]
    shape, dtype = shapes[rng.integers(len(shapes))], file[name].dtype
    put(file, name, data=np.zeros(shape, dtype))


def wrong_number(file: h5py.File, rng: np.random.Generator) -> None:
    """NaN, infinity, something huge or negative somewhere."""
    name = _any(file, rng)
    array = file[name][()]
    if array.dtype.kind == "f" and array.size:
        array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0])
    elif array.dtype.kind == "i" and array.size:
        array.flat[rng.integers(array.size)] = rng.choice([-1, 10**6, 2**62, -(2**63)])
    elif array.dtype.kind == "S" and array.size:
        array.flat[rng.integers(array.size)] = b"\xff\x1b[2"
    put(file, name, data=array)


def other_filter(file: h5py.File, rng: np.random.Generator) -> None:
    name = _any(file, rng)
    array = file[name][()]
    if array.ndim and array.size:
        put(
            file,
            name,
            data=array,
            chunks=True,
            **({"compression": "lzf"}, {"fletcher32": True})[rng.integers(2)],
        )


def missing(file: h5py.File, rng: np.random.Generator) -> None:
    del file[_any(file, rng)]


def unknown(file: h5py.File, rng: np.random.Generator) -> None:
    file[f"{rng.choice(TABLES[:-1])}/more"] = np.zeros(3)


def group_for_array(file: h5py.File, rng: np.random.Generator) -> None:
    name = _any(file, rng)
    del file[name]
    file.create_group(name)


def circle(file: h5py.File, rng: np.random.Generator) -> None:
    """A group that is a member of itself."""
    name = str(rng.choice(TABLES))
    file[f"{name}/again"] = file[name]


def odd_attributes(file: h5py.File, rng: np.random.Generator) -> None:
    values: list[Any] = [
        "\x1b]0;x\x07\x1b[2J",
        7,
        np.nan,
        np.zeros(3),
        "",
        np.bytes_(b"\xff"),
        h5py.Empty("f8"),
    ]
    value = values[rng.integers(len(values))]
    where, name = ((file, "failure"), (file, "format_version"), (file["initial"], "time"))[rng.integers(3)]
    where.attrs[name] = value


def odd_text(file: h5py.File, rng: np.random.Generator) -> None:
    """JSON of something else, nested without end, or with numbers without end."""
    texts = [
        "{}",
        "[]",
        "7",
        "",
        "\0",
        "[" * 10**5,
        '{"a":' * 10**5,
        "1" * 10**5,
        "NaN",
        '{"dim": 1e999}',
        "\x1b",
    ]
    name = str(rng.choice(["scene", "options", "memory"]))
    put(file, name, data=texts[rng.integers(len(texts))].replace("\0", "?"))


def odd_memory(file: h5py.File, rng: np.random.Generator) -> None:
    """A solver's memory in which something is missing, or another thing than a number."""
    memory = json.loads(file["memory"][()])
    key = str(rng.choice(list(memory)))
    values: list[Any] = [
        None,
        [],
        {},
        {"x": 1},
        {"0": "x"},
        [[1]],
        -1,
        {"0": [None]},
        {"99999999999999999999": []},
    ]
    memory[key] = values[rng.integers(len(values))]
    put(file, "memory", data=json.dumps(memory))


ATTACKS: tuple[Attack, ...] = (
    external_storage, external_link, soft_link, virtual, never_written, bomb, more_rows, other_type,
    other_shape, wrong_number, wrong_number, other_filter, missing, unknown, group_for_array, circle,
    odd_attributes, odd_text, odd_memory,
)  # fmt: skip
