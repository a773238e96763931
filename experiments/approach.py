"""What a closed contact must keep at the end of a step: no overlap, and no approach.

Both are recomputed from the bodies' states: the normal velocity at each closed contact, and the gap of a
body above the plane z = 0 (y = 0) from its support function.
"""

from __future__ import annotations

import numpy as np

from implicit_geom import Trajectory, rotation
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.model.records import VELOCITY

DEEPEST = 1e-10  # overlap, relative to the size of the smallest moving body
FASTEST = 1e-9  # m/s, approach at a closed contact after a step of any form but "euler"


def approach_velocity(run: Trajectory) -> np.ndarray:
    """(C,) m/s: how fast two bodies approach at each contact that is closed at the end of a solve.

        u = -n . (v_2 + omega_2 x (a - x_2) - v_1 - omega_1 x (a - x_1))

    at its point a with its normal n, in the state there; negative if they part. Contacts of solves in
    Euler's form, which closes the gap alone, are left out. Fixed bodies do not move.
    """
    solves = run.solves
    rows = solves.contacts[solves.contacts["stage"] == VELOCITY]
    rows = rows[solves.table["form"][rows["solve"]] != "euler"]
    at = rows["solve"]
    velocities = [
        solves.v[at, rows[side]]
        + rotation.rotational_velocity(solves.w[at, rows[side]], rows["point"] - solves.x[at, rows[side]])
        for side in ("first", "second")
    ]
    return -np.einsum("ij,ij->i", rows["normal"], velocities[1] - velocities[0])


def lowest_point(run: Trajectory, name: str) -> np.ndarray:
    """(T+1,) m: height of a body's lowest point above the plane z = 0 (y = 0 in two dimensions).

    z(x - R c) - s(-R^T e_z) with the support function s of the shape and its centre of mass c.
    """
    body, motion = run.scene.bodies[name], run[name]
    if run.scene.dim == 3:
        R = rotation.matrix(motion.orientation)
    else:
        R = np.array([rotation.planar(angle) for angle in motion.orientation])
    up = R[:, -1, :]  # the vertical in the shape's axes
    return motion.position[:, -1] - up @ body.com - body.shape.support_value(-up)


def fastest_approach(run: Trajectory) -> float:
    """m/s: the fastest approach at a closed contact."""
    return float(np.max(approach_velocity(run), initial=0.0))


def constraints(runs: dict[str, Trajectory], name: str) -> dict[str, np.ndarray]:
    """One row a run of the body `name` on a plane: overlap over size, and the fastest approach.

    overlap is the deeper of what the solver reports and of the lowest point; steps of the form
    "euler" close the gap only, so that they are counted and left out of the approach.
    """
    rows = []
    for label, run in runs.items():
        size = run.scene.bodies[name].shape.size
        overlap = max(run.max_penetration, -float(np.min(lowest_point(run, name))))
        euler = int(np.sum(run.good_steps["form"] == "euler"))
        rows.append((label, len(run.good_steps), euler, overlap / size, fastest_approach(run)))
    names = ("run", "steps", "euler_steps", "overlap", "approach")
    return {column: np.array(values) for column, values in zip(names, zip(*rows, strict=True), strict=True)}


def constraint_checks(table: dict[str, np.ndarray]) -> list[Check]:
    """No overlap and no approach in any run."""
    return [
        at_most("deepest overlap of any run / size", np.max(table["overlap"]), DEEPEST),
        at_most("fastest approach at a closed contact", np.max(table["approach"]), FASTEST, "m/s"),
    ]
