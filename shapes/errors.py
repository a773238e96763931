"""The error that a bad shape raises."""


class ShapeError(ValueError):
    """A shape that cannot be: the message names the field, its value and what would be right."""


class EmptyShape(ShapeError):
    """An intersection without a point inside."""
