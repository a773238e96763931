"""Many bodies: the first step of AH02's heap, time per step and number of bodies, a box of ellipsoids.

heap     210 discs of 3 m that touch in a triangle, h = 0.05 s: all contacts close at once and nothing is
         known of their impulses. The residual is the largest of the normal and the friction law, in m/s,
         recomputed from the states and impulses by `implicit_geom.check.certificate`.
growth   heaps of discs at rest, h = 0.01 s: median time of a step after the first ones.
pour     ellipsoids that fall into a box, with `friction_tolerance=1e-2`: gaps and normal impulses are exact,
         the friction law holds to a hundredth of the speeds.
"""

from __future__ import annotations

import resource
import time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.piles import STEP, count, pile
from implicit_geom.rotation import unit

TITLE = "many bodies: AH02's heap, time per step, ellipsoids in a box"
PARAMS: dict[str, Any] = {
    "rows": 20,
    "mu": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
    "growth": [4, 7, 13, 20, 31, 44, 70, 99],  # rows of the heaps: 10 to 4,950 discs
    "steps": 20,
    "budget": 600.0,  # s for one heap; what is not reached is not a number
    "poured": [125, 1000],
    "pour_time": 2.0,
    "pour_budget": 7200.0,  # s for each
}
QUICK: dict[str, Any] = {
    "rows": 5,
    "mu": [0.2, 0.8],
    "growth": [5, 7],
    "steps": 6,
    "poured": [12],
    "pour_time": 0.1,
    "pour_budget": 600.0,
}
FRICTION = 0.8
FRICTION_TOLERANCE = 1e-2  # of the pour
SMALLEST = 90  # discs of a heap whose time counts for the growth
CHUNK = 5  # steps between looks at the clock; the first of them makes its equations anew
LAWS = ("complementarity", "friction")
Table = dict[str, np.ndarray]


def box(count: int) -> Scene:
    """Ellipsoids on a loose lattice over a square floor with four walls."""
    rng = np.random.default_rng(0)
    side = max(2, round(count ** (1 / 3)))
    scene = Scene(gravity=(0.0, 0.0, -9.81))
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    half = 0.125 * side
    walls = {"left": (1, 0, 0), "right": (-1, 0, 0), "front": (0, 1, 0), "back": (0, -1, 0)}
    for name, normal in walls.items():
        scene.add(name, shapes.halfspace(normal, offset=-half), fixed=True)
    for k in range(count):
        column, row, layer = k % side, k // side % side, k // side**2
        place = (0.25 * (column + 0.5) - half, 0.25 * (row + 0.5) - half, 0.15 + 0.25 * layer)
        scene.add(
            f"e{k}",
            shapes.ellipsoid(0.12, 0.1, 0.08),
            mass=1.0,
            position=place,
            orientation=unit(rng.normal(size=4)),
            velocity=rng.normal(size=3) * 0.1,
        )
    scene.friction(mu=0.4)
    return scene


def run(params: dict[str, Any]) -> dict[str, Table]:
    first = [first_step(params["rows"], mu) for mu in params["mu"]]
    growth = [time_per_step(rows, params["steps"], params["budget"]) for rows in params["growth"]]
    poured = [pour(n, params["pour_time"], params["pour_budget"]) for n in params["poured"]]
    return {"heap": _table(first), "growth": _table(growth), "pour": _table(poured)}


def first_step(rows: int, mu: float) -> dict[str, Any]:
    """One step of AH02's heap."""
    started = time.perf_counter()
    run = _simulate(pile(rows, mu), STEP, STEP)
    row = {"mu": mu, "discs": count(rows), "seconds": time.perf_counter() - started}
    done = run.good_steps
    row["solves"] = int(done["solves"].sum())
    row["iterations"] = int(done["iterations"].sum())
    row["residual"] = _residual(run) if len(done) else np.nan
    return row


