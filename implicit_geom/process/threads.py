"""Threads: one at a time builds equations and code; a fork waits until none is in the middle of something.

CasADi lets go of Python's lock while it works, and its symbols are not made for several threads at once: all
that makes or changes them happens within `building`.

Whatever a thread holds when another one forks (a lock of CasADi, of LLVM, of a module being imported) stays
closed for ever in the new process. So every thread says when it works, with a lock of its own, and lets go
of it between steps and while machine code runs, which needs no lock; a fork takes all of them first.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 (hooks of forks run last first: its own must come after ours)
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

PATIENCE = 60.0  # s that a fork waits for a thread: longer than any ordinary step
BUILDING = threading.RLock()  # held while equations or code are built, see `building`


class _Own(threading.local):
    """A thread's lock, and how often it has taken it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.depth = self.left = 0
        with _GATE:
            _ALL.add(self.lock)


_GATE = threading.Lock()  # closed while a process forks: no new thread may begin to work
_ALL: WeakSet[Any] = WeakSet()
_own = _Own()
_taken: list[Any] = []  # by the thread that forks


@contextmanager
def working() -> Iterator[None]:
    """No fork in here, but where the thread pauses."""
    _own.lock.acquire()
    _own.depth += 1
    try:
        yield
    finally:
        _own.depth -= 1
        _own.lock.release()


@contextmanager
def paused() -> Iterator[None]:
    """A fork may happen in here."""
    depth, _own.depth = _own.depth, 0
    for _ in range(depth):
        _own.lock.release()
    try:
        yield
    finally:
        for _ in range(depth):
            _own.lock.acquire()
        _own.depth = depth


@contextmanager
def building() -> Iterator[None]:
    """No other thread builds, no process forks in here."""
    with working(), BUILDING:
        yield


def _before() -> None:
    # (two threads that both work and fork: each lets go of its own, or they would wait for each other)
    _own.left = _own.depth
    for _ in range(_own.left):
        _own.lock.release()
    _GATE.acquire()
    _taken.extend(lock for lock in list(_ALL) if lock is not _own.lock and lock.acquire(timeout=PATIENCE))
    BUILDING.acquire()


def _after_in_parent() -> None:
    BUILDING.release()
    while _taken:
        _taken.pop().release()
    _GATE.release()
    _go_on()


def _after_in_child() -> None:
    BUILDING.release()
    _taken.clear()
    _ALL.clear()  # (the other threads are not here)
    _ALL.add(_own.lock)
    _GATE.release()
    _go_on()


def _go_on() -> None:
    for _ in range(_own.left):
        _own.lock.acquire()


if hasattr(os, "register_at_fork"):
    _own.depth  # noqa: B018 (the main thread's lock exists before the first fork)
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
