"""A substep of RATTLE, written as LLVM code: the velocity stage, and the energy balance for the guard."""

from __future__ import annotations

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.body import energies
from implicit_geom.compiled.loops.assembly import gather, groups
from implicit_geom.compiled.loops.substep import StaticSizes, Substep
from implicit_geom.compiled.tables import GroupSlot, MarchSlot, ScalarSlot, SystemSlot
from implicit_geom.equations.thresholds import ENERGY_ROUNDING, MAX_TURN, SLOW_SHARE, SLOW_TURN
from implicit_geom.machine.code_values import Array, Integer
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.model.reasons import ExitReason


class RattleSubstep(Substep):
    """Writes `substep` for the steppers of second and fourth order, see `steppers.rattle`."""

    def __init__(self, m: ModuleWriter, sizes: StaticSizes) -> None:
        super().__init__(m, sizes)
        self.energies = energies(self.dim)

    def emit(self) -> None:
        """Two stages."""
        with self.m.function("substep", "wni") as (c, (t, row, number)):
            one, two = self.stage_1(c, t, number), t.array(MarchSlot.STAGE_2, "w")
            self.stage_2(c, t, one, two)
            self.energy(c, t, one, two, number)
            self.write(c, t, row, (one, two))

    def solve_reversed_slip(self, c: CodeWriter, t: Array, p: Array) -> None:
        """Solve again where sliding ends: friction there opposes the slip of the stage itself."""
        numbers = t.array(MarchSlot.SCALARS, "n")
        # (a lane that takes no part in this one must not forget its last solutions)
        back = c.mask(numbers[ScalarSlot.REVERSED]) & ~c.mask(numbers[ScalarSlot.PENDING_EXIT])
        z, past = p.array(SystemSlot.Z, "n"), t.array(MarchSlot.HISTORY, "n")
        with c.when(back.any()):
            self.solve(c, p, numbers, back)
            with c.loop(p[SystemSlot.SIZE]) as i:
                z[i] = back.select(z[i], past[i])  # the other lanes keep what they had
                past[i] = z[i]
            self.finish_stage(c, t, p)

    def stage_2(self, c: CodeWriter, t: Array, one: Array, two: Array) -> None:
        """Impulses at the poses of NEXT that leave no closed contact approaching; its velocities to NEXT."""
        numbers = t.array(MarchSlot.SCALARS, "n")
        moving, after, constants = (
            t.array(MarchSlot.MOVING, "w"),
            t.array(MarchSlot.NEXT, "n"),
            t.array(MarchSlot.CONSTANTS, "n"),
        )
        derived, scratch = t.array(MarchSlot.END_DERIVED, "n"), t.array(MarchSlot.SCRATCH, "n")
        h = numbers.offset(ScalarSlot.H)
        z, tolerance = two.array(SystemSlot.Z, "n"), two.array(SystemSlot.TOLERANCE, "n")
        at = structs.state(self.dim).at["v"].start
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            b = moving[i]
            own = after.offset(b * self.n_state)
            c.call_address(t[MarchSlot.DRIFT], own, constants.offset(b * self.n_constants), h, scratch)
            c.copy(own, scratch, self.n_state)
            c.copy(z.offset(i * self.nv), own.offset(at), self.nv)
        self.prepare_bodies(c, t, two, after, derived)
        with groups(c, two) as g, c.loop(g[GroupSlot.COUNT]) as i:
            a, b = g.array(GroupSlot.FIRST, "w")[i], g.array(GroupSlot.SECOND, "w")[i]
            n = g[GroupSlot.INPUTS]
            start = g.array(GroupSlot.GATHER, "w").offset(i * n)[n - g[GroupSlot.OWN]]
            end = g.array(GroupSlot.END, "n").offset(i * g[GroupSlot.N_END])
            c.call_address(
                g[GroupSlot.PREPARE],
                *self.pair_inputs(t, after, derived, a, b),
                g.array(GroupSlot.CONSTANTS, "n").offset(i * g[GroupSlot.N_CONSTANTS]),
                end,
                h,
                g.array(GroupSlot.PARAMETERS, "n").offset(i * g[GroupSlot.N_PARAMETERS]),
                z.offset(start),
                tolerance.offset(start),
            )
            # (a contact that takes no part starts, and stays, without impulse)
            on = end[g[GroupSlot.ACTIVE]] > 0.5
            with c.loop(g[GroupSlot.OWN]) as k:
                z[start + k] = on.select(z[start + k], 0.0)
        self.solve(c, two, numbers)
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            c.copy(after.offset(moving[i] * self.n_state + at), z.offset(i * self.nv), self.nv)
        tables = one.array(SystemSlot.GROUP_TABLES, "w")
        others = two.array(SystemSlot.GROUP_TABLES, "w")
        with c.loop(two[SystemSlot.GROUPS]) as k:
            g1, g2 = tables.offset(k * len(GroupSlot)), others.offset(k * len(GroupSlot))
            with c.loop(g2[GroupSlot.COUNT]) as i:
                inputs, _ = gather(c, two, g2, i, z)
                c.call_address(
                    g2[GroupSlot.FINISH],
                    inputs,
                    g2.array(GroupSlot.PARAMETERS, "n").offset(i * g2[GroupSlot.N_PARAMETERS]),
                    g2.array(GroupSlot.END, "n").offset(i * g2[GroupSlot.N_END]),
                    g1.array(GroupSlot.RECORD, "n").offset(i * g1[GroupSlot.N_RECORD]),
                    g2.array(GroupSlot.CONSTANTS, "n").offset(i * g2[GroupSlot.N_CONSTANTS]),
                    after.offset(g2.array(GroupSlot.SECOND, "w")[i] * self.n_state),
                    g2.array(GroupSlot.RECORD, "n").offset(i * g2[GroupSlot.N_RECORD]),
                )

    def energy(self, c: CodeWriter, t: Array, one: Array, two: Array, number: Integer) -> None:
        """Sums of the ledger over bodies and contacts, and the contacts' modes."""
        numbers, scratch = t.array(MarchSlot.SCALARS, "n"), t.array(MarchSlot.SCRATCH, "n")
        moving, energy, nu = (
            t.array(MarchSlot.MOVING, "w"),
            t.array(MarchSlot.ENERGY, "n"),
            t.array(MarchSlot.NU, "n"),
        )
        states, after, constants = (
            t.array(slot, "n") for slot in (MarchSlot.STATE, MarchSlot.NEXT, MarchSlot.CONSTANTS)
        )
        h, at, size = numbers.offset(ScalarSlot.H), self.energies.at, self.energies.size
        sums = {
            name: c.variable(0.0)
            for name in ("change", "work", "above_start", "above_end", "kinetic", "lift", "rest")
        }
        turn, speed = c.variable(0.0), c.variable(1.0)
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            b = moving[i]
            own = energy.offset(b * size)
            state = b * self.n_state
            c.call_address(
                t[MarchSlot.ENERGIES],
                states.offset(state),
                after.offset(state),
                constants.offset(b * self.n_constants),
                nu.offset(b * self.nv),
                h,
                own,
            )
            for name, total in sums.items():
                total.set(total.get() + own[at[name].start])
            turn.set(own[at["turn"].start].max(turn.get()))
            with c.loop(self.nv) as j:
                speed.set(abs(nu[b * self.nv + j]).max(speed.get()))
        self.exit_where(numbers, ~(turn.get() <= MAX_TURN), ExitReason.TURN)
        numbers[ScalarSlot.SPEED] = speed.get()
        friction, steady = c.variable(0.0), c.variable(1.0)
        tables, others = one.array(SystemSlot.GROUP_TABLES, "w"), two.array(SystemSlot.GROUP_TABLES, "w")
        with c.loop(one[SystemSlot.GROUPS]) as k:
            g1, g2 = tables.offset(k * len(GroupSlot)), others.offset(k * len(GroupSlot))
            with c.loop(g1[GroupSlot.COUNT]) as i:
                a, b = g1.array(GroupSlot.FIRST, "w")[i], g1.array(GroupSlot.SECOND, "w")[i]
                records = [g.array(GroupSlot.RECORD, "n").offset(i * g[GroupSlot.N_RECORD]) for g in (g1, g2)]
                sign = g1.array(GroupSlot.CONSTANTS, "n").offset(
                    i * g1[GroupSlot.N_CONSTANTS] + g1[GroupSlot.SIGN]
                )
                for record, poses, mean in (
                    (records[0], states, at["mean1"].start),
                    (records[1], after, at["mean2"].start),
                ):
                    c.call_address(
                        t[MarchSlot.WORK],
                        record,
                        poses.offset(a * self.n_state),
                        poses.offset(b * self.n_state),
                        energy.offset(a * size + mean),
                        energy.offset(b * size + mean),
                        sign,
                        scratch,
                    )
                    friction.set(friction.get() - scratch[0])
                c.call_address(t[MarchSlot.MODE], *records, numbers.offset(ScalarSlot.SPEED), h, scratch)
                holds, mode = scratch[0], scratch[1]
                modes = g1.array(GroupSlot.MODES, "n")
                with c.when(number.equals(0)):
                    modes[i] = mode
                holds = modes[i].differs(mode).select(0.0, holds)
                steady.set((holds > 0.5).select(steady.get(), 0.0))
        # (`rest` is that of the whole step, of which this may be a substep)
        share = numbers[ScalarSlot.H] / numbers[ScalarSlot.STEP]
        rounding = (sums["kinetic"].get() + sums["lift"].get()) * ENERGY_ROUNDING + sums[
            "rest"
        ].get() * share * share
        numbers[ScalarSlot.STEADY] = steady.get()
        change = sums["change"].get() - sums["work"].get()
        numbers[ScalarSlot.GAIN] = change - numbers[ScalarSlot.WEIGHT] * numbers[ScalarSlot.OVERLAP]
        numbers[ScalarSlot.REMAINDER] = abs(change + friction.get())
        numbers[ScalarSlot.ABOVE] = sums["above_end"].get()
        with c.when(number.equals(0)):
            numbers[ScalarSlot.ROUNDING] = rounding
            numbers[ScalarSlot.SHARE] = (turn.get() < SLOW_TURN).select(SLOW_SHARE, 1.0)
            numbers[ScalarSlot.ABOVE_START] = sums["above_start"].get()
