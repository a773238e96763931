"""Where the last solutions point to: weights of a polynomial through them, for every part of a step.

A part of a step runs from s to s + l (in steps; l < 0 for the one that runs backwards). Its velocities
belong to the middle, its contact points to the end. That is the same in every step, so that the weights are
constants.

What need not be unique is kept as it was: impulses, which only grow with the length of the part, and contact
points of bodies that may touch along a line or a face. Newton's method leaves the part of them that the
equations do not see as it finds it, and a polynomial would magnify it from step to step.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from implicit_geom.pair import Layout

PAST = 3  # solutions that are kept
VELOCITY, GEOMETRY, KEPT, IMPULSE = range(4)  # kinds of unknowns
INSTANT = {VELOCITY: 0.5, GEOMETRY: 1.0}  # of a part, in its lengths
KINDS = 4


def weights(lengths: tuple[float, ...]) -> np.ndarray:
    """(parts, kinds, PAST): weights of the last solution, the one before it, ..."""
    repeated = np.tile(lengths, PAST + 1)
    starts = np.concatenate([[0.0], np.cumsum(repeated)[:-1]])
    out = np.zeros((len(lengths), KINDS, PAST))
    for part in range(len(lengths)):
        now = PAST * len(lengths) + part
        before = now - 1 - np.arange(PAST)
        for kind, instant in INSTANT.items():
            times = starts + instant * repeated
            out[part, kind] = _lagrange(times[before], times[now])
        out[part, KEPT, 0] = 1.0
        out[part, IMPULSE, 0] = abs(repeated[now] / repeated[now - 1])
    return out


def _lagrange(nodes: np.ndarray, at: float) -> np.ndarray:
    """Weights of the values at the nodes in the polynomial through them."""
    factors = [[(at - b) / (a - b) for b in nodes if b != a] for a in nodes]
    return np.array([np.prod(each) for each in factors])


def kinds(velocities: int, contacts: list[tuple[Layout, bool]]) -> np.ndarray:
    """The kind of every unknown: velocities first, then those of each contact, which may be a patch."""
    ends = np.cumsum([velocities, *(layout.size for layout, _ in contacts)])
    out = np.full(ends[-1], VELOCITY)
    for (start, stop), (layout, patch) in zip(pairwise(ends), contacts, strict=True):
        out[start : start + layout.geometry] = KEPT if patch else GEOMETRY
        out[start + layout.geometry : stop] = IMPULSE
    return out
