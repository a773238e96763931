"""`StepFailed`: a time step without a solution, with all that is needed to study and repeat it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from implicit_geom.interface.errors import SimulationError
from implicit_geom.run.storage.replay_file import write_record


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
        record = {
            "reason": self.reason,
            "time": self.time,
            "history": self.history,
            **self.replay,
        }
        write_record(record, Path(path), force=force)
