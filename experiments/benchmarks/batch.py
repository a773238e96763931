"""Throughput of many runs at once: `simulate_batch` against `mujoco.rollout`, on the same threads.

256 ellipsoids of `ellipsoid_rolling` on the plane, 500 steps each, with friction and first spin at random.
Steps a second of all runs together:

    march   the stepping alone: `batch.wall_time`, and MuJoCo's call of `rollout`
    total   from values to states: scenes, models, and (ours) the closest points of every start; (MuJoCo)
            one XML, 256 copies of its model, the pool of threads

Both keep the states of every step. MuJoCo runs `lean`, its quickest setting here, with its own soft contact.
What a second thread is worth on this machine at this time is measured on MuJoCo as well.
"""

from __future__ import annotations

import time as clock
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from implicit_geom import simulate
from implicit_geom.experiments import ellipsoid_rolling
from implicit_geom.experiments.benchmarks.timing import Contender, conditions, in_turns, judged, remarks
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, ORANGE, PAGE, RED, label, panels, paper
from implicit_geom.experiments.peers import RollingBody, installed, peer
from implicit_geom.run.batch import simulate_batch

TITLE = "256 ellipsoids at once: steps a second against MuJoCo's rollout, by threads"
PARAMS: dict[str, Any] = {"scenes": 256, "steps": 500, "rounds": 10, "compared": 3, "timed": True}
QUICK: dict[str, Any] = {"scenes": 10, "steps": 20, "rounds": 1, "compared": 2, "timed": False}

H = 0.01  # s
SEED = 2007
THREADS = (1, 2)
STEPPERS = ("implicit-rattle", "implicit-euler")
MUJOCO = "mujoco lean"
THROUGHPUT, SCALING = 3.0, 1.8  # bars
AGREE = 1e-9  # m: lanes of a batch from runs of their own


def run(params: dict[str, Any]) -> dict[str, Table]:
    values = _values(params["scenes"])
    kept: dict[tuple[str, int], np.ndarray] = {}
    contenders = {}
    for threads in THREADS:
        for stepper in STEPPERS:
            contenders[stepper, threads] = _ours(values, stepper, threads, params["steps"], kept)
        if "mujoco" in installed():
            contenders[MUJOCO, threads] = _mujoco(values, threads, params["steps"], kept)
    in_turns(contenders.values(), params["rounds"], warm=params["timed"])
    all_steps = params["scenes"] * params["steps"]
    rows = [
        (name, threads, all_steps / c.least, all_steps / c.median, all_steps / c.least_call)
        for (name, threads), c in contenders.items()
    ]
    finite = [(name, threads, float(np.mean(np.isfinite(x)))) for (name, threads), x in kept.items()]
    compared = [(s, _apart(values, s, params, kept[s, THREADS[-1]])) for s in STEPPERS]
    return {
        "throughput": columns(("contender", "threads", "march", "march_median", "total"), rows),
        "finite": columns(("contender", "threads", "share"), finite),
        "compared": columns(("stepper", "difference"), compared),
        "conditions": conditions(timed=params["timed"]),
    }


def _values(count: int) -> dict[str, np.ndarray]:
    """Friction and first spin of every scene, by the names of a scene file."""
    rng = np.random.default_rng(SEED)
    spin = np.zeros((count, 3))
    mu, spin[:, 2] = rng.uniform(0.2, 0.8, count), rng.uniform(-2, 2, count)  # rad/s, about the vertical
    return {"friction.mu": mu, "bodies.body.angular_velocity": spin}


def _ours(
    values: dict[str, np.ndarray], stepper: str, threads: int, steps: int, kept: dict[Any, np.ndarray]
) -> Contender:
    scene = ellipsoid_rolling.scene()

    def measure() -> tuple[np.ndarray, float]:
        started = clock.perf_counter()
        b = simulate_batch(
            scene, values, duration=steps * H, step=H, stepper=stepper, threads=threads, progress=False
        )
        total = clock.perf_counter() - started
        kept[stepper, threads] = b["body"].position[:, 1:]
        return np.array([b.wall_time]), total

    return Contender(stepper, measure)


def _mujoco(
    values: dict[str, np.ndarray], threads: int, steps: int, kept: dict[Any, np.ndarray]
) -> Contender:
    from implicit_geom.experiments.peers.mujoco_batch import simulate_batch as rolled_out

    body = RollingBody.of(ellipsoid_rolling.scene())
    both = zip(values["friction.mu"].tolist(), values["bodies.body.angular_velocity"])
    bodies = [replace(body, mu=mu, angular_velocity=spin) for mu, spin in both]
    setting = peer("mujoco").settings()["lean"]

    def measure() -> tuple[np.ndarray, float]:
        r = rolled_out(bodies, count=steps, step=H, setting=setting, threads=threads)
        kept[MUJOCO, threads] = r.position
        return np.array([r.wall_time]), r.total

    return Contender(MUJOCO, measure)


