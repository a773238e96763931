"""A run against reference states at common times, its energy ledger and the path of its contact."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Trajectory
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.regression import order

Table = dict[str, np.ndarray]
ON_GRID = 1e-9  # s: times this close are the same
EXACT = 1e-12  # an error below this is rounding: it has no order
CLOSED = 1e-12  # the ledger's balance, relative to its largest energy


def columns(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Table:
    """Rows as a table."""
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def of_case(table: Table, case: str) -> Table:
    """The rows whose column `case` says so."""
    chosen = table["case"] == case
    return {name: column[chosen] for name, column in table.items()}


def rows_at(time: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The row of each wanted time; a time that is none of `time` is an error, not the nearest row."""
    time, wanted = np.asarray(time, float), np.atleast_1d(np.asarray(wanted, float))
    rows = np.argmin(np.abs(time[None, :] - wanted[:, None]), axis=1)
    missed = np.abs(time[rows] - wanted) > ON_GRID
    if np.any(missed):
        raise ValueError(f"no row at t = {wanted[missed][0]:.12g} s")
    return rows


def turn_between(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Angle of the rotation between unit quaternions (..., 4), rad: 4 asin(min |p -+ q| / 2)."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    apart = np.minimum(np.linalg.norm(p - q, axis=-1), np.linalg.norm(p + q, axis=-1))
    return 4 * np.arcsin(np.minimum(apart / 2, 1.0))


def state_errors(run: Trajectory, name: str, states: dict[str, Any], times: np.ndarray) -> Table:
    """Distance from the reference at each time: position (m), turn (rad), velocity, spin."""
    found, exact = rows_at(run.time, times), rows_at(np.array(states["t"]), times)
    body = run[name]
    q = np.array(states["q"])[exact]
    return {
        "time": np.asarray(times, float),
        "position": _apart(body.position[found], np.array(states["x"])[exact]),
        "turn": turn_between(body.orientation[found], q),
        "velocity": _apart(body.velocity[found], np.array(states["v"])[exact]),
        "spin": _apart(body.angular_velocity[found], np.array(states["omega"])[exact]),
    }


def _apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a - b, axis=1)


def energy_error(run: Trajectory) -> np.ndarray:
    """(T+1,) |E / E_0 - 1| of a motion that should keep its energy; the potential is zero on the plane."""
    return np.abs(run.energy / run.energy[0] - 1)


def errors_over_time(runs: dict[str, Trajectory], name: str, states: dict[str, Any]) -> Table:
    """State and energy errors at those times of the reference that a run has; runs by stepper."""
    times = np.array(states["t"])
    parts = []
    for stepper, run in runs.items():
        on = times[np.min(np.abs(run.time[None, :] - times[:, None]), axis=1) < ON_GRID]
        found = state_errors(run, name, states, on)
        energy = energy_error(run)[rows_at(run.time, on)]
        parts.append({"stepper": np.full(len(on), stepper), **found, "energy": energy})
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}


def motion_table(run: Trajectory, name: str) -> Table:
    """A body's motion in columns: x, y, z, q_w ... q_z, v_x ..., w_x ..."""
    body = run[name]
    table = {"time": run.time}
    table |= {c: body.position[:, i] for i, c in enumerate("xyz")}
    table |= {f"q_{c}": body.orientation[:, i] for i, c in enumerate("wxyz")}
    table |= {f"v_{c}": body.velocity[:, i] for i, c in enumerate("xyz")}
    return table | {f"w_{c}": body.angular_velocity[:, i] for i, c in enumerate("xyz")}


def ledger_table(run: Trajectory) -> Table:
    """`run.ledger` with the start as its first row, J; the last four columns are increments."""
    ledger = run.ledger
    first = {"time": run.time[0], "kinetic": run.kinetic_energy[0], "potential": run.potential_energy[0]}
    names = ("time", "kinetic", "potential", "work", "friction", "impact", "remainder")
    return {name: np.concatenate([[first.get(name, 0.0)], ledger[name]]) for name in names}


def ledger_checks(ledger: Table, words: str = "") -> list[Check]:
    """kinetic + potential changes by work - friction - impact + remainder, and no loss is negative."""
    energy = ledger["kinetic"] + ledger["potential"]
    booked = ledger["work"] - ledger["friction"] - ledger["impact"] + ledger["remainder"]
    scale = np.max(np.abs(ledger["kinetic"]) + np.abs(ledger["potential"]))
    open_balance = np.max(np.abs(energy - energy[0] - np.cumsum(booked))) / scale
    least = min(np.min(ledger["friction"]), np.min(ledger["impact"])) / scale
    return [
        at_most(f"{words}ledger: what is not accounted for / energy", open_balance, CLOSED),
        at_least(f"{words}ledger: least loss of a step / energy", least, -CLOSED),
    ]


def own_share(run: Trajectory) -> float:
    """Share of the steps that the stepper took in its own form and in one piece."""
    form = run.options.stepper.removeprefix("implicit-")
    return float(np.mean((run.good_steps["form"] == form) & (run.good_steps["guard"] == "none")))


def contact_path(run: Trajectory) -> Table:
    """Where the contact of a run with one pair was at the end of each step, and its mean normal force."""
    rows = run.contacts
    step = run.good_steps["step"][np.searchsorted(run.time, rows["time"]) - 1]
    table = {"time": rows["time"], **{f"point_{c}": rows["point"][:, i] for i, c in enumerate("xyz")}}
    return table | {
        "normal_force": rows["p_n"] / step,
        "slip_speed": rows["slip_speed"],
        "slides": (rows["mode"] == "slide").astype(int),
    }


def order_checks(
    errors: Table, least: dict[str, float], quantities: dict[str, str], words: str = ""
) -> list[Check]:
    """The measured order of each stepper in each column; errors of rounding alone pass as they are.

    `errors` has columns `stepper`, `step` and those named by `quantities` (column -> words).
    """
    checks = []
    for stepper, bound in least.items():
        chosen = errors["stepper"] == stepper
        h = errors["step"][chosen]
        for column, name in quantities.items():
            error = errors[column][chosen]
            if np.max(error) < EXACT:
                checks.append(at_most(f"{words}{stepper}: {name}, exact", np.max(error), EXACT))
            else:
                checks.append(at_least(f"{words}{stepper}: {name}, order", order(h, error), bound))
    return checks
