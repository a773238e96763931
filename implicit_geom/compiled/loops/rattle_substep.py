"""A substep of RATTLE, written as LLVM code: the velocity stage, and the energy balance for the guard."""

from __future__ import annotations

from implicit_geom.compiled import structs
from implicit_geom.compiled.loops.assembly import gather, groups
from implicit_geom.compiled.loops.islands import Islands
from implicit_geom.compiled.loops.substep import StaticSizes, Substep
from implicit_geom.compiled.tables import GroupSlot, MarchSlot, ScalarSlot, SystemSlot
from implicit_geom.machine.code_values import Array
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter


class RattleSubstep(Substep):
    """Writes `substep` for the steppers of second and fourth order, see `steppers.rattle`."""

    def __init__(self, m: ModuleWriter, sizes: StaticSizes) -> None:
        super().__init__(m, sizes)
        self.islands = Islands(self.dim)

    def emit(self) -> None:
        """Two stages."""
        with self.m.function("substep", "wni") as (c, (t, row, number)):
            one, two = self.stage_1(c, t, number), t.array(MarchSlot.STAGE_2, "w")
            self.stage_2(c, t, one, two)
            self.islands.judge(c, t, one, two, number, self.exit_where)
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
