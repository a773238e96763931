"""The scenes of a batch, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from implicit_geom.scene.scene import Scene
from implicit_geom.scene.values import Variants


class Scenes(Sequence[Scene]):
    """One scene for every row of some values."""

    def __init__(self, scene: Scene, values: Mapping[str, Any]) -> None:
        self.variants = Variants(scene, values)
        self._made: dict[int, Scene] = {}

    def __len__(self) -> int:
        return len(self.variants)

    @overload
    def __getitem__(self, i: int) -> Scene: ...
    @overload
    def __getitem__(self, i: slice) -> list[Scene]: ...
    def __getitem__(self, i: int | slice) -> Scene | list[Scene]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        if i not in self._made:
            self._made[i] = self.variants.scene(i)
        return self._made[i]

    def __iter__(self) -> Iterator[Scene]:
        return (self[i] for i in range(len(self)))
