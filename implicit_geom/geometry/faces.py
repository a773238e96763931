"""Faces that touch without torsional friction: the one point of their contact lets them turn about it.

A body is flat in a direction d where its support h has a kink: the face is as wide along t as
(h(d + eps t) + h(d - eps t) - 2 h(d)) / eps says, while a curved side gives next to nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.model.model import Model
from implicit_geom.shapes.shape import Shape

TILT = 1e-5  # eps
WIDE = 1e-2  # width of a face, over the size of its body, that counts as one
LOOKS = 32  # rows of a pair that are looked at, evenly spread over a block
ANGLES = np.arange(4) * np.pi / 4


def faces_without_torsion(run: Any) -> list[tuple[str, str]]:
    """Pairs of bodies that touched along a face with mu > 0 and e_r = 0."""
    if run.scene.dim == 2:
        return []
    model = Model(run.scene)
    found: dict[int, bool] = {}
    for solves in run.log.blocks():
        pressed = solves.contacts[solves.contacts["p_n"] > 0]
        for c in np.unique(pressed["pair"]).tolist():
            if c not in found and not _may(model, c):
                found[c] = False
            if c in found:
                continue
            rows = pressed[pressed["pair"] == c]
            rows = rows[:: max(len(rows) // LOOKS, 1)]
            if np.any(_along_faces(model, c, rows, solves.q[rows["solve"]])):
                found[c] = True
    pairs = (model.pairs[c] for c, touched in found.items() if touched)
    names = [tuple(model.names[b] for b in sorted((pair.first, pair.second))) for pair in pairs]
    return list(dict.fromkeys((a, b) for a, b in names))


def _may(model: Model, c: int) -> bool:
    pair = model.pairs[c]
    return pair.law.mu > 0 and pair.law.e_r == 0 and bool(pair.kernel.kind.patches)


def _along_faces(model: Model, c: int, rows: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Whether both bodies are flat where they touch."""
    flat = np.ones(len(rows), bool)
    n = rows["normal"]  # from the body that was added first to the other
    for piece in model.pairs[c].pieces:
        shape, b = model.pieces.shapes[piece], int(model.pieces.owner[piece])
        outward = np.where((rows["first"] == b)[:, None], n, -n)
        R = rotation.matrix(q[:, b])
        if not is_halfspace(shape):
            flat &= _flat(shape, np.einsum("nji,nj->ni", R, outward))
    return flat


def _flat(shape: Shape, d: np.ndarray) -> np.ndarray:
    """Whether a shape has a face with the outward normals d (N, 3), in its own axes."""
    if not shape.bounded:
        return np.zeros(len(d), bool)
    t = np.cross(d, np.eye(3)[np.argmin(np.abs(d), axis=1)])
    t /= np.linalg.norm(t, axis=1)[:, None]
    o = np.cross(d, t)
    here = shape.support_value(d)
    width = np.full(len(d), np.inf)
    for angle in ANGLES:
        along = TILT * (np.cos(angle) * t + np.sin(angle) * o)
        both = shape.support_value(d + along) + shape.support_value(d - along)
        width = np.minimum(width, (both - 2 * here) / TILT)
    return width > WIDE * shape.size
