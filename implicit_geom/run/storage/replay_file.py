"""The file of a failed step: JSON with a hash of its content, of which nothing is believed when it is read.

    format, format_version, sha256      the hash is that of all other entries, written without blanks, sorted
    reason, time, history               of the failure
    scene, state, solver, step, options what the step depends on

JSON has no word for NaN and infinity; residuals that became so, and solutions that are not known yet (in
`solver.history`), are the texts "nan", "inf" and "-inf". Files of earlier versions have neither version nor
hash, and words of their own there (NaN, Infinity): they are read with all other checks.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SceneError, one_line
from implicit_geom.interface.strict_json import finite, read_json
from implicit_geom.interface.text_files import read_text
from implicit_geom.interface.writing import check_replaceable, check_writable, write_whole
from implicit_geom.run.storage.solver_state import check_plain

FORMAT = "implicit-geom failed step"
VERSION = 2
LIMIT = 64 << 20  # bytes: thousands of bodies in contact, and no more than a few seconds to read
CONTENT = ("reason", "time", "history", "scene", "state", "solver", "step", "options")
SEAL = ("format", "format_version", "sha256")
WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def write_record(record: dict[str, Any], path: Path, *, force: bool = False) -> None:
    """Write a record; an existing file only if it is of the same kind, or with `force`."""
    check_output(path, force=force)
    content = _worded({**record, "format": FORMAT, "format_version": VERSION})
    text = json.dumps({**content, "sha256": digest(content)}, indent=1, allow_nan=False).encode()
    if len(text) > LIMIT:
        raise SceneError(
            f"{path}: the step of so large a scene takes {len(text)} bytes, and {LIMIT} are read"
        )
    write_whole(path, text)


def check_output(path: Path, *, force: bool = False) -> None:
    """Refuse a place where no record can be written."""
    check_writable(path)
    if not force:
        check_replaceable(path, is_record, "the file of a failed step")


def is_record(path: Path) -> bool:
    """Whether a file is that of a failed step, perhaps a damaged one."""
    return path.stat().st_size <= LIMIT and f'"{FORMAT}"'.encode() in path.read_bytes()


def read_record(path: str | Path) -> dict[str, Any]:
    """The contents of a failed step's file, of the right types; SceneError for anything else."""
    try:
        record = read_json(read_text(path, largest=LIMIT))
    except SceneError:
        raise
    except ValueError as error:
        raise SceneError(f"{path}: not a JSON file: {one_line(error)}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise SceneError(f"{path}: not the file of a failed step")
    try:
        return _checked(record)
    except ValueError as error:
        words = one_line(error)
        raise SceneError(f"{path}: the file of a failed step is damaged or incomplete: {words}") from None


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    """The record with the words for NaN and infinity read, once all is as it was written."""
    version = record.get("format_version", 1 if "sha256" not in record else VERSION)
    if type(version) is not int or version < 1:
        raise ValueError(f"format_version = {one_line(repr(version))} is none")
    if version > VERSION:
        raise ValueError("written by a newer version; update implicit-geom")
    if version == VERSION:
        finite(record, "record")
        if record.get("sha256") != digest({k: v for k, v in record.items() if k != "sha256"}):
            raise ValueError("its content is not what was written")
    for name in CONTENT:
        if name not in record:
            raise ValueError(f"{name} is missing")
    for name in record:
        if name not in (*CONTENT, *SEAL):
            raise ValueError(f"{name!r} is not known")
    record["history"] = _read(record["history"])
    if isinstance(record["solver"], dict):
        record["solver"] = {k: _read(v) if k == "history" else v for k, v in record["solver"].items()}
    check_plain(record["solver"])
    finite({k: v for k, v in record.items() if k not in ("history", "solver")}, "record")
    for name in ("time", "step"):
        if type(record[name]) not in (int, float):
            raise ValueError(f"{name} = {one_line(repr(record[name]))} is no number")
    for name in ("scene", "state", "options"):
        if not isinstance(record[name], dict):
            raise ValueError(f"{name} is no table")
    if record["step"] == 0 or not isinstance(record["reason"], str):
        raise ValueError("step is 0, or reason no text")
    return record


def digest(content: dict[str, Any]) -> str:
    """The hash of a record without its own entry."""
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(plain.encode()).hexdigest()


def _worded(value: Any) -> Any:
    """Plain data with words for NaN and infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {k: _worded(v) for k, v in value.items()}
    return [_worded(v) for v in value] if isinstance(value, list | tuple) else value


def _read(value: Any) -> Any:
    """Lists of numbers in which words stand for NaN and infinity."""
    if isinstance(value, list):
        return [_read(v) for v in value]
    return WORDS.get(value, value) if isinstance(value, str) else value
