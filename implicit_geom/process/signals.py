"""Signals that end a command: SIGTERM and SIGHUP interrupt as Ctrl-C does, and nothing is left half done.

Within `listening` the three raise `Interrupted` in the main thread; within `HELD` (a step is recorded, a run
is saved) they wait for its end. Python's handlers, also that of Ctrl-C, wait within `deferred`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Interrupted(KeyboardInterrupt):
    """The process was asked to end by a signal; what was done so far may be kept."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def status(interrupt: KeyboardInterrupt) -> int:
    """The exit status, as shells give it: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + int(getattr(interrupt, "number", signal.SIGINT))


class _Held:
    """Interrupts wait until the outermost `with` of the main thread ends; other threads get none."""

    def __init__(self) -> None:
        self.depth, self.waiting = 0, 0

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self.depth += 1

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            self.depth -= 1
            if self.waiting and not self.depth:
                number, self.waiting = self.waiting, 0
                raise Interrupted(number)


HELD = _Held()


@contextmanager
def listening() -> Iterator[None]:
    """Signals that nobody handles yet raise `Interrupted` within; the first SIGTERM or SIGHUP is enough."""
    asked: set[int] = set()

    def handle(number: int, _: FrameType | None) -> None:
        # (whoever ends a session or a service sends several; only Ctrl-C may be meant again)
        again = number != signal.SIGINT and bool(asked)
        asked.add(number)
        if again:
            return
        if HELD.depth:
            HELD.waiting = number
            return
        raise Interrupted(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # (what is ignored, as under nohup, stays ignored)
    free = [n for n in ENDING if signal.getsignal(n) in (signal.SIG_DFL, signal.default_int_handler)]
    before = {number: signal.signal(number, handle) for number in free}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[list[int]]:
    """Signals wait for the end; the list has those that came.

    For native code that calls back: an exception must not pass through it, and one that a handler raises
    as the callback begins would be lost.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {n: handler for n in ENDING if callable(handler := signal.getsignal(n))}
    try:
        for number in before:
            signal.signal(number, lambda number, _: came.append(number))
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)
