"""Islands of contact: bodies that candidate pairs link with each other, but not with the rest.

The equations of different islands have no unknown in common, and the Newton matrix of a step is one of blocks
on the diagonal. Steps of all islands are made at once; an island that is solved, or that gets nowhere, is
left where it is, so that none holds up the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions


@dataclass
class Islands:
    """Which island every unknown of a step belongs to; bodies without candidates are islands, too."""

    count: int
    of_unknown: np.ndarray

    @staticmethod
    def of(problem: StepNCP) -> Islands:
        from scipy.sparse import coo_matrix  # (here: it takes long to import)
        from scipy.sparse.csgraph import connected_components

        if problem.islands is not None:
            return problem.islands
        nv, bodies = problem.velocities, problem.model.moving.size
        ends = [inputs[:, ::nv][:, : p.ends // nv] // nv for inputs, p in _groups(problem)]
        links = [e for e in ends if e.shape[1] == 2]
        i, j = np.concatenate([np.zeros((0, 2), int), *links]).T
        count, of_body = connected_components(coo_matrix((np.ones(i.size), (i, j)), (bodies, bodies)))
        of_unknown = np.empty(problem.size, int)
        of_unknown[: nv * bodies] = np.repeat(of_body, nv)
        for (_, p), e in zip(_groups(problem), ends, strict=True):
            of_unknown[p.at_own] = of_body[e[:, :1]]
        problem.islands = Islands(count, of_unknown)
        return problem.islands

    def candidates(self, problem: StepNCP, island: int) -> list[int]:
        """The candidate pairs of one island."""
        chosen = [
            c
            for _, own, members in problem.members()
            for c, where in zip(members, self.of_unknown[own[:, 0]], strict=True)
            if where == island
        ]
        return sorted(chosen)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """(count,) The largest size of the values of each island's rows; infinite where one is no number."""
        out = np.zeros(self.count)
        np.maximum.at(out, self.of_unknown, np.nan_to_num(np.abs(values), nan=np.inf))
        return out


def _groups(problem: StepNCP) -> list:
    assert problem.pattern is not None
    return list(zip(problem.gather, problem.pattern.groups, strict=True))


@dataclass
class IslandResult:
    """The end of full Newton steps: solved islands at their solution, the others where they began."""

    z: np.ndarray
    solved: np.ndarray  # (islands,)
    iterations: int
    history: list[float]


def solve_islands(problem: StepNCP, islands: Islands, z0: np.ndarray, options: NewtonOptions) -> IslandResult:
    """Full Newton steps, and one more for every solution that is only just one, each island for itself."""
    own = islands.of_unknown
    z = best = z0
    history: list[float] = []
    least = np.full(islands.count, np.inf)  # |F| over tolerance at the best point met
    start = np.zeros(islands.count)
    lost, ready = np.zeros(islands.count, bool), np.zeros(islands.count, bool)
    for k in range(options.full_steps + 2):
        F, J = problem.linearise(z, 0.0)
        size, measure = islands.largest(F), islands.largest(F / problem.tolerance)
        start = size if k == 0 else start
        astray = ~lost & ~(size < options.growth * np.maximum(start, 1e-300))
        if np.any(astray):
            lost |= astray
            z = np.where(astray[own], z0, z)
            F, J = problem.linearise(z, 0.0)
        better = measure < least
        best = np.where(better[own], z, best)
        solved_before = least <= 1
        least = np.minimum(least, measure)
        history.append(float(least.max(initial=0.0)))
        ready |= solved_before | (least <= options.polish)
        busy = ~lost & ~ready
        if k > options.full_steps or not np.any(busy) or isinstance(J, np.ndarray):
            break
        dz = J.step(np.where(busy[own], F, 0.0), problem.shift)
        if dz is None:
            break
        z = np.where(busy[own], z + problem.restrict(dz), z)
    solved = least <= 1
    return IslandResult(np.where(solved[own], best, z0), solved, len(history) - 1, history)
