"""Every accepted solve of a run as stacked arrays: what an independent check needs to recompute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.model import Model, State
from implicit_geom.steppers.euler import Solve

PARTS = ("x", "q", "v", "w")  # of a state
STATUSES = ("converged", "continued", "substepped", "failed")
# residuals of `implicit_geom.certificate`, by name; `residual` is the solver's own, dimensionless
RESIDUALS = ("dynamics", "gap", "complementarity", "friction")

SOLVE = np.dtype(
    [
        ("step", "i8"),  # row of `run.steps` the solve belongs to
        ("time", "f8"),  # start of the solve, s
        ("h", "f8"),
        ("iterations", "i8"),
        ("status", "U10"),
        ("residual", "f8"),
    ]
)
STEP = np.dtype(
    [
        ("time", "f8"),  # end of the step, s
        ("step", "f8"),  # its length, s
        ("iterations", "i8"),
        ("status", "U10"),
        ("solves", "i8"),
        ("contacts", "i8"),
        ("residual", "f8"),
        *[(name, "f8") for name in RESIDUALS],
        ("wall_time", "f8"),
    ]
)


def contact_dtype(dim: int) -> np.dtype:
    """A closed contact of one solve; bodies by number, in the order in which the scene added them."""
    vectors = [(name, "f8", (dim,)) for name in ("point", "normal", "tangent", "binormal")]
    numbers = [(name, "f8") for name in ("gap", "p_n", "p_t", "p_o", "p_r", "v_t", "v_o", "v_r")]
    return np.dtype([("solve", "i8"), ("pair", "i8"), ("first", "i8"), ("second", "i8"), *vectors, *numbers])


@dataclass(frozen=True)
class Solves:
    """All solves in order: `table` (S,), the states at their ends (S, B, ...), and their closed contacts."""

    table: np.ndarray
    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray
    contacts: np.ndarray

    def __len__(self) -> int:
        return len(self.table)

    def end(self, i: int) -> State:
        """The state at the end of solve i."""
        row = self.table[i]
        return State(float(row["time"] + row["h"]), self.x[i], self.q[i], self.v[i], self.w[i])

    @staticmethod
    def empty(state: State) -> Solves:
        """No solves, of bodies as in `state`."""
        none = {part: np.zeros((0, *getattr(state, part).shape)) for part in PARTS}
        return Solves(table=np.zeros(0, SOLVE), contacts=np.zeros(0, contact_dtype(state.x.shape[1])), **none)


class Recorder:
    """Collects solves and steps, after those of an earlier run where one is continued."""

    def __init__(self, model: Model, solves: Solves, steps: np.ndarray) -> None:
        self.model = model
        self.solves, self.steps = solves, steps
        self._solves: list[tuple[Any, ...]] = []
        self._steps: list[tuple[Any, ...]] = []
        self._states: list[State] = []
        self._contacts: list[tuple[Any, ...]] = []

    def add(
        self, solves: list[Solve], time: float, h: float, residuals: dict[str, float], wall_time: float
    ) -> None:
        """A step that ended at `time`; `residuals` are the largest over its solves."""
        step = len(self.steps) + len(self._steps)
        touching = set()
        for s in solves:
            number = len(self.solves) + len(self._solves)
            self._solves.append((step, s.start.time, s.h, s.iterations, s.status, s.residual))
            self._states.append(s.end)
            for c in s.contacts:
                pair = self.model.pairs[c.pair]
                touching.add(c.pair)
                bodies = sorted((pair.first, pair.second))
                vectors = (c.point, c.normal, c.tangent, c.binormal)
                self._contacts.append((number, c.pair, *bodies, *vectors, c.gap, c.p_n, *c.p_f, *c.slip))
        status = "substepped" if len(solves) > 1 else solves[0].status
        worst = max(s.residual for s in solves)
        iterations = sum(s.iterations for s in solves)
        self._row(time, h, iterations, status, len(solves), len(touching), worst, residuals, wall_time)

    def add_failed(self, time: float, h: float, iterations: int, wall_time: float) -> None:
        """The step that ended the run."""
        self._row(time, h, iterations, "failed", 0, 0, np.nan, {}, wall_time)

    def _row(self, time: float, h: float, *rest: Any) -> None:
        *counts, residual, residuals, wall_time = rest
        named = [residuals.get(name, np.nan) for name in RESIDUALS]
        self._steps.append((time, h, *counts, residual, *named, wall_time))

    def finish(self) -> tuple[Solves, np.ndarray]:
        """Everything recorded, the earlier run's part first."""
        old, dim = self.solves, self.model.dim
        steps = np.concatenate([self.steps, np.array(self._steps, STEP)])
        if not self._solves:
            return old, steps
        states = {
            part: np.concatenate([getattr(old, part), np.array([getattr(s, part) for s in self._states])])
            for part in PARTS
        }
        table = np.concatenate([old.table, np.array(self._solves, SOLVE)])
        contacts = np.concatenate([old.contacts, np.array(self._contacts, contact_dtype(dim))])
        return Solves(table=table, contacts=contacts, **states), steps
