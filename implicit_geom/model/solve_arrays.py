"""Every accepted solve of a run as stacked arrays: what an independent check needs to recompute it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.model.model import Model, State
from implicit_geom.model.records import ContactRecord, Solve

PARTS = ("x", "q", "v", "w")  # of a state
ENTRIES = ("work", "friction", "impact", "remainder")  # of `implicit_geom.model.ledger`, J
STATUSES = ("converged", "continued", "substepped", "failed")
# residuals of `implicit_geom.check.certificate`, by name; `residual` is the solver's own, dimensionless
RESIDUALS = ("dynamics", "gap", "complementarity", "friction")
ASSESSED = (*RESIDUALS, *(f"{name}_energy" for name in ENTRIES))  # columns that follow from a step's solves
BLOCK = 4096  # solves that are packed together
UNKNOWN = (np.nan,) * len(ASSESSED)

SOLVE = np.dtype(
    [
        ("step", "i8"),  # row of `run.steps` the solve belongs to
        ("time", "f8"),  # start of the solve, s
        ("h", "f8"),  # negative where a part of a composed step runs backwards, zero in an impact
        ("form", "U6"),  # euler, rattle, impact
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
        ("rounds", "i8"),  # contact problems about closest points; none where Newton's method takes all rows
        ("factorisations", "i8"),  # of matrices, by the contact problems or by Newton's method
        ("status", "U10"),
        ("form", "U8"),  # euler, rattle, rattle-4: the plainest of its parts
        ("guard", "U8"),  # none, composed, substeps, euler: what the guard of the RATTLE steppers did
        ("solves", "i8"),
        ("contacts", "i8"),
        ("impacts", "i8"),
        ("residual", "f8"),
        *[(name, "f8") for name in ASSESSED],
        ("wall_time", "f8"),
        (
            "reason",
            "U72",
        ),  # why it was not an ordinary step of compiled code, see `implicit_geom.model.reasons`
    ]
)
# the columns that follow from a step's solves, and the others
KNOWN = np.dtype([(name, "f8") for name in ASSESSED])
PLAIN = np.dtype([(name, STEP[name]) for name in STEP.names or () if name not in ASSESSED])


def contact_dtype(dim: int) -> np.dtype:
    """A closed contact of one solve (`model.records.ContactRecord`); bodies by number, as added."""
    whole = [(name, "i8") for name in ("solve", "pair", "feature", "first", "second", "stage")]
    flags = [(name, "?") for name in ("impact", "lagged", "slid")]
    frame = ("point", "normal", "tangent", "binormal", "end_point", "gap_point", "gap_normal")
    vectors = [(name, "f8", (dim,)) for name in frame]
    # c: the part of p in the compression of an impact, where its law has phases
    impulses = ("p_n", "p_t", "p_o", "p_r", "v_t", "v_o", "v_r", "c_n", "c_t", "c_o", "c_r")
    numbers = [(name, "f8") for name in ("gap", "start_gap", "bounce", "approach", *impulses)]
    return np.dtype([*whole, *flags, *vectors, *numbers])


@dataclass(frozen=True)
class SolveArrays:
    """All solves in order: `table` (S,), the states at their ends (S, B, ...), and their closed contacts.

    `half` (S, B, dim + spins) are the velocities that moved the bodies, `bodies` (S, B) says which bodies
    a solve moves: where islands of contacts are stepped one after another, over the same interval, each
    leaves the bodies of the others where they are.
    """

    table: np.ndarray
    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray
    half: np.ndarray
    bodies: np.ndarray
    contacts: np.ndarray

    def __len__(self) -> int:
        return len(self.table)

    def end(self, i: int) -> State:
        """The state at the end of solve i."""
        row = self.table[i]
        return State(float(row["time"] + row["h"]), self.x[i], self.q[i], self.v[i], self.w[i])

    def path(self, initial: State) -> State:
        """`initial` and the states at the ends of all solves, (S+1, B, ...): solve i is from i to i+1."""
        parts = [np.concatenate([getattr(initial, part)[None], getattr(self, part)]) for part in PARTS]
        return State(initial.time, *parts)

    def part(self, first: int, last: int) -> SolveArrays:
        """The solves first <= i < last as a run of their own."""
        inside = (self.contacts["solve"] >= first) & (self.contacts["solve"] < last)
        contacts = self.contacts[inside]
        contacts["solve"] -= first
        rows = {name: getattr(self, name)[first:last] for name in ("table", *PARTS, "half", "bodies")}
        return SolveArrays(contacts=contacts, **rows)

    @staticmethod
    def empty(state: State) -> SolveArrays:
        """No solves, of bodies as in `state`."""
        none = {part: np.zeros((0, *getattr(state, part).shape)) for part in PARTS}
        half = np.zeros((0, len(state.x), state.v.shape[1] + state.w.shape[1]))
        bodies = np.ones((0, len(state.x)), bool)
        contacts = np.zeros(0, contact_dtype(state.x.shape[1]))
        return SolveArrays(table=np.zeros(0, SOLVE), half=half, bodies=bodies, contacts=contacts, **none)


def solve_arrays(model: Model, solves: list[Solve], steps: list[int] | None = None) -> SolveArrays:
    """Solves as arrays; `steps` are the numbers of the steps they belong to, zero without them."""
    if not solves:
        return SolveArrays.empty(model.initial_state())
    rows = [
        (step, s.start.time, s.h, s.form, s.iterations, s.status, s.residual)
        for s, step in zip(solves, steps or [0] * len(solves), strict=True)
    ]
    contacts = [_contact(model, i, c) for i, s in enumerate(solves) for c in s.contacts]
    return SolveArrays(
        table=np.array(rows, SOLVE),
        half=np.array([s.half for s in solves]),
        bodies=np.array([np.ones(len(model.bodies), bool) if s.bodies is None else s.bodies for s in solves]),
        contacts=np.array(contacts, contact_dtype(model.dim)),
        **{part: np.array([getattr(s.end, part) for s in solves]) for part in PARTS},
    )


def _contact(model: Model, solve: int, c: ContactRecord) -> tuple[Any, ...]:
    pair = model.pairs[c.pair]
    whole = (solve, c.pair, c.feature, *sorted((pair.first, pair.second)), c.stage)
    end = c.point if c.end_point is None else c.end_point
    none = (0.0,) * model.dim
    gap_at = (none if v is None else v for v in (c.gap_point, c.gap_normal))
    vectors = (c.point, c.normal, c.tangent, c.binormal, end, *gap_at)
    compression = (0.0,) * 4 if c.compression is None else c.compression
    numbers = (c.gap, c.start_gap, c.bounce, c.approach, c.p_n, *c.p_f, *c.slip, *compression)
    return (*whole, c.impact, c.lagged, c.slid, *vectors, *numbers)


def solve_records(start: State, solves: SolveArrays) -> list[Solve]:
    """The solves as records, the first of them from `start`."""
    out, here = [], start
    for i, row in enumerate(solves.table):
        time, h = float(row["time"]), float(row["h"])
        end = solves.end(i)
        contacts = [_read(c) for c in solves.contacts[solves.contacts["solve"] == i]]
        bodies = None if np.all(solves.bodies[i]) else solves.bodies[i]
        how = (str(row["form"]), contacts, int(row["iterations"]), str(row["status"]), float(row["residual"]))
        out.append(Solve(here.at_time(time), end, h, solves.half[i], *how, bodies=bodies))
        here = end
    return out


def _read(c: np.void) -> ContactRecord:
    point, n, t, o = (c[name].copy() for name in ("point", "normal", "tangent", "binormal"))
    p_f, slip = (np.array([c[f"{letter}_{axis}"] for axis in "tor"]) for letter in "pv")
    gap, p_n = float(c["gap"]), float(c["p_n"])
    record = ContactRecord(int(c["pair"]), point, n, t, o, gap, p_n, p_f, slip, int(c["stage"]))
    record.feature, record.impact = int(c["feature"]), bool(c["impact"])
    record.lagged, record.slid = bool(c["lagged"]), bool(c["slid"])
    record.bounce, record.approach = float(c["bounce"]), float(c["approach"])
    record.end_point = c["end_point"].copy()
    if np.any(c["gap_normal"]):
        record.gap_point, record.gap_normal = c["gap_point"].copy(), c["gap_normal"].copy()
    return record
