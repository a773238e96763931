"""Whether a call ends as it should: with a result, or with an error of one printable line, and soon."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.interface.words import LONGEST_LINE
from implicit_geom.shapes.errors import ShapeError

LONGEST = 2.0  # seconds of processor time that any text may take
HANGS = 30.0  # seconds on the clock after which a case is given up
CLEAN = (SceneError, ShapeError, SimulationError)


class Hung(BaseException):
    """No `Exception`: what is being tested must not catch it."""


def verdict(call: Callable[[], Any], hangs: float = HANGS) -> str:
    """Empty where the call was clean, otherwise what was not; it is given up after `hangs` seconds."""
    started = time.process_time()
    try:
        with guarded(hangs), warnings.catch_warnings():
            warnings.simplefilter("error")
            call()
        message = "fine"
    except CLEAN as error:
        message = str(error)
    except Hung:
        return f"still at it after {hangs:g} s"
    except Exception as error:
        return f"raw {type(error).__name__}: {str(error)[:200]!r}"
    taken = time.process_time() - started
    if taken > LONGEST:
        return f"took {taken:.1f} s ({message[:100]!r})"
    if not message or not message.isprintable() or len(message) > LONGEST_LINE:
        return f"not one printable line: {message[:200]!r}"
    return ""


@contextmanager
def guarded(hangs: float = HANGS) -> Iterator[None]:
    """End what takes too long, where the system has an alarm (not on Windows)."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(*_: Any) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, hangs)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
