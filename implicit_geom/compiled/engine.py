"""The compiled march of scenes in lanes: it is given states and warm starts, takes steps, and is read out.

Every array has a last axis of lanes. A lane is one scene; scenes in the lanes of one engine have the
same bodies and pairs and differ in numbers only.
"""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.body import energies
from implicit_geom.compiled.library import body_code, march_code
from implicit_geom.compiled.memory import history
from implicit_geom.compiled.memory.arrays import LaneArrays, aligned
from implicit_geom.compiled.memory.bodies import BodyArrays
from implicit_geom.compiled.memory.contacts import grouped_by_kind
from implicit_geom.compiled.memory.history import History, LastSolutions
from implicit_geom.compiled.memory.other_pairs import OtherPairs
from implicit_geom.compiled.memory.output import MarchOutput, OutputLayout
from implicit_geom.compiled.memory.single import single_contact_functions, single_table, warm_start_table
from implicit_geom.compiled.memory.system import system_table
from implicit_geom.compiled.tables import IslandSlot, MarchSlot, ScalarSlot, SystemSlot
from implicit_geom.equations.thresholds import COMPOSITION
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.model import Model, State
from implicit_geom.process.threads import building, paused
from implicit_geom.scene.options import SimulationOptions

SCRATCH = 64  # numbers, at least: the outputs of any small function


