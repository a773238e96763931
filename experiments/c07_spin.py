"""C07 example 2, Fig. 3 and 4: a sphere spinning in place is stopped by torsional friction.

The torsional moment is e_r mu m g, so that the spin falls with slope -e_r mu m g / J = -1.962 rad/s^2
and would end at t = 1 s; a step of 0.07 s ends it at 1.05 s, with a last torsional impulse that
takes what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, shapes, simulate
from implicit_geom.experiments.certified import certificate, certificate_checks
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.figures import BLUE, COLUMN, GREY, ORANGE, RED, label, panels, paper

TITLE = "C07 example 2, Fig. 3 and 4: spinning sphere stopped by torsional friction"
PARAMS: dict[str, Any] = {"step": 0.07, "duration": 1.4}
QUICK: dict[str, Any] = {}

SPIN, SLOPE, STOP = 1.962, -1.962, 1.05  # rad/s, rad/s^2, s
INERTIA = 0.4  # kg m^2: the unit sphere of 1 kg


def scene() -> Scene:
    s = Scene(gravity=(0, 0, -9.81))
    s.add("plane", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add("sphere", shapes.sphere(1.0), mass=1.0, position=(0, 0, 1), angular_velocity=(0, 0, SPIN))
    s.friction(mu=0.2, e_t=1.0, e_o=1.0, e_r=0.4)
    return s


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    result = simulate(
        scene(), duration=params["duration"], step=params["step"], stepper="implicit-euler", progress=False
    )
    body, contacts, h = result["sphere"], result.contacts, params["step"]
    velocities = {"time": result.time}
    for i, axis in enumerate("xyz"):
        velocities[f"v_{axis}"] = body.velocity[:, i]
    for i, axis in enumerate("xyz"):
        velocities[f"w_{axis}"] = body.angular_velocity[:, i]
    forces = {"time": contacts["time"]}
    for c in "ntor":
        forces[f"lambda_{c}"] = contacts[f"p_{c}"] / h
    return {"velocities": velocities, "forces": forces, "certificate": certificate({"sphere": result})}


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    velocities, forces = tables["velocities"], tables["forces"]
    t, w_z = velocities["time"], velocities["w_z"]
    h = t[1] - t[0]
    falling = t[1:] < STOP - h / 2
    slope = np.diff(w_z)[falling] / np.diff(t)[falling]
    after = t > STOP - h / 2
    others = [velocities[c] for c in velocities if c not in ("time", "w_z")]
    tangential = h * np.maximum(np.abs(forces["lambda_t"]), np.abs(forces["lambda_o"]))
    # the step in which the spin ends takes the angular momentum that is left
    last = h * forces["lambda_r"][np.argmin(np.abs(forces["time"] - STOP))]
    left = INERTIA * w_z[np.flatnonzero(falling)[-1] + 1]
    return [
        at_most("slope of the spin, distance from -1.962", np.max(np.abs(slope - SLOPE)), 1e-9, "rad/s^2"),
        at_most("spin from t = 1.05 s on", np.max(np.abs(w_z[after])), 1e-12, "rad/s"),
        at_most("largest tangential impulse", np.max(tangential), 1e-12, "N s"),
        at_most("last torsional impulse, distance from J w_z", abs(last + left), 1e-9, "N m s"),
        at_most("largest other velocity", np.max(np.abs(others)), 1e-12, "m/s"),
        *certificate_checks(tables["certificate"]),
    ]


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    velocities, forces = tables["velocities"], tables["forces"]
    figure_3, axes = panels(2, 1, (COLUMN, 3.4), sharex=True)
    for axis, symbol, name, unit in ((axes[0, 0], "v", "v", "m/s"), (axes[1, 0], "w", r"\omega", "rad/s")):
        styles = (("x", BLUE, "s"), ("y", ORANGE, "^"), ("z", RED, "o"))
        for (c, colour, marker), size in zip(styles, (6, 4, 3)):
            values = velocities[f"{symbol}_{c}"]
            axis.plot(
                velocities["time"], values, marker=marker, markersize=size, markerfacecolor="none",
                markeredgewidth=0.7, color=colour, linewidth=0.9, label=f"${name}_{c}$",
            )  # fmt: skip
        axis.set(ylabel=f"${name}$, {unit}")
        axis.legend(ncols=3, loc="upper right")
    axes[0, 0].set(ylim=(-1, 1))
    exact = np.array([0.0, 1.0, velocities["time"][-1]])
    axes[1, 0].plot(exact, SPIN * np.clip(1 - exact, 0, 1), "--", color=GREY, linewidth=0.8, zorder=1)
    axes[1, 0].set(xlabel="time, s", xlim=(0, velocities["time"][-1]), ylim=(-0.15, 2.3))
    label(axes[0, 0], "a", "velocity of the centre")
    label(axes[1, 0], "b", "angular velocity (dashed: exact)")

    figure_4, axes = panels(1, 1, (COLUMN, 2.4))
    axis = axes[0, 0]
    rows = (
        ("lambda_t", r"$\lambda_t$, N", BLUE, "s", 6),
        ("lambda_o", r"$\lambda_o$, N", ORANGE, "^", 4),
        ("lambda_r", r"$\lambda_r$, N m", RED, "o", 3),
    )
    for column, name, colour, marker, size in rows:
        axis.plot(
            forces["time"], forces[column], marker=marker, markersize=size, markerfacecolor="none",
            markeredgewidth=0.7, color=colour, linewidth=0.9, label=name,
        )  # fmt: skip
    axis.set(xlabel="time (end of step), s", ylabel="impulse / step", xlim=(0, velocities["time"][-1]))
    axis.legend(loc="center left", bbox_to_anchor=(0.02, 0.5))
    return {"figure_3": figure_3, "figure_4": figure_4}
