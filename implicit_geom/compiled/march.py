"""Whole trajectories in compiled code: steps of `implicit-euler`, `implicit-rattle` and `implicit-rattle-4`.

A step is taken only as the steppers take their ordinary steps: full Newton steps from the warm start, no
impact with restitution, no change from sliding to sticking within a stage, no gain of energy. In
all other cases the lane leaves: its state and warm starts are those before the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from implicit_geom.compiled import blocks
from implicit_geom.compiled.body_functions import energies
from implicit_geom.compiled.code import Array, Code, Mask, Module, Number, Whole
from implicit_geom.compiled.prediction import KINDS, PAST
from implicit_geom.compiled.solver import Group, Problem, emit_solver, gather, groups
from implicit_geom.energy import ROUNDING
from implicit_geom.newton import NewtonOptions
from implicit_geom.steppers.rattle import MAX_TURN, PARTS, SLOW_TURN

USELESS = 4  # iterations from an extrapolated start that show it to be none


class Table(IntEnum):
    """Slots of the main table; addresses unless a comment says otherwise."""

    BODIES = 0  # number of all bodies
    MOVING_COUNT = 1
    MOVING = 2  # bodies that move
    STATE = 3
    NEXT = 4
    SAVED = 5
    CONSTANTS = 6
    DERIVED = 7
    STILL = 8  # derived quantities of stage 2
    FREE = 9
    PRESSED = 10
    NU = 11  # velocities that move the bodies, (B, velocities)
    ENERGY = 12  # (B, energies)
    STAGE_1 = 13  # problems
    STAGE_2 = 14
    OTHERS_COUNT = 15  # pairs that are no candidates
    OTHERS_FIRST = 16
    OTHERS_SECOND = 17
    OTHERS_PLANE = 18
    NEAR = 19  # functions
    ADVANCE = 20
    DRIFT = 21
    ENERGIES = 22
    WORK = 23
    MODE = 24
    NUMBERS = 25  # see Numbers
    STEPS = 26  # steps to take
    SOLVE_ROWS = 27  # out, a row a solve: states, velocities, records, see `_Emit.write`
    SOLVE_STRIDE = 28
    SCRATCH = 29
    RECORDS = 30  # 1 where the records of contacts are wanted
    HISTORY = 31  # the last solutions
    WEIGHTS = 32  # of `prediction`
    KINDS = 33  # of the unknowns


class Numbers(IntEnum):
    """Places of the numbers that change from solve to solve, one a lane."""

    H = 0  # of the solve
    STEP = 1  # of the whole step
    LEFT = 2  # 1 where the lane has left
    TAKEN = 3  # steps taken
    WANTED = 4  # steps to take
    GUARD = 5
    WEIGHT = 6
    OVERLAP = 7
    GAIN = 8
    ABOVE = 9
    STEADY = 10
    TROUBLE = 11  # anything that makes the lane leave
    ITERATIONS = 12
    RESIDUAL = 13
    ROUNDING = 14
    ABOVE_START = 15
    SHARE = 16  # of the guard's tolerance that the step may use
    REMAINDER = 17
    SPEED = 18
    KNOWN = 19  # how many of the solutions in HISTORY are of use


@dataclass(frozen=True)
class Layout:
    """Sizes that the code knows when it is written."""

    dim: int
    lanes: int

    @property
    def velocities(self) -> int:
        return self.dim + blocks.spins(self.dim)


def emit_march(layout: Layout, stepper: str) -> Module:
    """The module of a stepper: `march(table)` takes steps until every lane is done or has left."""
    m = Module(f"march_{stepper}_{layout.dim}_{layout.lanes}", layout.lanes)
    emit_solver(m, layout.velocities, layout.dim, NewtonOptions())
    emit = _Emit(m, layout)
    if stepper == "implicit-euler":
        emit.euler_part()
        lengths: tuple[float, ...] = (1.0,)
    else:
        emit.rattle_part()
        lengths = PARTS if stepper == "implicit-rattle-4" else (1.0,)
    emit.march(stepper, lengths)
    return m


class _Emit:
    """Writes the functions of a march."""

    def __init__(self, m: Module, layout: Layout) -> None:
        self.m, self.layout = m, layout
        self.dim, self.nv = layout.dim, layout.velocities
        self.n_state = blocks.state(self.dim).size
        self.n_constants = blocks.constants(self.dim).size
        self.n_derived = blocks.derived(self.dim).size
        self.energies = energies(self.dim)

    # ---- pieces shared by the steppers

    def prepare_bodies(self, c: Code, t: Array, p: Array, states: Array, derived: Array) -> None:
        """Derived quantities and momentum parameters of every moving body, for the solve to come."""
        moving, h = t.array(Table.MOVING, "w"), t.array(Table.NUMBERS, "n").part(Numbers.H)
        constants, free = t.array(Table.CONSTANTS, "n"), t.array(Table.FREE, "n")
        parameters = p.array(Problem.MOMENTUM_PARAMETERS, "n")
        with c.loop(t[Table.MOVING_COUNT]) as i:
            b = moving[i]
            c.call_at(
                p[Problem.PREPARE],
                states.part(b * self.n_state),
                constants.part(b * self.n_constants),
                h,
                derived.part(b * self.n_derived),
                parameters.part(i * p[Problem.MOMENTUM_STRIDE]),
                free.part(b * self.nv),
            )

    def pair_inputs(
        self, t: Array, states: Array, derived: Array, first: Whole, second: Whole
    ) -> list[Array]:
        """State, derived and constant quantities of both bodies."""
        constants = t.array(Table.CONSTANTS, "n")
        return [
            part
            for b in (first, second)
            for part in (
                states.part(b * self.n_state),
                derived.part(b * self.n_derived),
                constants.part(b * self.n_constants),
            )
        ]

    def prepare_pairs(self, c: Code, t: Array, p: Array) -> None:
        """Parameters, start values and tolerances of every contact; which bodies something presses on."""
        pressed, h = t.array(Table.PRESSED, "n"), t.array(Table.NUMBERS, "n").part(Numbers.H)
        z, tolerance = p.array(Problem.Z, "n"), p.array(Problem.TOLERANCE, "n")
        states, derived = t.array(Table.STATE, "n"), t.array(Table.DERIVED, "n")
        c.fill(pressed, t[Table.BODIES], 0.0)
        with groups(c, p) as g, c.loop(g[Group.COUNT]) as i:
            first, second = g.array(Group.FIRST, "w")[i], g.array(Group.SECOND, "w")[i]
            n = g[Group.INPUTS]
            own = g.array(Group.GATHER, "w").part(i * n)[n - g[Group.OWN]]
            c.call_at(
                g[Group.PREPARE],
                *self.pair_inputs(t, states, derived, first, second),
                g.array(Group.CONSTANTS, "n").part(i * g[Group.N_CONSTANTS]),
                g.array(Group.WARM, "n").part(i * g[Group.N_WARM]),
                h,
                g.array(Group.PARAMETERS, "n").part(i * g[Group.N_PARAMETERS]),
                z.part(own),
                tolerance.part(own),
                g.array(Group.START, "n").part(i * g[Group.N_START]),
            )
            presses = z.part(own)[g[Group.IMPULSE]] > 0.0
            for b in (first, second):
                pressed[b] = presses.select(1.0, pressed[b])

    def predict(self, c: Code, t: Array, p: Array) -> None:
        """Velocities to start from: unchanged where something presses, ballistic elsewhere."""
        moving, states = t.array(Table.MOVING, "w"), t.array(Table.STATE, "n")
        pressed, free, z = (
            t.array(Table.PRESSED, "n"),
            t.array(Table.FREE, "n"),
            p.array(Problem.Z, "n"),
        )
        at = blocks.state(self.dim).at["v"].start
        with c.loop(t[Table.MOVING_COUNT]) as i:
            b = moving[i]
            kept, flying = states.part(b * self.n_state + at), free.part(b * self.nv)
            presses = pressed[b] > 0.5
            with c.loop(self.nv) as j:
                z[i * self.nv + j] = presses.select(kept[j], flying[j])

    def extrapolate(self, c: Code, t: Array, p: Array, part: Whole) -> None:
        """Start from where the last solutions point to, if they are known; see `prediction`."""
        N, z, past = p[Problem.SIZE], p.array(Problem.Z, "n"), t.array(Table.HISTORY, "n")
        weights = t.array(Table.WEIGHTS, "n").part(part * (KINDS * PAST))
        kinds = t.array(Table.KINDS, "w")
        known = ~(t.array(Table.NUMBERS, "n")[Numbers.KNOWN] < PAST)
        with c.when(known.any()), c.loop(N) as i:
            own = weights.part(kinds[i] * PAST)
            guess = past[i] * own[0]
            for k in range(1, PAST):
                guess = guess + past[N * k + i] * own[k]
            z[i] = known.select(guess, z[i])

    def remember(self, c: Code, t: Array, p: Array) -> None:
        """Keep the solution; what was kept is of no use where it did not help."""
        N, z, past = p[Problem.SIZE], p.array(Problem.Z, "n"), t.array(Table.HISTORY, "n")
        numbers = t.array(Table.NUMBERS, "n")
        going = ~c.mask(numbers[Numbers.TROUBLE])
        with c.loop(N) as i:
            for k in reversed(range(1, PAST)):
                past[N * k + i] = going.select(past[N * (k - 1) + i], past[N * k + i])
            past[i] = going.select(z[i], past[i])
        known = numbers[Numbers.KNOWN]
        useless = p.array(Problem.REPORT, "n")[1] > USELESS
        numbers[Numbers.KNOWN] = going.select(useless.select(0.0, known + 1.0), known)

    def take_velocities(self, c: Code, t: Array, p: Array) -> None:
        """The velocities of the solution, by body; fixed bodies have none."""
        moving, nu, z = t.array(Table.MOVING, "w"), t.array(Table.NU, "n"), p.array(Problem.Z, "n")
        with c.loop(t[Table.MOVING_COUNT]) as i:
            c.copy(nu.part(moving[i] * self.nv), z.part(i * self.nv), self.nv)

    def advance(self, c: Code, t: Array) -> None:
        """Move the bodies."""
        moving, h = t.array(Table.MOVING, "w"), t.array(Table.NUMBERS, "n").part(Numbers.H)
        states, after, nu = (t.array(slot, "n") for slot in (Table.STATE, Table.NEXT, Table.NU))
        with c.loop(t[Table.MOVING_COUNT]) as i:
            b = moving[i]
            at = b * self.n_state
            c.call_at(t[Table.ADVANCE], states.part(at), nu.part(b * self.nv), h, after.part(at))

    def finish_pairs(self, c: Code, t: Array, p: Array) -> None:
        """New warm starts, records and ends; the lane leaves where a contact says so."""
        numbers, scratch = t.array(Table.NUMBERS, "n"), t.array(Table.SCRATCH, "n")
        after, constants = t.array(Table.NEXT, "n"), t.array(Table.CONSTANTS, "n")
        numbers[Numbers.OVERLAP] = 0.0
        with groups(c, p) as g, c.loop(g[Group.COUNT]) as i:
            first, second = g.array(Group.FIRST, "w")[i], g.array(Group.SECOND, "w")[i]
            inputs, _ = gather(c, p, g, i, p.array(Problem.Z, "n"))
            c.call_at(
                g[Group.FINISH],
                inputs,
                g.array(Group.PARAMETERS, "n").part(i * g[Group.N_PARAMETERS]),
                g.array(Group.START, "n").part(i * g[Group.N_START]),
                after.part(first * self.n_state),
                after.part(second * self.n_state),
                constants.part(first * self.n_constants),
                constants.part(second * self.n_constants),
                g.array(Group.CONSTANTS, "n").part(i * g[Group.N_CONSTANTS]),
                numbers.part(Numbers.H),
                g.array(Group.NEXT_WARM, "n").part(i * g[Group.N_WARM]),
                g.array(Group.RECORD, "n").part(i * g[Group.N_RECORD]),
                g.array(Group.END, "n").part(i * g[Group.N_END]),
                scratch,
            )
            self.trouble(numbers, scratch[0].differs(0.0))
            numbers[Numbers.OVERLAP] = scratch[1].max(numbers[Numbers.OVERLAP])

    def others(self, c: Code, t: Array) -> None:
        """The lane leaves where a pair that is no candidate comes within reach."""
        numbers, scratch = t.array(Table.NUMBERS, "n"), t.array(Table.SCRATCH, "n")
        states, nu, constants = (t.array(slot, "n") for slot in (Table.STATE, Table.NU, Table.CONSTANTS))
        planes = t.array(Table.OTHERS_PLANE, "n")
        with c.loop(t[Table.OTHERS_COUNT]) as i:
            a, b = t.array(Table.OTHERS_FIRST, "w")[i], t.array(Table.OTHERS_SECOND, "w")[i]
            c.call_at(
                t[Table.NEAR],
                states.part(a * self.n_state),
                states.part(b * self.n_state),
                nu.part(a * self.nv),
                nu.part(b * self.nv),
                constants.part(a * self.n_constants),
                constants.part(b * self.n_constants),
                planes.part(i * (2 + self.dim)),
                numbers.part(Numbers.H),
                scratch,
            )
            self.trouble(numbers, scratch[0].differs(0.0))

    def trouble(self, numbers: Array, where: Mask) -> None:
        numbers[Numbers.TROUBLE] = where.select(1.0, numbers[Numbers.TROUBLE])

    def solved(self, c: Code, p: Array, numbers: Array) -> None:
        """Newton's method, and what it reports."""
        c.call("newton", p)
        report = p.array(Problem.REPORT, "n")
        self.trouble(numbers, ~(report[0] <= 1.0))
        numbers[Numbers.ITERATIONS] = numbers[Numbers.ITERATIONS] + report[1]
        numbers[Numbers.RESIDUAL] = report[2].max(numbers[Numbers.RESIDUAL])

    def write(self, c: Code, t: Array, row: Array, stages: tuple[Array, ...]) -> None:
        """A row of output: NEXT, NU, iterations and residual, then the records of the stages."""
        numbers = t.array(Table.NUMBERS, "n")
        B = t[Table.BODIES]
        states, nu = B * self.n_state, B * self.nv
        c.copy(row, t.array(Table.NEXT, "n"), states)
        c.copy(row.part(states), t.array(Table.NU, "n"), nu)
        rest = row.part(states + nu)
        rest[0], rest[1] = numbers[Numbers.ITERATIONS], numbers[Numbers.RESIDUAL]
        place = c.counter(2)
        for p in stages:
            with c.when(t[Table.RECORDS].equals(1)), groups(c, p) as g:
                n = g[Group.COUNT] * g[Group.N_RECORD]
                c.copy(rest.part(place.get()), g.array(Group.RECORD, "n"), n)
                place.set(place.get() + n)

    def commit(self, c: Code, t: Array) -> None:
        """NEXT becomes the state, for lanes without trouble."""
        good = ~c.mask(t.array(Table.NUMBERS, "n")[Numbers.TROUBLE])
        c.copy_where(
            good, t.array(Table.STATE, "n"), t.array(Table.NEXT, "n"), t[Table.BODIES] * self.n_state
        )
        with groups(c, t.array(Table.STAGE_1, "w")) as g:
            n = g[Group.COUNT] * g[Group.N_WARM]
            c.copy_where(good, g.array(Group.WARM, "n"), g.array(Group.NEXT_WARM, "n"), n)

    # ---- one solve

    def stage_1(self, c: Code, t: Array, part: Whole) -> Array:
        """From STATE to NEXT by a solve of the whole step, or of stage 1."""
        p, numbers = t.array(Table.STAGE_1, "w"), t.array(Table.NUMBERS, "n")
        numbers[Numbers.ITERATIONS] = 0.0
        numbers[Numbers.RESIDUAL] = 0.0
        self.prepare_bodies(c, t, p, t.array(Table.STATE, "n"), t.array(Table.DERIVED, "n"))
        self.prepare_pairs(c, t, p)
        self.predict(c, t, p)
        self.extrapolate(c, t, p, part)
        self.solved(c, p, numbers)
        self.remember(c, t, p)
        self.take_velocities(c, t, p)
        self.advance(c, t)
        self.finish_pairs(c, t, p)
        self.others(c, t)
        return p

    def euler_part(self) -> None:
        with self.m.function("part", "wni") as (c, (t, row, part)):
            p = self.stage_1(c, t, part)
            self.write(c, t, row, (p,))

    def rattle_part(self) -> None:
        """One step of two stages [see `RattleStepper._rattle`], and what its energy says."""
        with self.m.function("part", "wni") as (c, (t, row, part)):
            one = self.stage_1(c, t, part)
            two = t.array(Table.STAGE_2, "w")
            self.stage_2(c, t, one, two)
            self.energy(c, t, one, two, part)
            self.write(c, t, row, (one, two))

    def stage_2(self, c: Code, t: Array, one: Array, two: Array) -> None:
        """Impulses at the poses of NEXT that leave no closed contact approaching; its velocities to NEXT."""
        numbers = t.array(Table.NUMBERS, "n")
        moving, after, constants = (
            t.array(Table.MOVING, "w"),
            t.array(Table.NEXT, "n"),
            t.array(Table.CONSTANTS, "n"),
        )
        derived, scratch = t.array(Table.STILL, "n"), t.array(Table.SCRATCH, "n")
        h = numbers.part(Numbers.H)
        z, tolerance = two.array(Problem.Z, "n"), two.array(Problem.TOLERANCE, "n")
        at = blocks.state(self.dim).at["v"].start
        with c.loop(t[Table.MOVING_COUNT]) as i:
            b = moving[i]
            own = after.part(b * self.n_state)
            c.call_at(t[Table.DRIFT], own, constants.part(b * self.n_constants), h, scratch)
            c.copy(own, scratch, self.n_state)
            c.copy(z.part(i * self.nv), own.part(at), self.nv)
        self.prepare_bodies(c, t, two, after, derived)
        with groups(c, two) as g, c.loop(g[Group.COUNT]) as i:
            a, b = g.array(Group.FIRST, "w")[i], g.array(Group.SECOND, "w")[i]
            n = g[Group.INPUTS]
            start = g.array(Group.GATHER, "w").part(i * n)[n - g[Group.OWN]]
            end = g.array(Group.END, "n").part(i * g[Group.N_END])
            c.call_at(
                g[Group.PREPARE],
                *self.pair_inputs(t, after, derived, a, b),
                g.array(Group.CONSTANTS, "n").part(i * g[Group.N_CONSTANTS]),
                end,
                h,
                g.array(Group.PARAMETERS, "n").part(i * g[Group.N_PARAMETERS]),
                z.part(start),
                tolerance.part(start),
            )
            # (a contact that takes no part starts, and stays, without impulse)
            on = end[g[Group.ACTIVE]] > 0.5
            with c.loop(g[Group.OWN]) as k:
                z[start + k] = on.select(z[start + k], 0.0)
        self.solved(c, two, numbers)
        with c.loop(t[Table.MOVING_COUNT]) as i:
            c.copy(after.part(moving[i] * self.n_state + at), z.part(i * self.nv), self.nv)
        tables = one.array(Problem.GROUP_TABLES, "w")
        others = two.array(Problem.GROUP_TABLES, "w")
        with c.loop(two[Problem.GROUPS]) as k:
            g1, g2 = tables.part(k * len(Group)), others.part(k * len(Group))
            with c.loop(g2[Group.COUNT]) as i:
                inputs, _ = gather(c, two, g2, i, z)
                c.call_at(
                    g2[Group.FINISH],
                    inputs,
                    g2.array(Group.PARAMETERS, "n").part(i * g2[Group.N_PARAMETERS]),
                    g2.array(Group.END, "n").part(i * g2[Group.N_END]),
                    g1.array(Group.RECORD, "n").part(i * g1[Group.N_RECORD]),
                    g2.array(Group.CONSTANTS, "n").part(i * g2[Group.N_CONSTANTS]),
                    after.part(g2.array(Group.SECOND, "w")[i] * self.n_state),
                    g2.array(Group.RECORD, "n").part(i * g2[Group.N_RECORD]),
                )

    def energy(self, c: Code, t: Array, one: Array, two: Array, part: Whole) -> None:
        """Sums of the ledger over bodies and contacts, and the contacts' modes."""
        numbers, scratch = t.array(Table.NUMBERS, "n"), t.array(Table.SCRATCH, "n")
        moving, energy, nu = (
            t.array(Table.MOVING, "w"),
            t.array(Table.ENERGY, "n"),
            t.array(Table.NU, "n"),
        )
        states, after, constants = (t.array(slot, "n") for slot in (Table.STATE, Table.NEXT, Table.CONSTANTS))
        h, at, size = numbers.part(Numbers.H), self.energies.at, self.energies.size
        sums = {
            name: c.variable(0.0)
            for name in ("change", "work", "above_start", "above_end", "kinetic", "lift", "rest")
        }
        turn, speed = c.variable(0.0), c.variable(1.0)
        with c.loop(t[Table.MOVING_COUNT]) as i:
            b = moving[i]
            own = energy.part(b * size)
            state = b * self.n_state
            c.call_at(
                t[Table.ENERGIES],
                states.part(state),
                after.part(state),
                constants.part(b * self.n_constants),
                nu.part(b * self.nv),
                h,
                own,
            )
            for name, total in sums.items():
                total.set(total.get() + own[at[name].start])
            turn.set(own[at["turn"].start].max(turn.get()))
            with c.loop(self.nv) as j:
                speed.set(abs(nu[b * self.nv + j]).max(speed.get()))
        self.trouble(numbers, ~(turn.get() <= MAX_TURN))
        numbers[Numbers.SPEED] = speed.get()
        friction, steady = c.variable(0.0), c.variable(1.0)
        tables, others = one.array(Problem.GROUP_TABLES, "w"), two.array(Problem.GROUP_TABLES, "w")
        with c.loop(one[Problem.GROUPS]) as k:
            g1, g2 = tables.part(k * len(Group)), others.part(k * len(Group))
            with c.loop(g1[Group.COUNT]) as i:
                a, b = g1.array(Group.FIRST, "w")[i], g1.array(Group.SECOND, "w")[i]
                records = [g.array(Group.RECORD, "n").part(i * g[Group.N_RECORD]) for g in (g1, g2)]
                sign = g1.array(Group.CONSTANTS, "n").part(i * g1[Group.N_CONSTANTS] + g1[Group.SIGN])
                for record, poses, mean in (
                    (records[0], states, at["mean1"].start),
                    (records[1], after, at["mean2"].start),
                ):
                    c.call_at(
                        t[Table.WORK],
                        record,
                        poses.part(a * self.n_state),
                        poses.part(b * self.n_state),
                        energy.part(a * size + mean),
                        energy.part(b * size + mean),
                        sign,
                        scratch,
                    )
                    friction.set(friction.get() - scratch[0])
                c.call_at(t[Table.MODE], *records, numbers.part(Numbers.SPEED), h, scratch)
                holds, mode = scratch[0], scratch[1]
                modes = g1.array(Group.MODES, "n")
                with c.when(part.equals(0)):
                    modes[i] = mode
                holds = modes[i].differs(mode).select(0.0, holds)
                steady.set((holds > 0.5).select(steady.get(), 0.0))
        # (`rest` is that of the whole step, of which this may be a part)
        share = numbers[Numbers.H] / numbers[Numbers.STEP]
        rounding = (sums["kinetic"].get() + sums["lift"].get()) * ROUNDING + sums[
            "rest"
        ].get() * share * share
        numbers[Numbers.STEADY] = steady.get()
        change = sums["change"].get() - sums["work"].get()
        numbers[Numbers.GAIN] = change - numbers[Numbers.WEIGHT] * numbers[Numbers.OVERLAP]
        numbers[Numbers.REMAINDER] = abs(change + friction.get())
        numbers[Numbers.ABOVE] = sums["above_end"].get()
        with c.when(part.equals(0)):
            numbers[Numbers.ROUNDING] = rounding
            numbers[Numbers.SHARE] = (turn.get() < SLOW_TURN).select(0.1, 1.0)
            numbers[Numbers.ABOVE_START] = sums["above_start"].get()

    # ---- the loop over steps

    def march(self, stepper: str, lengths: tuple[float, ...]) -> None:
        with self.m.function("march", "w", public=True) as (c, (t,)):
            numbers = t.array(Table.NUMBERS, "n")
            rows, stride = t.array(Table.SOLVE_ROWS, "n"), t[Table.SOLVE_STRIDE]
            B, one = t[Table.BODIES], t.array(Table.STAGE_1, "w")
            with c.loop(t[Table.STEPS]) as k:
                done = ~(numbers[Numbers.TAKEN] < numbers[Numbers.WANTED])
                stopped = done | c.mask(numbers[Numbers.LEFT])
                c.leave(c.b.not_((~stopped).any()))
                numbers[Numbers.TROUBLE] = stopped.select(1.0, 0.0)
                c.copy(t.array(Table.SAVED, "n"), t.array(Table.STATE, "n"), B * self.n_state)
                with groups(c, one) as g:
                    n = g[Group.COUNT] * g[Group.N_WARM]
                    c.copy(g.array(Group.SAVED_WARM, "n"), g.array(Group.WARM, "n"), n)
                gain, steady = c.variable(0.0), c.variable(1.0)
                for i, length in enumerate(lengths):
                    numbers[Numbers.H] = numbers[Numbers.STEP] * length
                    c.call("part", t, rows.part((k * len(lengths) + i) * stride), i)
                    if stepper != "implicit-euler":
                        gain.set(gain.get() + numbers[Numbers.GAIN])
                        steady.set((numbers[Numbers.STEADY] > 0.5).select(steady.get(), 0.0))
                    self.commit(c, t)
                if stepper != "implicit-euler":
                    self.guard(numbers, stepper, gain.get(), steady.get())
                bad = c.mask(numbers[Numbers.TROUBLE])
                c.copy_where(bad, t.array(Table.STATE, "n"), t.array(Table.SAVED, "n"), B * self.n_state)
                with groups(c, one) as g:
                    n = g[Group.COUNT] * g[Group.N_WARM]
                    c.copy_where(bad, g.array(Group.WARM, "n"), g.array(Group.SAVED_WARM, "n"), n)
                left = bad & ~stopped
                numbers[Numbers.LEFT] = left.select(1.0, numbers[Numbers.LEFT])
                taken = numbers[Numbers.TAKEN]
                numbers[Numbers.TAKEN] = bad.select(taken, taken + 1.0)

    def guard(
        self,
        numbers: Array,
        stepper: str,
        gain: Number,
        steady: Number,
    ) -> None:
        """The lane leaves where the step gains too much energy, see `RattleStepper._part`, `_composed`."""
        above = numbers[Numbers.ABOVE].max(numbers[Numbers.ABOVE_START])
        bound = numbers[Numbers.GUARD]
        if stepper == "implicit-rattle-4":
            self.trouble(numbers, steady < 0.5)
        else:
            bound = bound * numbers[Numbers.SHARE]
            gain = (steady > 0.5).select(gain.max(numbers[Numbers.REMAINDER]), gain)
        self.trouble(numbers, ~(gain <= bound * above + numbers[Numbers.ROUNDING]))
