"""The rows that a march writes, one a solve: states, velocities, iterations and residual, contact records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.compiled import structs


@dataclass(frozen=True)
class MarchOutput:
    """What a march wrote: one row a solve, (solves, ...) each; `records` by stage and candidate."""

    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray
    half: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    records: list[np.ndarray]  # by stage: (solves, contacts, numbers)


@dataclass(frozen=True)
class OutputLayout:
    """Where each number of a row is; `stages` is 0 where no contacts are recorded."""

    dim: int
    bodies: int
    contacts: int
    stages: int

    @property
    def states(self) -> int:
        return self.bodies * structs.state(self.dim).size

    @property
    def velocities(self) -> int:
        return self.bodies * (self.dim + structs.spins(self.dim))

    @property
    def stride(self) -> int:
        """Numbers of a row."""
        records = self.stages * self.contacts * structs.record(self.dim).size
        return self.states + self.velocities + 2 + records

    def end_states(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The states of rows (steps, stride, lanes), (lanes, steps, B, ...) by part."""
        steps, _, lanes = rows.shape
        shape = steps, self.bodies, structs.state(self.dim).size, lanes  # (steps may be 0)
        states = np.moveaxis(rows[:, : self.states].reshape(shape), 3, 0)
        found = {part: states[..., where] for part, where in structs.state(self.dim).at.items()}
        if self.dim == 2:
            found["q"] = found["q"][..., 0]
        return found

    def read(self, rows: np.ndarray) -> MarchOutput:
        """All of the rows (solves, stride) of one lane."""
        at, size = structs.state(self.dim).at, structs.record(self.dim).size
        states = rows[:, : self.states].reshape(len(rows), self.bodies, -1)
        used = self.states + self.velocities
        half = rows[:, self.states : used].reshape(len(rows), self.bodies, -1)
        records = []
        for stage in range(self.stages):
            first = used + 2 + stage * self.contacts * size
            own = rows[:, first : first + self.contacts * size]
            records.append(own.reshape(len(rows), self.contacts, size))
        q = states[:, :, at["q"]]
        return MarchOutput(
            states[:, :, at["x"]],
            q if self.dim == 3 else q[:, :, 0],
            states[:, :, at["v"]],
            states[:, :, at["w"]],
            half,
            rows[:, used],
            rows[:, used + 1],
            records,
        )
