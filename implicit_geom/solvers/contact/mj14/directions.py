"""Corners of friction pyramids [MJ14, eq. 14]: fixed, turned, or one of them against the slip."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers.contact.problem import ContactProblem

REST = 1e-12  # of the largest slip: below it a slip has no direction


def corners(
    problem: ContactProblem, count: int, turn: Any, aligned: bool, slip: np.ndarray | None
) -> list[tuple[slice, np.ndarray]]:
    """For each friction disc of a contact its rows, and its corners (n_c, k, width) at mu p_n = 1.

    count     corners on a circle, at least three; the first one along t
    turn      rad, from t to the first corner: one number, or one a contact
    aligned   the first corner lies against the slip instead, where there is one
    slip      (n_c, d - 1) m/s, at the start of the step; without impulses, where it is not given

    In the plane there are two corners; torsion (the fourth row) has two more on its own axis.
    """
    if not isinstance(count, int) or count < 3:
        raise SceneError(f"directions = {count} must be a whole number, at least 3")
    n_c, d = problem.contacts, problem.dim
    if slip is None:
        slip = problem.q.reshape(n_c, d)[:, 1:]
    if np.shape(slip) != (n_c, d - 1):
        raise SceneError(f"slip has the shape {np.shape(slip)}; it must be ({n_c}, {d - 1})")
    found = []
    for rows, _ in problem.coefficients:
        width = rows.stop - rows.start
        if width == 1:
            found.append((rows, np.tile([[1.0], [-1.0]], (n_c, 1, 1))))
            continue
        phase = np.broadcast_to(np.asarray(turn, float), (n_c,))
        if aligned:
            own = slip[:, rows.start - 1 : rows.start + 1]
            length = np.linalg.norm(own, axis=1)
            moves = length > REST * np.max(length, initial=0.0)
            phase = np.where(moves, np.arctan2(-own[:, 1], -own[:, 0]), phase)
        angle = phase[:, None] + 2 * np.pi * np.arange(count) / count
        D = np.zeros((n_c, count + 2 * (width - 2), width))
        D[:, :count, 0], D[:, :count, 1] = np.cos(angle), np.sin(angle)
        if width == 3:
            D[:, count, 2], D[:, count + 1, 2] = 1.0, -1.0
        found.append((rows, D))
    return found
