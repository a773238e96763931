"""Run an experiment: compute, write its tables, check its claims, and only then draw.

Checks and figures read the tables back from the files, so that a figure shows what was saved.
"""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

Table = dict[str, np.ndarray]
SHOWN = 12  # rows of a table that are printed


def reproduce(name: str, experiment: Any, output: Path, *, quick: bool = False) -> bool:
    """Run one experiment under output/name; whether every check passed.

    An experiment may bring its own `report(tables) -> str`; otherwise its tables are printed.
    """
    folder = output / name
    folder.mkdir(parents=True, exist_ok=True)
    params = {**experiment.PARAMS, **(getattr(experiment, "QUICK", {}) if quick else {})}
    print(f"{name}: {experiment.TITLE}" + (" (quick form)" if quick else ""))
    started = time.perf_counter()
    tables: dict[str, Table] = {}
    for label, table in experiment.run(params).items():
        path = folder / f"{label}.csv"
        write_csv(path, table)
        tables[label] = read_csv(path)
    if hasattr(experiment, "report"):
        print(experiment.report(tables))
    else:
        for label, table in tables.items():
            print_table(label, table)
    checks = experiment.check(tables) if hasattr(experiment, "check") else []
    for check in checks:
        print(check)
    passed = all(check.passed for check in checks)
    if passed and hasattr(experiment, "plot"):
        for label, figure in experiment.plot(tables).items():
            for kind in ("png", "pdf"):
                figure.savefig(folder / f"{label}.{kind}", dpi=200)
    verdict = "PASS" if passed else "FAIL: no figure drawn"
    print(f"{name}: {verdict} ({time.perf_counter() - started:.1f} s, {folder})")
    return passed


def write_csv(path: Path, table: Table) -> None:
    """Columns of equal length; floats with all their digits."""
    columns = {name: np.asarray(column) for name, column in table.items()}
    lengths = {name: column.shape for name, column in columns.items()}
    if len(set(lengths.values())) != 1 or any(len(shape) != 1 for shape in lengths.values()):
        raise ValueError(
            f"table {path.stem!r}: the columns must be one-dimensional and equally long, not {lengths}"
        )
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))


def read_csv(path: Path) -> Table:
    """The table that `write_csv` wrote: numbers as floats, whole numbers as integers, the rest as text."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return {name: _column([row[i] for row in rows]) for i, name in enumerate(header)}


def _column(texts: list[str]) -> np.ndarray:
    for kind in (int, float):
        try:
            return np.array([kind(text) for text in texts], kind)
        except ValueError:
            continue
    return np.array(texts)


def print_table(label: str, table: Table) -> None:
    """The first rows, in aligned columns."""
    count = len(next(iter(table.values())))
    cells = [[name, *(_cell(v) for v in column[:SHOWN].tolist())] for name, column in table.items()]
    widths = [max(len(cell) for cell in column) for column in cells]
    print(f"  {label}")
    for row in zip(*cells, strict=True):
        print("    " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    if count > SHOWN:
        print(f"    ... {count} rows in all")


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
