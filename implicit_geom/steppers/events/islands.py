"""Islands: bodies that may touch within a step, directly or through others; each is stepped by itself.

What happens in one island, an impact or a step that is divided, leaves the others alone: a body's motion does
not depend on bodies that it cannot touch. The solves of a step come island by island, over the same time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from implicit_geom.model.model import Model, State
from implicit_geom.model.records import Solve


class IslandsMeet(Exception):
    """A pair of bodies of two islands comes into reach."""

    def __init__(self, bodies: tuple[int, int]) -> None:
        super().__init__(f"bodies {bodies} come into reach")
        self.bodies = bodies


def islands_of(model: Model, pairs: list[int]) -> list[np.ndarray]:
    """Masks (B,) of the moving bodies that the given pairs connect, in the order of their first bodies."""
    label = np.arange(len(model.bodies))
    moves = np.zeros(len(model.bodies), bool)
    moves[model.moving] = True
    for one, two in zip(*model.pairs.sides(np.array(pairs, int)), strict=True):
        if moves[one] and moves[two]:
            label[label == label[two]] = label[one]
    return [moves & (label == k) for k in dict.fromkeys(label[model.moving].tolist())]


def joined(islands: list[np.ndarray], bodies: tuple[int, int]) -> list[np.ndarray]:
    """The islands with those of two bodies made one."""
    met = [m for m in islands if m[bodies[0]] or m[bodies[1]]]
    together = np.any(met, axis=0)
    out = [together if m is met[0] else m for m in islands]
    return [m for m in out if m is together or not np.any(m & together)]


def pairs_within(model: Model, pairs: list[int], island: np.ndarray | None) -> list[int]:
    """The pairs of an island's bodies; raises where one of them meets a moving body of another."""
    if island is None:
        return pairs
    moves = np.zeros(len(model.bodies), bool)
    moves[model.moving] = True
    out = []
    for c, one, two in zip(pairs, *model.pairs.sides(np.array(pairs, int)), strict=True):
        if not (island[one] or island[two]):
            continue
        if any(moves[b] and not island[b] for b in (one, two)):
            raise IslandsMeet((int(one), int(two)))
        out.append(c)
    return out


def of_island(solve: Solve, island: np.ndarray | None) -> Solve:
    """The solve with all other bodies left where they were."""
    if island is None:
        return solve
    solve.end = _spliced(solve.start, solve.end, island, solve.end.time)
    half = np.where(island[:, None], solve.half, 0.0)
    return replace(solve, half=half, bodies=island, ledger=None)


def at_once(start: State, parts: list[list[Solve]]) -> list[Solve]:
    """The solves of islands as one, where each took the step in one of the same form; else none."""
    if any(len(solves) != 1 or solves[0].form != parts[0][0].form for solves in parts):
        return []
    last = one_after_another(start, parts)[-1]
    every = [solves[0] for solves in parts]
    return [
        replace(
            last,
            start=start,
            half=np.sum([s.half for s in every], axis=0),
            contacts=[c for s in every for c in s.contacts],
            iterations=max(s.iterations for s in every),
            status="continued" if any(s.status == "continued" for s in every) else "converged",
            residual=max(s.residual for s in every),
            overlap=max(s.overlap for s in every),
            bodies=None,
            ledger=None,
        )
    ]


def one_after_another(start: State, parts: list[list[Solve]]) -> list[Solve]:
    """The solves of islands, which all start at `start`, as a sequence of states."""
    out: list[Solve] = []
    here = start
    for solves in parts:
        mask = solves[0].bodies
        assert mask is not None
        for s in solves:
            early = _spliced(here, s.start, mask, s.start.time)
            late = _spliced(here, s.end, mask, s.end.time)
            out.append(replace(s, start=early, end=late))
        here = out[-1].end
    return out


def _spliced(base: State, own: State, island: np.ndarray, time: float) -> State:
    """`base` with the island's bodies as they are in `own`."""
    x, q, v, w = (getattr(base, name).copy() for name in ("x", "q", "v", "w"))
    for values, given in ((x, own.x), (q, own.q), (v, own.v), (w, own.w)):
        values[island] = given[island]
    return State(time, x, q, v, w)
