"""Runs on disk: HDF5, written whole or not at all, readable by any HDF5 tool.

    /            attributes: format, format_version, versions, scene, options, memory, failure (JSON texts)
    /initial     x, q, v, w at the start; attribute time
    /solves      one dataset a column, the states x, q, v, w at the end of every solve, and the velocities
                 `half` that moved the bodies
    /contacts    closed contacts of every solve, one dataset a column
    /steps       `run.steps`, one dataset a column
    /motion      time, position, orientation, velocity, angular_velocity of every body, for other
                 programs; attribute bodies names them. Not read back.

JSON keeps every bit of a float, so that a loaded run continues exactly as the saved one would have.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from implicit_geom.calls import Call
from implicit_geom.errors import SceneError
from implicit_geom.model import State
from implicit_geom.options import SimulationOptions
from implicit_geom.scenefile import read_scene, to_dict
from implicit_geom.solves import PARTS, SOLVE, STEP, Solves, contact_dtype
from implicit_geom.trajectory import Trajectory
from implicit_geom.version import __version__

FORMAT = "implicit-geom run"
FORMAT_VERSION = 4
LATER = ("reason",)  # columns that files of this format may lack


def save(run: Trajectory, path: Path) -> None:
    """Write a run; an existing file is replaced only when the new one is complete."""
    check_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        with h5py.File(name, "w") as file:
            _write(run, file)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to, before any work is done."""
    folder = path.parent
    if not folder.is_dir():
        raise SceneError(f"{path}: there is no directory {str(folder)!r}; make it first")
    if path.is_dir():
        raise SceneError(f"{path}: is a directory; give a file name in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SceneError(f"{path}: the directory {str(folder)!r} cannot be written to; choose another")


def load(path: Path) -> Trajectory:
    """Read a run."""
    if not path.is_file():
        raise SceneError(f"{path}: no such file")
    foreign = f"{path}: not a run saved by implicit-geom"
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise SceneError(foreign)
            if file.attrs["format_version"] > FORMAT_VERSION:
                raise SceneError(f"{path}: written by a newer version; update implicit-geom")
            if file.attrs["format_version"] < FORMAT_VERSION:
                raise SceneError(f"{path}: written by an older version; run the scene again")
            return _read(file)
    except OSError:
        raise SceneError(f"{foreign}, or damaged") from None
    except KeyError as error:
        raise SceneError(f"{path}: a damaged run: {error.args[0]}") from None


def _write(run: Trajectory, file: h5py.File) -> None:
    texts = {
        "versions": versions(),
        "scene": to_dict(run.scene),
        "options": run.options.as_dict(),
        "memory": run.memory,
        "calls": [call.as_dict() for call in run.calls],
    }
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = FORMAT_VERSION
    file.attrs["failure"] = run.failure
    for name, value in texts.items():
        # a dataset, because attributes are limited to 64 kB
        file.create_dataset(name, data=json.dumps(value))
    initial = file.create_group("initial")
    initial.attrs["time"] = run.initial.time
    _put(initial, {part: getattr(run.initial, part) for part in PARTS})
    _put(file.create_group("solves"), {part: getattr(run.log, part) for part in PARTS})
    _put(file["solves"], {"half": run.log.half, **_columns(run.log.table)})
    _put(file.create_group("contacts"), _columns(run.log.contacts))
    _put(file.create_group("steps"), _columns(run.steps))
    states = run.states
    motion = file.create_group("motion")
    motion.attrs["bodies"] = run.names
    names = dict(zip(("position", "orientation", "velocity", "angular_velocity"), PARTS, strict=True))
    _put(motion, {"time": run.time, **{name: getattr(states, part) for name, part in names.items()}})


def _read(file: h5py.File) -> Trajectory:
    texts = {name: json.loads(file[name][()]) for name in ("scene", "options", "memory")}
    scene, _ = read_scene(texts["scene"])
    parts = [file["initial"][part][()] for part in PARTS]
    initial = State(float(file["initial"].attrs["time"]), *parts)
    solves = Solves(
        table=_table(file["solves"], SOLVE),
        half=file["solves"]["half"][()],
        contacts=_table(file["contacts"], contact_dtype(scene.dim)),
        **{part: file["solves"][part][()] for part in PARTS},
    )
    options = SimulationOptions(**texts["options"])
    steps = _table(file["steps"], STEP)
    failure = str(file.attrs["failure"])
    calls = [Call(**call) for call in json.loads(file["calls"][()])] if "calls" in file else None
    return Trajectory(
        scene, options, initial, solves, steps, texts["memory"], failure, assessed=len(steps), calls=calls
    )


def versions() -> dict[str, str]:
    """What a run was made with."""
    packages = {name: version(name) for name in ("numpy", "casadi")}
    return {"implicit-geom": __version__, "python": platform.python_version(), **packages}


def _columns(table: np.ndarray) -> dict[str, np.ndarray]:
    return {name: table[name] for name in table.dtype.names or ()}


def _put(group: h5py.Group, arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind == "U":
            array = np.char.encode(array, "utf-8")
        options: dict[str, Any] = {"compression": "gzip", "shuffle": True} if array.size > 256 else {}
        group.create_dataset(name, data=np.ascontiguousarray(array), **options)


def _table(group: h5py.Group, dtype: np.dtype) -> np.ndarray:
    names = dtype.names or ()
    # (a column that an earlier version did not write stays empty)
    columns = {name: group[name][()] for name in names if name in group or name not in LATER}
    table = np.zeros(len(columns[names[0]]), dtype)
    for name, column in columns.items():
        table[name] = np.char.decode(column, "utf-8") if column.dtype.kind == "S" else column
    return table


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
