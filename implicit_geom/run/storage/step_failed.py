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

    A bar that crosses a plate within a step, in a scheme that looks at corners only:

    >>> crossing = Scene(dim=2, gravity=(0, 0))
    >>> crossing.add("plate", shapes.rectangle(0.005, 0.1), fixed=True)
    >>> crossing.add("bar", shapes.rectangle(0.1, 0.02), mass=1.0, position=(-0.12, 0), velocity=(2, 0))
    >>> try:
    ...     simulate(crossing, duration=0.1, step=0.02, stepper="nguyen-trinkle")
    ... except StepFailed as failure:
    ...     print(failure)
    ...     failure.write("failed.json")
    step at t = 0 s failed: ... inside each other...
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
        """Write what is needed to repeat the failed step to a JSON file, whole or not at all.

        path    `implicit_geom.replay(path)` and `implicit-geom run FILE` repeat the step
        force   replace a file of another kind, too; an earlier file of a failed step is replaced in any case

        SceneError where the path cannot be written to, SimulationError where the disk is full.
        """
        record = {
            "reason": self.reason,
            "time": self.time,
            "history": self.history,
            **self.replay,
        }
        write_record(record, Path(path), force=force)
