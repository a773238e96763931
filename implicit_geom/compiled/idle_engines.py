"""Engines that wait for runs of their kind: to make one takes longer than many runs do."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from implicit_geom.compiled.engine import Engine

MOST = 16  # engines, of some megabytes each
_IDLE: dict[Hashable, list[Engine]] = {}


def take(kind: Hashable, make: Callable[[], Engine]) -> Engine:
    """One of a kind that nobody uses, or a new one."""
    try:
        return _IDLE[kind].pop()
    except (KeyError, IndexError):
        return make()


def leave(kind: Hashable, engine: Engine) -> None:
    """Leave an engine to others."""
    if sum(map(len, list(_IDLE.values()))) >= MOST:
        _IDLE.clear()
    _IDLE.setdefault(kind, []).append(engine)
