"""The errors and the warning that users see."""

from __future__ import annotations

from typing import Any

from implicit_geom.interface.words import one_line as words_in_line


def one_line(words: object) -> str:
    """Words from a file, or about one, in a line of no great length that does nothing to a terminal."""
    return words_in_line(words.decode(errors="replace") if isinstance(words, bytes) else str(words))


class OneLine(Exception):
    """An error whose message is one short line of printable characters, whatever it was made of."""

    def __init__(self, message: str = "", *rest: Any) -> None:
        super().__init__(words_in_line(str(message)), *rest)


class SceneError(OneLine, ValueError):
    """Bad input: the message names the field, its value and what would be right.

    >>> try:
    ...     scene.add("ball", shapes.sphere(0.1), mass=-1)
    ... except SceneError as error:
    ...     print(error)
    bodies.ball.mass = -1 must be positive, in kg
    """


class SceneNotice(UserWarning):
    """Something about a scene that its author may not have meant; a warning, given once a scene.

    >>> import warnings
    >>> warnings.simplefilter("ignore", SceneNotice)  # to have none of them
    """


class CallError(SceneError, TypeError):
    """A call with arguments that are not taken."""


class SimulationError(OneLine, RuntimeError):
    """The work could not be done: a step was not solved, a file not written, closest points not found.

    >>> issubclass(StepFailed, SimulationError)
    True
    """
