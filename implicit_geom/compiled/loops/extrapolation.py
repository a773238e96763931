"""Start values extrapolated from the last solutions: weights of a polynomial through them, by substep.

A substep runs from s to s + l (in steps; l < 0 for the one that runs backwards). Its velocities
belong to the middle, its contact points to the end. That is the same in every step, so that the weights are
constants.

What need not be unique is kept as it was: impulses, which only grow with the length of the substep, and
contact points of bodies that may touch along a line or a face. Newton's method leaves the part of them that
the equations do not see as it finds it, and a polynomial would magnify it from step to step.

Of one body in one contact (`single.substep`) everything is unique. Its velocity at the start is known, so
that what changes it is extrapolated: rates (w - w_start)/h and forces P/|h|. Both are functions y(t, l) of
the instant t and the length l of the substep to come; since the step is symmetric, the end of a substep shows
them as well: they are those of the same substep run back, y(t + l, -l).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from implicit_geom.compiled.tables import MarchSlot, ScalarSlot, SystemSlot
from implicit_geom.equations.unknowns import UnknownLayout
from implicit_geom.machine.code_values import Array, Integer
from implicit_geom.machine.code_writer import CodeWriter

PAST = 3  # solutions that are kept
RATES = 4  # substeps whose rates are kept of one body in one contact
LESS = 1e-3  # weight of a degree against that below it
VELOCITY, GEOMETRY, KEPT, IMPULSE = range(4)  # kinds of unknowns
INSTANT = {VELOCITY: 0.5, GEOMETRY: 1.0}  # of a substep, in its lengths
KINDS = 4
USELESS = 4  # iterations from an extrapolated start that show it to be none


def weights(lengths: tuple[float, ...]) -> np.ndarray:
    """(substeps, kinds, PAST): weights of the last solution, the one before it, ..."""
    repeated = np.tile(lengths, PAST + 1)
    starts = np.concatenate([[0.0], np.cumsum(repeated)[:-1]])
    out = np.zeros((len(lengths), KINDS, PAST))
    for substep in range(len(lengths)):
        now = PAST * len(lengths) + substep
        before = now - 1 - np.arange(PAST)
        for kind, instant in INSTANT.items():
            times = starts + instant * repeated
            out[substep, kind] = _lagrange(times[before], times[now])
        out[substep, KEPT, 0] = 1.0
        out[substep, IMPULSE, 0] = abs(repeated[now] / repeated[now - 1])
    return out


def rate_weights(lengths: tuple[float, ...], symmetric: bool) -> np.ndarray:
    """(substeps, RATES, 2): weights of the rates at both ends of the last substep, the one before, ...

    Of all weights that reproduce every linear function of (t, l), and the quadratic ones as nearly as may be,
    the smallest. Substeps of one length follow each other evenly, which lets them reproduce more. Without
    symmetry (Euler's step) ends tell nothing, and a polynomial in t is all there is.
    """
    even = len(lengths) == 1
    used = RATES if even else min(RATES, 3)
    repeated = np.tile(lengths, RATES + 1)
    starts = np.concatenate([[0.0], np.cumsum(repeated)[:-1]])
    out = np.zeros((len(lengths), RATES, 2))
    for substep in range(len(lengths)):
        now = RATES * len(lengths) + substep
        before = now - 1 - np.arange(used)
        if not symmetric:
            out[substep, :used, 0] = _lagrange(starts[before], starts[now])
            continue
        t = np.concatenate([starts[before], starts[before] + repeated[before]]) - starts[now]
        known = _monomials(t, np.concatenate([repeated[before], -repeated[before]]), 3 if even else 2)
        wanted = _monomials(np.zeros(1), repeated[[now]], 3 if even else 2)[0]
        out[substep, :used] = (np.linalg.pinv(known.T, rcond=1e-10) @ wanted).reshape(2, used).T
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


def kinds(velocities: int, contacts: list[tuple[UnknownLayout, bool]]) -> np.ndarray:
    """The kind of every unknown: velocities first, then those of each contact, which may be a patch."""
    ends = np.cumsum([velocities, *(layout.size for layout, _ in contacts)])
    out = np.full(ends[-1], VELOCITY)
    for (start, stop), (layout, patch) in zip(pairwise(ends), contacts, strict=True):
        out[start : start + layout.geometry] = KEPT if patch else GEOMETRY
        out[start + layout.geometry : stop] = IMPULSE
    return out


def extrapolate(c: CodeWriter, t: Array, p: Array, number: Integer) -> None:
    """Start from where the last solutions point to, if they are known; see above."""
    N, z, past = p[SystemSlot.SIZE], p.array(SystemSlot.Z, "n"), t.array(MarchSlot.HISTORY, "n")
    weights = t.array(MarchSlot.WEIGHTS, "n").offset(number * (KINDS * PAST))
    kinds = t.array(MarchSlot.KINDS, "w")
    known = ~(t.array(MarchSlot.SCALARS, "n")[ScalarSlot.KNOWN] < PAST)
    with c.when(known.any()), c.loop(N) as i:
        own = weights.offset(kinds[i] * PAST)
        guess = past[i] * own[0]
        for k in range(1, PAST):
            guess = guess + past[N * k + i] * own[k]
        z[i] = known.select(guess, z[i])


def store_history(c: CodeWriter, t: Array, p: Array) -> None:
    """Keep the solution; what was kept is of no use where it did not help."""
    N, z, past = p[SystemSlot.SIZE], p.array(SystemSlot.Z, "n"), t.array(MarchSlot.HISTORY, "n")
    numbers = t.array(MarchSlot.SCALARS, "n")
    going = ~c.mask(numbers[ScalarSlot.PENDING_EXIT])
    with c.loop(N) as i:
        for k in reversed(range(1, PAST)):
            past[N * k + i] = going.select(past[N * (k - 1) + i], past[N * k + i])
        past[i] = going.select(z[i], past[i])
    known = numbers[ScalarSlot.KNOWN]
    useless = p.array(SystemSlot.REPORT, "n")[1] > USELESS
    numbers[ScalarSlot.KNOWN] = going.select(useless.select(0.0, known + 1.0), known)
