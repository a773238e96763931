"""Ways of solving a step: three forms of the friction law, compiled and not, on six kinds of contact.

All solve the same equations with the same tolerance; they differ in iterations, time and in how often a
step needs more than plain Newton:

    compiled     share of the steps that were taken in compiled code
    converged    plain Newton's method
    continued    the path of complementarity followed from an easier problem
    substepped   divided (an impact on the way, the guard of `implicit-rattle`)
    failed       not solved; the run ends there

Iterations are those a step; rejected attempts count. Times are those of the stepping, in turns.
`apart` is the distance of the final positions from those of "projection", uncompiled: two correct solvers
part in the rounding, and farther where a motion is unstable, as a toppling stack is, or where impulses
are not unique.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from implicit_geom import Trajectory, simulate
from implicit_geom.compiled.runner import Runner
from implicit_geom.experiments.benchmarks.solver_scenes import SCENES, moving
from implicit_geom.experiments.benchmarks.timing import Contender, conditions, in_turns, remarks, uncompiled
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, GREEN, ORANGE, PAGE, label, panels, paper

TITLE = "ways of solving a step: forms of the friction law, compiled and uncompiled, on six scenes"
PARAMS: dict[str, Any] = {"scenes": tuple(SCENES), "steps": 100, "rounds": 3, "timed": True}
QUICK: dict[str, Any] = {
    "scenes": ("ellipsoid rolling", "pile of six discs"),
    "steps": 4,
    "rounds": 1,
    "timed": False,
}

H = 0.01  # s
FORMS = {"projection": BLUE, "fritz-john": ORANGE, "implicit": GREEN}
NEVER = "fritz-john"  # has no compiled form: its rows are singular where a contact opens
REFERENCE = ("projection", False)
STATUSES = ("converged", "continued", "substepped", "failed")
AGREE = 1e-8  # m
SMOOTH = ("ellipsoid rolling", "ball sliding, spinning", "ellipsoids colliding")  # motions that are stable


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows: list[tuple[Any, ...]] = []
    for scene in params["scenes"]:
        kinds = [(form, compiled) for form in FORMS for compiled in (True, False)]
        kinds.remove((NEVER, True))
        ways = [_Way(scene, *kind, params["steps"]) for kind in kinds]
        contenders = {way: Contender(way.form, way.measure) for way in ways}
        in_turns(contenders.values(), params["rounds"], warm=params["timed"])
        base = next(way for way in ways if (way.form, way.compiled) == REFERENCE)
        for way, contender in contenders.items():
            rows.append((*way.row(), way.apart(base), 1e6 * contender.least / way.steps))
    names = ("scene", "form", "compiled", "steps", "in_compiled", "iterations", "most", *STATUSES)
    return {
        "solvers": columns((*names, "residual", "apart", "step_us"), rows),
        "conditions": conditions(timed=params["timed"]),
    }


class _Way:
    """A scene, a form of the friction law, and compiled or not."""

    def __init__(self, scene: str, form: str, compiled: bool, wanted: int) -> None:
        self.scene, self.form, self.compiled, self.wanted = scene, form, compiled, wanted
        self.run: Trajectory
        self.taken = 0

    def measure(self) -> tuple[np.ndarray, float]:
        started = clock.perf_counter()
        with nullcontext() if self.compiled else uncompiled(), counted() as count:
            self.run = simulate(
                SCENES[self.scene](),
                duration=self.wanted * H,
                step=H,
                friction_residual=self.form,
                on_failure="record",
                progress=False,
            )
        self.taken = sum(count)
        call = clock.perf_counter() - started
        return self.run.taken["wall_time"].copy(), call

    @property
    def steps(self) -> int:
        return len(self.run.taken)

    def row(self) -> tuple[Any, ...]:
        s = self.run.steps
        good = s["status"] != "failed"
        counts = [int(np.sum(s["status"] == status)) for status in STATUSES]
        residual = float(np.max(s["residual"][good], initial=0.0))
        iterations = (float(np.mean(s["iterations"])), int(np.max(s["iterations"])))
        share = self.taken / len(s)
        return (self.scene, self.form, int(self.compiled), len(s), share, *iterations, *counts, residual)

    def apart(self, other: _Way) -> float:
        """Distance of the bodies at the end, m; NaN where one of both ended early."""
        if self.steps != other.steps or self.run.failed or other.run.failed:
            return np.nan
        names = moving(self.run.scene)
        return max(float(np.linalg.norm(self.run[n].position[-1] - other.run[n].position[-1])) for n in names)


@contextmanager
def counted() -> Iterator[list[int]]:
    """Numbers of steps that the compiled march hands over, while this lasts."""
    numbers: list[int] = []
    march = Runner.run

    def counting(self: Runner, *arguments: Any) -> Any:
        found = march(self, *arguments)
        numbers.append(len(found[2]))
        return found

    Runner.run = counting  # type: ignore[method-assign]
    try:
        yield numbers
    finally:
        Runner.run = march  # type: ignore[method-assign]


def report(tables: dict[str, Table]) -> str:
    """One line a scene and way."""
    t = tables["solvers"]
    lines = [
        f"  {'scene':24}{'form':12}{'':11}{'steps':>6}{'compiled':>10}{'iter.':>7}{'most':>6}"
        f"{'conv.':>7}{'cont.':>7}{'sub.':>6}{'fail.':>7}{'residual':>10}{'apart, m':>10}{'us/step':>10}"
    ]
    for i in range(len(t["scene"])):
        r = {name: column[i] for name, column in t.items()}
        way = "compiled" if r["compiled"] else "uncompiled"
        lines.append(
            f"  {r['scene']:24}{r['form']:12}{way:11}{r['steps']:6d}{100 * r['in_compiled']:8.0f} %"
            f"{r['iterations']:7.1f}{r['most']:6d}{r['converged']:7d}{r['continued']:7d}{r['substepped']:6d}"
            f"{r['failed']:7d}{r['residual']:10.0e}{r['apart']:10.0e}{r['step_us']:10.1f}"
        )
    return "\n".join([*lines, *remarks(tables["conditions"])])


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["solvers"]
    ours = t["form"] == "projection"
    smooth = np.isin(t["scene"], SMOOTH)
    return [
        at_least("share of finite times", np.mean(np.isfinite(t["step_us"])), 1.0),
        at_most("projection: failed steps", np.sum(t["failed"][ours]), 0),
        at_most("compiled from uncompiled, stable motions", np.max(t["apart"][ours & smooth]), AGREE, "m"),
        at_most("uncompiled: steps taken in compiled code", np.max(t["in_compiled"][t["compiled"] == 0]), 0),
    ]


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    """(a) time and (b) iterations of a step, by scene and form; uncompiled hollow."""
    t = tables["solvers"]
    scenes = list(dict.fromkeys(t["scene"].tolist()))
    figure, axes = panels(1, 2, (PAGE, 3.2), sharey=True)
    handles: dict[str, Any] = {}
    for k, (form, colour) in enumerate(FORMS.items()):
        for compiled in (1, 0):
            rows = (t["form"] == form) & (t["compiled"] == compiled)
            if not np.any(rows):
                continue
            at = np.array([scenes.index(s) for s in t["scene"][rows].tolist()]) + 0.22 * (k - 1)
            look = {"color": colour, "markerfacecolor": colour if compiled else "white", "markersize": 5}
            drawn = axes[0, 0].plot(t["step_us"][rows], at, "o", **look)[0]
            axes[0, 1].plot(t["iterations"][rows], at, "o", **look)
            handles[f"{form}, {'compiled' if compiled else 'uncompiled'}"] = drawn
    axes[0, 0].set(xscale="log", xlabel="µs")
    axes[0, 1].set(xscale="log", xlabel="iterations")
    axes[0, 0].set_yticks(range(len(scenes)), scenes)
    axes[0, 0].invert_yaxis()
    label(axes[0, 0], "a", "mean time of a step")
    label(axes[0, 1], "b", "mean iterations of a step")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    return {"solvers": figure}
