"""MJ14 example 1, Fig. 2: a sphere slides, then rolls, under all four of MJ14's solvers (and PATH).

A corner of the pyramid lies along the motion, so that pyramid and cone are the same here:

    t <= 2 v / (7 mu g) = 0.29125 s:   v_x = 2 - 1.962 t,   w_y = 4.905 t,   friction mu F_n = 1.962 N
    afterwards                         v_x = w_y = 10/7 = 1.428571,          no friction

Velocities are exact at the ends of steps, and the time at which rolling is noticed is within h. The force of
the step in which sliding ends lies between the two. PATH runs where GAMSPy is installed, with a longer step
(a call of GAMS takes some 0.1 s).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import BLUE, GREEN, GREY, ORANGE, PAGE, RED, label, panels, paper
from implicit_geom.experiments.sphere_on_plane import (
    GRAVITY,
    MU,
    SLIDE,
    SPEED,
    Table,
    exact_velocity,
    joined,
    measures,
    slide,
    slip_of,
)
from implicit_geom.solvers.contact.mj14.path import path_reason

TITLE = "MJ14, Fig. 2: a sphere slides and rolls under MLCP-FB-RLM, MLCP-FB-PLM, MNCP-RLM and MNCP-PLM"
PARAMS: dict[str, Any] = {"step": 0.001, "duration": 0.6, "path_step": 0.01}
QUICK: dict[str, Any] = {"duration": 0.35, "path_step": 0.05}
SOLVERS = ("mlcp-fb-rlm", "mlcp-fb-plm", "mncp-rlm", "mncp-plm")
ROLLS = 10 / 7  # m/s
ROUNDING = 1e-9  # m/s, N: far above what is found, far below what h would leave


def run(params: dict[str, Any]) -> dict[str, Table]:
    h, duration = params["step"], params["duration"]
    runs = {(name,): slide(name, step=h, duration=duration) for name in SOLVERS}
    if path_reason():
        print(f"  PATH is left out: {path_reason()}")
    else:
        runs["path",] = slide("path", step=params["path_step"], duration=duration)
    return {"motion": joined(runs, ("solver",)), "solvers": _summary(runs)}


def _summary(runs: dict[tuple[Any, ...], Table]) -> Table:
    rows = []
    for (name,), m in runs.items():
        exact = exact_velocity(m["time"], 0, 0.0)
        found = np.stack([m[c] for c in ("v_x", "v_y", "w_x", "w_y")], axis=1)
        others = np.stack([m[c] for c in ("v_y", "v_z", "w_x", "w_z")])
        rows.append(
            {
                "solver": name,
                "step": m["time"][1],
                "rolls_at": measures(m["time"], slip_of(m))[1],
                "rolls_with": m["v_x"][-1],
                "velocity_error": np.max(np.abs(found - exact)),
                "sliding_error": np.max(np.abs(found - exact)[m["time"] < SLIDE]),
                "others": np.max(np.abs(others)),
                "iterations": np.mean(m["iterations"]),
                "most_iterations": np.max(m["iterations"]),
                "own_residual": np.max(m["residual"]),
                "certificate": np.max(m["error"]),
            }
        )
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def check(tables: dict[str, Table]) -> list[Check]:
    s, motion = tables["solvers"], tables["motion"]
    sliding = (motion["time"] > 0) & (motion["time"] < SLIDE)
    rolling = motion["time"] > SLIDE + np.max(s["step"])
    checks = [at_least("solvers", len(s["solver"]), len(SOLVERS))]
    for k, name in enumerate(s["solver"].tolist()):
        h = s["step"][k]
        checks += [
            at_most(f"{name}: rolls from 0.29125 s, off by", abs(s["rolls_at"][k] - SLIDE), h, "s"),
            at_most(f"{name}: rolls at 1.428571, off by", abs(s["rolls_with"][k] - ROLLS), ROUNDING, "m/s"),
            at_most(f"{name}: v_x = 2 - 1.962 t, w_y = 4.905 t, off by", s["sliding_error"][k], ROUNDING),
            at_most(f"{name}: velocities at any time, off by", s["velocity_error"][k], ROUNDING),
            at_most(f"{name}: the other four velocities", s["others"][k], ROUNDING),
            at_most(f"{name}: certificate of a step", s["certificate"][k], 1e-8, "m/s"),
        ]  # fmt: skip
    friction = np.hypot(motion["F_f"], motion["F_o"])
    return [
        *checks,
        at_most("friction while sliding less mu F_n",
                np.max(np.abs(friction - MU * GRAVITY)[sliding]), 1e-6, "N"),
        at_most("friction while rolling", np.max(friction[rolling]), 1e-6, "N"),
        at_most("normal force less m g", np.nanmax(np.abs(motion["F_n"] - GRAVITY)), 1e-6, "N"),
        at_most("F_o", np.nanmax(np.abs(motion["F_o"])), 1e-6, "N"),
    ]  # fmt: skip


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    motion = tables["motion"]
    figure, axes = panels(1, 2, (PAGE, 2.8))
    speeds, forces = axes[0]
    time = np.linspace(0, motion["time"].max(), 601)
    exact = exact_velocity(time, 0, 0.0)
    speeds.plot(time, exact[:, 0], color=GREY, linewidth=2.5, alpha=0.5, label="closed form")
    speeds.plot(time, exact[:, 3], color=GREY, linewidth=2.5, alpha=0.5)
    names = [name for name in (*SOLVERS, "path") if np.any(motion["solver"] == name)]
    styles = zip(names, (BLUE, ORANGE, GREEN, RED, "black"), ("-", "--", "-.", ":", ":"))
    for k, (name, colour, style) in enumerate(styles):
        own = motion["solver"] == name
        every = {"marker": "osv^x"[k], "markevery": (8 * k, 60) if name != "path" else 3}
        speeds.plot(motion["time"][own], motion["v_x"][own], style, color=colour, label=name.upper(), **every)
        speeds.plot(motion["time"][own], motion["w_y"][own], style, color=colour, **every)
        speeds.plot(motion["time"][own], motion["v_y"][own], style, color=colour, linewidth=0.8)
        friction = np.hypot(motion["F_f"], motion["F_o"])
        forces.plot(motion["time"][own], friction[own], style, color=colour, label=name.upper(), **every)
        forces.plot(motion["time"][own], motion["F_f"][own], style, color=colour, linewidth=0.8)
    forces.plot(motion["time"], MU * motion["F_n"], color=GREY, linewidth=0.8)
    for axis in (speeds, forces):
        axis.axvline(SLIDE, color=GREY, linewidth=0.6, linestyle=":")
        axis.set(xlabel="time, s", xlim=(0, motion["time"].max()))
    speeds.set(ylabel="m/s, rad/s", ylim=(-0.25, SPEED + 0.1))
    speeds.annotate("$v_x$", (0.05, 1.98), fontsize=9)
    speeds.annotate(r"$\omega_y$", (0.1, 0.3), fontsize=9)
    speeds.annotate("the others", (0.02, -0.15), fontsize=8, color=GREY)
    forces.set(ylabel="force, N", ylim=(-2.3, 2.7))
    forces.annotate(r"$\mu F_n$", (0.9 * motion["time"].max(), 2.05), fontsize=9, color=GREY)
    forces.annotate(r"$|F_f, F_o|$", (0.01, 1.6), fontsize=9)
    forces.annotate("$F_f$", (0.01, -1.85), fontsize=9)
    speeds.legend(loc="center right", fontsize=7)
    label(speeds, "a", "velocities")
    label(forces, "b", "friction")
    return {"figure_2": figure}
