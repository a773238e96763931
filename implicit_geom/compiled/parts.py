"""A solve from one state to the next, as compiled code: what the steppers share, and Euler's step."""

from __future__ import annotations

from dataclasses import dataclass

from implicit_geom.compiled import blocks
from implicit_geom.compiled.assembly import gather, groups
from implicit_geom.compiled.prediction import KINDS, PAST
from implicit_geom.compiled.tables import Group, Numbers, Problem, Table
from implicit_geom.machine.code import Array, Code, Mask, Module, Whole
from implicit_geom.model.reasons import Left

USELESS = 4  # iterations from an extrapolated start that show it to be none


@dataclass(frozen=True)
class Layout:
    """Sizes that the code knows when it is written."""

    dim: int
    lanes: int

    @property
    def velocities(self) -> int:
        return self.dim + blocks.spins(self.dim)


class Parts:
    """Writes `part(table, row, number)`: a part of a step, from STATE to NEXT, and its row of output."""

    def __init__(self, m: Module, layout: Layout) -> None:
        self.m, self.layout = m, layout
        self.dim, self.nv = layout.dim, layout.velocities
        self.n_state = blocks.state(self.dim).size
        self.n_constants = blocks.constants(self.dim).size
        self.n_derived = blocks.derived(self.dim).size

    def emit(self) -> None:
        """The whole step of Euler's form."""
        with self.m.function("part", "wni") as (c, (t, row, part)):
            p = self.stage_1(c, t, part)
            self.write(c, t, row, (p,))

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
        self.moved(c, t, p)
        self.turn_back(c, t, p)
        self.others(c, t)
        return p

    def moved(self, c: Code, t: Array, p: Array) -> None:
        """NEXT and the contacts of a solution."""
        self.take_velocities(c, t, p)
        self.advance(c, t)
        self.finish_pairs(c, t, p)

    def turn_back(self, c: Code, t: Array, p: Array) -> None:
        """What RATTLE does where sliding ends within a step; nothing here."""

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
        numbers[Numbers.BACK] = 0.0
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
            numbers[Numbers.TROUBLE] = scratch[0].max(numbers[Numbers.TROUBLE])
            numbers[Numbers.OVERLAP] = scratch[1].max(numbers[Numbers.OVERLAP])
            with c.when(g[Group.LAG] >= 0):
                numbers[Numbers.BACK] = scratch[2].max(numbers[Numbers.BACK])
                stays = scratch[2] < 0.5
                for array, size, place in (
                    (Group.PARAMETERS, Group.N_PARAMETERS, Group.LAG),
                    (Group.START, Group.N_START, Group.START_LAG),
                ):
                    own, at = g.array(array, "n").part(i * g[size]), g[place]
                    own[at] = stays.select(own[at], 0.0)

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
            self.trouble(numbers, scratch[0].differs(0.0), Left.REACH)

    def trouble(self, numbers: Array, where: Mask, why: Left) -> None:
        """The lane leaves, and why."""
        numbers[Numbers.TROUBLE] = where.select(float(why), 0.0).max(numbers[Numbers.TROUBLE])

    def solved(self, c: Code, p: Array, numbers: Array, where: Mask | None = None) -> None:
        """Newton's method, and what it reports in the lanes that ask for it."""
        asked = c.everywhere(True) if where is None else where
        c.call("newton", p)
        report = p.array(Problem.REPORT, "n")
        self.trouble(numbers, asked & ~(report[0] <= 1.0), Left.NEWTON)
        iterations, residual = numbers[Numbers.ITERATIONS], numbers[Numbers.RESIDUAL]
        numbers[Numbers.ITERATIONS] = asked.select(iterations + report[1], iterations)
        numbers[Numbers.RESIDUAL] = asked.select(report[2].max(residual), residual)

    def write(self, c: Code, t: Array, row: Array, stages: tuple[Array, ...]) -> None:
        """A row of output: NEXT; and, where records are wanted, NU, iterations and residual, the records."""
        numbers = t.array(Table.NUMBERS, "n")
        B = t[Table.BODIES]
        states, nu = B * self.n_state, B * self.nv
        c.copy(row, t.array(Table.NEXT, "n"), states)
        with c.when(t[Table.RECORDS].equals(1)):
            c.copy(row.part(states), t.array(Table.NU, "n"), nu)
            rest = row.part(states + nu)
            rest[0], rest[1] = numbers[Numbers.ITERATIONS], numbers[Numbers.RESIDUAL]
            place = c.counter(2)
            for p in stages:
                with groups(c, p) as g:
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
