"""C07 example 1: which approximation takes the energy of a rolling disc that is stepped as a polygon.

Stewart and Trinkle's step approximates surface, gap, wrench and friction. All sixteen combinations are run,
and the energy error of the fully approximate one is shared out by Shapley values. C07 names the geometry as
the cause; here is by how much:

- with the exact surface every combination is exact, so that without facets there is no error at all;
- friction has no part (in the plane pyramid and ellipsoid are one set), and the gap hardly any;
- but a wrench taken at the start of the step, where the vertices were, makes the facets cost more. Its
  share is about the turn in a step over the angle of a facet, omega h N / 2 pi, up to one half: under 5 %
  only where a step turns the polygon by less than a twentieth of a facet. At N = 64, h = 0.01 it is 30 %.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import attribution, compare, shapes
from implicit_geom.experiments.c07_disc import RADIUS, SPEED, scene
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, GREEN, GREY, ORANGE, PAGE, RED, label, panels, paper
from implicit_geom.studies.compared_runs import combinations

TITLE = "C07 example 1: the energy error of a rolling polygon shared out to the four approximations"
PARAMS: dict[str, Any] = {
    "cases": (
        (10, 0.01), (20, 0.0025), (10, 0.02), (20, 0.01), (64, 0.0025), (20, 0.02), (50, 0.01), (64, 0.01),
        (100, 0.01), (200, 0.01), (1000, 0.01),
    ),  # facets, step
    "duration": 1.0,
}  # fmt: skip
QUICK: dict[str, Any] = {"cases": ((10, 0.005), (20, 0.01), (64, 0.01)), "duration": 0.3}

SMALL, LARGE = 0.05, 0.25  # turns in a step over the angle of a facet
PARTS = {"surface": BLUE, "gap": ORANGE, "wrench": GREEN, "friction": RED, "step": GREY}


def run(params: dict[str, Any]) -> dict[str, Table]:
    shares, errors = [], []
    for facets, h in params["cases"]:
        found = compare(
            scene(shapes.disc(RADIUS)),
            duration=params["duration"],
            step=h,
            steppers=combinations(facets=facets),
            progress=False,
        )
        energy = attribution(found)["energy"]
        turned = SPEED / RADIUS * h * facets / (2 * np.pi)
        row = [energy.shares[name] for name in PARTS] + [energy.saved["surface"] / energy.total]
        failed = int(np.sum(found.table["failed"]))
        shares.append((facets, h, turned, energy.total, *row, failed, found.reference.energy_error))
        errors += [(facets, h, name, c.row()["energy_error"]) for name, c in found.found.items()]
    names = ("facets", "h", "turned", "total", *PARTS, "saved_by_surface", "failed", "uncertain")
    return {
        "shares": columns(names, sorted(shares, key=lambda row: row[2])),
        "errors": columns(("facets", "h", "stepper", "energy_error"), errors),
    }


def check(tables: dict[str, Table]) -> list[Check]:
    shares, errors = tables["shares"], tables["errors"]
    slow, fast = shares["turned"] < SMALL, shares["turned"] > LARGE
    smooth = np.array(["S" not in name for name in errors["stepper"]])
    whole = sum(shares[name] for name in PARTS)
    both = shares["wrench"] + shares["friction"]
    return [
        at_most("steps that failed", np.sum(shares["failed"]), 0),
        at_most("reference: uncertainty of the energy", np.max(shares["uncertain"]), 1e-10),
        at_most("shares: distance of their sum from one", np.max(np.abs(whole - 1)), 1e-12),
        at_most("exact surface, any combination: energy error", np.max(errors["energy_error"][smooth]), 1e-9),
        at_most("exact surface alone: share of the error left",
                np.max(np.abs(shares["saved_by_surface"] - 1)), 1e-9),
        at_most("share of friction", np.max(np.abs(shares["friction"])), 1e-9),
        at_most("share of the gap", np.max(np.abs(shares["gap"])), 0.05),
        at_most("share of wrench and friction, turn under 1/20 of a facet a step", np.max(both[slow]), 0.05),
        at_least("share of wrench and friction, turn over 1/4 of a facet a step", np.min(both[fast]), 0.2),
        at_most("share of wrench and friction, any", np.max(both), 0.51),
    ]  # fmt: skip


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    shares = tables["shares"]
    figure, axes = panels(1, 2, (PAGE, 2.8), width_ratios=(1.5, 1))
    bars, wrench = axes[0]
    at = np.arange(len(shares["facets"]))
    bottom = np.zeros(len(at))
    for name in ("surface", "wrench"):
        bars.bar(at, shares[name], bottom=bottom, color=PARTS[name], width=0.7, label=name)
        bottom += shares[name]
    rest = shares["gap"] + shares["friction"] + shares["step"]
    bars.bar(at, rest, bottom=bottom, color=ORANGE, width=0.7, label="gap, friction, step")
    told = [f"{n}\n{1000 * h:g}" for n, h in zip(shares["facets"], shares["h"])]
    bars.set(xticks=at, ylabel="share of the energy error", ylim=(0, 1.05))
    bars.set_xticklabels(told, fontsize=7)
    bars.set_xlabel("vertices $N$ (above), step $h$ in ms (below)")
    bars.grid(False)
    figure.legend(*bars.get_legend_handles_labels(), loc="outside lower left", ncols=3)
    label(bars, "a", "Shapley values over sixteen runs")
    line = np.array([shares["turned"].min(), 0.5])
    wrench.loglog(line, line, "--", color=GREY, linewidth=0.8, label="share = turn")
    wrench.loglog(shares["turned"], shares["wrench"], "o", color=GREEN, label="wrench")
    wrench.axhline(0.05, color=RED, linewidth=0.8, linestyle=":", label="5 %")
    wrench.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    wrench.set(xlabel=r"turn in a step over a facet's angle, $\omega h N / 2\pi$", ylabel="share")
    ticks = (0.02, 0.05, 0.1, 0.2, 0.5)
    wrench.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    wrench.yaxis.set_minor_formatter("")
    wrench.legend(loc="center right")
    label(wrench, "b", "share of the wrench")
    return {"shares": figure}
