"""The error that a bad shape raises."""

from typing import Any

from implicit_geom.interface.words import one_line


class OneLine(Exception):
    """An error whose message is one short line of printable characters, whatever it was made of."""

    def __init__(self, message: str = "", *rest: Any) -> None:
        super().__init__(one_line(str(message)), *rest)


class ShapeError(OneLine, ValueError):
    """A shape that cannot be: the message names the field, its value and what would be right."""


class EmptyShape(ShapeError):
    """An intersection without a point inside."""


class ShapeCallError(ShapeError, TypeError):
    """A shape made with arguments that it does not take."""
