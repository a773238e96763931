"""Error against wall time: our steppers, and MuJoCo and Drake where they are installed.

Two motions without slip, whose reference no time stepper made: the ellipsoid of `ellipsoid_rolling`
for 5 s, and the rattleback for 1 s. An error of the rattleback's first orientation grows a hundredfold in
the first second, while the rocking builds up; at 2 s the errors of first-order methods are as large as
the motion itself (2 mm) down to h = 0.1 ms, so that nothing could be compared there.

position_error is the distance of the centre of mass from the reference at the end, m; energy_error
the largest |E - E_0| on the way over E_0 - E_low, with E_low the potential energy of the body lying on its
flattest side: what the motion has to spend. wall_time is that of the stepping loop alone, s: for ours the
steps without the certificate of their residuals, for the peers their own loops in C and C++, without
set-up. All runs are measured in one process, in turns, each short one several times, of which the fastest
counts. Times differ between machines; the checks are on errors alone.

The peers' settings, and how they were found: `experiments.peers.mujoco_peer`, `drake_peer`.
They come with the extra `peers` and are left out where they are not installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from implicit_geom import Scene, simulate
from implicit_geom.experiments import ellipsoid_rolling, rattleback
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns, rows_at
from implicit_geom.experiments.figures import paper
from implicit_geom.experiments.peers import PACKAGES, PeerRun, RollingBody, energy, installed, peer
from implicit_geom.experiments.references import reference
from implicit_geom.experiments.regression import order
from implicit_geom.experiments.work_precision_report import OURS, error_figure, names_of, run_lines

TITLE = "error against wall time: our steppers, MuJoCo and Drake"
PARAMS: dict[str, Any] = {
    "duration": {"ellipsoid-rolling": 5.0, "rattleback": 1.0},
    "steps": {  # by stepper of ours, or by peer and setting
        "ellipsoid-rolling": {
            "implicit-euler": (0.02, 0.01, 0.005, 0.0025),
            "implicit-rattle": (0.02, 0.01, 0.005, 0.0025),
            "implicit-rattle-4": (0.1, 0.05, 0.025, 0.0125),
            "mujoco default": (1e-2, 1e-3, 1e-4),
            "mujoco stiff": (1e-2, 1e-3, 1e-4, 1e-5),
            "drake default": (1e-2, 1e-3, 1e-4),
            "drake stiff": (1e-2, 1e-3, 1e-4, 2e-5),
        },
        "rattleback": {
            "implicit-euler": (2e-3, 1e-3, 5e-4),
            "implicit-rattle": (2e-3, 1e-3, 5e-4),
            "implicit-rattle-4": (4e-3, 2e-3, 1e-3),
            "mujoco default": (1e-3, 1e-4, 1e-5),
            "mujoco stiff": (1e-3, 1e-4, 1e-5, 2e-6),
            "drake default": (1e-3, 1e-4),
            "drake stiff": (1e-3, 1e-4, 1e-5),
        },
    },
    "rounds": 3,
    "short": 5.0,  # s: a longer run is not repeated
}
QUICK: dict[str, Any] = {
    "duration": {"ellipsoid-rolling": 1.0, "rattleback": 0.2},
    "steps": {
        "ellipsoid-rolling": {
            "implicit-euler": (0.02, 0.01),
            "implicit-rattle": (0.02, 0.01),
            "implicit-rattle-4": (0.1, 0.05),
            "mujoco default": (1e-2, 1e-3),
            "mujoco stiff": (1e-2, 1e-3),
            "drake default": (1e-2, 1e-3),
            "drake stiff": (1e-2, 1e-3),
        },
        "rattleback": {
            "implicit-rattle": (2e-3, 1e-3),
            "implicit-rattle-4": (8e-3, 4e-3),
            "mujoco stiff": (1e-3, 1e-4),
            "drake stiff": (1e-3, 1e-4),
        },
    },
    "rounds": 1,
}
ABSENT = "not installed"
WARM_UP = 2  # steps before the clock: the equations of a scene are built on their first use

# least order of the position error between the two shortest steps, by case and stepper or peer's setting
ORDERS = {
    ("ellipsoid-rolling", "implicit-euler"): 0.8,
    ("ellipsoid-rolling", "implicit-rattle"): 1.9,
    ("ellipsoid-rolling", "implicit-rattle-4"): 3.7,
    ("rattleback", "implicit-rattle"): 1.9,
    ("rattleback", "implicit-rattle-4"): 3.7,
    ("ellipsoid-rolling", "mujoco stiff"): 0.9,
    ("ellipsoid-rolling", "drake stiff"): 0.9,
}


@dataclass(frozen=True)
class Case:
    """A scene with one body on a plane, and the reference's states."""

    scene: Callable[[], Scene]
    states: Callable[[], dict[str, Any]]


CASES = {
    "ellipsoid-rolling": Case(ellipsoid_rolling.scene, lambda: reference("ellipsoid_rolling")["states"]),
    "rattleback": Case(rattleback.scene, lambda: reference("rattleback")["runs"][0]["states"]),
}


@dataclass(frozen=True)
class Entry:
    """One run to be measured."""

    case: str
    simulator: str
    setting: str
    h: float


