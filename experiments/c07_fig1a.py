"""C07 Fig. 1(a): what polygons of 10 to 1,000 edges lose when Stewart and Trinkle's scheme rolls them.

The disc starts on a vertex of the inscribed polygon, with its mass and inertia. More edges lose less, to a
limit that the step sets; the implicit disc loses nothing.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import COLUMN, GREY, panels, paper
from implicit_geom.experiments.own_laws import law_checks, laws
from implicit_geom.experiments.rolling_polygon import implicit, rolled, step_limit

TITLE = "C07 Fig. 1(a): kinetic energy of a rolling disc and of polygons stepped by an LCP"
PARAMS: dict[str, Any] = {
    "step": 0.01,
    "duration": 10.0,
    "edges": (10, 20, 50, 100, 200, 500, 1000),
    "limit_from": 200,  # edges from which the loss is that of the step
}
QUICK = {"edges": (10, 50, 200, 1000), "duration": 4.0}


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    h, duration = params["step"], params["duration"]
    runs = {"disc": implicit(h, duration)}
    runs |= {f"polygon_{n}": rolled(n, h, duration) for n in params["edges"]}
    finer = rolled(max(params["edges"]), h / 2, duration)
    energy = {"time": runs["disc"].time, **{name: r.kinetic_energy for name, r in runs.items()}}
    energy["half_step"] = finer.kinetic_energy[::2]
    edges = np.array(params["edges"])
    limit = {
        "edges": edges,
        "step": np.full(edges.size, h),
        "limit": (edges >= params["limit_from"]).astype(int),
    }
    return {"energy": energy, "laws": laws({**runs, "half_step": finer}), "limit": limit}


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    energy, limit = tables["energy"], tables["limit"]
    start, h, time = energy["disc"][0], float(limit["step"][0]), energy["time"]
    edges = limit["edges"]
    lost = {n: 1 - _late(energy[f"polygon_{n}"]) / start for n in edges}
    fine = edges[limit["limit"] == 1]
    coarse = edges[edges <= fine[0]]
    change = np.max(np.abs(energy["disc"] / start - 1))
    checks = [at_most("implicit disc: relative change of kinetic energy", change, 1e-9)]
    for few, more in pairwise(coarse):
        name = f"share lost with {few} edges less that with {more}"
        checks.append(at_least(name, lost[few] - lost[more], 0.01))
    spread = max(lost[n] for n in fine) - min(lost[n] for n in fine)
    name = f"spread of the share lost with {fine[0]} edges and more"
    checks.append(at_most(name, spread, 0.01))
    predicted = 1 - _late(step_limit(h, time))
    name = f"distance of that share from the limit of the step, {predicted:.4f}"
    checks.append(at_most(name, max(abs(lost[n] - predicted) for n in fine), 0.01))
    finer = 1 - _late(energy["half_step"]) / start
    name = "distance from the limit of half the step"
    checks.append(at_most(name, abs(finer - 1 + _late(step_limit(h / 2, time))), 0.01))
    return checks + law_checks(tables["laws"])


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    from matplotlib import colormaps

    energy, edges = tables["energy"], tables["limit"]["edges"]
    figure, axes = panels(1, 1, (COLUMN, 2.7))
    axis = axes[0, 0]
    axis.plot(energy["time"], energy["disc"], linewidth=2, color="black", label="implicit disc")
    shades = colormaps["viridis"](np.linspace(0.9, 0.05, len(edges)))
    for n, colour in zip(edges[::-1], shades[::-1]):
        axis.plot(energy["time"], energy[f"polygon_{n}"], color=colour, linewidth=0.9, label=f"{n} edges")
    limit = energy["disc"][0] * step_limit(float(tables["limit"]["step"][0]), energy["time"])
    axis.plot(energy["time"], limit, "--", color=GREY, linewidth=0.9, label="limit of the step")
    axis.set(xlabel="time, s", ylabel="kinetic energy, J", xlim=(0, energy["time"][-1]), ylim=(0, None))
    axis.legend(
        loc="upper right",
        bbox_to_anchor=(1.02, 0.91),
        ncols=2,
        columnspacing=0.8,
        fontsize=7,
        handlelength=1.4,
    )
    return {"figure_1a": figure}


def _late(values: np.ndarray) -> float:
    """Mean over the last twentieth: a polygon's kinetic energy rises and falls from vertex to vertex."""
    return float(np.mean(values[-max(1, len(values) // 20) :]))
