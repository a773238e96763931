"""AH02, Figs. 2 and 3: a pile of 21 discs with mu = 0.05 collapses under LCP0, LCP1 and LCP2.

LCP1, the fixed point on Gamma = mu Lambda, converges in every step and gives LCP0's motion; LCP2, one
iteration of it, lets contacts that slide open at mu lambda, which adds up over time. `implicit-euler` is the
same step with the true gap and the wrenches at its end. Energies never grow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.figures import BLUE, GREEN, GREY, ORANGE, PAGE, label, panels, paper
from implicit_geom.experiments.piles import (
    STEP,
    collapse,
    draw,
    frames,
    places,
    relaxed,
    separations,
    summary,
    table_of,
)

TITLE = "AH02, Figs. 2 and 3: 21 discs, mu = 0.05, LCP0 against its convex relaxations"
PARAMS: dict[str, Any] = {"rows": 6, "mu": 0.05, "duration": 5.0, "frames": (0.0, 1.5, 3.0, 5.0)}
QUICK = {"rows": 5, "duration": 0.6, "frames": (0.0, 0.2, 0.4, 0.6)}
COLOURS = {"LCP0": BLUE, "LCP1": GREEN, "LCP2": ORANGE, "implicit-euler": GREY}
Table = dict[str, np.ndarray]


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows, mu, duration = params["rows"], params["mu"], params["duration"]
    steppers = {
        **{name: relaxed(name) for name in ("LCP0", "LCP1", "LCP2")},
        "implicit-euler": "implicit-euler",
    }
    runs = {name: collapse(rows, mu, duration, stepper) for name, stepper in steppers.items()}
    steps = round(duration / STEP)
    motion: Table = {"time": STEP * np.arange(steps + 1)}
    exact = places(runs["LCP0"])
    for name, r in runs.items():
        motion[f"energy_{name}"] = _filled(r.energy, steps + 1)
        both = min(len(exact), len(r.time))
        apart = np.abs(places(r)[:both] - exact[:both]).max(axis=(1, 2))
        motion[f"apart_{name}"] = _filled(apart, steps + 1)
        motion[f"iterations_{name}"] = _filled(np.append(0, r.good_steps["iterations"]), steps + 1)
    largest, mean = separations(runs["LCP2"], mu)
    motion["largest_error_LCP2"] = _filled(np.append(0, largest), steps + 1)
    motion["mean_error_LCP2"] = _filled(np.append(0, mean), steps + 1)
    return {
        "runs": table_of([{"model": name, **summary(r, duration)} for name, r in runs.items()]),
        "motion": motion,
        "frames": frames(runs["LCP1"], params["frames"]),
    }


def _filled(values: np.ndarray, size: int) -> np.ndarray:
    """Values to the end of the run; what was not reached is not a number."""
    out = np.full(size, np.nan)
    out[: len(values)] = values
    return out


def check(tables: dict[str, Table]) -> list[Check]:
    runs, motion = tables["runs"], tables["motion"]
    lcp = np.char.startswith(runs["model"], "LCP")
    checks = [
        at_most("steps that failed or were not taken", np.sum(runs["failed"] + runs["not_taken"]), 0),
        at_most("largest error of a complementarity problem, scaled", np.max(runs["lcp_error"][lcp]), 1e-10),
        at_most("largest penetration", np.max(runs["penetration_m"]), 1e-6, "m"),
        at_most("LCP1: distance of its motion from LCP0's", np.nanmax(motion["apart_LCP1"]), 1e-4, "m"),
    ]
    # [AH02, theorem 4.2]: |v - v*| <= L |mu lambda|, in the first step, where both start from the same state
    off = motion["apart_LCP2"][1] / (STEP * motion["largest_error_LCP2"][1])
    checks.append(at_most("LCP2, first step: error of its velocities over the largest mu lambda", off, 2.0))
    for name in ("LCP0", "LCP1", "LCP2"):
        gain = np.nanmax(np.diff(motion[f"energy_{name}"])) / motion[f"energy_{name}"][0]
        checks.append(at_most(f"{name}: largest gain of energy in a step, relative", gain, 1e-9))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    motion, shown = tables["motion"], tables["frames"]
    pictures, axes = panels(2, 2, (PAGE, 2.1))
    for axis, t in zip(axes.ravel(), np.unique(shown["time"])):
        own = shown["time"] == t
        draw(axis, shown["x"][own], shown["y"][own], shown["angle"][own])
        axis.set(xlim=(shown["x"].min() - 2, shown["x"].max() + 2), ylim=(-0.5, shown["y"].max() + 2))
        axis.set_title(f"t = {t:.2g} s")
    curves, axes = panels(1, 3, (PAGE, 2.4))
    energy, apart, effort = axes[0]
    for name, colour in COLOURS.items():
        energy.plot(motion["time"], motion[f"energy_{name}"], color=colour, label=name)
    for name in ("LCP1", "LCP2", "implicit-euler"):
        apart.semilogy(motion["time"][1:], motion[f"apart_{name}"][1:], color=COLOURS[name], label=name)
    effort.plot(motion["time"][1:], motion["iterations_LCP1"][1:], color=GREEN, label="programs of LCP1")
    twin = 1e2 * motion["mean_error_LCP2"]
    effort.plot(motion["time"], twin, color=ORANGE, label=r"LCP2: mean $\mu\lambda$, cm/s")
    energy.set(xlabel="time, s", ylabel="energy, J")
    apart.set(xlabel="time, s", ylabel="farthest disc from LCP0's, m")
    effort.set(xlabel="time, s", ylabel="programs; cm/s", ylim=(0, None))
    for axis, letter, title in zip(axes[0], "abc", ("energy", "distance from LCP0", "effort and error")):
        label(axis, letter, title)
        axis.set_xlim(0, motion["time"][-1])
        axis.legend()
    return {"figure_2": pictures, "figure_3": curves}
