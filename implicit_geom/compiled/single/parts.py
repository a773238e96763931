"""A step of one body in one contact, as compiled code: the loops around `alone_functions`."""

from __future__ import annotations

from itertools import product

from implicit_geom.compiled import blocks
from implicit_geom.compiled.parts import USELESS
from implicit_geom.compiled.prediction import RATES
from implicit_geom.compiled.single.solve import FIRST, SECOND, AloneSolves
from implicit_geom.compiled.tables import Alone, Numbers, Table
from implicit_geom.equations.thresholds import ENERGY_ROUNDING, MAX_TURN, SLOW_TURN
from implicit_geom.machine.code import Array, Code, Number, Whole
from implicit_geom.model.reasons import Left


class AloneParts(AloneSolves):
    """Writes `part` for one body that moves, in one contact of a kind whose closest points are known."""

    def emit(self) -> None:
        self.emit_solve(FIRST)
        if self.alone.rattle:
            self.emit_solve(SECOND)
        with self.m.function("part", "wni") as (c, (t, row, part)):
            a = t.array(Table.ALONE, "w")
            self._stage_1(c, t, a, part, row)
            if self.alone.rattle:
                self._stage_2(c, t, a, part, row)
            self._remember(c, t, a)
            self._write(c, t, row)

    def _open(self, c: Code, t: Array, a: Array) -> None:
        """Where to start, and what the solve needs to know."""
        outputs = (a.array(slot, "n") for slot in (Alone.UNKNOWNS, Alone.HANDED))
        c.run(self.lowered["open"], *self.known(t, a), *outputs)

    def _stage_1(self, c: Code, t: Array, a: Array, part: Whole, row: Array) -> None:
        """From the state to the end of stage 1, or of Euler's step."""
        numbers = t.array(Table.NUMBERS, "n")
        numbers[Numbers.ITERATIONS] = 0.0
        numbers[Numbers.RESIDUAL] = 0.0
        a.array(Alone.ALLOWED, "n")[0] = 1.0
        z, flags = a.array(Alone.UNKNOWNS, "n"), a.array(Alone.FLAGS, "n")
        self._open(c, t, a)
        self._extrapolate(c, t, a, z, part)
        self.settle(c, t, a, FIRST, lambda: self._turned(c, t, a, row))
        if self.alone.rattle:
            self._turn_back(c, t, a, z, row)
        numbers[Numbers.TROUBLE] = flags[0].max(numbers[Numbers.TROUBLE])
        numbers[Numbers.OVERLAP] = flags[1]
        self.others(c, t)

    def _extrapolate(self, c: Code, t: Array, a: Array, z: Array, part: Whole) -> None:
        """Start from the rates that the last ones point to, if they are known; see `prediction`."""
        n, past = self.alone.unknowns, t.array(Table.HISTORY, "n")
        weights = t.array(Table.WEIGHTS, "n").part(part * (2 * RATES))
        sides = 2 if self.alone.rattle else 1
        known = ~(t.array(Table.NUMBERS, "n")[Numbers.KNOWN] < RATES)
        with c.when(known.any()):
            for i, (base, length) in enumerate(self._bases(t, a, Table.STATE)):
                rate = past[i] * weights[0]
                for k, side in list(product(range(RATES), range(sides)))[1:]:
                    rate = rate + past[n * (2 * k + side) + i] * weights[2 * k + side]
                z[i] = known.select(base + rate * length, z[i])

    def _bases(self, t: Array, a: Array, end: Table) -> list[tuple[Number, Number]]:
        """What each unknown is at an end of a part, and what its rate from there is multiplied by."""
        h = t.array(Table.NUMBERS, "n")[Numbers.H]
        spin = self.own(t, a, end, self.n_state).part(blocks.state(self.dim).at["w"].start)
        away = h if end is Table.STATE else -h
        turning = [(spin[i], away) for i in range(self.alone.spins)]
        return turning + [(h * 0.0, abs(h))] * self.alone.impulses

    def _remember(self, c: Code, t: Array, a: Array) -> None:
        """Keep the rates of the solution; what was kept is of no use where it did not help."""
        numbers, n, past = t.array(Table.NUMBERS, "n"), self.alone.unknowns, t.array(Table.HISTORY, "n")
        going = ~c.mask(numbers[Numbers.TROUBLE])
        for k in reversed(range(1, RATES)):
            c.copy_where(going, past.part(2 * n * k), past.part(2 * n * (k - 1)), 2 * n)
        z = a.array(Alone.UNKNOWNS, "n")
        found = [z[i] for i in range(n)]
        inverse = c.number(1.0) / numbers[Numbers.H]
        for i, (base, _) in enumerate(self._bases(t, a, Table.STATE)):
            per = inverse if i < self.alone.spins else abs(inverse)
            past[i] = going.select((found[i] - base) * per, past[i])
        if self.alone.rattle:
            impulses = a.array(Alone.UNKNOWNS_2, "n")
            found[self.alone.spins :] = [impulses[i] for i in range(self.alone.impulses)]
            for i, (base, _) in enumerate(self._bases(t, a, Table.NEXT)):
                per = -inverse if i < self.alone.spins else abs(inverse)
                past[n + i] = going.select((found[i] - base) * per, past[n + i])
        known = numbers[Numbers.KNOWN]
        useless = numbers[Numbers.ITERATIONS] > USELESS
        numbers[Numbers.KNOWN] = going.select(useless.select(0.0, known + 1.0), known)

    def _turned(self, c: Code, t: Array, a: Array, row: Array) -> None:
        """What follows from the solution of stage 1; of Euler's step that is all."""
        outputs = [
            *(a.array(slot, "n") for slot in (Alone.MEASURES, Alone.NEXT_WARM)),
            self._record(t, a, row, 0),
            a.array(Alone.FLAGS, "n"),
        ]
        outputs.append(self.own(t, a, Table.NU, self.nv))
        if self.alone.rattle:
            outputs += [a.array(slot, "n") for slot in (Alone.UNKNOWNS_2, Alone.HANDED_2)]
        else:
            outputs.append(self.own(t, a, Table.NEXT, self.n_state))
        c.run(self.lowered["turn"], a.array(Alone.UNKNOWNS, "n"), *self.given(t, a, FIRST), *outputs)

    def _turn_back(self, c: Code, t: Array, a: Array, z: Array, row: Array) -> None:
        """Solve again where sliding ends, see `RattleParts.turn_back`."""
        back = c.mask(a.array(Alone.FLAGS, "n")[2])
        found, allowed = a.array(Alone.FOUND, "n"), a.array(Alone.ALLOWED, "n")
        with c.when(back.any()):
            n = self.alone.unknowns
            c.copy(found, z, n)
            allowed[0] = back.select(0.0, 1.0)
            self._open(c, t, a)
            c.copy(z, found, n)
            self.settle(c, t, a, FIRST, lambda: self._turned(c, t, a, row), back)

    def _stage_2(self, c: Code, t: Array, a: Array, part: Whole, row: Array) -> None:
        """Stage 2, and what the guard asks."""
        numbers = t.array(Table.NUMBERS, "n")
        summary = a.array(Alone.SUMMARY, "n")

        def close() -> None:
            c.run(
                self.lowered["close"],
                a.array(Alone.UNKNOWNS_2, "n"),
                *self.given(t, a, SECOND),
                a.array(Alone.MEASURES, "n"),
                self.own(t, a, Table.NEXT, self.n_state),
                self._record(t, a, row, 1),
                summary,
            )

        self.settle(c, t, a, SECOND, close)
        at = self.alone.summary.at
        s: dict[str, Number] = {name: summary[where.start] for name, where in at.items()}
        self.trouble(numbers, ~(s["turn"] <= MAX_TURN), Left.TURN)
        mode = a.array(Alone.MODE, "n")
        share = numbers[Numbers.H] / numbers[Numbers.STEP]
        with c.when(part.equals(0)):
            mode[0] = s["mode"]
            numbers[Numbers.ROUNDING] = s["rounding"] * ENERGY_ROUNDING + s["rest"] * share * share
            numbers[Numbers.SHARE] = (s["turn"] < SLOW_TURN).select(0.1, 1.0)
            numbers[Numbers.ABOVE_START] = s["above_start"]
        numbers[Numbers.STEADY] = mode[0].differs(s["mode"]).select(0.0, s["holds"])
        numbers[Numbers.GAIN] = s["gain"] - numbers[Numbers.WEIGHT] * numbers[Numbers.OVERLAP]
        numbers[Numbers.REMAINDER] = abs(s["gain"] + s["friction"])
        numbers[Numbers.ABOVE] = s["above_end"]

    def _record(self, t: Array, a: Array, row: Array, stage: int) -> Array:
        """Where a stage records its contact: in the row of output, which only single scenes have room for."""
        if self.layout.lanes > 1:
            return a.array(Alone.RECORD, "n")
        B = t[Table.BODIES]
        return row.part(B * (self.n_state + self.nv) + 2 + stage * self.alone.pair.record.size)

    def _write(self, c: Code, t: Array, row: Array) -> None:
        """The rest of the row, see `Parts.write`."""
        numbers, B = t.array(Table.NUMBERS, "n"), t[Table.BODIES]
        states, nu = B * self.n_state, B * self.nv
        c.copy(row, t.array(Table.NEXT, "n"), states)
        if self.layout.lanes == 1:
            c.copy(row.part(states), t.array(Table.NU, "n"), nu)
            rest = row.part(states + nu)
            rest[0], rest[1] = numbers[Numbers.ITERATIONS], numbers[Numbers.RESIDUAL]