class Engine:
    """The compiled march of a stepper over scenes of one structure with one set of candidate pairs.

    An engine serves one thread at a time. With `records` it has rows of its own to write to; without, each
    run is given some (`write_to`), which are the calling thread's alone.
    """

    @building()
    def __init__(
        self,
        model: Model,
        lanes: int,
        options: SimulationOptions,
        candidates: list[int],
        chunk: int,
        records: bool = True,
    ) -> None:
        self.model = model  # any scene of the structure
        self.options = options
        self.lanes, self.chunk = lanes, chunk
        self.rattle = options.name != "implicit-euler"
        self.stages = ("position", "velocity") if self.rattle else ("euler",)
        self.lengths = COMPOSITION if options.name == "implicit-rattle-4" else (1.0,)  # of substeps, in steps
        self.single = single_contact_functions(model, candidates, self.rattle)
        assert self.single is None or records == (lanes == 1)  # see `SingleSubstep._record`
        self.arrays = LaneArrays(lanes)
        self.body = body_code(model.dim, self.rattle, lanes)
        code = march_code(model.dim, options.name, lanes, self.single)
        self._march, self.notes = code.function("march", 1), code.notes
        self.scalars = self.arrays.numbers(len(ScalarSlot))
        self.bodies = BodyArrays(self.arrays, model.dim, len(model.bodies))
        self.groups = grouped_by_kind(model, candidates, self.arrays, self.rattle, options.tolerance)
        for g in self.groups:
            g.events = options.impacts == "events"
        self.order = [c for g in self.groups for c in g.members]  # candidates in the order of the groups
        self.others = OtherPairs(model, candidates, self.arrays)
        stages = len(self.stages) if records else 0
        self.layout = OutputLayout(model.dim, len(model.bodies), len(self.order), stages)
        rows = chunk * self.substeps + len(COMPOSITION) - 1  # (any step may have to be composed)
        self.output = (rows, self.layout.stride, lanes)  # the shape of the rows that a run writes to
        self.composed = self.arrays.numbers(chunk)
        systems, self.history = self._systems()
        self.table = self.arrays.table(len(MarchSlot), self._entries(systems))
        if records:
            self.write_to(aligned(*self.output))
        self.wall_time = 0.0  # of the last run
        self.held_by: Any = None  # the stepper whose scene all lanes were given
        self.scalars[ScalarSlot.GUARD] = options.energy_guard

    @property
    def substeps(self) -> int:
        """Of every step."""
        return len(self.lengths)

    def _systems(self) -> tuple[list[np.ndarray], History]:
        """The tables of the systems of equations, by stage, and the history of the first one's solutions."""
        if self.single is not None:
            table = warm_start_table(self.arrays, self.groups[0])
            return [table], history.of_rates(self.arrays, self.lengths, self.single)
        h, tolerance = self.scalars[ScalarSlot.H :], self.options.tolerance
        tables = [
            system_table(scheme, self.model, self.groups, self.body, self.arrays, h, tolerance)
            for scheme in self.stages
        ]
        velocities = self.model.moving.size * (self.model.dim + self.model.spins)
        unknowns = int(tables[0][SystemSlot.SIZE])
        found = history.of_solutions(
            self.arrays, self.lengths, unknowns, velocities, self.groups, self.stages[0]
        )
        return tables, found

    def _entries(self, systems: list[np.ndarray]) -> dict[MarchSlot, Any]:
        """The slots of the main table."""
        model, numbers, bodies = self.model, self.arrays.numbers, self.bodies
        B, nv = len(model.bodies), model.dim + model.spins
        entries: dict[MarchSlot, Any] = {
            MarchSlot.BODIES: B,
            MarchSlot.MOVING_COUNT: model.moving.size,
            MarchSlot.MOVING: self.arrays.integers(model.moving),
            MarchSlot.STATE: bodies.state,
            MarchSlot.NEXT: bodies.next,
            MarchSlot.SAVED: bodies.saved,
            MarchSlot.CONSTANTS: bodies.constants,
            MarchSlot.DERIVED: bodies.derived,
            MarchSlot.END_DERIVED: bodies.end_derived,
            MarchSlot.FREE: numbers(B, nv),
            MarchSlot.PRESSED: numbers(B),
            MarchSlot.NU: numbers(B, nv),
            MarchSlot.ENERGY: numbers(B, energies(model.dim).size),
            MarchSlot.STAGE_1: systems[0],
            MarchSlot.STAGE_2: systems[-1],
            MarchSlot.NEAR: self.body.address("near"),
            MarchSlot.ADVANCE: self.body.address("advance"),
            MarchSlot.SCALARS: self.scalars,
            MarchSlot.STEPS: self.chunk,
            MarchSlot.SOLVE_STRIDE: self.layout.stride,
            MarchSlot.SCRATCH: numbers(max(structs.state(model.dim).size, SCRATCH)),
            MarchSlot.RECORDS: int(self.layout.stages > 0),
            MarchSlot.ROOM: self.output[0],
            MarchSlot.COMPOSED: self.composed,
            MarchSlot.ISLANDS: numbers(B, len(IslandSlot)),
        }
        if self.single is not None:
            sizes = self.notes["precomputed"]
            entries[MarchSlot.SINGLE] = single_table(self.arrays, self.single, self.groups[0], sizes)
        elif self.rattle:
            names = {
                MarchSlot.DRIFT: "drift",
                MarchSlot.ENERGIES: "energy",
                MarchSlot.CONTACT_ENERGY: "contact_energy",
            }
            entries |= {slot: self.body.address(name) for slot, name in names.items()}
        return entries | self.others.entries() | self.history.entries()

    @building()
    def load(self, lane: int, solver: Any) -> None:
        """Give a lane the scene of a stepper: everything that no step changes."""
        self.held_by = None
        model, scale = solver.model, None if solver.guard is None else solver.guard.scale
        self.bodies.load(lane, model, scale)
        self.scalars[ScalarSlot.STRENGTH, lane] = 0.0 if scale is None else scale.strength
        self.scalars[ScalarSlot.EXACT, lane] = 0.0 if scale is None else scale.exact
        self.others.load(lane, model)
        for g in self.groups:
            g.load(lane, model)

    def load_all(self, solver: Any, state: State) -> None:
        """Give every lane the scene of a stepper and a state, without warm starts."""
        if self.held_by is solver:  # (only what steps change)
            for lane in range(self.lanes):
                self.scalars[ScalarSlot.KNOWN, lane] = self.history.put(lane, None)
            return
        self.load(0, solver)
        self.held_by = solver
        self.bodies.spread()
        self.others.spread()
        for slot in (ScalarSlot.STRENGTH, ScalarSlot.EXACT):
            self.scalars[slot] = self.scalars[slot, 0]
        for g in self.groups:
            g.spread()
        for lane in range(self.lanes):
            self.bodies.put(lane, state)
            self.scalars[ScalarSlot.KNOWN, lane] = self.history.put(lane, None)

    def put(
        self,
        lane: int,
        state: State,
        warm: dict[int, WarmStart],
        normals: dict[int, np.ndarray],
        last: LastSolutions | None,
    ) -> None:
        """Set a lane's state and what its stepper remembers."""
        self.bodies.put(lane, state)
        self.scalars[ScalarSlot.KNOWN, lane] = self.history.put(lane, last)
        for g in self.groups:
            g.put(lane, warm, normals)

    def take(self, lane: int) -> tuple[dict[int, WarmStart], dict[int, np.ndarray], LastSolutions]:
        """A lane's warm starts, normals and last solutions."""
        warm: dict[int, WarmStart] = {}
        normals: dict[int, np.ndarray] = {}
        for g in self.groups:
            g.take(lane, warm, normals)
        known, solutions = self.scalars[ScalarSlot.KNOWN, lane], self.history.solutions[..., lane]
        return warm, normals, (float(known), solutions.copy())

    def run(self, wanted: np.ndarray, h: float) -> np.ndarray:
        """Take up to `wanted` (lanes,) steps of length h, in `wall_time` s; how many each lane took."""
        n = self.scalars
        n[ScalarSlot.STEP], n[ScalarSlot.WANTED] = h, wanted
        n[ScalarSlot.EXIT_REASON : ScalarSlot.TAKEN + 1] = 0.0
        address = self.table.ctypes.data
        started = clock.perf_counter()
        with paused():
            self._march(address)
        self.wall_time = clock.perf_counter() - started
        return n[ScalarSlot.TAKEN].astype(int)

    def write_to(self, rows: np.ndarray) -> None:
        """Have the next runs write to these rows, of shape `output`."""
        self.rows = rows
        self.table[MarchSlot.SOLVE_ROWS] = rows.ctypes.data

    def states(self, steps: int) -> dict[str, np.ndarray]:
        """States at the ends of the first `steps` steps of the last run, (lanes, steps, B, ...) by part."""
        return self.layout.end_states(self.rows[self.substeps - 1 : steps * self.substeps : self.substeps])

    def solves(self, lane: int, steps: int) -> np.ndarray:
        """How many solves each of the first steps of the last run took."""
        return np.where(self.composed[:steps, lane] > 0, len(COMPOSITION), self.substeps)

    def read(self, lane: int, steps: int) -> MarchOutput:
        """What the last run wrote for a lane in its first `steps` steps."""
        return self.layout.read(self.rows[: int(self.solves(lane, steps).sum()), :, lane].copy())
