"""The file of a sweep: one line a run, written when the run ends, so that it is of use at any time."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import numpy as np

from implicit_geom.interface.errors import SceneError

Row = dict[str, Any]
Table = dict[str, np.ndarray]


class Rows:
    """Rows of a sweep, kept in memory and, where a path is given, in a CSV file; by digest.

    With `resume` the rows that are in the file are kept; a row of another sweep is an error.
    """

    def __init__(self, path: Path | None, header: list[str], wanted: list[str], *, resume: bool) -> None:
        self.path, self.header, self.wanted = path, header, wanted
        self.found: dict[str, Row] = {}
        self.file: TextIO | None = None
        if path is None:
            return
        if path.exists() and not resume:
            raise SceneError(
                f"{path}: holds a sweep already; resume it (resume=True, --resume), or choose another output"
            )
        if path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        header, rows = read(path)
        if header != self.header:
            raise SceneError(f"{path}: was written for other values or summaries; choose another output")
        for row in rows:
            if row["digest"] not in self.wanted:
                raise SceneError(
                    f"{path}: run {row['run']} is of another scene or of other values; choose another output"
                )
            self.found[row["digest"]] = row

    def __enter__(self) -> Rows:
        if self.path is not None:
            self._rewrite(self.path)  # without a line that was cut off
            self.file = self.path.open("a", newline="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.file is not None and self.path is not None:
            self.file.close()
            self._rewrite(self.path)

    def append(self, row: Row) -> None:
        """Keep a row, and write it out at once."""
        self.found[row["digest"]] = row
        if self.file is not None:
            csv.DictWriter(self.file, self.header).writerow(_texts(row))
            self.file.flush()

    def table(self) -> Table:
        """The rows in the order of the grid, as columns."""
        return as_table(self.header, self._ordered())

    def _ordered(self) -> list[Row]:
        numbers = {digest: number for number, digest in enumerate(self.wanted)}
        ordered = sorted(self.found, key=numbers.__getitem__)
        return [{**self.found[digest], "run": numbers[digest]} for digest in ordered]

    def _rewrite(self, path: Path) -> None:
        """All rows in the order of the grid; the file is whole at every instant."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self.header)
        writer.writeheader()
        writer.writerows(_texts(row) for row in self._ordered())
        replace(path, text.getvalue())


def replace(path: Path, text: str) -> None:
    """Write a file; it is the old or the new one at every instant."""
    beside = path.with_suffix(f"{path.suffix}.part")
    try:
        beside.write_text(text, newline="")
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def read(path: Path) -> tuple[list[str], list[Row]]:
    """Header and rows; a last line that was cut off is left out."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise SceneError(f"{path}: cannot be read: {error}") from None
    whole = text[: text.rfind("\n") + 1]
    header, *lines = list(csv.reader(io.StringIO(whole, newline=""))) or [[]]
    if header[:2] != ["run", "digest"]:
        raise SceneError(f"{path}: not a table written by a sweep")
    return header, [dict(zip(header, line)) for line in lines if len(line) == len(header)]


def as_table(header: list[str], rows: list[Row]) -> Table:
    """Columns: whole numbers, numbers or texts."""
    return {name: _column([row[name] for row in rows]) for name in header}


def _texts(row: Row) -> Row:
    """Floats with all their digits; True as 1."""
    return {name: repr(float(v)) if isinstance(v, float | bool) else v for name, v in row.items()}


def _column(cells: list[Any]) -> np.ndarray:
    for kind in (int, float):
        try:
            return np.array([_number(kind, cell) for cell in cells], kind)
        except (TypeError, ValueError):
            continue
    return np.array([str(cell) for cell in cells])


def _number(kind: type, cell: Any) -> Any:
    """A text or a number as `kind`; a float is no whole number."""
    if kind is int and isinstance(cell, float):
        raise ValueError
    return kind(cell)
