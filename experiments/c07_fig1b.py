"""C07 Fig. 1(b): a polygon of 1,000 vertices under Stewart and Trinkle's scheme, steps from 0.1 to 1e-4 s.

Shorter steps lose less, to a limit that the vertices set: the plastic impacts of a rolling polygon. So
that the limit is known to be the right one, coarser polygons are followed to it as well: their energy after
each revolution converges to that of a rigid polygon.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import (
    BLUE,
    GREEN,
    ORANGE,
    PAGE,
    PURPLE,
    RED,
    label,
    order_line,
    panels,
    paper,
)
from implicit_geom.experiments.own_laws import law_checks, laws
from implicit_geom.experiments.regression import order
from implicit_geom.experiments.rolling_polygon import after_revolutions, exact_revolutions, implicit, rolled

TITLE = "C07 Fig. 1(b): kinetic energy of a polygon of 1,000 vertices for steps from 0.1 to 1e-4 s"
PARAMS: dict[str, Any] = {
    "vertices": 1000,
    "steps": (0.1, 0.05, 0.02, 0.01, 0.005, 0.001, 0.0005, 0.0001),
    "duration": 10.0,
    "polygons": {30: 4.0, 50: 6.0, 100: 7.5},  # vertices: duration, s
    "polygon_steps": (0.004, 0.002, 0.001, 0.0005),
}
QUICK = {
    "steps": (0.1, 0.01, 0.001),
    "duration": 2.4,
    "polygons": {30: 3.3},
    "polygon_steps": (0.004, 0.002, 0.001),
}
SAMPLES = 200  # times at which energies are listed


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    n, duration = params["vertices"], params["duration"]
    time = np.linspace(0, duration, SAMPLES + 1)
    runs = {f"{h:g}": rolled(n, h, duration) for h in params["steps"]}
    disc = implicit(0.01, duration)
    energy = {"time": time, "disc": np.interp(time, disc.time, disc.kinetic_energy)}
    energy |= {f"step_{h}": np.interp(time, r.time, r.kinetic_energy) for h, r in runs.items()}
    rows: list[tuple[int, float, int, float, float]] = []
    rows += _revolutions(n, min(params["steps"]), runs[f"{min(params['steps']):g}"])
    for polygon, length in params["polygons"].items():
        for h in params["polygon_steps"]:
            runs[f"{polygon}, {h:g}"] = rolled(polygon, h, length)
            rows += _revolutions(polygon, h, runs[f"{polygon}, {h:g}"])
    names = ("vertices", "step", "revolution", "energy", "exact")
    revolutions = {name: np.array(column) for name, column in zip(names, zip(*rows))}
    return {"energy": energy, "revolutions": revolutions, "laws": laws(runs)}


def _revolutions(n: int, h: float, run: Any) -> list[tuple[int, float, int, float, float]]:
    found = after_revolutions(run, n)
    exact = exact_revolutions(n, len(found))
    return [(n, h, k + 1, float(a), float(b)) for k, (a, b) in enumerate(zip(found, exact))]


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    energy, table = tables["energy"], tables["revolutions"]
    start = energy["disc"][0]
    steps = _steps(energy)
    lost = {h: 1 - energy[f"step_{h:g}"][-1] / start for h in steps}
    change = np.max(np.abs(energy["disc"] / start - 1))
    checks = [at_most("implicit disc: relative change of kinetic energy", change, 1e-9)]
    for long, short in pairwise(steps):
        name = f"share lost at h = {long:g} s less that at {short:g} s"
        checks.append(at_least(name, lost[long] - lost[short], 0.0))
    fine = [h for h in steps if h <= 0.001]
    spread = max(abs(energy[f"step_{h:g}"] - energy[f"step_{fine[-1]:g}"]).max() for h in fine) / start
    checks.append(at_most("largest distance of the curves for h <= 0.001 s, over the start", spread, 0.02))
    error = np.abs(table["energy"] / table["exact"] - 1)
    for n in np.unique(table["vertices"]):
        own = table["vertices"] == n
        finest = own & (table["step"] == table["step"][own].min())
        name = f"{n} vertices: energy after each revolution from that of rigid impacts, h -> 0"
        checks.append(at_most(name, error[finest].max(), 0.02))
        first = own & (table["revolution"] == 1)
        if np.sum(first) > 2:
            slope = order(table["step"][first], error[first])
            checks.append(at_least(f"{n} vertices: order of convergence to it", slope, 0.8))
    return checks + law_checks(tables["laws"])


def _steps(energy: dict[str, np.ndarray]) -> list[float]:
    """Steps of the columns, longest first."""
    return sorted((float(name.removeprefix("step_")) for name in energy if "step_" in name), reverse=True)


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    from matplotlib import colormaps

    energy, table = tables["energy"], tables["revolutions"]
    figure, axes = panels(1, 2, (PAGE, 2.7))
    left, right = axes[0]
    left.plot(energy["time"], energy["disc"], color="black", linewidth=2, label="implicit disc")
    steps = _steps(energy)
    for h, colour in zip(steps[::-1], colormaps["viridis"](np.linspace(0.05, 0.9, len(steps)))):
        left.plot(energy["time"], energy[f"step_{h:g}"], color=colour, linewidth=0.9, label=f"h = {h:g} s")
    left.set(xlabel="time, s", ylabel="kinetic energy, J", xlim=(0, energy["time"][-1]), ylim=(0, None))
    left.legend(loc="center left", bbox_to_anchor=(1.0, 0.55), fontsize=7)
    label(left, "a", f"{table['vertices'].max()} vertices")
    polygons = [
        n for n in np.unique(table["vertices"]) if len(np.unique(table["step"][table["vertices"] == n])) > 1
    ]
    error = np.abs(table["energy"] / table["exact"] - 1)
    for n, colour, marker in zip(polygons, (BLUE, ORANGE, GREEN, RED, PURPLE), "os^dv"):
        own = (table["vertices"] == n) & (table["revolution"] == 1)
        right.loglog(table["step"][own], error[own], marker + "-", color=colour, label=f"{n} vertices")
    last = (table["vertices"] == polygons[-1]) & (table["revolution"] == 1)
    order_line(right, table["step"][last], error[last])
    right.set(xlabel="step, s", ylabel="relative error of the energy")
    ticks = np.unique(table["step"][last])
    right.set_xticks(ticks, [f"{h:g}" for h in ticks])
    right.set_xticks([], minor=True)
    right.legend(loc="upper left")
    label(right, "b", "after one revolution, against rigid impacts")
    return {"figure_1b": figure}
