"""A polygon inscribed in a rolling disc: closed forms for its energy, and how a run is compared with them.

A regular polygon that rolls over its vertices without slip loses a fixed share of its kinetic energy in
each plastic impact; a reference from event-driven integration tells what is left after a revolution. In a
step of Stewart and Trinkle's scheme, vertices that are finer than the step move the support ahead of the
centre by r h w, and the weight brakes the disc:

    d/dt (3/4 m r^2 w^2) = -m g r h w^2,    so that    E = E_0 exp(-4 g h t / (3 r))

however many vertices there are. That is the limit that the step sets.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from implicit_geom import Stepper, shapes, simulate
from implicit_geom.experiments.c07_disc import MASS, RADIUS, scene
from implicit_geom.run.trajectory import Trajectory

GRAVITY = 9.81
REFERENCE = Path(__file__).parent / "references" / "rolling_polygon.json"


def rolled(facets: int, step: float, duration: float) -> Trajectory:
    """The disc of C07 as a polygon, by Stewart and Trinkle's scheme; it starts on a vertex."""
    stepper = Stepper.named("stewart-trinkle", facets=facets)
    return simulate(scene(shapes.disc(RADIUS)), duration=duration, step=step, stepper=stepper, progress=False)


def implicit(step: float, duration: float) -> Trajectory:
    """The disc itself."""
    shape = shapes.disc(RADIUS)
    return simulate(scene(shape), duration=duration, step=step, stepper="implicit-euler", progress=False)


def step_limit(step: float, time: np.ndarray) -> np.ndarray:
    """Share of the kinetic energy that is left when vertices are finer than the step."""
    return np.asarray(np.exp(-4 / 3 * GRAVITY * step * time / RADIUS))


def reference(facets: int) -> dict[str, float]:
    """Kinetic energy at the height of impact at the start, and the share that a revolution leaves."""
    cases = json.loads(REFERENCE.read_text())["cases"]
    return next(case for case in cases if case["N"] == facets)


def after_revolutions(run: Trajectory, facets: int) -> np.ndarray:
    """Energy over that of rest on a side, at the end of every whole revolution, J.

    Between impacts it does not change, so that it is the kinetic energy just after the last one.
    """
    turned = run["disc"].orientation - run["disc"].orientation[0]
    above = run.energy - MASS * GRAVITY * RADIUS * np.cos(np.pi / facets)
    whole = np.arange(1, int(turned.max() // (2 * np.pi)) + 1)
    return np.asarray(above[np.searchsorted(turned, 2 * np.pi * whole)])


def exact_revolutions(facets: int, count: int) -> np.ndarray:
    """The same for rigid plastic impacts without slip, J."""
    case = reference(facets)
    share = case["KE_ratio_per_revolution"] ** np.arange(1, count + 1)
    return np.asarray(case["KE0_vertex_start_at_impact_height"] * share)
