"""In which order bodies are eliminated, and which blocks of the factors are not zero."""

from __future__ import annotations

import heapq

import numpy as np


def elimination(count: int, pairs: np.ndarray) -> tuple[list[int], list[list[int]]]:
    """Bodies in an order of least degree, and for each the bodies that it is tied to when its turn comes.

    pairs   (n, 2) bodies that touch
    """
    near: list[set[int]] = [set() for _ in range(count)]
    for i, j in pairs.tolist():
        near[i].add(j)
        near[j].add(i)
    waiting = [(len(n), i) for i, n in enumerate(near)]
    heapq.heapify(waiting)
    done = [False] * count
    order, tied = [], []
    while waiting:
        degree, k = heapq.heappop(waiting)
        if done[k] or degree != len(near[k]):
            continue
        done[k] = True
        order.append(k)
        tied.append(sorted(near[k]))
        for i in near[k]:
            near[i] |= near[k]
            near[i] -= {i, k}
            heapq.heappush(waiting, (len(near[i]), i))
    return order, tied


class Pattern:
    """Where blocks are kept, and what a factorisation does, as whole numbers for machine code.

    blocks    how many; those of the diagonal come first
    order     (count,) bodies as they are eliminated
    first     (count + 1,) where the ties of each of them begin in `ties`, `upper`, `lower`
    ties      bodies tied to it; upper, lower: where the blocks (k, tie) and (tie, k) are
    corner    (count + 1,) where its updates begin in `targets`: blocks (tie, tie'), row by row
    """

    def __init__(self, count: int, pairs: np.ndarray) -> None:
        order, tied = elimination(count, pairs)
        sizes = np.array([len(t) for t in tied], np.int64)
        self.order = np.array(order, np.int64)
        self.first = _begins(sizes)
        self.corner = _begins(sizes**2)
        self.ties = np.array([j for t in tied for j in t], np.int64)
        owner = np.repeat(self.order, sizes)
        self._count = count
        keys = np.concatenate([owner * count + self.ties, self.ties * count + owner])
        self._sorted = np.sort(keys)
        self.blocks = count + len(keys)
        self.upper, self.lower = self._off_diagonal(keys).reshape(2, -1)
        body = np.repeat(np.arange(count), sizes**2)
        row, column = np.divmod(np.arange(len(body)) - self.corner[body], sizes[body])
        own = self.first[body]
        self.targets = self.at(self.ties[own + row], self.ties[own + column])

    def at(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Where blocks (i, j) are kept."""
        return np.where(i == j, i, self._off_diagonal(i * self._count + j))

    def _off_diagonal(self, keys: np.ndarray) -> np.ndarray:
        return self._count + np.searchsorted(self._sorted, keys)


def _begins(sizes: np.ndarray) -> np.ndarray:
    """Where parts of these sizes begin, and where the last one ends."""
    out = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out
