"""Pairs of bodies, numbered once and made when they are asked for.

The pairs (i, j), i < j, are counted row by row; pairs of two fixed bodies are left out. A scene of n bodies
has n^2 / 2 of them, of which few ever come near each other: what a pair needs is found from its number.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np

from implicit_geom.contact_geometry import is_halfspace
from implicit_geom.errors import SceneError
from implicit_geom.kernel import PairKernel, pair_kernel
from implicit_geom.pair import PairKind
from implicit_geom.scene import Friction, Scene

NO_FRAME, FRAME_FIRST, FRAME_SECOND = 0, 1, 2  # which body of a pair its friction's directions belong to
ROLES = 3


@dataclass(frozen=True)
class Pair:
    """Two bodies that may touch; `first` is the half-space where there is one."""

    first: int
    second: int
    law: Friction
    sort: Sort
    swapped: bool  # the scene's order is (second, first)

    @property
    def kernel(self) -> PairKernel:
        return self.sort.kernel


@dataclass(frozen=True)
class Sort:
    """What pairs of the same classes of bodies and the same law share."""

    law: Friction
    kind: PairKind
    swapped: bool

    @cached_property
    def kernel(self) -> PairKernel:
        """The compiled functions, made when a step first needs them: classical steppers never do."""
        return pair_kernel(self.kind)


class Pairs(Sequence[Pair]):
    """All pairs of a scene that may touch."""

    def __init__(self, scene: Scene, friction_residual: str) -> None:
        self.scene = scene
        self.friction_residual = friction_residual
        self.names = list(scene.bodies)
        self.bodies = list(scene.bodies.values())
        B = len(self.bodies)
        fixed = np.array([b.fixed for b in self.bodies])
        self._fixed, self._moving = fixed, np.flatnonzero(~fixed)
        self._moving_before = np.concatenate([[0], np.cumsum(~fixed)])  # moving bodies among the first k
        after = self._moving_before[-1] - self._moving_before[1:]
        length = np.where(fixed, after, B - 1 - np.arange(B))
        self._offset = np.concatenate([[0], np.cumsum(length)])  # number of the first pair of each row
        self._half = np.array([is_halfspace(b.shape) for b in self.bodies])
        self._classes()
        self._laws()
        self._sorts: dict[int, Sort] = {}
        self._made: dict[int, Pair] = {}

    def _classes(self) -> None:
        """Bodies of one class make the same kinds of pairs."""
        known: dict[Hashable, int] = {}
        self._class = np.zeros(len(self.bodies), int)
        for i, b in enumerate(self.bodies):
            key = (b.shape.structure, b.shape.values.size, b.fixed)
            self._class[i] = known.setdefault(key, len(known))
        self._class_count = len(known)

    def _laws(self) -> None:
        """The laws of the scene: the default, the default where it is attached to a body, those of pairs."""
        index = {name: i for i, name in enumerate(self.names)}
        default = self.scene._default_friction
        self._frame = -1 if default.frame is None else index.get(default.frame, -1)
        special = {}
        for names in self.scene._pair_friction:
            i, j = sorted(index[name] for name in names)
            if not (self._fixed[i] and self._fixed[j]):
                special[int(self.number(i, j))] = (i, j)
        self._check(special)
        self.laws: list[Friction] = [default, default]
        plain, attached = self._ordinary(special)
        for k, c in enumerate((plain, attached)):
            if c is not None:
                self.laws[k] = self._law(c)
        self._special = np.array(sorted(special), int)
        self._special_law = 2 + np.arange(len(special))
        self.laws += [self._law(int(c)) for c in self._special]

    def _ordinary(self, special: dict[int, tuple[int, int]]) -> tuple[int | None, int | None]:
        """The first pair with the default law, and the first of those whose law is attached to a body."""
        plain = attached = None
        for c in range(len(self)):
            if c in special:
                continue
            i, j = self.ends(np.array([c]))
            if self._frame in (i[0], j[0]):
                continue
            plain = c
            break
        if self._frame >= 0:
            others = np.array([b for b in range(len(self.bodies)) if b != self._frame], int)
            if self._fixed[self._frame]:
                others = others[~self._fixed[others]]
            i, j = np.minimum(others, self._frame), np.maximum(others, self._frame)
            attached = next((int(c) for c in np.sort(self.number(i, j)) if c not in special), None)
        return plain, attached

    def _law(self, c: int) -> Friction:
        i, j = self.ends(np.array([c]))
        return self.scene.pair_friction(self.names[i[0]], self.names[j[0]])

    def _check(self, special: dict[int, tuple[int, int]]) -> None:
        """Raise what is wrong with the first pair that has something wrong."""
        wrong: int | None = None
        unbounded = [i for i, b in enumerate(self.bodies) if not b.shape.bounded]
        for k, i in enumerate(unbounded):
            for j in unbounded[k + 1 :]:
                if not (self._fixed[i] and self._fixed[j]):
                    c = int(self.number(i, j))
                    wrong = c if wrong is None else min(c, wrong)
        telling = sorted({*special, *(c for c in self._ordinary(special) if c is not None)})
        for c in telling:
            if wrong is None or c < wrong:
                self._law(c)
        if wrong is not None:
            i, j = (int(k[0]) for k in self.ends(np.array([wrong])))
            raise SceneError(
                f"bodies {self.names[i]!r} and {self.names[j]!r} are both unbounded and one moves: "
                "such a pair has no closest points; fix both"
            )

    # ---- numbers

    def __len__(self) -> int:
        return int(self._offset[-1])

    def number(self, i: int | np.ndarray, j: int | np.ndarray) -> np.ndarray:
        """The numbers of the pairs of bodies i < j, not both fixed."""
        i, j = np.asarray(i), np.asarray(j)
        among_moving = self._moving_before[j] - self._moving_before[i + 1]
        return np.asarray(self._offset[i] + np.where(self._fixed[i], among_moving, j - i - 1))

    def ends(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bodies of pairs, in the scene's order."""
        numbers = np.asarray(numbers, int)
        i = np.searchsorted(self._offset, numbers, side="right") - 1
        k = numbers - self._offset[i]
        moving = np.minimum(self._moving_before[i + 1] + k, self._moving.size - 1)
        return i, np.where(self._fixed[i], self._moving[moving], i + 1 + k)

    def sides(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`first` and `second` of pairs: the half-space comes first."""
        i, j = self.ends(numbers)
        swapped = self._half[j]
        return np.where(swapped, j, i), np.where(swapped, i, j)

    def against_halfspaces(self, numbers: np.ndarray) -> np.ndarray:
        """Whether the first body of a pair is a half-space."""
        i, j = self.ends(numbers)
        return np.asarray(self._half[i] | self._half[j])

    # ---- what pairs are

    def law_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """The place of each pair's law in `laws`."""
        numbers = np.asarray(numbers, int)
        i, j = self.ends(numbers)
        law = np.where((i == self._frame) | (j == self._frame), 1, 0)
        if self._special.size:
            where = np.minimum(np.searchsorted(self._special, numbers), self._special.size - 1)
            law = np.where(self._special[where] == numbers, self._special_law[where], law)
        return np.asarray(law)

    def sorts(self, numbers: np.ndarray) -> np.ndarray:
        """A number for each pair, equal where law and kernel are; see `sort`."""
        numbers = np.asarray(numbers, int)
        i, j = self.ends(numbers)
        law = self.law_numbers(numbers)
        role = np.zeros(len(numbers), int)
        index = {name: b for b, name in enumerate(self.names)} if self._attached else {}
        for k, given in enumerate(self.laws):
            if given.frame is not None:
                first, _ = self.sides(numbers)
                side = np.where(first == index[given.frame], FRAME_FIRST, FRAME_SECOND)
                role = np.where(law == k, side, role)
        classes = self._class[i] * self._class_count + self._class[j]
        return np.asarray((classes * len(self.laws) + law) * ROLES + role)

    @property
    def _attached(self) -> bool:
        return any(law.frame is not None for law in self.laws)

    def sort(self, sort: int, member: int) -> Sort:
        """What all pairs of a sort share; `member` is the number of one of them."""
        if sort not in self._sorts:
            i, j = (int(b[0]) for b in self.ends(np.array([member])))
            swapped = bool(self._half[j])
            first, second = (j, i) if swapped else (i, j)
            law = self.laws[sort // ROLES % len(self.laws)]
            self._sorts[sort] = Sort(law, self._kind(first, second, law), swapped)
        return self._sorts[sort]

    def _kind(self, first: int, second: int, law: Friction) -> PairKind:
        a, b = self.bodies[first], self.bodies[second]
        names = ("t",) if self.scene.dim == 2 else ("t", "o", "r")
        kept = tuple(c for c in names if getattr(law, f"e_{c}") > 0) if law.mu > 0 else ()
        frame = "free" if law.direction is None else "world"
        if law.frame is not None:
            frame = "first" if law.frame == a.name else "second"
        moves = (not a.fixed, not b.fixed)
        isotropic = law.e_t == law.e_o
        return PairKind(a.shape, b.shape, kept, self.friction_residual, moves, frame, isotropic)

    @overload
    def __getitem__(self, c: int) -> Pair: ...
    @overload
    def __getitem__(self, c: slice) -> Sequence[Pair]: ...
    def __getitem__(self, c: int | slice) -> Pair | Sequence[Pair]:
        """Pair number c."""
        if isinstance(c, slice):
            return [self[k] for k in range(*c.indices(len(self)))]
        if not 0 <= c < len(self):
            raise IndexError(f"there is no pair {c}")
        c = int(c)
        if c not in self._made:
            numbers = np.array([c])
            first, second = self.sides(numbers)
            sort = self.sort(int(self.sorts(numbers)[0]), c)
            self._made[c] = Pair(int(first[0]), int(second[0]), sort.law, sort, sort.swapped)
        return self._made[c]

    @property
    def may_have_patches(self) -> bool:
        """Whether any pair may touch along a line or a face."""
        kinds: dict[int, tuple[int, int]] = {}  # class: how many bodies, one of them
        for i, k in enumerate(self._class.tolist()):
            kinds[k] = (kinds.get(k, (0, i))[0] + 1, i)
        rough = [(n, i) for n, i in kinds.values() if not self.bodies[i].shape.strictly_convex]
        moving = [(n, i) for n, i in rough if not self._fixed[i]]
        return bool(moving) and (len(rough) > 1 or moving[0][0] > 1)
