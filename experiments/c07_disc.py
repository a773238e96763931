"""C07 example 1, Fig. 1(a): a disc that rolls without slip keeps its kinetic energy; polygons do not.

The polygons are inscribed in the disc and have its mass and inertia, so that only the surface
differs. They start on a vertex. Deviation: the paper's polygons are stepped by an LCP, here all
bodies are stepped by `implicit-euler`; what the polygons lose is the price of the facets alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import Scene, shapes, simulate
from implicit_geom.experiments.certified import certificate, certificate_checks
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.figures import COLUMN, GREEN, ORANGE, RED, panels, paper

TITLE = "C07 example 1, Fig. 1(a): kinetic energy of a rolling disc and of inscribed polygons"
PARAMS: dict[str, Any] = {"step": 0.01, "duration": 10.0, "polygons": (10, 20, 50)}
QUICK = {"polygons": (10,)}

RADIUS, MASS, SPEED, FRICTION = 1.0, 1.0, 3.0, 0.4


def scene(shape: shapes.Shape) -> Scene:
    """The body rolling to the left with v = omega r."""
    s = Scene(dim=2, gravity=(0, -9.81))
    s.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    s.add(
        "disc",
        shape,
        mass=MASS,
        inertia=MASS * RADIUS**2 / 2,
        position=(0, RADIUS),
        orientation=-np.pi / 2,  # a polygon's first vertex points down
        velocity=(-SPEED, 0),
        angular_velocity=SPEED / RADIUS,
    )
    s.friction(mu=FRICTION)
    return s


def run(params: dict[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    disc = shapes.disc(RADIUS)
    bodies = {"disc": disc, **{f"polygon_{n}": disc.faceted(n) for n in params["polygons"]}}
    runs = {
        name: simulate(
            scene(shape),
            duration=params["duration"],
            step=params["step"],
            stepper="implicit-euler",
            progress=False,
        )
        for name, shape in bodies.items()
    }
    energy = {"time": runs["disc"].time, **{name: r.kinetic_energy for name, r in runs.items()}}
    return {"energy": energy, "certificate": certificate(runs)}


def check(tables: dict[str, dict[str, np.ndarray]]) -> list[Check]:
    energy = tables["energy"]
    disc = energy["disc"]
    change = np.max(np.abs(disc / disc[0] - 1))
    checks = [at_most("disc: relative change of kinetic energy", change, 1e-9)]
    for name in _polygons(energy):
        sides = name.removeprefix("polygon_")
        lost = 1 - np.mean(energy[name][-50:]) / energy[name][0]
        checks.append(at_least(f"polygon of {sides} sides: share of kinetic energy lost", lost, 0.01))
    return checks + certificate_checks(tables["certificate"])


@paper
def plot(tables: dict[str, dict[str, np.ndarray]]) -> dict[str, Any]:
    energy = tables["energy"]
    figure, axes = panels(1, 1, (COLUMN, 2.5))
    axis = axes[0, 0]
    axis.plot(energy["time"], energy["disc"], linewidth=2, label="implicit disc")
    for name, colour in zip(reversed(_polygons(energy)), (GREEN, ORANGE, RED)):
        sides = name.removeprefix("polygon_")
        axis.plot(energy["time"], energy[name], color=colour, linewidth=0.9, label=f"{sides}-gon")
    axis.set(xlabel="time, s", ylabel="kinetic energy, J", xlim=(0, energy["time"][-1]), ylim=(0, None))
    axis.legend(loc="upper right", bbox_to_anchor=(1, 0.92))
    return {"figure_1a": figure}


def _polygons(energy: dict[str, np.ndarray]) -> list[str]:
    """Columns of the polygons, fewest sides first."""
    return [name for name in energy if name.startswith("polygon_")]
