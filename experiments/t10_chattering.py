"""T10, Fig. 4: without care for edges Gauss-Newton steps jump from one side of an edge to the other.

A   one contact in the plane: the minima of the two smooth pieces lie on each other's side. A search that
    knows no edges jumps between the two; the edge-aware search stops at the edge, and later steps keep to it.
B   one contact in space: steps in the tangent space of the cone leave it, since it is curved, and the search
    leads back. With the projection on the cone the steps stay on it.

Random contacts, A = Q Q^T / d + 0.02 I with normal Q, v0 normal with an approach, from x = v0. Counted are
the iterations and how often an iterate is in another region (break, stick, slip) than the one before. The
examples drawn, chosen for their chattering, end in a local minimum of |r|^2 / 2 on an edge.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, GREY, PAGE, RED, label, panels, paper
from implicit_geom.solvers.contact.t10.maps import System
from implicit_geom.solvers.contact.t10.options import AS_PRINTED
from implicit_geom.solvers.contact.t10.recovery import solve
from implicit_geom.solvers.contact.t10.search import objective
from implicit_geom.solvers.contact.t10.starts import scaled, unit_diagonal

TITLE = "T10, Fig. 4: chattering at edges, and what stops it"
PARAMS: dict[str, Any] = {"problems": 600}
QUICK: dict[str, Any] = {"problems": 80}

CAREFUL = replace(AS_PRINTED, scaled=True, start="free")
# panel: dimension, friction, the example drawn, and the options without the cure
CASES = {
    "A": (2, 1.5, 455, replace(CAREFUL, edge_aware=False, mixed_jacobian=False, tangent_bases=False)),
    "B": (3, 3.0, 469, replace(CAREFUL, cone_projection=False)),
}
TOLERANCE = 1e-8


def contact(seed: int, d: int, mu: float) -> System:
    """A random contact that approaches, scaled."""
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(d, d))
    v0 = rng.normal(size=(1, d))
    v0[0, 0] = -abs(v0[0, 0])
    system = System(Q @ Q.T / d + 0.02 * np.eye(d), v0, np.zeros(1), np.full(1, mu))
    return scaled(system, unit_diagonal(system))


def run(params: dict[str, Any]) -> dict[str, Table]:
    counts, paths = [], []
    for panel, (d, mu, drawn, without) in CASES.items():
        for seed in [*range(params["problems"]), drawn]:
            system = contact(seed, d, mu)
            for way, options in (("with", CAREFUL), ("without", without)):
                out = solve(system, TOLERANCE, replace(options, scaled=False), keep_path=True)
                state = [int(system.region(on_side(x, mu))[0]) for x in out.path]
                jumps = int(np.count_nonzero(np.diff(state)))
                counts.append((panel, seed, way, out.iterations, jumps, out.history[-1], int(seed == drawn)))
                if seed == drawn:
                    paths += [(panel, way, k, x[0, 0], *_flat(x)) for k, x in enumerate(out.path)]
    return {
        "counts": columns(("panel", "seed", "way", "iterations", "jumps", "residual", "drawn"), counts),
        "paths": columns(("panel", "way", "iteration", "normal", "t", "o", "friction"), paths),
    }


def on_side(x: np.ndarray, mu: float) -> np.ndarray:
    """x with a cone's rounding taken away: what is on the cone counts as sticking."""
    x = x.copy()
    x[:, 1:] *= 1 - 1e-9 / (1 + mu)
    return x


def _flat(x: np.ndarray) -> tuple[float, float, float]:
    t, o = x[0, 1], x[0, 2] if x.shape[1] > 2 else 0.0
    return float(t), float(o), float(np.hypot(t, o))


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["counts"]
    checks = []
    for panel, at_edge in (("A", 10), ("B", 20)):
        drawn = (t["panel"] == panel) & (t["drawn"] == 1)
        careful, careless = drawn & (t["way"] == "with"), drawn & (t["way"] == "without")
        jumps, iterations = t["jumps"], t["iterations"]
        checks += [
            at_least(f"{panel}, drawn: jumps without the cure", jumps[careless][0], at_edge),
            at_most(f"{panel}, drawn: jumps with it", jumps[careful][0], 3),
            at_least(f"{panel}, drawn: iterations without over with it",
                     iterations[careless][0] / iterations[careful][0], 3.0),
            at_most(f"{panel}, drawn: residual with it over that without",
                    t["residual"][careful][0] / t["residual"][careless][0], 1 + 1e-9),
        ]  # fmt: skip
        others = (t["panel"] == panel) & (t["drawn"] == 0)
        worst = np.max(jumps[others & (t["way"] == "with")])
        checks.append(at_most(f"{panel}, all problems: most jumps with the cure", worst, 4))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    figure, axes = panels(1, 3, (PAGE, 2.7))
    paths = tables["paths"]
    for k, (panel, (d, mu, drawn, _)) in enumerate(CASES.items()):
        axis = axes[0][k]
        across = "t" if panel == "A" else "friction"
        own = paths["panel"] == panel
        last = own & (paths["way"] == "without") & (paths["iteration"] >= 2)
        x, y = paths[across][last], paths["normal"][last]
        size = 0.8 * max(np.ptp(x), np.ptp(y), 1e-3)
        middle = (x.min() + x.max()) / 2, (y.min() + y.max()) / 2
        grid = np.linspace(-size, size, 160)
        if d == 2:
            T, N = np.meshgrid(middle[0] + grid, middle[1] + grid)
            system = contact(drawn, d, mu)
            points = np.stack([N.ravel(), T.ravel()], axis=1)[:, None, :]
            value = objective(system, points, np.ones((1, d))).reshape(T.shape)
            axis.contour(T, N, np.log(value), 14, colors="#cccccc", linewidths=0.6)
        sides = (1, -1) if d == 2 else (1,)
        for side in sides:
            axis.plot(middle[0] + grid, -side * (middle[0] + grid) / mu, "--", color=GREY, linewidth=0.8)
        for way, colour, mark in (("without", RED, "o-"), ("with", BLUE, "s-")):
            rows = own & (paths["way"] == way)
            axis.plot(paths[across][rows], paths["normal"][rows], mark, color=colour, label=way)
        axis.set(xlim=middle[0] + np.array([-size, size]), ylim=middle[1] + np.array([-size, size]))
        axis.set(xlabel="$x_F$" if d == 2 else r"$|x_F|$", ylabel="$x_N$")
        label(axis, "ab"[k], "edge-aware search" if panel == "A" else "projection on the cone")
        axis.legend()
    t = tables["counts"]
    for panel, mark in (("A", "o"), ("B", "s")):
        for way, colour in (("without", RED), ("with", BLUE)):
            rows = (t["panel"] == panel) & (t["way"] == way)
            jumps = np.sort(t["jumps"][rows])[::-1]
            axes[0][2].plot(1 + np.arange(len(jumps)), jumps, mark, color=colour, label=f"{panel}, {way}")
    axes[0][2].set(xscale="log", xlabel="problems, sorted", ylabel="jumps over an edge")
    axes[0][2].legend()
    label(axes[0][2], "c", "random contacts")
    return {"fig_4": figure}
