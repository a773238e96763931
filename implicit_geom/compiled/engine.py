"""A scene's memory for the compiled march: arrays, tables of addresses, and back to the steppers' objects.

Every array has a last axis of lanes. A lane is one scene; scenes in the lanes of one engine have the
same bodies and pairs and differ in numbers only.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.compiled import blocks, prediction
from implicit_geom.compiled.body_functions import body_functions, energies
from implicit_geom.compiled.engine_group import EngineGroup, fill_table
from implicit_geom.compiled.library import body_code, march_code
from implicit_geom.compiled.single import memory as alone_memory
from implicit_geom.compiled.single.functions import alone_functions
from implicit_geom.compiled.tables import Group, Numbers, Problem, Table
from implicit_geom.equations.thresholds import COMPOSITION
from implicit_geom.equations.unknowns import flat
from implicit_geom.model.closest_point_problem import halfspace_plane
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model, State
from implicit_geom.process.lazy import cached_property
from implicit_geom.process.threads import building, paused
from implicit_geom.scene.options import SimulationOptions

ALIGNMENT = 64  # bytes
History = tuple[float, np.ndarray]  # how many of the last solutions are of use, (PAST, unknowns)


@dataclass(frozen=True)
class Rows:
    """What a march wrote: one row a solve, (solves, ...) each; `records` by stage and candidate."""

    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray
    half: np.ndarray
    iterations: np.ndarray
    residual: np.ndarray
    records: list[np.ndarray]  # by stage: (solves, contacts, numbers)


def aligned(*shape: int) -> np.ndarray:
    """Zeros, aligned for the processor's vectors."""
    size = int(np.prod(shape))
    raw = np.zeros(size + ALIGNMENT // 8)
    skip = (-raw.ctypes.data % ALIGNMENT) // 8
    return raw[skip : skip + size].reshape(shape)


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
        self.candidates = candidates
        self.dim, self.lanes = model.dim, lanes
        self.rattle = options.name != "implicit-euler"
        self.parts = len(COMPOSITION) if options.name == "implicit-rattle-4" else 1
        self.velocities = model.dim + model.spins
        self.chunk, self.records = chunk, records
        self._kept: list[np.ndarray] = []  # arrays whose addresses the tables hold
        self.alone = alone_functions(model, candidates, self.rattle)
        self.body = body_code(self.dim, self.rattle, self.lanes)
        code = march_code(self.dim, options.name, self.lanes, self.alone)
        self._march, self.notes = code.function("march", 1), code.notes
        self.numbers = self._array(len(Numbers))
        self._bodies()
        self.order: list[int] = []  # candidates in the order of the groups
        self.groups = self._groups()
        self.table = np.zeros(len(Table), np.int64)
        self._fill_table()
        self._address = self.table.ctypes.data
        self.wall_time = 0.0  # of the last run
        self.numbers[Numbers.GUARD] = options.energy_guard

    # ---- memory

    def _array(self, *shape: int) -> np.ndarray:
        """Numbers, one a lane."""
        out = aligned(*shape, self.lanes)
        self._kept.append(out)
        return out

    def _whole(self, values: Any) -> np.ndarray:
        out = np.ascontiguousarray(values, np.int64)
        self._kept.append(out)
        return out

    def _bodies(self) -> None:
        """Constants and states of all bodies."""
        dim, B = self.dim, len(self.model.bodies)
        self.state_block, self.constant_block = blocks.state(dim), blocks.constants(dim)
        self.state = self._array(B, self.state_block.size)
        self.next, self.saved = self._array(*self.state.shape[:2]), self._array(*self.state.shape[:2])
        self.constants = self._array(B, self.constant_block.size)
        derived = blocks.derived(dim)
        self.derived, self.still = self._array(B, derived.size), self._array(B, derived.size)

    @building()
    def load(self, lane: int, solver: Any) -> None:
        """Give a lane the scene of a stepper: everything that no step changes."""
        model = solver.model
        self._fill_constants(model, lane, None if solver.guard is None else solver.guard.scale)
        state = model.initial_state()
        at = blocks.derived(self.dim).at["R"]
        for b in set(range(len(model.bodies))) - set(model.moving.tolist()):
            for target in (self.derived, self.still):
                target[b, at, lane] = flat(state.R[b])
        for g in self.groups:
            g.load(lane, model)
        for k, i in enumerate(self.others):
            if model.pairs.against_halfspaces(np.array([i]))[0]:
                n, offset = halfspace_plane(model.placed(state, model.pairs[i].pieces[0]))
                self.planes[k, :, lane] = [1.0, *n, offset]

    def _fill_constants(self, model: Model, lane: int, scale: EnergyScale | None) -> None:
        """Numbers of all bodies; `scale` is known for steppers that guard their energy."""
        loads = model.loads(0.0)
        at = self.constant_block.at
        for b in range(len(model.bodies)):
            own = self.constants[b, :, lane]
            reach = model.reach[b]
            own[at["reach"]] = reach if np.isfinite(reach) else 0.0
            own[at["size"]] = model.size[b] if np.isfinite(model.size[b]) else 1.0
            if b not in model.moving:
                continue
            mass, J = model.mass[b], model.inertia[b]
            values, vectors = np.linalg.eigh(J)
            own[at["mass"]], own[at["inverse_mass"]] = mass, 1 / mass
            own[at["inertia"]], own[at["inverse_inertia"]] = flat(J), flat(np.linalg.inv(J))
            own[at["root"]] = flat((vectors / np.sqrt(mass * values)) @ vectors.T)
            own[at["load"]] = loads[b]
            own[at["gravity"]] = model.scene.gravity
            if scale is None:
                continue
            own[at["depth"]] = scale.depth[b]
            if scale.strength > 0:
                own[at["up"]] = scale.up
                known = np.isfinite(scale.lowest[b])
                own[at["lowest_known"]] = known
                own[at["lowest"]] = scale.lowest[b] if known else 0.0
        self.numbers[Numbers.WEIGHT, lane] = 0.0 if scale is None else scale.weight

    def _groups(self) -> list[EngineGroup]:
        """Candidates by kind of pair, as in `StepNCP`."""
        by_kind: dict[int, list[int]] = {}
        for c in self.candidates:
            by_kind.setdefault(id(self.model.pairs[c].kernel), []).append(c)
        found = []
        for members in by_kind.values():
            found.append(EngineGroup(self, members))
            self.order += members
        return found

    # ---- tables

    def _fill_table(self) -> None:
        model, dim, nv = self.model, self.dim, self.velocities
        B, moving = len(model.bodies), model.moving
        self.nu = self._array(B, nv)
        stages = ["position", "velocity"] if self.rattle else ["euler"]
        lengths = COMPOSITION if self.parts > 1 else (1.0,)
        kinds = np.zeros(0, int)
        if self.alone is None:
            problems = [self._problem(scheme) for scheme in stages]
            self.history = self._array(prediction.PAST, int(problems[0][Problem.SIZE]))
            weights = self._array(len(COMPOSITION), prediction.KINDS, prediction.PAST)
            weights[: self.parts] = prediction.weights(lengths)[..., None]
            layouts = [(g.layout(stages[0]), g.kind.patches) for g in self.groups for _ in g.members]
            kinds = prediction.kinds(moving.size * nv, layouts)
        else:
            problems = [alone_memory.warm_starts(self)]
            self.history = self._array(prediction.RATES + 1, 2 * self.alone.unknowns)
            weights = self._array(len(COMPOSITION), prediction.RATES, 2)
            weights[: self.parts] = prediction.rate_weights(lengths, self.rattle)[..., None]
        others = self._others()
        contacts = len(self.order) * self.record_block.size if self.records else 0
        self.stride = B * (self.state_block.size + nv) + 2 + len(stages) * contacts
        room = self.chunk * self.parts + len(COMPOSITION) - 1  # (any step may have to be composed)
        self.output = (room, self.stride, self.lanes)  # the shape of the rows that a run writes to
        self.composed = self._array(self.chunk)
        longest = max(self.state_block.size, 64)
        entries = {
            Table.BODIES: B,
            Table.MOVING_COUNT: moving.size,
            Table.MOVING: self._whole(moving),
            Table.STATE: self.state,
            Table.NEXT: self.next,
            Table.SAVED: self.saved,
            Table.CONSTANTS: self.constants,
            Table.DERIVED: self.derived,
            Table.STILL: self.still,
            Table.FREE: self._array(B, nv),
            Table.PRESSED: self._array(B),
            Table.NU: self.nu,
            Table.ENERGY: self._array(B, energies(dim).size),
            Table.STAGE_1: problems[0],
            Table.STAGE_2: problems[-1],
            **others,
            Table.NEAR: self.body.address("near"),
            Table.ADVANCE: self.body.address("advance"),
            Table.NUMBERS: self.numbers,
            Table.STEPS: self.chunk,
            Table.SOLVE_STRIDE: self.stride,
            Table.SCRATCH: self._array(longest),
            Table.RECORDS: int(self.records),
            Table.HISTORY: self.history,
            Table.WEIGHTS: weights,
            Table.KINDS: self._whole(kinds),
            Table.ROOM: room,
            Table.COMPOSED: self.composed,
            Table.ALONE: alone_memory.table(self) if self.alone is not None else 0,
        }
        if self.rattle and self.alone is None:
            names = {Table.DRIFT: "drift", Table.ENERGIES: "energy", Table.WORK: "work", Table.MODE: "mode"}
            entries |= {slot: self.body.address(name) for slot, name in names.items()}
        fill_table(self.table, entries)
        if self.records:
            self.write_to(aligned(*self.output))

    @cached_property
    def record_block(self) -> blocks.Block:
        return blocks.record(self.dim)

    def _problem(self, scheme: str) -> np.ndarray:
        """The table of a system of equations; its unknowns are laid out as in `StepNCP`."""
        nv, nb = self.velocities, self.model.moving.size
        slot = {int(b): i for i, b in enumerate(self.model.moving)}
        start = nv * nb
        positions = []
        for g in self.groups:
            size = g.layout(scheme).size
            gather, scatter = [], []
            for pair in g.pairs:
                own = np.arange(start, start + size)
                ends = zip((pair.first, pair.second), g.kind.moves, strict=True)
                bodies = [nv * slot[b] + np.arange(nv) for b, move in ends if move]
                gather.append(np.concatenate([*bodies, own]))
                scatter.append(np.concatenate([own, *bodies]))
                start += size
            positions.append((np.array(gather), np.array(scatter)))
        N = start
        shift, tolerance = self._array(N), self._array(N)
        tolerance[:] = self.options.tolerance
        tables = np.zeros((max(len(self.groups), 1), len(Group)), np.int64)
        for g, (inputs, rows), table in zip(self.groups, positions, tables, strict=False):
            g.fill(table, scheme, inputs, rows, N)
            own = inputs[:, inputs.shape[1] - g.layout(scheme).size :]
            shift[own] = g.functions.shift(scheme)[None, :, None]
        stride = body_functions(self.dim).momentum.size
        sizes = [g.notes[f"linear_{scheme}"] for g in self.groups]
        entries = {
            Problem.BODIES: nb,
            Problem.SIZE: N,
            Problem.GROUPS: len(self.groups),
            Problem.GROUP_TABLES: self._whole(tables),
            Problem.MOMENTUM: self.body.address(f"momentum_{scheme}"),
            Problem.MOMENTUM_PARAMETERS: self._array(nb, stride),
            Problem.MOMENTUM_STRIDE: stride,
            Problem.PREPARE: self.body.address(f"prepare_{scheme}"),
            Problem.Z: self._array(N),
            Problem.F: self._array(N),
            Problem.J: self._array(N, N),
            Problem.DZ: self._array(N),
            Problem.TRIAL: self._array(N),
            Problem.SHIFT: shift,
            Problem.TOLERANCE: tolerance,
            Problem.INPUTS: self._array(max([nv, *(s["inputs"] for s in sizes)])),
            Problem.ROWS: self._array(max([nv, *(s["rows"] for s in sizes)])),
            Problem.ENTRIES: self._array(max([nv * nv, *(len(s["row"]) for s in sizes)])),
            Problem.REPORT: self._array(3),
            Problem.H: self.numbers[Numbers.H :],
            Problem.MOMENTUM_ROWS: self.body.address(f"momentum_rows_{scheme}"),
            Problem.PIVOTS: self._whole(np.zeros(N)),
            Problem.SWAPS: self._array(N, N) if self.lanes > 1 else self._array(1),
        }
        table = np.zeros(len(Problem), np.int64)
        self._kept.append(table)
        return fill_table(table, entries)

    def _others(self) -> dict[Table, Any]:
        """Pairs that are no candidates: bounds on their distance are checked after every solve."""
        chosen = set(self.candidates)
        rest = [i for i in range(len(self.model.pairs)) if i not in chosen]
        self.others, self.planes = rest, self._array(max(len(rest), 1), 2 + self.dim)
        return {
            Table.OTHERS_COUNT: len(rest),
            Table.OTHERS_FIRST: self._whole([self.model.pairs[i].first for i in rest]),
            Table.OTHERS_SECOND: self._whole([self.model.pairs[i].second for i in rest]),
            Table.OTHERS_PLANE: self.planes,
        }

    # ---- running

    def put(
        self,
        lane: int,
        state: State,
        warm: dict[int, WarmStart],
        normals: dict[int, np.ndarray],
        history: History | None,
    ) -> None:
        """Set a lane's state and what its stepper remembers."""
        at = self.state_block.at
        own = self.state[:, :, lane]
        own[:, at["x"]], own[:, at["v"]], own[:, at["w"]] = state.x, state.v, state.w
        own[:, at["q"]] = state.q if self.dim == 3 else state.q[:, None]
        self.next[:, :, lane] = own
        fits = history is not None and history[1].shape == self.history.shape[:-1]
        self.numbers[Numbers.KNOWN, lane] = history[0] if history is not None and fits else 0.0
        if self.alone is not None and not fits:
            self.history[-1, :, lane] = np.inf  # see `AloneParts._bend`
        if history is not None and fits:
            self.history[..., lane] = history[1]
        for g in self.groups:
            g.put(lane, warm, normals)

    def take(self, lane: int) -> tuple[dict[int, WarmStart], dict[int, np.ndarray], History]:
        """A lane's warm starts, normals and last solutions."""
        warm: dict[int, WarmStart] = {}
        normals: dict[int, np.ndarray] = {}
        for g in self.groups:
            g.take(lane, warm, normals)
        return warm, normals, (float(self.numbers[Numbers.KNOWN, lane]), self.history[..., lane].copy())

    def run(self, wanted: np.ndarray, h: float) -> np.ndarray:
        """Take up to `wanted` (lanes,) steps of length h, in `wall_time` s; how many each lane took."""
        n = self.numbers
        n[Numbers.STEP], n[Numbers.WANTED] = h, wanted
        n[Numbers.LEFT : Numbers.TAKEN + 1] = 0.0
        started = clock.perf_counter()
        with paused():
            self._march(self._address)
        self.wall_time = clock.perf_counter() - started
        return n[Numbers.TAKEN].astype(int)

    def write_to(self, rows: np.ndarray) -> None:
        """Have the next runs write to these rows, of shape `output`."""
        self.rows = rows
        self.table[Table.SOLVE_ROWS] = rows.ctypes.data

    def states(self, steps: int) -> dict[str, np.ndarray]:
        """States at the ends of the first `steps` steps of the last run, (lanes, steps, B, ...) by part."""
        B, size = len(self.model.bodies), self.state_block.size
        rows = self.rows[self.parts - 1 : steps * self.parts : self.parts, : B * size]
        rows = np.moveaxis(rows.reshape(steps, B, size, self.lanes), 3, 0)
        found = {part: rows[..., where] for part, where in self.state_block.at.items()}
        if self.dim == 2:
            found["q"] = found["q"][..., 0]
        return found

    def solves(self, lane: int, steps: int) -> np.ndarray:
        """How many solves each of the first steps of the last run took."""
        return np.where(self.composed[:steps, lane] > 0, len(COMPOSITION), self.parts)

    def read(self, lane: int, steps: int) -> Rows:
        """What the last run wrote for a lane in its first `steps` steps."""
        B, nv, at = len(self.model.bodies), self.velocities, self.state_block.at
        rows = self.rows[: int(self.solves(lane, steps).sum()), :, lane].copy()
        states = rows[:, : B * self.state_block.size].reshape(len(rows), B, -1)
        used = B * self.state_block.size
        half = rows[:, used : used + B * nv].reshape(len(rows), B, nv)
        used += B * nv
        size, contacts = self.record_block.size, len(self.order)
        records = []
        for stage in range(2 if self.rattle else 1) if self.records else ():
            first = used + 2 + stage * contacts * size
            records.append(rows[:, first : first + contacts * size].reshape(len(rows), contacts, size))
        q = states[:, :, at["q"]]
        return Rows(
            states[:, :, at["x"]],
            q if self.dim == 3 else q[:, :, 0],
            states[:, :, at["v"]],
            states[:, :, at["w"]],
            half,
            rows[:, used],
            rows[:, used + 1],
            records,
        )
