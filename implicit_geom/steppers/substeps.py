"""Steps that are divided: a part that fails is halved, until it is solved or too short."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from implicit_geom.interface.errors import SimulationError
from implicit_geom.model.model import State
from implicit_geom.model.records import Attempt, Failure, Solve

T = TypeVar("T")
WHOLE = 1e-12  # of a step, that counts as none


class RestorableMemory(Protocol):
    """What a stepper remembers, and can be set back to."""

    def snapshot(self) -> Any: ...

    def restore(self, snapshot: Any) -> None: ...


def in_parts(
    memory: RestorableMemory,
    state: State,
    h: float,
    take: Callable[[State, float, int], list[Solve] | Solve | Failure],
    *,
    halvings: int,
    solves: int,
    instead: Callable[[State, float], Attempt | None] | None = None,
) -> Attempt:
    """Advance by h with `take(state, length, halvings so far)`, in at most so many halvings and solves.

    A part may be taken up to an impact alone; the rest of it comes next. Where the whole step fails,
    `instead` may take it in another way.
    """
    saved = memory.snapshot()
    taken: list[Solve] = []
    history: list[list[float]] = []
    why, divided = "", False
    parts = [(h, 0)]  # lengths still to be taken, next one last, with their number of halvings
    while parts:
        length, halved = parts.pop()
        before = memory.snapshot()
        outcome: list[Solve] | Solve | Failure = attempted(take, state, length, halved)
        if not isinstance(outcome, tuple):
            found = outcome if isinstance(outcome, list) else [outcome]
            taken += found
            state = found[-1].end
            rest = length - sum(solve.h for solve in found)
            if abs(rest) > WHOLE * abs(h):
                parts.append((rest, halved))
            continue
        # a solve may fail after its geometry was kept: the next one starts from the same state again
        memory.restore(before)
        reason, histories = outcome
        why = why or reason
        if halved == 0 and instead is not None:
            other = instead(state, h)
            if other is not None:
                return replace(other, why=why)
            memory.restore(saved)
        history += histories
        if halved == halvings or len(taken) + len(parts) >= solves:
            memory.restore(saved)
            return Attempt([], reason, history)
        divided = True
        parts += [(length / 2, halved + 1)] * 2
    return Attempt(taken, why=why, divided=divided)


def attempted(solve: Callable[..., T | Failure], *arguments: Any) -> T | Failure:
    """What `solve` returns, or the reason why it could not be carried out."""
    try:
        return solve(*arguments)
    except SimulationError as error:
        return str(error), []
