"""The guard's judgement of a substep, as LLVM code: islands of contacts, what each creates and has at hand.

The text of `steppers.island_energy` and `steppers.guard`, for lanes: which contacts are closed, and so which
bodies make an island, differs from lane to lane. What an island has is kept with its first body, see
`IslandSlot`, and is zero for the others.
"""

from __future__ import annotations

from collections.abc import Callable

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.any_pair import CONTACT_ENERGY
from implicit_geom.compiled.functions.body import energies
from implicit_geom.compiled.loops.assembly import groups
from implicit_geom.compiled.tables import GroupSlot, IslandSlot, MarchSlot, ScalarSlot, SystemSlot
from implicit_geom.equations.thresholds import LOSS, MAX_TURN
from implicit_geom.machine.code_values import Array, Integer, Mask, Number
from implicit_geom.machine.code_writer import CodeWriter
from implicit_geom.model.reasons import ExitReason

LEAST = 1e-300  # kg: no division by the mass of an island without bodies


def refused_by_guard(c: CodeWriter, t: Array, composed: bool) -> Mask:
    """Where an island creates or loses too much in the step, see `EnergyGuard.excess` and `allows`."""
    numbers, moving = t.array(MarchSlot.SCALARS, "n"), t.array(MarchSlot.MOVING, "w")
    refused = c.variable(0.0)
    with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
        island = _island(t, moving[i])
        loss = -island[IslandSlot.LEFT]
        seldom = loss * (1 / LOSS)
        if not composed:
            seldom = (island[IslandSlot.STEADY] > 0.5).select(loss, seldom)
        hand = island[IslandSlot.START].max(island[IslandSlot.END])
        allowed = numbers[ScalarSlot.GUARD] * hand + island[IslandSlot.ROUNDING]
        fine = (island[IslandSlot.MADE] <= allowed) & (seldom <= allowed)
        refused.set(fine.select(refused.get(), 1.0))
    return c.mask(refused.get())


def _island(t: Array, body: Integer) -> Array:
    return t.array(MarchSlot.ISLANDS, "n").offset(body * len(IslandSlot))


