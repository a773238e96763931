"""Every accepted solve of a run as stacked arrays: what an independent check needs to recompute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.ledger import step_ledger
from implicit_geom.model import Model, State
from implicit_geom.steppers.solve import Attempt, ContactRecord

PARTS = ("x", "q", "v", "w")  # of a state
ENTRIES = ("work", "friction", "impact", "remainder")  # of `implicit_geom.ledger`, J
STATUSES = ("converged", "continued", "substepped", "failed")
# residuals of `implicit_geom.certificate`, by name; `residual` is the solver's own, dimensionless
RESIDUALS = ("dynamics", "gap", "complementarity", "friction")

SOLVE = np.dtype(
    [
        ("step", "i8"),  # row of `run.steps` the solve belongs to
        ("time", "f8"),  # start of the solve, s
        ("h", "f8"),  # negative where a part of a composed step runs backwards
        ("form", "U6"),  # euler, rattle
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
        ("form", "U8"),  # euler, rattle, rattle-4: the plainest of its parts
        ("guard", "U8"),  # none, composed, substeps, euler: what the guard of the RATTLE steppers did
        ("solves", "i8"),
        ("contacts", "i8"),
        ("residual", "f8"),
        *[(name, "f8") for name in RESIDUALS],
        *[(f"{name}_energy", "f8") for name in ENTRIES],
        ("wall_time", "f8"),
    ]
)


def contact_dtype(dim: int) -> np.dtype:
    """A closed contact of one solve (`steppers.solve.ContactRecord`); bodies by number, as added."""
    whole = [(name, "i8") for name in ("solve", "pair", "first", "second", "stage")]
    flags = [(name, "?") for name in ("impact", "lagged")]
    vectors = [(name, "f8", (dim,)) for name in ("point", "normal", "tangent", "binormal", "end_point")]
    numbers = [(name, "f8") for name in ("gap", "bounce", "p_n", "p_t", "p_o", "p_r", "v_t", "v_o", "v_r")]
    return np.dtype([*whole, *flags, *vectors, *numbers])


@dataclass(frozen=True)
class Solves:
    """All solves in order: `table` (S,), the states at their ends (S, B, ...), and their closed contacts.

    `half` (S, B, dim + spins) are the velocities that moved the bodies.
    """

    table: np.ndarray
    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray
    half: np.ndarray
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
        half = np.zeros((0, len(state.x), state.v.shape[1] + state.w.shape[1]))
        contacts = np.zeros(0, contact_dtype(state.x.shape[1]))
        return Solves(table=np.zeros(0, SOLVE), half=half, contacts=contacts, **none)


class Recorder:
    """Collects solves and steps, after those of an earlier run where one is continued."""

    def __init__(self, model: Model, solves: Solves, steps: np.ndarray) -> None:
        self.model = model
        self.solves, self.steps = solves, steps
        self._solves: list[tuple[Any, ...]] = []
        self._steps: list[tuple[Any, ...]] = []
        self._states: list[State] = []
        self._half: list[np.ndarray] = []
        self._contacts: list[tuple[Any, ...]] = []

    def add(
        self, attempt: Attempt, time: float, h: float, residuals: dict[str, float], wall_time: float
    ) -> None:
        """A step that ended at `time`; `residuals` are the largest over its solves."""
        step = len(self.steps) + len(self._steps)
        touching = set()
        solves = attempt.solves
        for s in solves:
            number = len(self.solves) + len(self._solves)
            self._solves.append((step, s.start.time, s.h, s.form, s.iterations, s.status, s.residual))
            self._states.append(s.end)
            self._half.append(s.half)
            for c in s.contacts:
                touching.add(c.pair)
                self._contacts.append(self._contact(number, c))
        entries = [step_ledger(self.model, s) for s in solves]
        status = "continued" if any(s.status == "continued" for s in solves) else "converged"
        if len(solves) > 1 and attempt.form != "rattle-4":
            status = "substepped"
        self._steps.append(
            (
                time,
                h,
                sum(s.iterations for s in solves),
                status,
                attempt.form,
                attempt.guard,
                len(solves),
                len(touching),
                max(s.residual for s in solves),
                *[residuals[name] for name in RESIDUALS],
                *[sum(getattr(e, name) for e in entries) for name in ENTRIES],
                wall_time,
            )
        )

    def _contact(self, solve: int, c: ContactRecord) -> tuple[Any, ...]:
        pair = self.model.pairs[c.pair]
        whole = (solve, c.pair, *sorted((pair.first, pair.second)), c.stage)
        end = c.point if c.end_point is None else c.end_point
        vectors = (c.point, c.normal, c.tangent, c.binormal, end)
        return (*whole, c.impact, c.lagged, *vectors, c.gap, c.bounce, c.p_n, *c.p_f, *c.slip)

    def add_failed(self, time: float, h: float, iterations: int, wall_time: float) -> None:
        """The step that ended the run."""
        unknown = [np.nan] * (1 + len(RESIDUALS) + len(ENTRIES))
        self._steps.append((time, h, iterations, "failed", "", "none", 0, 0, *unknown, wall_time))

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
        half = np.concatenate([old.half, np.array(self._half)])
        contacts = np.concatenate([old.contacts, np.array(self._contacts, contact_dtype(dim))])
        return Solves(table=table, half=half, contacts=contacts, **states), steps
