"""MJ14's sphere on a plane: closed forms of its motion, and its steps by a solver of contact problems.

A sphere (1 m, 1 kg, mu = 0.2) slides at 2 m/s. With the exact cone it slides for 2 v / (7 mu g) and then
rolls at 5/7 v. The corners of a pyramid with k directions turned by alpha from the motion (|alpha| <= pi/k)
leave a motion in closed form as well. With c = 7/2 mu g:

    t <= t_1 = s_0 sin(pi/k - |alpha|) / (c sin(pi/k))      slip s = s_0 (1, 0) - c t (cos, sin)(alpha):
                                                            the nearest corner holds all the friction
    t <= t_2 = t_1 + s_0 |sin alpha| / (c sin cos (pi/k))   two corners share it, the slip keeps its direction
                                                            pi/k - |alpha| from the true one
    v = v_0 - 2/7 (s_0 - s)

Steps of any length that end with the law's own velocities meet these at their ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solve import solve_contact

MU, SPEED, GRAVITY = 0.2, 2.0, 9.81
DECAY = 3.5 * MU * GRAVITY  # m/s^2, of the slip of a sphere
SLIDE = SPEED / DECAY  # s: 2 v / (7 mu g)
SLOW = 0.05  # of the first slip: below it a direction means nothing
AT_REST = 1e-9  # of the first slip: below it the sphere rolls
MASS, RADIUS, INERTIA = 1.0, 1.0, 0.4
Table = dict[str, np.ndarray]


def exact_slip(time: np.ndarray, k: int, turn: float) -> np.ndarray:
    """(T, 2) m/s: the slip under a pyramid, for 0 <= turn <= pi/k; k = 0 for the exact cone."""
    if k == 0:
        return np.stack([np.maximum(SPEED - DECAY * time, 0.0), 0 * time], axis=1)
    half = np.pi / k
    t_1 = SPEED * np.sin(half - turn) / (DECAY * np.sin(half))
    corner = np.array([np.cos(turn), np.sin(turn)])
    first = np.array([SPEED, 0.0]) - DECAY * np.minimum(time, t_1)[:, None] * corner
    speed = np.linalg.norm(first, axis=1)
    left = np.maximum(speed - DECAY * np.cos(half) * np.maximum(time - t_1, 0.0), 0.0)
    return np.asarray(first * (left / np.maximum(speed, 1e-300))[:, None])


def exact_velocity(time: np.ndarray, k: int, turn: float) -> np.ndarray:
    """(T, 4) v_x, v_y, w_x, w_y of that motion: v = v_0 - 2/7 (s_0 - s), and v - w x r is the slip."""
    slip = exact_slip(time, k, turn)
    v = np.array([SPEED, 0.0]) - 2 / 7 * (np.array([SPEED, 0.0]) - slip)
    return np.stack([v[:, 0], v[:, 1], slip[:, 1] - v[:, 1], v[:, 0] - slip[:, 0]], axis=1)


def measures(time: np.ndarray, slip: np.ndarray) -> tuple[float, float, float]:
    """Largest angle between slip and motion (rad), end of sliding (s), sideways shift of the path (m)."""
    speed = np.linalg.norm(slip, axis=1)
    fast = speed > SLOW * SPEED
    angle = float(np.max(np.abs(np.arctan2(slip[fast, 1], slip[fast, 0]))))
    rests = speed < AT_REST * SPEED
    end = float(time[np.argmax(rests)]) if rests[-1] else np.nan
    # v_y = 2/7 s_y, summed with the end-of-step velocity, as Euler's form moves a body
    return angle, end, float(2 / 7 * np.sum(np.diff(time) * slip[1:, 1]))


def contact_problem(velocity: np.ndarray, step: float, frame: float) -> ContactProblem:
    """One step from `velocity` (v, omega); t of the contact is `frame` rad from x, the gap is zero."""
    c, s = np.cos(frame), np.sin(frame)
    axes = np.array([[0, 0, 1.0], [c, s, 0], [-s, c, 0]])
    H = np.concatenate([axes, np.cross([0, 0, -RADIUS], axes)], axis=1).T
    M = np.diag([MASS] * 3 + [INERTIA] * 3)
    v_free = velocity + step * np.array([0, 0, -GRAVITY, 0, 0, 0])
    return ContactProblem(M=M, H=H, v_free=v_free, mu=[MU])


def slide(solver: str, *, step: float, duration: float, frame: float = 0.0, **options: Any) -> Table:
    """The motion by one solver, semi-implicit Euler: one row a time, forces those of the step before it.

    F_f and F_o are along x and y, N; residual is the solver's own, error the certificate's, m/s. An `aligned`
    pyramid gets the slip at the start of the step, as MJ14's.
    """
    velocity, position = np.array([SPEED, 0, 0, 0, 0, 0]), np.zeros(2)
    rows: list[tuple[float, ...]] = [(0.0, *position, *velocity, *[np.nan] * 3, 0, 0.0, 0.0)]
    c, s = np.cos(frame), np.sin(frame)
    for k in range(round(duration / step)):
        problem = contact_problem(velocity, step, frame)
        if options.get("aligned"):
            options["slip"] = (problem.H.T @ velocity)[None, 1:]
        found = solve_contact(problem, solver, **options)
        velocity = found.velocity
        position = position + step * velocity[:2]
        n, t, o = (found.impulse / step).tolist()
        own = (found.iterations, found.info["residual"], found.error)
        rows.append(((k + 1) * step, *position, *velocity, n, c * t - s * o, s * t + c * o, *own))
    names = ("time", "x", "y", "v_x", "v_y", "v_z", "w_x", "w_y", "w_z", "F_n", "F_f", "F_o")
    columns = (*names, "iterations", "residual", "error")
    return {name: np.array(column) for name, column in zip(columns, zip(*rows, strict=True), strict=True)}


def slip_of(motion: Table) -> np.ndarray:
    """(T, 2) m/s: the sphere's lowest point over the plane."""
    return np.stack([motion["v_x"] - motion["w_y"], motion["v_y"] + motion["w_x"]], axis=1)


def joined(runs: dict[tuple[Any, ...], Table], keys: tuple[str, ...]) -> Table:
    """Motions under one another, with columns that say whose they are."""
    parts = []
    for names, motion in runs.items():
        size = len(motion["time"])
        parts.append({**{key: np.full(size, name) for key, name in zip(keys, names)}, **motion})
    return {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
