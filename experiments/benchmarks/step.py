"""Time of one step at the same h: our steppers, MuJoCo, Drake and Siconos on the rolling ellipsoid.

A step of the same length is not a step of the same worth: see the README of this folder, and `precision`
for the time that an error costs.

    loop    the stepping loop alone. Ours: the compiled march, with all it keeps of every step for the
            records; MuJoCo: `mj_step(model, data, count)`, Drake: `Simulator.AdvanceTo` and Siconos:
            `computeOneStep` in a C++ program beside this one, which keep nothing
    call    from the description of the scene to the states of every step. Ours: all of `simulate`;
            MuJoCo: XML, `MjModel`, `rollout`; Drake (its states need a loop in Python) and Siconos (another
            process) are left out

Both divided by the number of steps. A ratio is our least time over MuJoCo's, that of the quickest setting
with MuJoCo's own contact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.experiments import ellipsoid_rolling
from implicit_geom.experiments.benchmarks.rolling import of_peer, ours, ours_uncompiled, rolled
from implicit_geom.experiments.benchmarks.timing import (
    Contender,
    conditions,
    in_turns,
    judged,
    remarks,
    uncompiled,
)
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, BROWN, GREY, PAGE, PURPLE, RED, label, panels, paper
from implicit_geom.experiments.peers import RollingBody, count_steps, installed, peer

TITLE = "time of a step on the rolling ellipsoid: our steppers, MuJoCo, Drake and Siconos"
PARAMS: dict[str, Any] = {
    "duration": {0.01: 5.0, 0.001: 1.0},  # s, by step
    "rounds": 60,
    "seldom": 20,  # the slow contenders run in one round out of so many
    "uncompiled_steps": 20,
    "compared_steps": 50,
    "timed": True,
}
QUICK: dict[str, Any] = {
    "duration": {0.01: 0.2},
    "rounds": 1,
    "seldom": 1,
    "uncompiled_steps": 2,
    "compared_steps": 10,
    "timed": False,
}

STEPPERS = ("implicit-euler", "implicit-rattle", "implicit-rattle-4")
BARS = {"implicit-euler": 1.0, "implicit-rattle": 2.0, "implicit-rattle-4": 10.0}
OWN_CONTACT = ("mujoco default", "mujoco lean")
AGREE = 1e-12  # m, m/s, rad/s


def run(params: dict[str, Any]) -> dict[str, Table]:
    times: list[tuple[Any, ...]] = []
    ratios: list[tuple[Any, ...]] = []
    agreement: list[tuple[Any, ...]] = []
    for h, duration in params["duration"].items():
        contenders = _contenders(h, duration, params)
        in_turns(contenders, params["rounds"], warm=params["timed"])
        times += [
            (c.name, h, c.unit, len(c.loops), 1e6 * c.least, 1e6 * c.median, 1e6 * c.least_call)
            for c in contenders
        ]
        ratios += _ratios(h, {c.name: c for c in contenders})
        agreement += [(s, h, params["compared_steps"], _difference(s, h, params)) for s in STEPPERS]
    names = ("contender", "h", "steps", "runs", "least_us", "median_us", "call_us")
    kinds = ("stepper", "h", "against", "ratio", "median_ratio")
    return {
        "times": columns(names, times),
        **({"ratios": columns(kinds, ratios)} if ratios else {}),
        "agreement": columns(("stepper", "h", "steps", "difference"), agreement),
        "conditions": conditions(timed=params["timed"]),
    }


def _contenders(h: float, duration: float, params: dict[str, Any]) -> list[Contender]:
    count, seldom = count_steps(duration, h), params["seldom"]
    body = RollingBody.of(ellipsoid_rolling.scene())
    found = [Contender(s, ours(s, h, count), unit=count) for s in STEPPERS]
    few = params["uncompiled_steps"]
    found += [Contender(f"{s}, uncompiled", ours_uncompiled(s, h, few), seldom, few) for s in STEPPERS]
    for name in installed():
        every = 1 if name == "mujoco" else max(seldom // 4, 1)
        for setting in peer(name).settings():
            measure = of_peer(name, body, h, count, peer(name).settings()[setting])
            found.append(Contender(f"{name} {setting}", measure, every, count))
    return found


def _ratios(h: float, by_name: dict[str, Contender]) -> list[tuple[Any, ...]]:
    """Our times over those of MuJoCo's quickest setting, least over least and as median of the rounds."""
    peers = [by_name[name] for name in OWN_CONTACT if name in by_name]
    if not peers:
        return []
    other = min(peers, key=lambda c: c.least)
    rows = []
    for stepper in STEPPERS:
        ours = by_name[stepper]
        by_round = np.sum(ours.loops, axis=1) / np.sum(other.loops, axis=1)
        rows.append((stepper, h, other.name, ours.least / other.least, float(np.median(by_round))))
    return rows


