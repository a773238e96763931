"""Calls with a mistyped or missing argument: one line that names the nearest one, not a bare TypeError."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

from implicit_geom.interface.words import hint, shown
from implicit_geom.process.threads import working

P = ParamSpec("P")
R = TypeVar("R")
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def checked_call(
    error: type[Exception], name: str = "", *, within: Callable[[], AbstractContextManager[None]] = working
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: arguments that do not fit the function's signature raise `error`, in one line.

    `name` is what the user calls the function, where that is not its own name (or the kind of a shape). What
    other threads may do meanwhile is said by `within`, see `process.threads`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                with within():
                    return function(*args, **kwargs)
            except TypeError:
                # asked for only now, so that a call that is right costs nothing
                wrong = misfit(function, args, kwargs)
                if not wrong:
                    raise
            own = function.__qualname__.removesuffix(".__init__")
            raise error(f"{name or getattr(args[0] if args else None, 'kind', own)}: {wrong}")

        return call

    return decorate


def misfit(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What is wrong with a call, empty where it fits the signature."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    args = args[1:] if "self" in inspect.signature(function).parameters else args
    names = [p.name for p in parameters if p.kind in (*POSITIONAL, inspect.Parameter.KEYWORD_ONLY)]
    places = [p.name for p in parameters if p.kind in POSITIONAL]
    kinds = {p.kind for p in parameters}
    if len(args) > len(places) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        others = [f"{n}=" for n in names if n not in places]
        more = f"; name the others: {', '.join(others)}" if others else ""
        told = f"{len(places)} in order ({', '.join(places)})" if places else "no values in order"
        return f"takes {told}, {len(args)} were given{more}"
    for key in kwargs:
        if key not in names and inspect.Parameter.VAR_KEYWORD not in kinds:
            return f"{key} = {shown(kwargs[key])}: there is no such argument{hint(key, names)}"
        if key in places[: len(args)]:
            return f"{key} is given twice, in order and by name"
    given = {*places[: len(args)], *kwargs}
    missing = [p.name for p in parameters if p.name in names and p.default is p.empty and p.name not in given]
    return f"{missing[0]} is missing; it takes {', '.join(names)}" if missing else ""
