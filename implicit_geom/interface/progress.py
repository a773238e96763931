"""Progress of a run: a bar on a terminal, a function of the fraction done, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.words import shown

Progress = bool | Callable[[float], object] | None


@contextmanager
def reporting(progress: Progress, total: int, unit: str = "step") -> Iterator[Callable[..., None]]:
    """A function to call with the number of units done, which never go back; None: a bar on a terminal.

    A second argument, a function, gives words that a bar shows beside them.
    """
    if progress is None:
        progress = sys.stderr.isatty()
    if callable(progress):
        tell, most = progress, 0

        def onward(done: int, _: object = None) -> None:
            nonlocal most
            most = max(most, done)
            tell(most / total)

        yield onward
    elif progress is True:
        from tqdm import tqdm

        with tqdm(total=total, unit=unit, file=sys.stderr) as bar:

            def show(done: int, words: Callable[[], str] | None = None) -> None:
                if words is not None:
                    bar.set_postfix_str(words(), refresh=False)
                bar.update(max(done - bar.n, 0))

            yield show
    elif progress is False:
        yield _ignore
    else:
        raise SceneError(
            f"progress = {shown(progress)} must be True, False, None or a function of the fraction done"
        )


def part(done: Callable[[int], None], first: int, count: int) -> Callable[[float], None]:
    """The progress of one run among several: its fraction as `count` units after the `first` ones."""
    return lambda fraction: done(first + round(fraction * count))


def _ignore(*_: object) -> None:
    return None
