"""Where the last solutions point to: weights of a polynomial through them, for every part of a step.

A part of a step runs from s to s + l (in steps; l < 0 for the one that runs backwards). Its velocities
belong to the middle, its contact points to the end and its impulses, which grow with the length, to the start.
All that is the same in every step, so that the weights are constants.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

PAST = 3  # solutions that are kept
VELOCITY, GEOMETRY, IMPULSE = 0, 1, 2  # kinds of unknowns
INSTANT = {VELOCITY: 0.5, GEOMETRY: 1.0, IMPULSE: 0.0}  # of a part, in its lengths


def weights(lengths: tuple[float, ...]) -> np.ndarray:
    """(parts, kinds, PAST): weights of the last solution, the one before it, ..."""
    repeated = np.tile(lengths, PAST + 1)
    starts = np.concatenate([[0.0], np.cumsum(repeated)[:-1]])
    out = np.zeros((len(lengths), len(INSTANT), PAST))
    for part in range(len(lengths)):
        now = PAST * len(lengths) + part
        before = now - 1 - np.arange(PAST)
        for kind, instant in INSTANT.items():
            times = starts + instant * repeated
            out[part, kind] = _lagrange(times[before], times[now])
            if kind == IMPULSE:
                out[part, kind] *= abs(repeated[now] / repeated[before])
    return out


def _lagrange(nodes: np.ndarray, at: float) -> np.ndarray:
    """Weights of the values at the nodes in the polynomial through them."""
    factors = [[(at - b) / (a - b) for b in nodes if b != a] for a in nodes]
    return np.array([np.prod(each) for each in factors])


def kinds(velocities: int, contacts: list[tuple[int, int]]) -> np.ndarray:
    """The kind of every unknown: velocities first, then (size, of which geometry) of each contact."""
    ends = np.cumsum([velocities, *(size for size, _ in contacts)])
    out = np.full(ends[-1], VELOCITY)
    for (start, stop), (_, geometry) in zip(pairwise(ends), contacts, strict=True):
        out[start : start + geometry] = GEOMETRY
        out[start + geometry : stop] = IMPULSE
    return out