class Islands:
    """Writes what the guard asks of a substep."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.energies, self.state = energies(dim), structs.state(dim)
        self.constants, self.record = structs.constants(dim), structs.record(dim)
        self.n_velocities = dim + structs.spins(dim)

    def judge(
        self,
        c: CodeWriter,
        t: Array,
        one: Array,
        two: Array,
        number: Integer,
        exit_where: Callable[[Array, Mask, ExitReason], None],
    ) -> None:
        """Energies of bodies and contacts, and what the islands that they make create and have at hand."""
        numbers = t.array(MarchSlot.SCALARS, "n")
        turn = self._bodies(c, t)
        exit_where(numbers, ~(turn <= MAX_TURN), ExitReason.TURN)
        numbers[ScalarSlot.STEADY] = self._contacts(c, t, one, two, number)
        with c.when(t[MarchSlot.MOVING_COUNT] > 1):
            self._join(c, t, one, two)
        label = c.variable(0.0)
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            self._sum(c, t, one, two, i, label.get(), number)
            label.set(label.get() + 1.0)

    def _bodies(self, c: CodeWriter, t: Array) -> Number:
        """Each body's energies, and each an island; the largest turn, rad."""
        moving, numbers = t.array(MarchSlot.MOVING, "w"), t.array(MarchSlot.SCALARS, "n")
        states, after, constants, nu, energy = (
            t.array(slot, "n")
            for slot in (
                MarchSlot.STATE,
                MarchSlot.NEXT,
                MarchSlot.CONSTANTS,
                MarchSlot.NU,
                MarchSlot.ENERGY,
            )
        )
        turn, label, at = c.variable(0.0), c.variable(0.0), self.energies.at
        with c.loop(t[MarchSlot.MOVING_COUNT]) as i:
            b = moving[i]
            own, island = energy.offset(b * self.energies.size), _island(t, b)
            c.call_address(
                t[MarchSlot.ENERGIES],
                states.offset(b * self.state.size),
                after.offset(b * self.state.size),
                constants.offset(b * self.constants.size),
                nu.offset(b * self.n_velocities),
                numbers.offset(ScalarSlot.H),
                own,
            )
            turn.set(own[at["turn"].start].max(turn.get()))
            island[IslandSlot.LABEL] = label.get()
            label.set(label.get() + 1.0)
            island[IslandSlot.NET] = own[at["net"].start]
            island[IslandSlot.HIT], island[IslandSlot.KEEPS] = 0.0, 1.0
        largest: Number = turn.get()
        return largest

    def _contacts(self, c: CodeWriter, t: Array, one: Array, two: Array, number: Integer) -> Number:
        """What contacts lose, to the account of a body that moves; whether all keep their modes."""
        numbers, scratch = t.array(MarchSlot.SCALARS, "n"), t.array(MarchSlot.SCRATCH, "n")
        states, after, energy = (
            t.array(slot, "n") for slot in (MarchSlot.STATE, MarchSlot.NEXT, MarchSlot.ENERGY)
        )
        steady = c.variable(1.0)
        tables, others = one.array(SystemSlot.GROUP_TABLES, "w"), two.array(SystemSlot.GROUP_TABLES, "w")
        with c.loop(one[SystemSlot.GROUPS]) as k:
            g1, g2 = tables.offset(k * len(GroupSlot)), others.offset(k * len(GroupSlot))
            with c.loop(g1[GroupSlot.COUNT]) as i:
                pair = [g1.array(side, "w")[i] for side in (GroupSlot.FIRST, GroupSlot.SECOND)]
                c.call_address(
                    t[MarchSlot.CONTACT_ENERGY],
                    *(g.array(GroupSlot.RECORD, "n").offset(i * g[GroupSlot.N_RECORD]) for g in (g1, g2)),
                    *(poses.offset(b * self.state.size) for poses in (states, after) for b in pair),
                    *(energy.offset(b * self.energies.size) for b in pair),
                    g1.array(GroupSlot.CONSTANTS, "n").offset(i * g1[GroupSlot.N_CONSTANTS]),
                    numbers.offset(ScalarSlot.H),
                    scratch,
                )
                found = {name: scratch[where.start] for name, where in CONTACT_ENERGY.at.items()}
                modes, owner = g1.array(GroupSlot.MODES, "n"), _island(t, g1.array(GroupSlot.OWNER, "w")[i])
                with c.when(number.equals(0)):
                    modes[i] = found["mode"]
                holds = modes[i].differs(found["mode"]).select(0.0, found["holds"])
                steady.set((holds > 0.5).select(steady.get(), 0.0))
                owner[IslandSlot.KEEPS] = (holds > 0.5).select(owner[IslandSlot.KEEPS], 0.0)
                owner.add(IslandSlot.NET, found["friction"])
                for b in pair:
                    island = _island(t, b)
                    island[IslandSlot.HIT] = found["struck"].max(island[IslandSlot.HIT])
        kept: Number = steady.get()
        return kept

    def _join(self, c: CodeWriter, t: Array, one: Array, two: Array) -> None:
        """The bodies of an island get the number of its first one: closed contacts hand on the smaller."""
        closed = self.record.at["closed"].start
        with c.loop(t[MarchSlot.MOVING_COUNT]):
            changed = c.variable(0.0)
            for p in (one, two):
                with (
                    groups(c, p) as g,
                    c.loop(g[GroupSlot.COUNT]) as i,
                    c.when(g.array(GroupSlot.JOINS, "w")[i].equals(1)),
                ):
                    touches = g.array(GroupSlot.RECORD, "n").offset(i * g[GroupSlot.N_RECORD])[closed] > 0.5
                    a, b = (_island(t, g.array(side, "w")[i]) for side in (GroupSlot.FIRST, GroupSlot.SECOND))
                    x, y = a[IslandSlot.LABEL], b[IslandSlot.LABEL]
                    less = -(-x).max(-y)
                    changed.set((touches & x.differs(y)).select(1.0, changed.get()))
                    a[IslandSlot.LABEL] = touches.select(less, x)
                    b[IslandSlot.LABEL] = touches.select(less, y)
            c.break_if(c.b.not_(c.mask(changed.get()).any()))

    def _sum(
        self,
        c: CodeWriter,
        t: Array,
        one: Array,
        two: Array,
        i: Integer,
        label: Number,
        number: Integer,
    ) -> None:
        """The island whose first body is the i-th that moves, in the lanes where it is one."""
        moving, numbers = t.array(MarchSlot.MOVING, "w"), t.array(MarchSlot.SCALARS, "n")
        states = [t.array(slot, "n") for slot in (MarchSlot.STATE, MarchSlot.NEXT)]
        constants, energy = t.array(MarchSlot.CONSTANTS, "n"), t.array(MarchSlot.ENERGY, "n")
        at, v = self.energies.at, self.state.at["v"].start
        share = numbers[ScalarSlot.H] / numbers[ScalarSlot.STEP]
        sums = {name: c.variable(0.0) for name in ("mass", "net", "hit", "rounding", "start", "end")}
        steady, momentum = c.variable(1.0), [[c.variable(0.0) for _ in range(self.dim)] for _ in states]

        def members(j: Integer) -> tuple[Integer, Array, Array, Mask]:
            b = moving[j]
            island = _island(t, b)
            return b, island, energy.offset(b * self.energies.size), ~island[IslandSlot.LABEL].differs(label)

        with c.loop(t[MarchSlot.MOVING_COUNT]) as j:
            b, island, own, on = members(j)
            mass = on.select(constants[b * self.constants.size + self.constants.at["mass"].start], 0.0)
            rounding = (own[at["kinetic"].start] + own[at["lift"].start]) * numbers[ScalarSlot.EXACT]
            added = {
                "mass": mass,
                "net": on.select(island[IslandSlot.NET], 0.0),
                "hit": on.select(island[IslandSlot.HIT], 0.0),
                "rounding": on.select(rounding + own[at["rest"].start] * share * share, 0.0),
            }
            for name, value in added.items():
                sums[name].set(sums[name].get() + value)
            for total, state in zip(momentum, states, strict=True):
                for k in range(self.dim):
                    total[k].set(total[k].get() + mass * state[b * self.state.size + v + k])
            steady.set((on & (island[IslandSlot.KEEPS] < 0.5)).select(0.0, steady.get()))
        inverse = c.number(1.0) / sums["mass"].get().max(LEAST)
        mean = [[x.get() * inverse for x in total] for total in momentum]
        with c.loop(t[MarchSlot.MOVING_COUNT]) as j:
            b, _, own, on = members(j)
            half = constants[b * self.constants.size + self.constants.at["mass"].start] * 0.5
            for name, state, V in zip(("start", "end"), states, mean, strict=True):
                apart = [state[b * self.state.size + v + k] - V[k] for k in range(self.dim)]
                own_energy = own[at[name].start] + half * _square(apart)
                sums[name].set(sums[name].get() + on.select(own_energy, 0.0))
        towards = self._towards(c, t, (one, two), mean, label)
        for name, square in zip(("start", "end"), towards, strict=True):
            sums[name].set(sums[name].get() + sums["mass"].get() * 0.5 * square)
        found = {name: x.get() for name, x in sums.items()}
        lifted = numbers[ScalarSlot.STRENGTH] * found["mass"] * numbers[ScalarSlot.OVERLAP]
        island = _island(t, moving[i])
        with c.when(number.equals(0)):
            island[IslandSlot.MADE], island[IslandSlot.LEFT] = 0.0, 0.0
            island[IslandSlot.START], island[IslandSlot.ROUNDING] = found["start"], found["rounding"]
        island[IslandSlot.END], island[IslandSlot.STEADY] = found["end"], steady.get()
        island.add(IslandSlot.MADE, found["net"] - lifted)
        island.add(IslandSlot.LEFT, (found["hit"] > 0.5).select(0.0, found["net"]))

    def _towards(
        self,
        c: CodeWriter,
        t: Array,
        problems: tuple[Array, Array],
        mean: list[list[Number]],
        label: Number,
    ) -> list[Number]:
        """The largest (n . V)^2 of the island's contacts with fixed bodies, at the start and at the end."""
        largest = [c.variable(0.0) for _ in mean]
        closed, normal = self.record.at["closed"].start, self.record.at["normal"].start
        flat = structs.pair_basics().at["flat"].start
        for p in problems:
            with (
                groups(c, p) as g,
                c.loop(g[GroupSlot.COUNT]) as i,
                c.when(g.array(GroupSlot.JOINS, "w")[i].equals(0)),
            ):
                record = g.array(GroupSlot.RECORD, "n").offset(i * g[GroupSlot.N_RECORD])
                own = _island(t, g.array(GroupSlot.OWNER, "w")[i])
                on = (record[closed] > 0.5) & ~own[IslandSlot.LABEL].differs(label)
                plane = g.array(GroupSlot.CONSTANTS, "n")[i * g[GroupSlot.N_CONSTANTS] + flat] > 0.5
                for x, V in zip(largest, mean, strict=True):
                    along = record[normal] * V[0]
                    for k in range(1, self.dim):
                        along = along + record[normal + k] * V[k]
                    square = plane.select(along * along, _square(V))
                    x.set(on.select(square, 0.0).max(x.get()))
        return [x.get() for x in largest]


def _square(x: list[Number]) -> Number:
    total = x[0] * x[0]
    for each in x[1:]:
        total = total + each * each
    return total
