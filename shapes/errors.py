"""The errors that a bad shape raises."""

from implicit_geom.interface.errors import OneLine


class ShapeError(OneLine, ValueError):
    """A shape that cannot be: the message names the field, its value and what would be right.

    >>> try:
    ...     shapes.sphere(-1)
    ... except ShapeError as error:
    ...     print(error)
    sphere: r = -1 must be a positive number, in metres
    """


class EmptyShape(ShapeError):
    """An intersection without a point inside."""


class ShapeCallError(ShapeError, TypeError):
    """A shape made with arguments that it does not take."""
