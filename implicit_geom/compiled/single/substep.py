"""A substep of one body in one contact, written as LLVM code: the loops around `single.functions`."""

from __future__ import annotations

from itertools import product

from implicit_geom.compiled import structs
from implicit_geom.compiled.loops.extrapolation import RATES, USELESS
from implicit_geom.compiled.single.solve import FIRST, SECOND, SingleSolves
from implicit_geom.compiled.single.stage_2 import SUMMARY
from implicit_geom.compiled.tables import IslandSlot, MarchSlot, ScalarSlot, SingleSlot
from implicit_geom.equations.thresholds import MAX_TURN
from implicit_geom.machine.code_values import Array, Integer, Number
from implicit_geom.machine.code_writer import CodeWriter
from implicit_geom.model.reasons import ExitReason


class SingleSubstep(SingleSolves):
    """Writes `substep` for one body that moves, in one contact of a kind whose closest points are known."""

    def emit(self) -> None:
        self.emit_solve(FIRST)
        if self.single.rattle:
            self.emit_solve(SECOND)
        with self.m.function("substep", "wni") as (c, (t, row, number)):
            a = t.array(MarchSlot.SINGLE, "w")
            self._stage_1(c, t, a, number, row)
            if self.single.rattle:
                self._stage_2(c, t, a, number, row)
            self._store_history(c, t, a)
            self._write(c, t, row)

    def _start(self, c: CodeWriter, t: Array, a: Array) -> None:
        """Where to start, and what the solve needs to know."""
        outputs = (a.array(slot, "n") for slot in (SingleSlot.UNKNOWNS, SingleSlot.PRECOMPUTED))
        c.call_lowered(self.lowered["start"], *self.known(t, a), *outputs)

    def _stage_1(self, c: CodeWriter, t: Array, a: Array, number: Integer, row: Array) -> None:
        """From the state to the end of stage 1, or of Euler's step."""
        numbers = t.array(MarchSlot.SCALARS, "n")
        numbers[ScalarSlot.ITERATIONS] = 0.0
        numbers[ScalarSlot.RESIDUAL] = 0.0
        a.array(SingleSlot.LAG_ALLOWED, "n")[0] = 1.0
        z, flags = a.array(SingleSlot.UNKNOWNS, "n"), a.array(SingleSlot.FLAGS, "n")
        self._start(c, t, a)
        self._extrapolate(c, t, a, z, number)
        self.solve_stage(c, t, a, FIRST, lambda: self._finish(c, t, a, row))
        if self.single.rattle:
            self._solve_reversed_slip(c, t, a, z, row)
        numbers[ScalarSlot.PENDING_EXIT] = flags[0].max(numbers[ScalarSlot.PENDING_EXIT])
        numbers[ScalarSlot.OVERLAP] = flags[1]
        self.check_other_pairs(c, t)

    def _extrapolate(self, c: CodeWriter, t: Array, a: Array, z: Array, number: Integer) -> None:
        """Start from the rates that the last ones point to, if they are known; see `extrapolation`."""
        n, past = self.single.unknowns, t.array(MarchSlot.HISTORY, "n")
        weights = t.array(MarchSlot.WEIGHTS, "n").offset(number * (2 * RATES))
        sides = 2 if self.single.rattle else 1
        known = ~(t.array(MarchSlot.SCALARS, "n")[ScalarSlot.KNOWN] < RATES)
        with c.when(known.any()):
            for i, (base, length) in enumerate(self._bases(t, a, MarchSlot.STATE)):
                rate = past[i] * weights[0]
                for k, side in list(product(range(RATES), range(sides)))[1:]:
                    rate = rate + past[n * (2 * k + side) + i] * weights[2 * k + side]
                z[i] = known.select(base + rate * length, z[i])

    def _bases(self, t: Array, a: Array, end: MarchSlot) -> list[tuple[Number, Number]]:
        """What each unknown is at an end of a substep, and what its rate from there is multiplied by."""
        h = t.array(MarchSlot.SCALARS, "n")[ScalarSlot.H]
        spin = self.own(t, a, end, self.n_state).offset(structs.state(self.dim).at["w"].start)
        away = h if end is MarchSlot.STATE else -h
        turning = [(spin[i], away) for i in range(self.single.spins)]
        return turning + [(h * 0.0, abs(h))] * self.single.impulses

    def _store_history(self, c: CodeWriter, t: Array, a: Array) -> None:
        """Keep the rates of the solution; what was kept is of no use where it did not help."""
        numbers, n, past = (
            t.array(MarchSlot.SCALARS, "n"),
            self.single.unknowns,
            t.array(MarchSlot.HISTORY, "n"),
        )
        going = ~c.mask(numbers[ScalarSlot.PENDING_EXIT])
        for k in reversed(range(1, RATES)):
            c.copy_where(going, past.offset(2 * n * k), past.offset(2 * n * (k - 1)), 2 * n)
        z = a.array(SingleSlot.UNKNOWNS, "n")
        found = [z[i] for i in range(n)]
        inverse = c.number(1.0) / numbers[ScalarSlot.H]
        for i, (base, _) in enumerate(self._bases(t, a, MarchSlot.STATE)):
            per = inverse if i < self.single.spins else abs(inverse)
            past[i] = going.select((found[i] - base) * per, past[i])
        if self.single.rattle:
            impulses = a.array(SingleSlot.UNKNOWNS_2, "n")
            found[self.single.spins :] = [impulses[i] for i in range(self.single.impulses)]
            for i, (base, _) in enumerate(self._bases(t, a, MarchSlot.NEXT)):
                per = -inverse if i < self.single.spins else abs(inverse)
                past[n + i] = going.select((found[i] - base) * per, past[n + i])
        known = numbers[ScalarSlot.KNOWN]
        useless = numbers[ScalarSlot.ITERATIONS] > USELESS
        numbers[ScalarSlot.KNOWN] = going.select(useless.select(0.0, known + 1.0), known)

    def _finish(self, c: CodeWriter, t: Array, a: Array, row: Array) -> None:
        """What follows from the solution of stage 1; of Euler's step that is all."""
        outputs = [
            *(a.array(slot, "n") for slot in (SingleSlot.MEASURES, SingleSlot.NEXT_WARM)),
            self._record(t, a, row, 0),
            a.array(SingleSlot.FLAGS, "n"),
        ]
        outputs.append(self.own(t, a, MarchSlot.NU, self.nv))
        if self.single.rattle:
            outputs += [a.array(slot, "n") for slot in (SingleSlot.UNKNOWNS_2, SingleSlot.PRECOMPUTED_2)]
        else:
            outputs.append(self.own(t, a, MarchSlot.NEXT, self.n_state))
        c.call_lowered(
            self.lowered["finish"], a.array(SingleSlot.UNKNOWNS, "n"), *self.given(t, a, FIRST), *outputs
        )

    def _solve_reversed_slip(self, c: CodeWriter, t: Array, a: Array, z: Array, row: Array) -> None:
        """Solve again where sliding ends, see `RattleSubstep.solve_reversed_slip`."""
        back = c.mask(a.array(SingleSlot.FLAGS, "n")[2])
        found, allowed = a.array(SingleSlot.FOUND, "n"), a.array(SingleSlot.LAG_ALLOWED, "n")
        with c.when(back.any()):
            n = self.single.unknowns
            c.copy(found, z, n)
            allowed[0] = back.select(0.0, 1.0)
            self._start(c, t, a)
            c.copy(z, found, n)
            self.solve_stage(c, t, a, FIRST, lambda: self._finish(c, t, a, row), back)

    def _stage_2(self, c: CodeWriter, t: Array, a: Array, number: Integer, row: Array) -> None:
        """Stage 2, and what the guard asks."""
        numbers = t.array(MarchSlot.SCALARS, "n")
        summary = a.array(SingleSlot.SUMMARY, "n")

        def finish() -> None:
            c.call_lowered(
                self.lowered["finish_2"],
                a.array(SingleSlot.UNKNOWNS_2, "n"),
                *self.given(t, a, SECOND),
                a.array(SingleSlot.MEASURES, "n"),
                self.own(t, a, MarchSlot.NEXT, self.n_state),
                self._record(t, a, row, 1),
                summary,
            )

        self.solve_stage(c, t, a, SECOND, finish)
        at = SUMMARY.at
        s: dict[str, Number] = {name: summary[where.start] for name, where in at.items()}
        self.exit_where(numbers, ~(s["turn"] <= MAX_TURN), ExitReason.TURN)
        mode = a.array(SingleSlot.MODE, "n")
        share = numbers[ScalarSlot.H] / numbers[ScalarSlot.STEP]
        island = t.array(MarchSlot.ISLANDS, "n").offset(a[SingleSlot.SECOND] * len(IslandSlot))
        mass = self.own(t, a, MarchSlot.CONSTANTS, self.n_constants)[
            structs.constants(self.dim).at["mass"].start
        ]
        weight = mass * numbers[ScalarSlot.STRENGTH]
        made = s["made"] - weight * numbers[ScalarSlot.OVERLAP]
        with c.when(number.equals(0)):
            mode[0] = s["mode"]
            rounding = s["rounding"] * numbers[ScalarSlot.EXACT] + s["rest"] * share * share
            island[IslandSlot.ROUNDING] = rounding
            island[IslandSlot.START] = s["start"]
            island[IslandSlot.MADE] = 0.0
            island[IslandSlot.LEFT] = 0.0
        steady = mode[0].differs(s["mode"]).select(0.0, s["holds"])
        numbers[ScalarSlot.STEADY] = steady
        island[IslandSlot.STEADY] = steady
        island[IslandSlot.END] = s["end"]
        island.add(IslandSlot.MADE, made)
        island.add(IslandSlot.LEFT, s["left"])

    def _record(self, t: Array, a: Array, row: Array, stage: int) -> Array:
        """Where a stage records its contact: in the row of output, which only single scenes have room for."""
        if self.sizes.lanes > 1:
            return a.array(SingleSlot.RECORD, "n")
        B = t[MarchSlot.BODIES]
        return row.offset(B * (self.n_state + self.nv) + 2 + stage * self.single.pair.record.size)

    def _write(self, c: CodeWriter, t: Array, row: Array) -> None:
        """The rest of the row, see `Substep.write`."""
        numbers, B = t.array(MarchSlot.SCALARS, "n"), t[MarchSlot.BODIES]
        states, nu = B * self.n_state, B * self.nv
        c.copy(row, t.array(MarchSlot.NEXT, "n"), states)
        if self.sizes.lanes == 1:
            c.copy(row.offset(states), t.array(MarchSlot.NU, "n"), nu)
            rest = row.offset(states + nu)
            rest[0], rest[1] = numbers[ScalarSlot.ITERATIONS], numbers[ScalarSlot.RESIDUAL]
