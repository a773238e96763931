"""Runs on disk: HDF5 behind a line with its hash, written whole or not at all, readable by any HDF5 tool.

    /            attributes: format, format_version, failure; texts (JSON): versions, scene, options, memory,
                 calls (`implicit_geom.run.record.call_account`)
    /initial     x, q, v, w at the start; attribute time
    /solves      one dataset a column, the states x, q, v, w at the end of every solve, and the velocities
                 `half` that moved the bodies, and which `bodies` these are
    /contacts    closed contacts of every solve, one dataset a column
    /steps       `run.steps`, one dataset a column
    /motion      time, position, orientation, velocity, angular_velocity of every body, for other
                 programs; attribute bodies names them. Not read back.

JSON keeps every bit of a float, so that a loaded run continues exactly as the saved one would have.
`run.storage.run_file` says how the bytes are laid out, `run.storage.run_content` what is checked.
The file is made in memory: HDF5 crashes where a disk is full, ordinary writing does not.
"""

from __future__ import annotations

import io
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from implicit_geom.interface.errors import SceneError, SimulationError, one_line
from implicit_geom.interface.writing import check_replaceable, check_writable, write_whole
from implicit_geom.model.solve_arrays import PARTS, SOLVE, STEP, contact_dtype
from implicit_geom.run.recorded_run import RecordedRun
from implicit_geom.run.storage.old_runs import SIGNATURE, read_old
from implicit_geom.run.storage.run_content import GROUPS, LATER_TEXTS, MOTION, TEXTS, R, run_of
from implicit_geom.run.storage.run_file import (
    HEAD,
    MAGIC,
    Damaged,
    Newer,
    Parts,
    described,
    put,
    seal,
    unseal,
)
from implicit_geom.scene.scene_file import to_dict
from implicit_geom.version import __version__

if TYPE_CHECKING:
    import h5py

FORMAT = "implicit-geom run"
FORMAT_VERSION = 5  # of the HDF5 part
OLDEST = 4  # of it that is still read
SUFFIXES = (".h5", ".hdf5")


def save(run: RecordedRun, path: Path, *, force: bool = False) -> None:
    """Write a run; an existing file is replaced only when the new one is complete, and if it is a run.

    With `force` any file of that name is replaced. SimulationError where the disk does not take it.
    """
    import h5py

    check_output(path, force=force)
    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        _write(run, file)
        arrays = described(file, GROUPS, (*TEXTS, *LATER_TEXTS, "versions"))
    notes = {"failure": _failure(run), "time": run.initial.time}
    write_whole(path, *seal(image.getbuffer(), arrays, notes))


def check_output(path: Path, *, force: bool = False) -> None:
    """Refuse a place where no run can be saved, before any work is done."""
    check_writable(path)
    if path.suffix.lower() not in SUFFIXES:
        raise SceneError(f"{path}: a run is saved as HDF5; give a name that ends in .h5 or .hdf5")
    if not force:
        check_replaceable(path, is_run, "a run saved by implicit-geom")


def is_run(path: Path) -> bool:
    """Whether a file is a run of this or an earlier version, perhaps a damaged one."""
    with path.open("rb") as file:
        head = file.read(256)
        if HEAD.match(head):
            return True
        if not head.startswith(SIGNATURE):
            return False
        data = head + file.read()
        return FORMAT.encode() in data and b"format_version" in data


def load(path: Path, make: type[R]) -> R:
    """Read a run, made by `make`; SceneError for anything that is none, or not as it was written.

    A file without a hash, of an earlier version, is read by a process of its own: `run.storage.old_runs`
    says what cannot be found there.
    """
    if not path.is_file():
        raise SceneError(f"{path}: no such file")
    try:
        data = path.read_bytes()
        parts = unseal(data) if data.startswith(MAGIC) else _old(path, data)
        return run_of(parts, make)
    except Newer:
        raise SceneError(f"{path}: written by a newer version; update implicit-geom") from None
    except Damaged as error:
        raise SceneError(f"{path}: a damaged run: {one_line(error)}") from None
    except OSError as error:
        raise SceneError(f"{path}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise SimulationError(f"{path}: the memory does not suffice to read it") from None


def _old(path: Path, data: bytes) -> Parts:
    foreign = f"{path}: not a run saved by implicit-geom"
    if not data.startswith(SIGNATURE):
        raise SceneError(f"{foreign}, or damaged")
    parts = read_old(data, FORMAT, range(OLDEST, FORMAT_VERSION + 1))
    found = parts.notes.get("format_version")
    if parts.notes.get("format") != FORMAT or not isinstance(found, int):
        raise SceneError(foreign)
    if found > FORMAT_VERSION:
        raise Newer
    if found < OLDEST:
        raise SceneError(f"{path}: written by an older version; run the scene again")
    return parts


def _write(run: RecordedRun, file: h5py.File) -> None:
    texts = {
        "versions": versions(),
        "scene": to_dict(run.scene),
        "options": run.options.as_dict(),
        "memory": run.memory,
        "calls": [call.as_dict() for call in run.calls],
    }
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = FORMAT_VERSION
    file.attrs["failure"] = _failure(run)
    for name, value in texts.items():
        # a dataset, because attributes are limited to 64 kB
        file.create_dataset(name, data=np.bytes_(json.dumps(value).encode()))
    initial = file.create_group("initial")
    initial.attrs["time"] = run.initial.time
    put(initial, ((part, getattr(run.initial, part)) for part in PARTS))
    # column by column: the whole tables of a long run take much memory
    run.assess()
    log = run.log
    solves = file.create_group("solves")
    put(solves, ((part, getattr(log, part)) for part in (*PARTS, "half", "bodies")))
    put(solves, ((name, log.column("table", name, encoded)) for name in SOLVE.names or ()))
    contacts = contact_dtype(run.scene.dim).names or ()
    put(file.create_group("contacts"), ((name, log.column("contacts", name)) for name in contacts))
    put(file.create_group("steps"), ((name, run.taken.column(name, encoded)) for name in STEP.names or ()))
    motion = file.create_group("motion")
    motion.attrs["bodies"] = run.names
    put(motion, [("time", run.time)])
    put(motion, ((name, run.stacked(part)) for name, part in MOTION.items()))


def encoded(column: np.ndarray) -> np.ndarray:
    """Texts as bytes, other columns as they are."""
    return np.char.encode(column, "utf-8") if column.dtype.kind == "U" else column


def _failure(run: RecordedRun) -> str:
    """The reason, which is read back only where it is a line of text."""
    return run.failure if run.failure.isprintable() else one_line(run.failure)


def versions() -> dict[str, str]:
    """What a run was made with."""
    packages = {name: version(name) for name in ("numpy", "casadi")}
    return {"implicit-geom": __version__, "python": platform.python_version(), **packages}
