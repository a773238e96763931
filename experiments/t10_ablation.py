"""What each ingredient of T10's algorithm brings, on problems of its Table 1.

Problems of balls in a cube are recorded from runs of the solver's defaults, and solved with one ingredient
changed at a time. `t10` is T10's algorithm with x scaled, without chord steps and recovery: at most 100
iterations, and a local minimum ends it. T10 says of the edge-aware search that it removed a substantial
number of problematic cases; of the projection, that chattering at conic edges went with it; of the steps that
are no Newton steps, that they almost always end in x_C : x_N, half of them on edges.

Found on 468 problems: without the edge-aware search the mean number of iterations grows by 75 %, without the
projection by 39 %, without bases and projection it doubles, without the scaling, too; the median stays,
except without the scaling. What is done at edges saves iterations on hard problems and solves few more of
them: 12 % stay unsolved, 16 % without any of it. T10's remedies, another start or D, solve about a fifth of
these, projected steps four fifths, proximal steps all. 82 % of the steps that are no Newton steps end in
x_C : x_N, and 27 % on edges, where T10 has almost all and half. Without the dogleg the mean is smaller.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from implicit_geom.experiments.balls_in_a_cube import advance, contacts_of, problem_of, random_balls
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, label, panels, paper
from implicit_geom.experiments.t10_table1 import SIDES, STEP
from implicit_geom.solvers.contact.t10.maps import System
from implicit_geom.solvers.contact.t10.options import AS_PRINTED, T10Options
from implicit_geom.solvers.contact.t10.recovery import solve

TITLE = "T10: what each ingredient brings"
PARAMS: dict[str, Any] = {"balls": 10, "mu": (0.5, 1.0, 2.0), "runs": 4, "steps": 200, "every": 5}
QUICK: dict[str, Any] = {"runs": 1, "mu": (1.0, 2.0), "every": 7}

TOLERANCE = 1e-6
SEED = 6  # of other runs than those of Table 1
T10 = replace(AS_PRINTED, scaled=True)
WAYS: dict[str, T10Options] = {
    "t10": T10,
    "no edge-aware search": replace(T10, edge_aware=False),
    "no projection": replace(T10, cone_projection=False),
    "no bases, no projection": replace(T10, tangent_bases=False, cone_projection=False),
    "no mixed Jacobian": replace(T10, mixed_jacobian=False),
    "nothing at edges": replace(
        T10, edge_aware=False, mixed_jacobian=False, tangent_bases=False, cone_projection=False
    ),
    "no dogleg": replace(T10, dogleg=False),
    "no damping": replace(T10, damping=False),
    "not scaled": AS_PRINTED,
    "start at v0": replace(T10, start="free"),
    "chord steps": replace(T10, corrections=10),
    "restart": replace(T10, recovery=("restart",), first=50, patience=0),
    "sweep": replace(T10, recovery=("sweep",), first=50, patience=0),
    "scale": replace(T10, recovery=("scale",), first=50, patience=0),
    "proximal": replace(T10, recovery=("proximal",), iterations=500, first=15),
    "defaults": T10Options(),
}


def problems(params: dict[str, Any]) -> list[System]:
    """Contact problems of runs, one in `every` steps."""
    found = []
    count = params["balls"]
    for mu in params["mu"]:
        for run_ in range(params["runs"]):
            balls = random_balls(np.random.default_rng([SEED, count, run_]), count, SIDES[count])
            for k in range(params["steps"]):
                contacts = contacts_of(balls)
                system, free = problem_of(balls, contacts, mu, STEP)
                out = solve(system, TOLERANCE, T10Options())
                if k % params["every"] == 0 and len(system.b):
                    found.append(system)
                balls = advance(balls, contacts, free, out.f, STEP)
    return found


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows = []
    systems = problems(params)
    for way, options in WAYS.items():
        outs = [solve(s, TOLERANCE * max(1.0, float(np.linalg.norm(s.v0))), options) for s in systems]
        count = np.array([out.iterations for out in outs])
        solved = np.array([out.status == "success" for out in outs])
        steps = [step for out in outs for step in out.steps]
        rest = [step for step in steps if step != "newton"]
        later = [step for step in rest if not step.startswith("cauchy")]
        rows.append((
            way, len(systems), 1 - solved.mean(), np.median(count), count.mean(),
            count[solved].mean() if solved.any() else np.nan, np.mean(count == options.iterations),
            1 - len(rest) / max(len(steps), 1), len(later) / max(len(rest), 1),
            sum("edge" in step for step in rest) / max(len(rest), 1),
        ))  # fmt: skip
    names = (
        "way",
        "problems",
        "unsolved",
        "median",
        "mean",
        "mean_solved",
        "limit",
        "newton",
        "second",
        "edge",
    )
    return {"ways": columns(names, rows)}


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["ways"]
    at = {way: i for i, way in enumerate(t["way"].tolist())}
    mean, unsolved, i = t["mean"], t["unsolved"], at["t10"]
    nothing = at["nothing at edges"]
    over = {way: mean[k] / mean[i] for way, k in at.items()}
    return [
        at_least("iterations without the edge-aware search, over t10's", over["no edge-aware search"], 1.05),
        at_least("iterations without the projection, over t10's", over["no projection"], 1.05),
        at_least("iterations without bases and projection, over t10's",
                 over["no bases, no projection"], 1.05),
        at_least("iterations without scaling, over t10's", over["not scaled"], 1.2),
        at_least("unsolved with nothing at edges, less t10's", unsolved[nothing] - unsolved[i], 0.0),
        at_least("unsolved of t10, less those with proximal steps",
                 unsolved[i] - unsolved[at["proximal"]], 0.05),
        at_least("steps that are no Newton steps: share in x_C : x_N", t["second"][i], 0.5),
        at_most("defaults: unsolved", unsolved[at["defaults"]], 0.005),
        at_most("defaults: median iterations", t["median"][at["defaults"]], 4.6),
        at_least("t10: median iterations over those with chord steps",
                 t["median"][i] / t["median"][at["chord steps"]], 1.2),
    ]  # fmt: skip


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    t = tables["ways"]
    figure, axes = panels(1, 2, (PAGE, 3.2), sharey=True)
    place = np.arange(len(t["way"]))[::-1]
    left, right = axes[0]
    left.barh(place, t["mean"], color=GREY, height=0.7, label="mean")
    left.barh(place, t["median"], color=BLUE, height=0.4, label="median")
    left.set_yticks(place, t["way"].tolist())
    left.set_xlabel("iterations")
    left.legend(loc="lower right")
    label(left, "a", "iterations")
    right.barh(place, 100 * t["unsolved"], color=ORANGE, height=0.7)
    right.set_xlabel("unsolved, %")
    label(right, "b", "problems unsolved at 1e-6")
    return {"ablation": figure}
