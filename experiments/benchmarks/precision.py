"""The wall time that an error costs: the rolling ellipsoid for 5 s, by our steppers and by tuned peers.

1. Survey. Every contender (a stepper of ours, a variant of a peer's settings) runs with ever shorter steps,
   halved each time, until its position error at the end is below the least target, or it has taken
   several times as long as another setting of the same simulator needed for that.
2. Choice. For each target, the contenders of each simulator whose time in the survey was least; each
   runs again with the step that interpolation gives, at most REFINED times.
3. Timing. The runs next to each target are measured in turns (`timing`).
4. Time for the target: that of the quickest run below it, or less where interpolation between the runs
   on both sides, linear in the logarithms of error and time, gives less.

The first crossing counts, so that a peer whose error is small by luck at some step has the benefit of
it. A contender that never reaches a target is continued by at most one halving of its last step, with the
slope last measured; one that needs more has not reached it. What a peer is allowed to try is in
`variants()` of its module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.experiments import ellipsoid_rolling
from implicit_geom.experiments.benchmarks.precision_report import drawn, lines
from implicit_geom.experiments.benchmarks.rolling import of_peer, ours, rolled
from implicit_geom.experiments.benchmarks.timing import Contender, conditions, in_turns, judged, remarks
from implicit_geom.experiments.check import Check, at_least
from implicit_geom.experiments.comparison import Table, columns, rows_at
from implicit_geom.experiments.figures import paper
from implicit_geom.experiments.peers import MODULES, RollingBody, count_steps, installed, peer
from implicit_geom.experiments.references import reference

TITLE = "wall time for a given error on the rolling ellipsoid: our steppers, MuJoCo, Drake and Siconos"
PARAMS: dict[str, Any] = {
    "duration": 5.0,
    "steps": {  # the longest and the shortest tried, s
        "implicit-euler": (0.01, 1.5625e-4),
        "implicit-rattle": (0.025, 1.5625e-3),
        "implicit-rattle-4": (0.25, 0.015625),
        "mujoco": (0.04, 1.5625e-4),
        "drake": (0.04, 1.5625e-4),
        "siconos": (0.01, 1.5625e-4),
    },
    "targets": (1e-3, 1e-5),  # m
    "kept": 4,  # variants of a peer that are timed, by target
    "rounds": 12,
    "timed": True,
}
QUICK: dict[str, Any] = {
    "duration": 1.0,
    "steps": {
        "implicit-euler": (0.01, 0.005),
        "implicit-rattle": (0.02, 0.01),
        "implicit-rattle-4": (0.1, 0.05),
        "mujoco": (0.04, 0.01),
        "drake": (0.04, 0.02),
        "siconos": (0.01, 0.005),
    },
    "targets": (1e-3,),
    "kept": 1,
    "rounds": 1,
    "timed": False,
}

OURS = "implicit-geom"
BEST = "implicit-rattle-4"
BARS = {1e-3: 5.0, 1e-5: 100.0}  # m: how many times less wall time than the best peer
SHORT = 0.03  # s: a run below this is repeated already in the survey
LONG = 0.2  # s: a run above this is measured in every third round
REFINED = 3  # times that the step next to a target is sought
HOPELESS = 3.0  # times as long as the quickest setting needed for the least target
Row = tuple[float, float, float]  # h, position error, seconds


@dataclass(frozen=True)
class Way:
    """A simulator with a stepper or a setting."""

    simulator: str
    name: str

    def run(self, body: RollingBody, duration: float, h: float) -> tuple[np.ndarray, float]:
        """Where the body is at the end, and the seconds of the loop."""
        if self.simulator == OURS:
            r = rolled(self.name, h, count_steps(duration, h))
            return r["body"].position[-1], float(np.sum(r.taken["wall_time"]))
        module = peer(self.simulator)
        setting = module.variants()[self.name]
        p = module.simulate(body, duration=duration, step=h, setting=setting, record=False)
        return p.position[-1], p.wall_time

    def contender(self, body: RollingBody, duration: float, h: float, seconds: float) -> Contender:
        """The run as one to be timed, which took so many seconds in the survey."""
        count, every = count_steps(duration, h), 3 if seconds > LONG else 1
        if self.simulator == OURS:
            return Contender(self.name, ours(self.name, h, count), every)
        setting = peer(self.simulator).variants()[self.name]
        measure = of_peer(self.simulator, body, h, count, setting, called=False)
        return Contender(self.name, measure, every)


def run(params: dict[str, Any]) -> dict[str, Table]:
    body = RollingBody.of(ellipsoid_rolling.scene())
    duration = params["duration"]
    states = reference("ellipsoid_rolling")["states"]
    end = np.array(states["x"])[rows_at(np.array(states["t"]), duration)[0]]
    survey: dict[Way, list[Row]] = {}

    def tried(way: Way, h: float) -> Row:
        position, seconds = way.run(body, duration, h)
        if seconds < SHORT:
            seconds = min(seconds, *(way.run(body, duration, h)[1] for _ in range(2)))
        row = (h, float(np.linalg.norm(position - end)), seconds)
        survey.setdefault(way, []).append(row)
        survey[way].sort(reverse=True)
        return row

    _survey(params, tried)
    chosen = _choice(params, survey, tried)
    known = {(way, row[0]): row for way, rows in survey.items() for row in rows}
    keys = dict.fromkeys((way, h) for way, _, near in chosen for h in near)
    contenders = {(w, h): w.contender(body, duration, h, known[w, h][2]) for w, h in keys}
    in_turns(contenders.values(), params["rounds"], warm=params["timed"])
    timed: dict[Way, list[Row]] = {}
    for way, h in sorted(keys, key=lambda key: -key[1]):
        timed.setdefault(way, []).append((h, known[way, h][1], contenders[way, h].least))
        known[way, h] = timed[way][-1]
    needed = [(t, w.simulator, w.name, *time_for(timed.get(w, []), t)) for w, t, _ in chosen]
    names = ("simulator", "setting", "h", "position_error", "seconds")
    return {
        "survey": columns(
            names, [(w.simulator, w.name, *known[w, r[0]]) for w, rows in survey.items() for r in rows]
        ),
        "timed": columns(names, [(w.simulator, w.name, *row) for w, rows in timed.items() for row in rows]),
        "needed": columns(("target", "simulator", "setting", "seconds", "h", "how"), needed),
        "conditions": conditions(timed=params["timed"]),
    }


def _ways(params: dict[str, Any]) -> list[Way]:
    own = [Way(OURS, name) for name in params["steps"] if name not in MODULES]
    return own + [Way(name, v) for name in installed() for v in peer(name).variants()]


def _survey(params: dict[str, Any], tried: Callable[[Way, float], Row]) -> None:
    """Halve the step of every way until it is good enough, or hopeless."""
    target = min(params["targets"])
    quickest: dict[str, float] = {}
    for way in _ways(params):
        own = way.simulator == OURS
        h, least = params["steps"][way.name if own else way.simulator]
        while h > 0.99 * least:
            _, error, seconds = tried(way, h)
            known = quickest.get(way.simulator, np.inf)
            if error < target:
                quickest[way.simulator] = min(seconds, known)
                break
            if not own and seconds > HOPELESS * known:
                break
            h /= 2


def _choice(
    params: dict[str, Any], survey: dict[Way, list[Row]], tried: Callable[[Way, float], Row]
) -> list[tuple[Way, float, list[float]]]:
    """The ways worth timing for each target, and the steps next to it."""
    found = []
    for target in sorted(params["targets"], reverse=True):
        for simulator in dict.fromkeys(way.simulator for way in survey):
            ways = [way for way in survey if way.simulator == simulator]
            ways.sort(key=lambda way: np.nan_to_num(time_for(survey[way], target)[0], nan=np.inf))
            for way in ways if simulator == OURS else ways[: params["kept"]]:
                h = time_for(survey[way], target)[1]
                if not np.isfinite(h):
                    found.append((way, target, []))
                    continue
                for _ in range(REFINED):
                    h = params["duration"] / max(round(params["duration"] / crossing(survey[way], target)), 1)
                    if h in [row[0] for row in survey[way]]:
                        break
                    tried(way, h)
                rows = survey[way]
                found.append((way, target, [rows[i][0] for i in around(rows, target)]))
    return found


def around(rows: list[Row], target: float) -> list[int]:
    """The runs before and after the first crossing; the last two where there is none, if there are any."""
    if not rows:
        return []
    below = [i for i, row in enumerate(rows) if row[1] <= target]
    after = below[0] if below else len(rows) - 1
    return list(range(max(after - 1, 0), after + 1))


def crossing(rows: list[Row], target: float) -> float:
    """The step at which the error should be on target, from the runs next to it."""
    pair = [rows[i] for i in around(rows, target)]
    between = _interpolated(*pair, target) if len(pair) == 2 else None
    return time_for(rows, target)[1] if between is None else between[1]


def time_for(rows: list[Row], target: float) -> tuple[float, float, str]:
    """Seconds and step for an error, and how they were found; runs with falling h."""
    done = min(((s, h) for h, error, s in rows if error <= target), default=(np.inf, np.nan))
    pair = [rows[i] for i in around(rows, target)]
    between = _interpolated(*pair, target) if len(pair) == 2 else None
    if between is not None and between[0] < done[0]:
        return between
    return (*done, "measured") if np.isfinite(done[0]) else (np.nan, np.nan, "not reached")


def _interpolated(longer: Row, shorter: Row, target: float) -> tuple[float, float, str] | None:
    """Linear in the logarithms; up to one more halving beyond the shorter step."""
    falls = np.log(longer[1] / shorter[1])
    if not np.isfinite(falls) or falls <= 0:
        return None
    part = float(np.log(longer[1] / target) / falls)  # 0 at the longer step, 1 at the shorter
    h, seconds = (longer[i] * (shorter[i] / longer[i]) ** part for i in (0, 2))
    if h < 0.499 * shorter[0]:
        return None
    return seconds, h, "between" if part <= 1 else "continued"


def best_peer(needed: Table, target: float) -> int | None:
    """The row of the quickest peer at a target."""
    rows = np.flatnonzero((needed["simulator"] != OURS) & (needed["target"] == target))
    rows = rows[np.isfinite(needed["seconds"][rows])]
    return int(rows[np.argmin(needed["seconds"][rows])]) if rows.size else None


def report(tables: dict[str, Table]) -> str:
    """Who needs how long for each error, and the survey's least errors."""
    return "\n".join([*lines(tables), *remarks(tables["conditions"])])


def check(tables: dict[str, Table]) -> list[Check]:
    survey, needed = tables["survey"], tables["needed"]
    finite = np.isfinite(survey["position_error"])
    checks = [at_least("share of runs with a finite error", np.mean(finite), 1.0)]
    for simulator in MODULES:
        if tables["conditions"][simulator][0] != "-":
            rows = int(np.sum(survey["simulator"] == simulator))
            checks.append(at_least(f"{simulator}: runs", rows, 1))
    if not judged(tables["conditions"]):
        return checks
    for target, bar in BARS.items():
        peer_row = best_peer(needed, target)
        own = (needed["setting"] == BEST) & (needed["target"] == target)
        if peer_row is not None:
            gain = needed["seconds"][peer_row] / needed["seconds"][own][0]
            words = f"error {target:g} m: wall time of the best peer / that of {BEST}"
            checks.append(at_least(words, gain, bar))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    return {"precision": drawn(tables)}