def time_per_step(rows: int, steps: int, budget: float) -> dict[str, Any]:
    """The median time of a step of a heap at rest, without the first quarter of them."""
    started = time.perf_counter()
    run = _simulate(pile(rows, FRICTION, 0.1), 0.01, 0.01)
    while len(run.good_steps) < steps and not run.failed and time.perf_counter() - started < budget:
        run = run.resume(duration=0.01 * min(CHUNK, steps - len(run.good_steps)))
    taken = run.good_steps[steps // 4 :]
    complete = len(run.good_steps) == steps
    return {
        "discs": count(rows),
        "steps": len(run.good_steps),
        "milliseconds": 1e3 * float(np.median(taken["wall_time"])) if complete else np.nan,
        "first_seconds": float(run.steps["wall_time"][0]),
        "iterations": float(np.median(taken["iterations"])) if complete else np.nan,
        "substepped": int(np.sum(run.good_steps["solves"] > 1)),
        "contacts": int(run.steps["contacts"][-1]),
        "residual": _residual(run) if complete else np.nan,
    }


def pour(count: int, duration: float, budget: float) -> dict[str, Any]:
    """Ellipsoids in a box for a time, or as far as they get."""
    started = time.perf_counter()
    run = _simulate(box(count), 0.01, 0.01, friction_tolerance=FRICTION_TOLERANCE)
    while run.time[-1] < duration - 1e-9 and not run.failed and time.perf_counter() - started < budget:
        run = run.resume(duration=min(0.05, duration - run.time[-1]))
    speeds = [np.linalg.norm(run[name].velocity, axis=1).max() for name in run.names]
    solved = run.steps[run.steps["status"] != "failed"]
    return {
        "bodies": count,
        "wanted": duration,
        "reached": float(run.time[-1]),
        "penetration": run.max_penetration / 0.12,
        "seconds": time.perf_counter() - started,
        "milliseconds": 1e3 * float(np.median(run.steps["wall_time"])),
        "solves": int(solved["solves"].sum()),
        "memory_MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "normal": float(solved["complementarity"].max()),
        "friction": float(solved["friction"].max()),
        "fastest": float(max(speeds)),
    }


def _simulate(scene: Scene, duration: float, step: float, **options: Any) -> Trajectory:
    return simulate(
        scene,
        duration=duration,
        step=step,
        stepper="implicit-euler",
        on_failure="record",
        progress=False,
        **options,
    )


def _residual(run: Trajectory) -> float:
    """The largest residual of a contact law in any step, m/s."""
    solved = run.steps[run.steps["status"] != "failed"]
    return float(max(solved[name].max(initial=0.0) for name in LAWS))


def _table(rows: list[dict[str, Any]]) -> Table:
    return {column: np.array([row[column] for row in rows]) for column in rows[0]}


def exponent(growth: Table) -> float:
    """The slope of log time against log bodies, from about a hundred on."""
    known = np.isfinite(growth["milliseconds"]) & (growth["discs"] >= SMALLEST)
    if np.sum(known) < 2:
        return np.nan
    return float(np.polyfit(np.log(growth["discs"][known]), np.log(growth["milliseconds"][known]), 1)[0])


def report(tables: dict[str, Table]) -> str:
    """The tables as text."""
    lines = []
    for name, table in tables.items():
        lines.append(f"  {name}")
        lines.append("    " + "".join(f"{column:>15}" for column in table))
        for row in zip(*table.values(), strict=True):
            lines.append("    " + "".join(f"{value:15.4g}" for value in row))
    return "\n".join(lines)


def check(tables: dict[str, Table]) -> list[Check]:
    first, growth, poured = tables["heap"], tables["growth"], tables["pour"]
    checks = [
        at_most("heap: residual of the contact laws", np.max(first["residual"]), 1e-8, "m/s"),
        at_most("heap: solves of its step", np.max(first["solves"]), 1),
        at_most("growth: residual of the contact laws", np.max(growth["residual"]), 1e-8, "m/s"),
        at_most("poured: penetration / size", np.max(poured["penetration"]), 1e-9),
        at_most("poured: residual of the normal law", np.max(poured["normal"]), 1e-8, "m/s"),
        at_most(
            "poured: residual of the friction law / speed",
            np.max(poured["friction"] / poured["fastest"]),
            FRICTION_TOLERANCE,
        ),
        at_most("poured: memory", np.max(poured["memory_MB"]), 2048, "MB"),
    ]
    for bodies, left in zip(poured["bodies"], poured["wanted"] - poured["reached"], strict=True):
        checks.append(at_most(f"poured: time not reached, {bodies:.0f} ellipsoids", left, 1e-9, "s"))
    # (times of a few bodies say little)
    if growth["discs"].max() >= 1000:
        checks.append(at_most("growth: exponent of the time per step", exponent(growth), 1.2))
        for discs, bound in ((210, 20.0), (990, 150.0)):
            chosen = growth["discs"] == discs
            if np.any(chosen):
                value = growth["milliseconds"][chosen][0]
                checks.append(at_most(f"growth: time per step, {discs} discs", value, bound, "ms"))
    return checks


def plot(tables: dict[str, Table]) -> dict[str, Figure]:
    """Time per step against the number of bodies."""
    growth = tables["growth"]
    figure, axes = plt.subplots(figsize=(4, 3), layout="constrained")
    axes.loglog(growth["discs"], growth["milliseconds"], "o-")
    axes.set(xlabel="discs", ylabel="time per step, ms")
    return {"growth": figure}
