"""Runs of one scene under several steppers, each with its errors; all combinations of the switches."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.switches import APPROXIMATE, Stepper
from implicit_geom.studies.reference_run import Errors, Reference

LETTERS = {"surface": "S", "gap": "G", "wrench": "W", "friction": "F"}
ERRORS = ("energy_error", "energy_error_end", "position_error", "position_error_end", "penetration")
SHOWN = 6  # steppers that `repr` names
COLUMNS = (*ERRORS, "time_per_step", "iterations", "steps", "failed", "end_time")


@dataclass(frozen=True)
class Compared:
    """One stepper of a comparison: label, stepper, run, errors, and the reason where it did not finish.

    The run and its errors are None where the stepper refused the scene.
    """

    label: str
    stepper: Stepper
    run: Trajectory | None
    errors: Errors | None
    reason: str

    def __repr__(self) -> str:
        told = self.reason or ("finished" if self.finished else "not run")
        return f"<Compared: {self.label}, {told}>"

    @property
    def finished(self) -> bool:
        """Whether the stepper took the scene to its end."""
        return self.run is not None and not self.run.failed

    def row(self) -> dict[str, Any]:
        """energy_error: largest, over the energy at hand; position_error: largest, m; at the end likewise.

        Errors of a run that failed are those up to its last good step, at `end_time`.
        """
        out: dict[str, Any] = {"stepper": self.label, "approximate": " ".join(self.stepper.approximated)}
        if self.run is None or self.errors is None:
            return {**out, **dict.fromkeys(COLUMNS, np.nan), "steps": 0, "failed": 1, "reason": self.reason}
        steps, energy, position = self.run.taken, self.errors.energy, self.errors.position
        errors = (energy.max(), energy[-1], position.max(), position[-1], self.run.max_penetration)
        costs = (np.mean(steps["wall_time"]), np.mean(steps["iterations"]))
        good = len(self.run.good_steps)
        counts = (good, len(steps) - good, float(self.run.time[-1]))
        row = dict(zip(COLUMNS, (*map(float, (*errors, *costs)), *counts)))
        return {**out, **row, "reason": self.reason}


class ComparedRuns:
    """The data of a comparison and its table; `Comparison` adds what is written to disk."""

    def __init__(
        self, found: list[Compared], reference: Reference, step: float, left_out: dict[str, str]
    ) -> None:
        self.found = {compared.label: compared for compared in found}
        self.reference, self.step = reference, step
        self.left_out = left_out  # named steppers that do not suit the scene, and why

    def __len__(self) -> int:
        return len(self.found)

    def __repr__(self) -> str:
        some, more = ", ".join(list(self.found)[:SHOWN]), len(self) - SHOWN
        labels = f"{some}, ... {more} more" if more > 0 else some
        counts = f"{len(self)} steppers, {len(self.finished)} finished"
        return f"<Comparison at step {self.step:g} s of {counts}: {labels}>"

    @property
    def finished(self) -> list[str]:
        """The steppers that took the scene to its end."""
        return [label for label, compared in self.found.items() if compared.finished]

    @property
    def table(self) -> dict[str, np.ndarray]:
        """Columns, one row a stepper.

        stepper, approximate   its label, and which of its switches are approximate
        energy_error           largest on the way, over the energy at hand; energy_error_end that at the end
        position_error         largest on the way, m; position_error_end that at the end
        penetration            m
        time_per_step          s; iterations a step
        steps, failed          solved, and not
        end_time, reason       s, and why it ended there
        """
        rows = [compared.row() for compared in self.found.values()]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def __str__(self) -> str:
        width = max(len(label) for label in self.found) + 2
        lines = [
            f"{'stepper':{width}}{'energy error':>14}{'position error':>16}{'penetration':>13}"
            f"{'time a step':>13}{'failed':>8}"
        ]
        for label, compared in self.found.items():
            row = compared.row()
            below = row["energy_error"] < self.reference.energy_error
            lines.append(
                f"{label:{width}}{'<' if below else ''}{row['energy_error']:{13 if below else 14}.3g}"
                f"{row['position_error']:14.3g} m{row['penetration']:11.2g} m{row['time_per_step']:11.2g} s"
                f"{row['failed']:8d}" + (f"  {row['reason']}" if row["reason"] else "")
            )
        own = self.reference
        uncertain = f"; uncertain by {own.energy_error:.2g} in energy, {own.position_error:.2g} m in position"
        known = uncertain if np.isfinite(own.energy_error) else ""
        lines.append(f"reference: {own.words}{known}")
        lines.append(
            "errors are the largest on the way, that of the energy over the energy at hand; "
            "<: less than the reference is uncertain by"
        )
        return "\n".join([*lines, *(f"left out: {name}: {why}" for name, why in self.left_out.items())])


def combinations(**changes: Any) -> dict[str, Stepper]:
    """The sixteen steppers of the four switches, `----` exact to `SGWF` with all four approximate.

    S: faceted surface, G: gap linearised at the start, W: wrench at the start, F: friction pyramid.
    `changes` are facets, directions and aligned, of those steppers that have them.
    """
    out = {}
    for chosen in sorted(itertools.product((False, True), repeat=4), key=sum):
        on = [name for name, approximate in zip(LETTERS, chosen) if approximate]
        own = {"facets": "surface", "directions": "friction", "aligned": "friction"}
        fields = {name: value for name, value in changes.items() if own.get(name, name) in on}
        out[label(on)] = Stepper.of({**fields, **{name: APPROXIMATE[name] for name in on}})
    Stepper.of(changes | {"friction": "pyramid"})  # names that no stepper has are refused
    return out


def label(approximate: Any) -> str:
    """The letters of the switches that are approximate, - for the others."""
    return "".join(letter if name in approximate else "-" for name, letter in LETTERS.items())
