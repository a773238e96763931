"""A substep, from one state to the next by one solve, as LLVM code: Euler's, and what others share."""

from __future__ import annotations

from dataclasses import dataclass

from implicit_geom.compiled import structs
from implicit_geom.compiled.loops.assembly import gather, groups
from implicit_geom.compiled.loops.extrapolation import extrapolate, store_history
from implicit_geom.compiled.tables import GroupSlot, MarchSlot, ScalarSlot, SystemSlot
from implicit_geom.machine.code_values import Array, Integer, Mask
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.model.reasons import ExitReason


@dataclass(frozen=True)
class StaticSizes:
    """Sizes that the code knows when it is written."""

    dim: int
    lanes: int

    @property
    def velocities(self) -> int:
        return self.dim + structs.spins(self.dim)


class Substep:
    """Writes `substep(table, row, number)`: from STATE to NEXT, and its row of output."""

    def __init__(self, m: ModuleWriter, sizes: StaticSizes) -> None:
        self.m, self.sizes = m, sizes
        self.dim, self.nv = sizes.dim, sizes.velocities
        self.n_state = structs.state(self.dim).size
        self.n_constants = structs.constants(self.dim).size
        self.n_derived = structs.derived(self.dim).size

    def emit(self) -> None:
        """The whole step of Euler's form."""
        with self.m.function("substep", "wni") as (c, (t, row, number)):
            p = self.stage_1(c, t, number)
            self.write(c, t, row, (p,))

    def stage_1(self, c: CodeWriter, t: Array, number: Integer) -> Array:
        """From STATE to NEXT by a solve of the whole step, or of stage 1."""
        p, numbers = t.array(MarchSlot.STAGE_1, "w"), t.array(MarchSlot.SCALARS, "n")
        numbers[ScalarSlot.ITERATIONS] = 0.0
        numbers[ScalarSlot.RESIDUAL] = 0.0
        self.prepare_bodies(c, t, p, t.array(MarchSlot.STATE, "n"), t.array(MarchSlot.DERIVED, "n"))
        self.prepare_pairs(c, t, p)
        self.predict(c, t, p)
        extrapolate(c, t, p, number)
        self.solve(c, p, numbers)
        store_history(c, t, p)
        self.finish_stage(c, t, p)
        self.solve_reversed_slip(c, t, p)
        self.check_other_pairs(c, t)
        return p

    def finish_stage(self, c: CodeWriter, t: Array, p: Array) -> None:
        """NEXT and the contacts of a solution."""
        self.take_velocities(c, t, p)
        self.advance(c, t)
        self.finish_pairs(c, t, p)

    def solve_reversed_slip(self, c: CodeWriter, t: Array, p: Array) -> None:
        """What RATTLE does where sliding ends within a step; nothing here."""

    def prepare_bodies(self, c: CodeWriter, t: Array, p: Array, states: Array, derived: Array) -> None:
        """Derived quantities and momentum parameters of every moving body, for the solve to come."""
        moving, h = t.array(MarchSlot.MOVING, "w"), t.array(MarchSlot.SCALARS, "n").offset(ScalarSlot.H)
        constants, free = t.array(MarchSlot.CONSTANTS, "n"), t.array(MarchSlot.FREE, "n")
        parameters = p.array(SystemSlot.MOMENTUM_PARAMETERS, "n")
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            b = moving[i]
            c.call_address(
                p[SystemSlot.PREPARE],
                states.offset(b * self.n_state),
                constants.offset(b * self.n_constants),
                h,
                derived.offset(b * self.n_derived),
                parameters.offset(i * p[SystemSlot.MOMENTUM_STRIDE]),
                free.offset(b * self.nv),
            )

    def pair_inputs(
        self, t: Array, states: Array, derived: Array, first: Integer, second: Integer
    ) -> list[Array]:
        """State, derived and constant quantities of both bodies."""
        constants = t.array(MarchSlot.CONSTANTS, "n")
        return [
            part
            for b in (first, second)
            for part in (
                states.offset(b * self.n_state),
                derived.offset(b * self.n_derived),
                constants.offset(b * self.n_constants),
            )
        ]

    def prepare_pairs(self, c: CodeWriter, t: Array, p: Array) -> None:
        """Parameters, start values and tolerances of every contact; which bodies something presses on."""
        pressed, h = t.array(MarchSlot.PRESSED, "n"), t.array(MarchSlot.SCALARS, "n").offset(ScalarSlot.H)
        z, tolerance = p.array(SystemSlot.Z, "n"), p.array(SystemSlot.TOLERANCE, "n")
        states, derived = t.array(MarchSlot.STATE, "n"), t.array(MarchSlot.DERIVED, "n")
        c.fill(pressed, t[MarchSlot.BODIES], 0.0)
        with groups(c, p) as g, c.loop(g[GroupSlot.COUNT]) as i:
            first, second = g.array(GroupSlot.FIRST, "w")[i], g.array(GroupSlot.SECOND, "w")[i]
            n = g[GroupSlot.INPUTS]
            own = g.array(GroupSlot.GATHER, "w").offset(i * n)[n - g[GroupSlot.OWN]]
            c.call_address(
                g[GroupSlot.PREPARE],
                *self.pair_inputs(t, states, derived, first, second),
                g.array(GroupSlot.CONSTANTS, "n").offset(i * g[GroupSlot.N_CONSTANTS]),
                g.array(GroupSlot.WARM, "n").offset(i * g[GroupSlot.N_WARM]),
                h,
                g.array(GroupSlot.PARAMETERS, "n").offset(i * g[GroupSlot.N_PARAMETERS]),
                z.offset(own),
                tolerance.offset(own),
                g.array(GroupSlot.START, "n").offset(i * g[GroupSlot.N_START]),
            )
            presses = z.offset(own)[g[GroupSlot.IMPULSE]] > 0.0
            for b in (first, second):
                pressed[b] = presses.select(1.0, pressed[b])

    def predict(self, c: CodeWriter, t: Array, p: Array) -> None:
        """Velocities to start from: unchanged where something presses, ballistic elsewhere."""
        moving, states = t.array(MarchSlot.MOVING, "w"), t.array(MarchSlot.STATE, "n")
        pressed, free, z = (
            t.array(MarchSlot.PRESSED, "n"),
            t.array(MarchSlot.FREE, "n"),
            p.array(SystemSlot.Z, "n"),
        )
        at = structs.state(self.dim).at["v"].start
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            b = moving[i]
            kept, flying = states.offset(b * self.n_state + at), free.offset(b * self.nv)
            presses = pressed[b] > 0.5
            with c.loop(self.nv) as j:
                z[i * self.nv + j] = presses.select(kept[j], flying[j])

    def take_velocities(self, c: CodeWriter, t: Array, p: Array) -> None:
        """The velocities of the solution, by body; fixed bodies have none."""
        moving, nu, z = t.array(MarchSlot.MOVING, "w"), t.array(MarchSlot.NU, "n"), p.array(SystemSlot.Z, "n")
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            c.copy(nu.offset(moving[i] * self.nv), z.offset(i * self.nv), self.nv)

    def advance(self, c: CodeWriter, t: Array) -> None:
        """Move the bodies."""
        moving, h = t.array(MarchSlot.MOVING, "w"), t.array(MarchSlot.SCALARS, "n").offset(ScalarSlot.H)
        states, after, nu = (t.array(slot, "n") for slot in (MarchSlot.STATE, MarchSlot.NEXT, MarchSlot.NU))
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            b = moving[i]
            at = b * self.n_state
            c.call_address(
                t[MarchSlot.ADVANCE], states.offset(at), nu.offset(b * self.nv), h, after.offset(at)
            )

    def finish_pairs(self, c: CodeWriter, t: Array, p: Array) -> None:
        """New warm starts, records and ends; the lane leaves where a contact says so."""
        numbers, scratch = t.array(MarchSlot.SCALARS, "n"), t.array(MarchSlot.SCRATCH, "n")
        after, constants = t.array(MarchSlot.NEXT, "n"), t.array(MarchSlot.CONSTANTS, "n")
        numbers[ScalarSlot.OVERLAP] = 0.0
        numbers[ScalarSlot.REVERSED] = 0.0
        with groups(c, p) as g, c.loop(g[GroupSlot.COUNT]) as i:
            first, second = g.array(GroupSlot.FIRST, "w")[i], g.array(GroupSlot.SECOND, "w")[i]
            inputs, _ = gather(c, p, g, i, p.array(SystemSlot.Z, "n"))
            c.call_address(
                g[GroupSlot.FINISH],
                inputs,
                g.array(GroupSlot.PARAMETERS, "n").offset(i * g[GroupSlot.N_PARAMETERS]),
                g.array(GroupSlot.START, "n").offset(i * g[GroupSlot.N_START]),
                after.offset(first * self.n_state),
                after.offset(second * self.n_state),
                constants.offset(first * self.n_constants),
                constants.offset(second * self.n_constants),
                g.array(GroupSlot.CONSTANTS, "n").offset(i * g[GroupSlot.N_CONSTANTS]),
                numbers.offset(ScalarSlot.H),
                g.array(GroupSlot.NEXT_WARM, "n").offset(i * g[GroupSlot.N_WARM]),
                g.array(GroupSlot.RECORD, "n").offset(i * g[GroupSlot.N_RECORD]),
                g.array(GroupSlot.END, "n").offset(i * g[GroupSlot.N_END]),
                scratch,
            )
            numbers[ScalarSlot.PENDING_EXIT] = scratch[0].max(numbers[ScalarSlot.PENDING_EXIT])
            numbers[ScalarSlot.OVERLAP] = scratch[1].max(numbers[ScalarSlot.OVERLAP])
            with c.when(g[GroupSlot.LAG] >= 0):
                numbers[ScalarSlot.REVERSED] = scratch[2].max(numbers[ScalarSlot.REVERSED])
                stays = scratch[2] < 0.5
                for array, size, place in (
                    (GroupSlot.PARAMETERS, GroupSlot.N_PARAMETERS, GroupSlot.LAG),
                    (GroupSlot.START, GroupSlot.N_START, GroupSlot.START_LAG),
                ):
                    own, at = g.array(array, "n").offset(i * g[size]), g[place]
                    own[at] = stays.select(own[at], 0.0)

    def check_other_pairs(self, c: CodeWriter, t: Array) -> None:
        """The lane leaves where a pair that is no candidate comes within reach."""
        numbers, scratch = t.array(MarchSlot.SCALARS, "n"), t.array(MarchSlot.SCRATCH, "n")
        states, nu, constants = (
            t.array(slot, "n") for slot in (MarchSlot.STATE, MarchSlot.NU, MarchSlot.CONSTANTS)
        )
        planes = t.array(MarchSlot.OTHERS_PLANE, "n")
        with c.loop(t[MarchSlot.OTHERS_COUNT]) as i:
            a, b = t.array(MarchSlot.OTHERS_FIRST, "w")[i], t.array(MarchSlot.OTHERS_SECOND, "w")[i]
            c.call_address(
                t[MarchSlot.NEAR],
                states.offset(a * self.n_state),
                states.offset(b * self.n_state),
                nu.offset(a * self.nv),
                nu.offset(b * self.nv),
                constants.offset(a * self.n_constants),
                constants.offset(b * self.n_constants),
                planes.offset(i * (2 + self.dim)),
                numbers.offset(ScalarSlot.H),
                scratch,
            )
            self.exit_where(numbers, scratch[0].differs(0.0), ExitReason.REACH)

    def exit_where(self, numbers: Array, where: Mask, why: ExitReason) -> None:
        """The lane leaves, and why."""
        numbers[ScalarSlot.PENDING_EXIT] = where.select(float(why), 0.0).max(numbers[ScalarSlot.PENDING_EXIT])

    def solve(self, c: CodeWriter, p: Array, numbers: Array, where: Mask | None = None) -> None:
        """Newton's method, and what it reports in the lanes that ask for it."""
        asked = c.uniform(True) if where is None else where
        c.call("newton", p)
        report = p.array(SystemSlot.REPORT, "n")
        self.exit_where(numbers, asked & ~(report[0] <= 1.0), ExitReason.NEWTON)
        iterations, residual = numbers[ScalarSlot.ITERATIONS], numbers[ScalarSlot.RESIDUAL]
        numbers[ScalarSlot.ITERATIONS] = asked.select(iterations + report[1], iterations)
        numbers[ScalarSlot.RESIDUAL] = asked.select(report[2].max(residual), residual)

    def write(self, c: CodeWriter, t: Array, row: Array, stages: tuple[Array, ...]) -> None:
        """A row of output: NEXT; and, where records are wanted, NU, iterations and residual, the records."""
        numbers = t.array(MarchSlot.SCALARS, "n")
        B = t[MarchSlot.BODIES]
        states, nu = B * self.n_state, B * self.nv
        c.copy(row, t.array(MarchSlot.NEXT, "n"), states)
        with c.when(t[MarchSlot.RECORDS].equals(1)):
            c.copy(row.offset(states), t.array(MarchSlot.NU, "n"), nu)
            rest = row.offset(states + nu)
            rest[0], rest[1] = numbers[ScalarSlot.ITERATIONS], numbers[ScalarSlot.RESIDUAL]
            place = c.counter(2)
            for p in stages:
                with groups(c, p) as g:
                    n = g[GroupSlot.COUNT] * g[GroupSlot.N_RECORD]
                    c.copy(rest.offset(place.get()), g.array(GroupSlot.RECORD, "n"), n)
                    place.set(place.get() + n)

    def commit(self, c: CodeWriter, t: Array) -> None:
        """NEXT becomes the state, for lanes without trouble."""
        good = ~c.mask(t.array(MarchSlot.SCALARS, "n")[ScalarSlot.PENDING_EXIT])
        c.copy_where(
            good,
            t.array(MarchSlot.STATE, "n"),
            t.array(MarchSlot.NEXT, "n"),
            t[MarchSlot.BODIES] * self.n_state,
        )
        with groups(c, t.array(MarchSlot.STAGE_1, "w")) as g:
            n = g[GroupSlot.COUNT] * g[GroupSlot.N_WARM]
            c.copy_where(good, g.array(GroupSlot.WARM, "n"), g.array(GroupSlot.NEXT_WARM, "n"), n)
