"""Where the last solutions point to: weights of a polynomial through them, for every part of a step.

A part of a step runs from s to s + l (in steps; l < 0 for the one that runs backwards). Its velocities
belong to the middle, its contact points to the end. That is the same in every step, so that the weights are
constants.

What need not be unique is kept as it was: impulses, which only grow with the length of the part, and contact
points of bodies that may touch along a line or a face. Newton's method leaves the part of them that the
equations do not see as it finds it, and a polynomial would magnify it from step to step.

Of a body that is alone (`alone_parts`) everything is unique. Its velocity at the start is known, so that
what changes it is extrapolated: rates (w - w_start)/h and forces P/|h|. Both are functions y(t, l) of the
instant t and the length l of the part to come; and since the step is symmetric, the end of a part shows them
as well: they are those of the same part run back, y(t + l, -l).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from implicit_geom.equations.unknowns import Layout

PAST = 3  # solutions that are kept
RATES = 4  # parts whose rates are kept of a body that is alone
LESS = 1e-3  # weight of a degree against that below it
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


def rate_weights(lengths: tuple[float, ...], symmetric: bool) -> np.ndarray:
    """(parts, RATES, 2): weights of the rates at the start and the end of the last part, the one before, ...

    Of all weights that reproduce every linear function of (t, l), and the quadratic ones as nearly as may be,
    the smallest. Parts of one length follow each other evenly, which lets them reproduce more. Without
    symmetry (Euler's step) ends tell nothing, and a polynomial in t is all there is.
    """
    even = len(lengths) == 1
    used = RATES if even else min(RATES, 3)
    repeated = np.tile(lengths, RATES + 1)
    starts = np.concatenate([[0.0], np.cumsum(repeated)[:-1]])
    out = np.zeros((len(lengths), RATES, 2))
    for part in range(len(lengths)):
        now = RATES * len(lengths) + part
        before = now - 1 - np.arange(used)
        if not symmetric:
            out[part, :used, 0] = _lagrange(starts[before], starts[now])
            continue
        t = np.concatenate([starts[before], starts[before] + repeated[before]]) - starts[now]
        known = _monomials(t, np.concatenate([repeated[before], -repeated[before]]), 3 if even else 2)
        wanted = _monomials(np.zeros(1), repeated[[now]], 3 if even else 2)[0]
        out[part, :used] = (np.linalg.pinv(known.T, rcond=1e-10) @ wanted).reshape(2, used).T
    return out


def _monomials(t: np.ndarray, length: np.ndarray, degree: int) -> np.ndarray:
    """(N, monomials) of t and length up to a degree, the higher ones of less weight."""
    powers = [(i, d - i) for d in range(degree + 1) for i in range(d, -1, -1)]
    columns = [LESS ** max(i + k - 1, 0) * t**i * length**k for i, k in powers]
    return np.stack(columns, axis=1)


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
