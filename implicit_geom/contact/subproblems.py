"""Local subproblems of a linearised step: bodies around contacts whose laws do not hold yet.

All impulses from outside are held as they are, and the bodies inside are free to move: were the bodies
outside held instead, those inside would be jammed between them.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.contact.linearised import FrictionProblem, Impulses
from implicit_geom.solvers.block_elimination import BlockPattern, GroupPattern


class LocalSubproblem(FrictionProblem):
    """Some bodies of a step and the contacts between them, at velocities and impulses of the whole."""

    def __init__(self, whole: FrictionProblem, nu: np.ndarray, P: Impulses, inside: np.ndarray) -> None:
        nv = whole.pattern.velocities
        bodies = np.flatnonzero(inside)
        number = np.cumsum(inside) - 1
        self.at = (bodies[:, None] * nv + np.arange(nv)).ravel()  # where their velocities are
        self.chosen: list[tuple[int, np.ndarray]] = []  # groups, and which of their contacts
        groups, outside = [], [p.copy() for p in P]
        for k, g in enumerate(whole.pattern.groups):
            ends = whole.pattern.bodies(g)
            within = np.flatnonzero(np.all(inside[ends], axis=1))
            if within.size:
                self.chosen.append((k, within))
                outside[k][within] = 0.0
                at_ends = number[ends[within]][:, :, None] * nv + np.arange(nv)
                groups.append(GroupPattern(at_ends.reshape(within.size, -1), 0))
        self.pattern = BlockPattern(self.at.size, bodies.size, nv, groups)
        self.nu, self.rows = nu[self.at], whole.f(nu, outside)[self.at]
        self.momentum = whole.momentum.reshape(-1, nv * nv)[bodies]
        self.weight, self.speed, self.heaviest = whole.weight[self.at], whole.speed, whole.heaviest
        self.V, self.W, self.T = (self._from(part) for part in (whole.V, whole.W, whole.T))
        self.u0, self.mu, self.start = (self._from(part) for part in (whole.u(nu), whole.mu, P))
        self.delassus_diagonal, self.scale = self._from(whole.delassus_diagonal), self._from(whole.scale)

    def _from(self, whole: list[np.ndarray]) -> list[np.ndarray]:
        return [whole[k][within] for k, within in self.chosen]

    def write_back(self, nu: np.ndarray, P: Impulses, there: np.ndarray, found: Impulses) -> None:
        """Write what was found here into the whole."""
        nu[self.at] = there
        for (k, within), p in zip(self.chosen, found, strict=True):
            P[k][within] = p


def subproblem_bodies(
    whole: FrictionProblem, P: Impulses, violations: list[np.ndarray], tolerance: float
) -> list[np.ndarray]:
    """Which bodies are in each subproblem: those at bad contacts, and what presses on them."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    bodies = whole.pattern.moving // whole.pattern.velocities
    hard, links = np.zeros(bodies, bool), [np.zeros((0, 2), int)]
    for g, p, r in zip(whole.pattern.groups, P, violations, strict=True):
        ends, bad = whole.pattern.bodies(g), r > tolerance
        hard[ends[bad]] = True
        if ends.shape[1] == 2:
            links.append(ends[bad | (p[:, 0] > 0)])
    link = np.concatenate(links)
    hard[link[np.any(hard[link], axis=1)]] = True
    link = link[np.all(hard[link], axis=1)]
    graph = coo_matrix((np.ones(len(link)), link.T), shape=(bodies, bodies))
    _, part = connected_components(graph, directed=False)
    return [hard & (part == k) for k in np.unique(part[hard])]
