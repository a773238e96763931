"""What is kept of each run of a sweep: quantities by name, or functions of a run that give one number.

A failed run has only the quantities of ALWAYS; the others would be those of another duration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from implicit_geom.interface.choices import name_of
from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.words import shown
from implicit_geom.run.trajectory import Trajectory
from implicit_geom.scene.options import hint
from implicit_geom.scene.scene import Scene


def distance_travelled(run: Trajectory) -> float:
    """Length of the paths of all centres of mass that can move, seen along gravity, m."""
    gravity = run.scene.gravity
    up = gravity / np.linalg.norm(gravity) if np.any(gravity) else np.zeros(run.scene.dim)
    total = 0.0
    for name, body in run.scene.bodies.items():
        if not body.fixed:
            moves = np.diff(run[name].position, axis=0)
            total += float(np.sum(np.linalg.norm(moves - np.outer(moves @ up, up), axis=1)))
    return total


def energy_scale(run: Trajectory) -> float:
    """The energy at hand, J: the largest kinetic energy, or range of potential energy if that is larger.

    The zero of the potential energy is arbitrary, so that the energy itself is no measure.
    """
    return float(max(np.max(run.kinetic_energy), np.ptp(run.potential_energy)))


def _over(a: float, b: float) -> float:
    return a / b if b > 0 else np.nan


def _lost(run: Trajectory) -> float:
    return float(run.energy[0] - run.energy[-1])


def _wall(run: Trajectory) -> float:
    return float(run.taken["wall_time"].sum())


def _steps(run: Trajectory) -> int:
    return sum(call.steps for call in run.calls)


NAMED: dict[str, tuple[Callable[[Trajectory], float], str]] = {
    "energy_lost": (_lost, "energy at the start less that at the end, J"),
    "energy_lost_relative": (
        lambda r: _over(_lost(r), energy_scale(r)),
        "the same over the energy at hand: the largest kinetic energy, or range of potential energy",
    ),
    "energy_lost_per_metre": (
        lambda r: _over(_lost(r), distance_travelled(r)),
        "energy lost over the distance travelled, J/m",
    ),
    "distance": (distance_travelled, "length of the paths of the centres of mass, seen along gravity, m"),
    "lost_in_friction": (lambda r: float(r.ledger["friction"].sum()), "by the ledger, J"),
    "lost_in_impacts": (lambda r: float(r.ledger["impact"].sum()), "by the ledger, J"),
    "remainder": (lambda r: float(r.ledger["remainder"].sum()), "energy the steps made up (ledger), J"),
    "final_energy": (lambda r: float(r.energy[-1]), "J"),
    "final_kinetic_energy": (lambda r: float(r.kinetic_energy[-1]), "J"),
    "max_penetration": (lambda r: r.max_penetration, "deepest overlap at the end of a step, m"),
    "contacts": (lambda r: float(len(r.contacts)), "rows of run.contacts"),
    "steps": (lambda r: float(_steps(r)), "steps that were solved"),
    "steps_failed": (lambda r: float(r.failed), "steps that were not"),
    "steps_guarded": (
        lambda r: float(sum(n for call in r.calls for way, n in call.guards.items() if way != "none")),
        "steps the guard took",
    ),
    "iterations": (lambda r: float(np.mean(r.taken["iterations"])), "of Newton's method, mean of a step"),
    "end_time": (lambda r: float(r.time[-1]), "of the last step that was solved, s"),
    "wall_time": (_wall, "that the steps took, s"),
    "time_per_step": (lambda r: _wall(r) / max(_steps(r) + int(r.failed), 1), "mean wall time, s"),
}
BODY = {
    "final_position": "position",
    "final_orientation": "orientation",
    "final_velocity": "velocity",
    "final_angular_velocity": "angular_velocity",
}  # of a body at the end, in columns NAME_x, ...; "final_position.egg" where several bodies move
ALWAYS = ("steps", "steps_failed", "end_time", "wall_time", "time_per_step", "iterations")

Summary = dict[str, str | Callable[[Trajectory], Any]]


def read_summary(scene: Scene, summary: Any) -> Summary:
    """Labels and what they stand for; a list of names has those names as labels. Checked."""
    if isinstance(summary, str):
        summary = [summary]
    if isinstance(summary, Iterable) and not isinstance(summary, Mapping):
        summary = {name if isinstance(name, str) else shown(name): name for name in summary}
    if not isinstance(summary, Mapping) or not summary:
        raise SceneError(f"summary = {shown(summary)} must name quantities, such as ['energy_lost']")
    for label, what in summary.items():
        if "," in name_of("summary: label", label):
            raise SceneError(f"summary: label {shown(label)} must be a text without commas")
        if callable(what):
            continue
        name, _, body = str(what).partition(".")
        if not isinstance(what, str) or (what not in NAMED and name not in BODY):
            raise SceneError(
                f"summary[{shown(label)}] = {shown(what)} is not known{hint(what, (*NAMED, *BODY))}"
            )
        if name in BODY:
            _body(scene, label, name, body)
    return dict(summary)


def columns(scene: Scene, summary: Summary) -> list[str]:
    """The names of the columns, in order."""
    return [column for label, what in summary.items() for column in _columns(scene, label, what)]


def evaluate(run: Trajectory, summary: Summary) -> dict[str, float]:
    """The quantities of a run by column; NaN where the run failed and the quantity needs all of it."""
    out: dict[str, float] = {}
    for label, what in summary.items():
        names = _columns(run.scene, label, what)
        if run.failed and what not in ALWAYS:
            numbers = np.full(len(names), np.nan)
        elif callable(what):
            numbers = np.array([_own(run, label, what)])
        elif what in NAMED:
            numbers = np.array([NAMED[what][0](run)])
        else:
            name, _, body = what.partition(".")
            motion = run[_body(run.scene, label, name, body)]
            numbers = np.atleast_1d(getattr(motion, BODY[name])[-1])
        out |= dict(zip(names, numbers.tolist(), strict=True))
    return out


def _own(run: Trajectory, label: str, function: Callable[[Trajectory], Any]) -> float:
    """The number that a user's function gives."""
    try:
        return float(function(run))
    except Exception as error:
        raise SceneError(f"summary[{shown(label)}]: {type(error).__name__}: {error}") from error


def _body(scene: Scene, label: str, name: str, body: str) -> str:
    moving = [b for b, entry in scene.bodies.items() if not entry.fixed]
    if not body:
        if len(moving) != 1:
            example = moving[0] if moving else "BODY"
            raise SceneError(
                f"summary[{shown(label)}]: {len(moving)} bodies move; say which: {name}.{example}"
            )
        return moving[0]
    scene.require(body, f"summary[{shown(label)}]")
    return body


def _columns(scene: Scene, label: str, what: Any) -> list[str]:
    name = "" if callable(what) else what.partition(".")[0]
    if name not in BODY:
        return [label]
    if scene.dim == 2:
        axes = "xy" if name in ("final_position", "final_velocity") else ""
    else:
        axes = "wxyz" if name == "final_orientation" else "xyz"
    return [f"{label}_{axis}" for axis in axes] or [label]
