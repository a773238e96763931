"""What goes wrong, and what each error carries with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from implicit_geom.interface.words import one_line as words_in_line
from implicit_geom.shapes.errors import OneLine


def one_line(words: object) -> str:
    """Words from a file, or about one, in a line of no great length that does nothing to a terminal."""
    return words_in_line(words.decode(errors="replace") if isinstance(words, bytes) else str(words))


class SceneError(OneLine, ValueError):
    """Bad input: the message names the field, its value and what would be right."""


class SceneNotice(UserWarning):
    """Something about a scene that its author may not have meant; given once a scene."""


class CallError(SceneError, TypeError):
    """A call with arguments that are not taken."""


class SimulationError(OneLine, RuntimeError):
    """The work could not be done."""


class StepFailed(SimulationError):
    """A time step that could not be solved, with all that is needed to study it.

    time        start of the failed step, s
    state       body name -> (position, orientation, velocity, angular velocity) at that time
    history     norms of the residual, one list per attempt
    reason      one line
    run         the trajectory up to the last good step
    """

    def __init__(
        self,
        reason: str,
        *,
        time: float,
        state: dict[str, Any],
        history: list[list[float]],
        replay: dict[str, Any] | None = None,
        run: Any = None,
    ) -> None:
        super().__init__(f"step at t = {time:.9g} s failed: {reason}")
        self.reason = reason
        self.time = time
        self.state = state
        self.history = history
        self.replay = replay or {}
        self.run = run

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write what is needed to repeat the failed step: `implicit-geom run FILE` replays it.

        An earlier file of a failed step is replaced, any other file only with `force`.
        """
        from implicit_geom.run.storage.replay_file import write_record

        record = {
            "reason": self.reason,
            "time": self.time,
            "history": self.history,
            **self.replay,
        }
        write_record(record, Path(path), force=force)