def _difference(stepper: str, h: float, params: dict[str, Any]) -> float:
    """Largest difference of any state, compiled from uncompiled."""
    with uncompiled():
        a = rolled(stepper, h, params["compared_steps"])
    b = rolled(stepper, h, params["compared_steps"])
    return max(float(np.max(np.abs(getattr(a.states, p) - getattr(b.states, p)))) for p in "xqvw")


def report(tables: dict[str, Table]) -> str:
    """Times by step and contender, ratios, and the conditions."""
    times = tables["times"]
    lines = []
    for h in dict.fromkeys(times["h"].tolist()):
        lines.append(f"  {f'h = {h:g} s, us a step':34}{'least':>10}{'median':>10}{'call':>10}{'runs':>7}")
        for i in np.flatnonzero(times["h"] == h):
            least, median, call = (times[c][i] for c in ("least_us", "median_us", "call_us"))
            said = f"{call:10.1f}" if np.isfinite(call) else f"{'-':>10}"
            lines.append(
                f"    {times['contender'][i]:32}{least:10.2f}{median:10.2f}{said}{times['runs'][i]:7d}"
            )
    if "ratios" in tables:
        r = tables["ratios"]
        for i in range(len(r["h"])):
            words = f"{r['stepper'][i]} / {r['against'][i]}, h = {r['h'][i]:g} s"
            lines.append(f"    {words:50}{r['ratio'][i]:8.2f}   median of rounds {r['median_ratio'][i]:.2f}")
    return "\n".join([*lines, *remarks(tables["conditions"])])


def check(tables: dict[str, Table]) -> list[Check]:
    times, agreement = tables["times"], tables["agreement"]
    finite = np.isfinite(times["least_us"]) & (times["least_us"] > 0)
    checks = [at_least("share of finite times", np.mean(finite), 1.0)]
    for stepper in STEPPERS:
        apart = np.max(agreement["difference"][agreement["stepper"] == stepper])
        checks.append(at_most(f"{stepper}: compiled from uncompiled, any state", apart, AGREE))
    if judged(tables["conditions"]) and "ratios" in tables:
        r = tables["ratios"]
        for i in range(len(r["h"])):
            words = f"{r['stepper'][i]}, h = {r['h'][i]:g} s: time of a step / that of {r['against'][i]}"
            checks.append(at_most(words, r["ratio"][i], BARS[str(r["stepper"][i])]))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    """Least and median time of a step, one panel a step size."""
    times = tables["times"]
    sizes = list(dict.fromkeys(times["h"].tolist()))
    figure, axes = panels(1, len(sizes), (PAGE, 3.2), sharey=True)
    for axis, letter, h in zip(axes[0], "abcd", sizes):
        chosen = np.flatnonzero(times["h"] == h)
        for row, i in enumerate(chosen):
            least, median = times["least_us"][i], times["median_us"][i]
            axis.barh(row, least, height=0.65, color=_colour(str(times["contender"][i])))
            axis.plot([least, median], [row, row], color="black", linewidth=0.8)
            axis.plot(median, row, "|", color="black", markersize=5)
            axis.text(
                1.25 * max(least, median),
                row,
                f"{least:.3g}" if least < 1000 else f"{least:,.0f}",
                va="center",
                fontsize=7,
            )
        axis.set(xscale="log", xlabel="time of a step, µs (bar: least, tick: median)")
        axis.set(xlim=(1, 6 * times["median_us"].max()))
        axis.set_yticks(range(len(chosen)), times["contender"][chosen])
        axis.grid(visible=False, axis="y")
        label(axis, letter, f"$h$ = {h:g} s")
    axes[0, 0].invert_yaxis()
    return {"step": figure}


def _colour(name: str) -> str:
    if name.endswith("uncompiled"):
        return GREY
    return {"mujoco": RED, "drake": PURPLE, "siconos": BROWN}.get(name.split()[0], BLUE)