def run(params: dict[str, Any]) -> dict[str, Table]:
    entries = list(_entries(params))
    bodies = {case: RollingBody.of(CASES[case].scene()) for case in params["steps"]}
    for case, setting in {(e.case, e.setting): e for e in entries if e.simulator == OURS}:
        h = min(params["steps"][case][setting])
        _measure(Entry(case, OURS, setting, h), bodies[case], WARM_UP * h, record=False)
    errors: dict[Entry, tuple[float, float, int]] = {}
    fastest: dict[Entry, float] = {}
    for turn in range(params["rounds"]):
        for entry in entries:
            if turn and fastest[entry] > params["short"]:
                continue
            body, duration = bodies[entry.case], params["duration"][entry.case]
            found = _measure(entry, body, duration, record=turn == 0)
            fastest[entry] = min(found.wall_time, fastest.get(entry, np.inf))
            if turn == 0:
                errors[entry] = *_errors(entry, body, found, duration), found.steps
    rows = [
        (e.case, e.simulator, e.setting, e.h, position, spent, fastest[e], steps)
        for e, (position, spent, steps) in errors.items()
    ]
    names = ("case", "simulator", "setting", "h", "position_error", "energy_error", "wall_time", "steps")
    here = installed()
    versions = [(name, version(name) if name in here else ABSENT) for name in PACKAGES]
    machine = columns(("cores", "load"), [(os.cpu_count() or 1, _load())])
    return {
        "work_precision": columns(names, rows),
        "peers": columns(("peer", "version"), versions),
        "machine": machine,
    }


def _load() -> float:
    """Processes that run or wait on this machine, over the last minute; NaN where it does not say."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else np.nan


def _entries(params: dict[str, Any]) -> Iterator[Entry]:
    absent = set(PACKAGES) - set(installed())
    for case, steps in params["steps"].items():
        for name, values in steps.items():
            simulator, _, setting = name.rpartition(" ")
            if simulator not in absent:
                for h in sorted(values, reverse=True):
                    yield Entry(case, simulator or OURS, setting, h)


def _measure(entry: Entry, body: RollingBody, duration: float, *, record: bool) -> PeerRun:
    """One run of an entry, ours in the peers' form."""
    if entry.simulator != OURS:
        module = peer(entry.simulator)
        setting = module.settings()[entry.setting]
        return module.simulate(body, duration=duration, step=entry.h, setting=setting, record=record)
    scene = CASES[entry.case].scene()
    r = simulate(scene, duration=duration, step=entry.h, stepper=entry.setting, progress=False)
    b = r["body"]
    states = (r.time, b.position, b.orientation, b.velocity, b.angular_velocity)
    return PeerRun(*states, wall_time=float(np.sum(r.steps["wall_time"])), steps=len(r.steps))


def _errors(entry: Entry, body: RollingBody, found: PeerRun, duration: float) -> tuple[float, float]:
    """Position error at the end and largest energy error on the way."""
    states = CASES[entry.case].states()
    end = np.array(states["x"])[rows_at(np.array(states["t"]), duration)[0]]
    E = energy(body, found)
    largest = np.max(np.abs(E - E[0])) / (E[0] - body.least_potential)
    return float(np.linalg.norm(found.position[-1] - end)), float(largest)


def check(tables: dict[str, Table]) -> list[Check]:
    table, peers = tables["work_precision"], tables["peers"]
    checks = []
    for (case, name), least in ORDERS.items():
        chosen = (table["case"] == case) & (names_of(table) == name)
        if np.sum(chosen) > 1:
            last = np.flatnonzero(chosen)[np.argsort(table["h"][chosen])[:2]]
            measured = order(table["h"][last], table["position_error"][last])
            checks.append(at_least(f"{case}: {name}, order of the position error", measured, least))
    for case in dict.fromkeys(table["case"].tolist()):
        rattle = _error(table, case, "implicit-rattle", 0.01)
        others = (table["case"] == case) & (table["simulator"] != OURS) & np.isclose(table["h"], 0.01)
        if rattle is not None and np.any(others):
            words = f"{case}: error of implicit-rattle over the least of any peer, h = 0.01 s"
            checks.append(at_most(words, rattle / np.min(table["position_error"][others]), 0.5))
    for name, its_version in zip(peers["peer"].tolist(), peers["version"].tolist()):
        rows = int(np.sum(table["simulator"] == name))
        if its_version == ABSENT:
            checks.append(at_most(f"{name}, not installed: rows", rows, 0))
        else:
            checks.append(at_least(f"{name} {its_version}: rows", rows, 1))
    return checks


def _error(table: Table, case: str, name: str, h: float) -> float | None:
    chosen = (table["case"] == case) & (names_of(table) == name) & np.isclose(table["h"], h)
    return float(table["position_error"][chosen][0]) if np.any(chosen) else None


def report(tables: dict[str, Table]) -> str:
    """Every run, the time each simulator needs for a given error, who is missing, and how busy it was."""
    lines = run_lines(tables["work_precision"])
    for name, its_version in zip(tables["peers"]["peer"].tolist(), tables["peers"]["version"].tolist()):
        if its_version == ABSENT:
            lines.append(f"  {name} is not installed: its rows are left out (extra `peers`)")
    cores, busy = (float(tables["machine"][name][0]) for name in ("cores", "load"))
    if busy > cores:
        lines.append(f"  the machine was busy (load {busy:.1f} on {cores:g} cores): the times are too long")
    return "\n".join(lines)


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    table = tables["work_precision"]
    return {
        "work_precision": error_figure(table, "wall_time", "wall time of the stepping loop, s"),
        "error_over_step": error_figure(table, "h", "step $h$, s"),
    }