def _apart(
    values: dict[str, np.ndarray], stepper: str, params: dict[str, Any], position: np.ndarray
) -> float:
    """Largest distance of some scenes of the batch from runs of their own, m."""
    largest = 0.0
    for i in range(params["compared"]):
        scene = ellipsoid_rolling.scene()
        scene.friction(mu=values["friction.mu"][i])
        scene.bodies["body"] = replace(
            scene.bodies["body"], angular_velocity=values["bodies.body.angular_velocity"][i]
        )
        r = simulate(scene, duration=params["steps"] * H, step=H, stepper=stepper, progress=False)
        apart = np.linalg.norm(r["body"].position[1:] - position[i], axis=1)
        largest = max(largest, float(np.max(apart)))
    return largest


def _rate(tables: dict[str, Table], name: str, threads: int, column: str = "march") -> float:
    table = tables["throughput"]
    chosen = (table["contender"] == name) & (table["threads"] == threads)
    return float(table[column][chosen][0]) if np.any(chosen) else np.nan


def report(tables: dict[str, Table]) -> str:
    """Millions of steps a second, and what doubling the threads gives."""
    names = list(dict.fromkeys(tables["throughput"]["contender"].tolist()))
    lines = [f"  {'million steps a second':24}{'threads':>9}{'march':>9}{'median':>9}{'total':>9}"]
    for name in names:
        for threads in THREADS:
            rates = [1e-6 * _rate(tables, name, threads, c) for c in ("march", "march_median", "total")]
            lines.append(f"    {name:22}{threads:9d}" + "".join(f"{r:9.3f}" for r in rates))
    for name in names:
        lines.append(f"  {name}: two threads over one {_rate(tables, name, 2) / _rate(tables, name, 1):.2f}")
    for name in STEPPERS:
        over = [_rate(tables, name, n) / _rate(tables, MUJOCO, n) for n in THREADS]
        if np.all(np.isfinite(over)):
            lines.append(f"  {name} / {MUJOCO}: {over[0]:.2f} on one thread, {over[1]:.2f} on two")
    return "\n".join([*lines, *remarks(tables["conditions"])])


def check(tables: dict[str, Table]) -> list[Check]:
    compared = tables["compared"]
    checks = [at_least("share of finite positions", np.min(tables["finite"]["share"]), 1.0)]
    for stepper, apart in zip(compared["stepper"].tolist(), compared["difference"].tolist()):
        checks.append(at_most(f"{stepper}: scenes of the batch from runs of their own", apart, AGREE, "m"))
    if not judged(tables["conditions"]):
        return checks
    if MUJOCO in tables["throughput"]["contender"]:
        for stepper, n in product(STEPPERS, THREADS):
            gain = _rate(tables, stepper, n) / _rate(tables, MUJOCO, n)
            checks.append(at_least(f"{stepper}, {n} threads: march / that of {MUJOCO}", gain, THROUGHPUT))
    for stepper in STEPPERS:
        gain = _rate(tables, stepper, 2) / _rate(tables, stepper, 1)
        checks.append(at_least(f"{stepper}: march on two threads / on one", gain, SCALING))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    """Steps a second by threads: of the march, and of the whole call."""
    names = list(dict.fromkeys(tables["throughput"]["contender"].tolist()))
    figure, axes = panels(1, 2, (PAGE, 2.6), sharey=True)
    for axis, letter, (column, words) in zip(
        axes[0], "ab", (("march", "stepping alone"), ("total", "whole call"))
    ):
        for k, name in enumerate(names):
            rates = [1e-6 * _rate(tables, name, n, column) for n in THREADS]
            at = np.arange(len(THREADS)) + 0.26 * (k - (len(names) - 1) / 2)
            bars = axis.bar(at, rates, 0.24, label=name, color=(BLUE, ORANGE, RED)[k])
            axis.bar_label(bars, fmt="%.2f", fontsize=7)
        axis.set_xticks(range(len(THREADS)), [f"{n} thread{'s'[: n > 1]}" for n in THREADS])
        axis.grid(visible=False, axis="x")
        label(axis, letter, words)
    axes[0, 0].set(ylabel="million steps a second")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return {"batch": figure}
