"""Pairs of convex pieces, numbered once and made when they are asked for.

The pairs (i, j), i < j, are counted row by row; pairs of two fixed bodies and of pieces of the same body are
left out. A scene of n pieces has n^2 / 2 of them, of which few ever come near each other: what a pair needs
is found from its number.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import overload

import numpy as np

from implicit_geom.equations.pair_kernel import PairKernel, pair_kernel
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.pieces import Pieces
from implicit_geom.process.lazy import cached_property
from implicit_geom.scene.scene import Friction, Scene

NO_FRAME, FRAME_FIRST, FRAME_SECOND = 0, 1, 2  # which body of a pair its friction's directions belong to
ROLES = 3
FEW = 256  # pairs whose pieces are looked up


@dataclass(frozen=True)
class Pair:
    """Two bodies that may touch, with a piece each; `first` is the half-space where there is one."""

    first: int
    second: int
    law: Friction
    template: PairTemplate
    swapped: bool  # the scene's order is (second, first)
    pieces: tuple[int, int]  # of the first and of the second body

    @property
    def kernel(self) -> PairKernel:
        return self.template.kernel


@dataclass(frozen=True)
class PairTemplate:
    """What pairs of the same kinds of pieces and the same law share."""

    law: Friction
    kind: PairKind
    swapped: bool

    @cached_property
    def kernel(self) -> PairKernel:
        """The compiled functions, made when a step first needs them: classical steppers never do."""
        return pair_kernel(self.kind)


class Pairs(Sequence[Pair]):
    """All pairs of a scene's pieces that may touch."""

    def __init__(self, scene: Scene, pieces: Pieces, friction_residual: str) -> None:
        self.scene = scene
        self._pieces = pieces
        self.friction_residual = friction_residual
        self.names = list(scene.bodies)
        self.bodies = list(scene.bodies.values())
        fixed = pieces.fixed
        self._moving = np.flatnonzero(~fixed)
        self._moving_before = np.concatenate([[0], np.cumsum(~fixed)])  # moving pieces among the first k
        after = self._moving_before[-1] - self._moving_before[1:]
        length = np.where(fixed, after, len(pieces) - pieces.after)
        self._offset = np.concatenate([[0], np.cumsum(length)])  # number of the first pair of each row
        self._all_ends: tuple[np.ndarray, np.ndarray] | None = None
        self._classes()
        self._laws()
        self._templates: dict[int, PairTemplate] = {}
        self._made: dict[int, Pair] = {}

    def _classes(self) -> None:
        """Pieces of one class make the same kinds of pairs."""
        known: dict[Hashable, int] = {}
        self._class = np.zeros(len(self._pieces), int)
        for i, (shape, fixed) in enumerate(zip(self._pieces.shapes, self._pieces.fixed, strict=True)):
            key = (shape.structure, shape.values.size, bool(fixed))
            self._class[i] = known.setdefault(key, len(known))
        self._class_count = len(known)

    def _laws(self) -> None:
        """The laws of the scene: the default, the default where it is attached to a body, those of pairs."""
        index = {name: i for i, name in enumerate(self.names)}
        default = self.scene._default_friction
        self._frame = -1 if default.frame is None else index.get(default.frame, -1)
        special = {}
        for names in self.scene._pair_friction:
            a, b = sorted(index[name] for name in names)
            if not (self.bodies[a].fixed and self.bodies[b].fixed):
                for i, j in product(self._pieces.of(a).tolist(), self._pieces.of(b).tolist()):
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
            i, j = self.sides(np.array([c]))
            if self._frame in (i[0], j[0]):
                continue
            plain = c
            break
        if self._frame >= 0:
            own = self._pieces.of(self._frame)[0]
            others = np.flatnonzero(self._pieces.owner != self._frame)
            if self._pieces.fixed[own]:
                others = others[~self._pieces.fixed[others]]
            i, j = np.minimum(others, own), np.maximum(others, own)
            attached = next((int(c) for c in np.sort(self.number(i, j)) if c not in special), None)
        return plain, attached

    def _law(self, c: int) -> Friction:
        a, b = self._owners(c)
        return self.scene.pair_friction(self.names[a], self.names[b])

    def _owners(self, c: int) -> tuple[int, int]:
        """The bodies of a pair, in the scene's order."""
        i, j = (int(self._pieces.owner[piece[0]]) for piece in self.ends(np.array([c])))
        return i, j

    def _check(self, special: dict[int, tuple[int, int]]) -> None:
        """Raise what is wrong with the first pair that has something wrong."""
        wrong: int | None = None
        fixed, owner = self._pieces.fixed, self._pieces.owner
        unbounded = np.flatnonzero(~self._pieces.bounded).tolist()
        for k, i in enumerate(unbounded):
            for j in unbounded[k + 1 :]:
                if owner[i] != owner[j] and not (fixed[i] and fixed[j]):
                    c = int(self.number(i, j))
                    wrong = c if wrong is None else min(c, wrong)
        telling = sorted({*special, *(c for c in self._ordinary(special) if c is not None)})
        for c in telling:
            if wrong is None or c < wrong:
                self._law(c)
        if wrong is not None:
            i, j = self._owners(wrong)
            raise SceneError(
                f"bodies {self.names[i]!r} and {self.names[j]!r} are both unbounded and one moves: "
                "such a pair has no closest points; fix both"
            )

    # ---- numbers

    def __len__(self) -> int:
        return int(self._offset[-1])

    def number(self, i: int | np.ndarray, j: int | np.ndarray) -> np.ndarray:
        """The numbers of the pairs of pieces i < j of two bodies, not both fixed."""
        i, j = np.asarray(i), np.asarray(j)
        among_moving = self._moving_before[j] - self._moving_before[i + 1]
        return np.asarray(
            self._offset[i] + np.where(self._pieces.fixed[i], among_moving, j - self._pieces.after[i])
        )

    def ends(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pieces of pairs, in the scene's order."""
        numbers = np.asarray(numbers, int)
        if len(self) > FEW:
            return self._found_ends(numbers)
        if self._all_ends is None:
            self._all_ends = self._found_ends(np.arange(len(self)))
        i, j = self._all_ends
        return i[numbers], j[numbers]

    def _found_ends(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        i = np.searchsorted(self._offset, numbers, side="right") - 1
        k = numbers - self._offset[i]
        moving = np.minimum(self._moving_before[i + 1] + k, self._moving.size - 1)
        return i, np.where(self._pieces.fixed[i], self._moving[moving], self._pieces.after[i] + k)

    def pieces(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pieces of `first` and `second` of pairs: the half-space comes first."""
        i, j = self.ends(numbers)
        swapped = self._pieces.half[j]
        return np.where(swapped, j, i), np.where(swapped, i, j)

    def sides(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bodies `first` and `second` of pairs."""
        i, j = self.pieces(numbers)
        return self._pieces.owner[i], self._pieces.owner[j]

    def against_halfspaces(self, numbers: np.ndarray) -> np.ndarray:
        """Whether the first piece of a pair is a half-space."""
        i, j = self.ends(numbers)
        return np.asarray(self._pieces.half[i] | self._pieces.half[j])

    # ---- what pairs are

    def law_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """The place of each pair's law in `laws`."""
        numbers = np.asarray(numbers, int)
        i, j = self.ends(numbers)
        owner = self._pieces.owner
        law = np.where((owner[i] == self._frame) | (owner[j] == self._frame), 1, 0)
        if self._special.size:
            where = np.minimum(np.searchsorted(self._special, numbers), self._special.size - 1)
            law = np.where(self._special[where] == numbers, self._special_law[where], law)
        return np.asarray(law)

    def template_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """A number for each pair, equal where law and kernel are; see `template`."""
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

    def template(self, number: int, member: int) -> PairTemplate:
        """What all pairs of a template's number share; `member` is the number of one of them."""
        if number not in self._templates:
            i, j = (int(piece[0]) for piece in self.ends(np.array([member])))
            swapped = bool(self._pieces.half[j])
            first, second = (j, i) if swapped else (i, j)
            law = self.laws[number // ROLES % len(self.laws)]
            self._templates[number] = PairTemplate(law, self._kind(first, second, law), swapped)
        return self._templates[number]

    def _kind(self, first: int, second: int, law: Friction) -> PairKind:
        owner, shapes = self._pieces.owner, self._pieces.shapes
        a, b = self.bodies[owner[first]], self.bodies[owner[second]]
        names = ("t",) if self.scene.dim == 2 else ("t", "o", "r")
        kept = tuple(c for c in names if getattr(law, f"e_{c}") > 0) if law.mu > 0 else ()
        frame = "free" if law.direction is None else "world"
        if law.frame is not None:
            frame = "first" if law.frame == a.name else "second"
        moves = (not a.fixed, not b.fixed)
        isotropic = law.e_t == law.e_o
        one, two = shapes[first], shapes[second]
        return PairKind(one, two, kept, self.friction_residual, moves, frame, isotropic)

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
            first, second = (int(side[0]) for side in self.sides(numbers))
            i, j = (int(piece[0]) for piece in self.pieces(numbers))
            template = self.template(int(self.template_numbers(numbers)[0]), c)
            self._made[c] = Pair(first, second, template.law, template, template.swapped, (i, j))
        return self._made[c]

    def at_seam(self, c: int) -> bool:
        """Whether both pieces of a pair may have corners and one of them is part of a union."""
        return bool(
            np.all(self._pieces.cornered[[*self[c].pieces]]) and np.any(self._pieces.many[[*self[c].pieces]])
        )

    @property
    def have_seams(self) -> bool:
        """Whether any pair is `at_seam`."""
        p = self._pieces
        seams, corners = p.cornered & p.many, p.cornered
        moving = np.any(corners & ~p.fixed) if np.any(seams) else False
        return bool(moving) and np.unique(p.owner[corners]).size > 1

    @property
    def may_have_patches(self) -> bool:
        """Whether any pair may touch along a line or a face."""
        flat_sided = np.array([not shape.strictly_convex for shape in self._pieces.shapes])
        bodies = np.unique(self._pieces.owner[flat_sided]).size
        return bool(np.any(flat_sided & ~self._pieces.fixed)) and bodies > 1
