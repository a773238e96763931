"""A comparison on disk: its table as CSV and one figure."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.studies.attribution import Attribution, attribution
from implicit_geom.studies.compared_runs import ComparedRuns, combinations
from implicit_geom.studies.figures import blank

FLOOR = 1e-16  # smaller errors than this are not drawn
PARTS = {
    "surface": "#0b5fa5",
    "gap": "#e08214",
    "wrench": "#1b8a5a",
    "friction": "#c0392b",
    "step": "#7a7a7a",
}


def write(comparison: ComparedRuns, folder: Path) -> list[Path]:
    """comparison.csv, comparison.png and, of all sixteen, attribution.csv."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SceneError(f"{folder}: cannot be made: {error.strerror}; choose another") from None
    written = [folder / "comparison.csv", folder / "comparison.png"]
    columns = comparison.table
    _csv(written[0], list(columns), list(zip(*(c.tolist() for c in columns.values()))))
    parts = parts_of(comparison)
    figure = sixteen(comparison, parts) if parts else over_time(comparison)
    figure.savefig(written[1], dpi=150)
    if parts:
        written.append(folder / "attribution.csv")
        rows = [
            (quantity, name, value, a.shares[name], a.saved.get(name, a.step))
            for quantity, a in parts.items()
            for name, value in {**a.switches, "step": a.step}.items()
        ]
        _csv(written[2], ["error", "part", "value", "share", "saved"], rows)
    return written


def parts_of(comparison: ComparedRuns) -> dict[str, Attribution]:
    """The attribution where all sixteen were run and took a step, otherwise nothing."""
    if set(comparison.found) != set(combinations()):
        return {}
    try:
        return attribution(comparison)
    except SimulationError:
        return {}


def over_time(comparison: ComparedRuns) -> Any:
    """Energy and position errors of every stepper against time."""
    figure, axes = blank(1, 2, (10, 4))
    words = {"energy": "energy error / energy at hand", "position": "position error, m"}
    for axis, (quantity, ylabel) in zip(axes, words.items()):
        for name, compared in comparison.found.items():
            if compared.errors is not None:
                found = getattr(compared.errors, quantity)
                error = np.where(found > FLOOR, found, np.nan)
                ends = {} if compared.finished else {"marker": "x", "markevery": [len(error) - 1]}
                axis.plot(compared.errors.time, error, label=name, linewidth=1.2, **ends)
        own = getattr(comparison.reference, f"{quantity}_error")
        if own > 0:
            axis.axhline(own, color="0.5", linestyle="--", linewidth=0.8, label="the reference's own")
        axis.set(xlabel="time, s", ylabel=ylabel, yscale="log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def sixteen(comparison: ComparedRuns, parts: dict[str, Attribution]) -> Any:
    """Errors of the sixteen combinations, and what each switch adds."""
    figure, axes = blank(1, 3, (12, 4.2))
    table = comparison.table
    rows = np.arange(len(comparison))[::-1]
    words = {"energy": "energy error / energy at hand", "position": "position error, m"}
    for axis, (quantity, xlabel) in zip(axes, words.items()):
        error = np.maximum(table[f"{quantity}_error"], FLOOR)
        axis.scatter(error, rows, s=18, color="#0b5fa5", zorder=3)
        own = getattr(comparison.reference, f"{quantity}_error")
        if own > 0:
            axis.axvline(own, color="0.5", linestyle="--", linewidth=0.8)
        axis.set(xscale="log", xlabel=xlabel, yticks=rows)
        axis.set_yticklabels(table["stepper"], fontfamily="monospace", fontsize=8)
    shares = axes[2]
    for row, a in enumerate(parts.values()):
        right = left = 0.0
        for name, share in a.shares.items():
            start = right if share >= 0 else left
            shares.barh(
                -row, share, left=start, height=0.5, color=PARTS[name], label=name if not row else None
            )
            right, left = (right + share, left) if share >= 0 else (right, left + share)
    shares.axvline(0, color="0.3", linewidth=0.6)
    shares.set(xlabel="share of the error of SGWF", yticks=[0, -1], ylim=(-1.6, 0.6))
    shares.set_yticklabels(list(parts))
    shares.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    return figure


def _csv(path: Path, header: list[str], rows: list[Any]) -> None:
    try:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
    except OSError as error:
        raise SceneError(f"{path}: cannot be written: {error.strerror}; choose another folder") from None
