"""A step of RATTLE as compiled code: its second stage, and what its energy says."""

from __future__ import annotations

from implicit_geom.compiled import blocks
from implicit_geom.compiled.assembly import gather, groups
from implicit_geom.compiled.body_functions import energies
from implicit_geom.compiled.parts import Layout, Parts
from implicit_geom.compiled.tables import Group, Numbers, Problem, Table
from implicit_geom.equations.thresholds import ENERGY_ROUNDING, MAX_TURN, SLOW_TURN
from implicit_geom.machine.code import Array, Code, Module, Whole
from implicit_geom.model.reasons import Left


class RattleParts(Parts):
    """Writes `part` for the steppers of second and fourth order, see `RattleStepper._rattle`."""

    def __init__(self, m: Module, layout: Layout) -> None:
        super().__init__(m, layout)
        self.energies = energies(self.dim)

    def emit(self) -> None:
        """Two stages."""
        with self.m.function("part", "wni") as (c, (t, row, part)):
            one, two = self.stage_1(c, t, part), t.array(Table.STAGE_2, "w")
            self.stage_2(c, t, one, two)
            self.energy(c, t, one, two, part)
            self.write(c, t, row, (one, two))

    def turn_back(self, c: Code, t: Array, p: Array) -> None:
        """Solve again where sliding ends: friction there opposes the slip of the stage itself."""
        numbers = t.array(Table.NUMBERS, "n")
        # (a lane that takes no part in this one must not forget its last solutions)
        back = c.mask(numbers[Numbers.BACK]) & ~c.mask(numbers[Numbers.TROUBLE])
        z, past = p.array(Problem.Z, "n"), t.array(Table.HISTORY, "n")
        with c.when(back.any()):
            self.solved(c, p, numbers, back)
            with c.loop(p[Problem.SIZE]) as i:
                z[i] = back.select(z[i], past[i])  # the other lanes keep what they had
                past[i] = z[i]
            self.moved(c, t, p)

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
        self.trouble(numbers, ~(turn.get() <= MAX_TURN), Left.TURN)
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
        rounding = (sums["kinetic"].get() + sums["lift"].get()) * ENERGY_ROUNDING + sums[
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
