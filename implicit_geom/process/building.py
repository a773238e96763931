"""Equations and code that are built once, by one thread at a time, and kept for all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Generic, ParamSpec, TypeVar

from implicit_geom.process.threads import BUILDING

P = ParamSpec("P")
T = TypeVar("T")


class Kept(Generic[T]):
    """Things by key, each built on first use; of more than `most` the one not used for longest goes.

    Whoever still holds a thing that went keeps it; it is built again for the next one who asks.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._things: OrderedDict[Hashable, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._things)

    def get(self, key: Hashable, build: Callable[[], T]) -> T:
        """The thing of a key, from any thread."""
        try:
            thing = self._things[key]
            self._things.move_to_end(key)
            return thing
        except KeyError:  # not there, or gone between the two lines
            pass
        with BUILDING:
            if key not in self._things:
                self._things[key] = build()
                while len(self._things) > self.most:
                    self._things.popitem(last=False)
            return self._things[key]


def built_once(build: Callable[P, T]) -> Callable[P, T]:
    """A function of few different (positional) arguments whose results are kept."""
    kept: Kept[T] = Kept(64)

    @wraps(build)
    def get(*args: P.args, **kwargs: P.kwargs) -> T:
        return kept.get(args, lambda: build(*args, **kwargs))

    return get
