"""Progress of a run: a bar on a terminal, a function of the fraction done, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from implicit_geom.errors import SceneError

Progress = bool | Callable[[float], object] | None


@contextmanager
def reporting(progress: Progress, total: int, unit: str = "step") -> Iterator[Callable[[int], None]]:
    """A function to call with the number of units done; None shows a bar only on a terminal."""
    if progress is None:
        progress = sys.stderr.isatty()
    if callable(progress):
        tell = progress
        yield lambda done: _ignore(tell(done / total))
    elif progress is True:
        from tqdm import tqdm

        with tqdm(total=total, unit=unit, file=sys.stderr) as bar:
            yield lambda done: _ignore(bar.update(done - bar.n))
    elif progress is False:
        yield _ignore
    else:
        raise SceneError(
            f"progress = {progress!r} must be True, False, None or a function of the fraction done"
        )


def _ignore(_: object) -> None:
    return None
