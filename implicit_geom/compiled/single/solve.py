"""The solves of a body that is alone, as compiled code: steps of Newton's method around `alone_functions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from implicit_geom.compiled.parts import Layout, Parts
from implicit_geom.compiled.prediction import RATES
from implicit_geom.compiled.single.functions import AloneFunctions
from implicit_geom.compiled.tables import Alone, Numbers, Table
from implicit_geom.machine.code import Array, Code, Mask, Module, Number
from implicit_geom.machine.lowering import lower
from implicit_geom.model.reasons import Left
from implicit_geom.solvers.newton import NewtonOptions

SAFETY = 4.0  # by which the last part may converge better than the next


@dataclass(frozen=True)
class Slots:
    """Where a stage has its unknowns, and what its functions are called."""

    unknowns: Alone
    next: Alone
    newton: str
    check: str
    solve: str


FIRST = Slots(Alone.UNKNOWNS, Alone.NEXT_UNKNOWNS, "newton", "check", "solve")
SECOND = Slots(Alone.UNKNOWNS_2, Alone.NEXT_UNKNOWNS_2, "newton_2", "check_2", "solve_2")


class AloneSolves(Parts):
    """Writes the solves of both stages, and knows what their functions read."""

    def __init__(self, m: Module, layout: Layout, alone: AloneFunctions) -> None:
        super().__init__(m, layout)
        self.alone = alone
        self.lowered: dict[str, ir.Function] = {}
        for name, function in alone.functions.items():
            reciprocals = alone.reciprocals.get(name)
            self.lowered[name] = lower(m.ir, name, function, layout.lanes, reciprocals)
            self.lowered[name].linkage = "internal"

    def emit_solve(self, stage: Slots) -> None:
        """Newton's method as in `solver`, for a stage that the first few steps have not solved."""
        options, n = NewtonOptions(), self.size(stage)
        with self.m.function(stage.solve, "w") as (c, (t,)):
            a = t.array(Table.ALONE, "w")
            z, trial = a.array(stage.unknowns, "n"), a.array(stage.next, "n")
            measures = a.array(Alone.MEASURES, "n")
            wanted = c.mask(a.array(Alone.UNSOLVED, "n")[0])
            measure, largest = c.variable(0.0), c.variable(0.0)
            iterations, limit, failed = c.variable(0.0), c.variable(0.0), c.variable(0.0)
            with c.loop(options.full_steps + 1) as k:
                self.step(c, t, a, stage)
                norm = measures[2]
                measure.set(self.sound(measures))
                largest.set(measures[1])
                with c.when(k.equals(0)):
                    limit.set((norm * options.growth).max(1e-300))
                failed.set((~(norm <= limit.get())).select(1.0, failed.get()))
                going = wanted & (~(measure.get() <= 1.0)) & ~c.mask(failed.get())
                c.leave(c.b.or_(c.b.not_(going.any()), k >= options.full_steps))
                with c.loop(n) as i:
                    z[i] = going.select(trial[i], z[i])
                iterations.set(going.select(iterations.get() + 1.0, iterations.get()))
            # one more step for a solution that is only just one, see `newton._polish`
            coarse = (measure.get() > options.polish) | (iterations.get() < 0.5)
            rough = wanted & (measure.get() <= 1.0) & coarse
            with c.when(rough.any()):
                c.run(self.lowered[stage.check], trial, *self.given(t, a, stage), measures)
                better = rough & (self.sound(measures) < measure.get())
                with c.loop(n) as i:
                    z[i] = better.select(trial[i], z[i])
                iterations.set(better.select(iterations.get() + 1.0, iterations.get()))
                measure.set(better.select(measures[0], measure.get()))
                largest.set(better.select(measures[1], largest.get()))
            measures[0], measures[1], measures[2] = measure.get(), largest.get(), iterations.get()

    def size(self, stage: Slots) -> int:
        return self.alone.unknowns if stage is FIRST else self.alone.impulses

    def step(self, c: Code, t: Array, a: Array, stage: Slots) -> None:
        """The next point after z, and the measures of z."""
        outputs = (a.array(slot, "n") for slot in (stage.next, Alone.MEASURES))
        c.run(self.lowered[stage.newton], a.array(stage.unknowns, "n"), *self.given(t, a, stage), *outputs)

    def sound(self, measures: Array) -> Number:
        """The measure of a point; a maximum may lose a NaN, a norm does not."""
        return (measures[2] <= 1e150).select(measures[0], float("inf"))

    def settle(
        self,
        c: Code,
        t: Array,
        a: Array,
        stage: Slots,
        finish: Callable[[], None],
        where: Mask | None = None,
    ) -> None:
        """A stage: as many steps as its start calls for, and `finish`, which measures where they lead.

        Where that is no solution, or only just one, Newton's method goes on, and `finish` is done again.
        `where`: the lanes that ask for it; the others keep what they have, to the last bit.
        """
        numbers, polish = t.array(Table.NUMBERS, "n"), NewtonOptions().polish
        z, trial, measures = (a.array(x, "n") for x in (stage.unknowns, stage.next, Alone.MEASURES))
        kept, n = a.array(Alone.KEPT, "n"), self.size(stage)
        c.copy(kept, z, n)
        taken, last, before = c.variable(0.0), c.variable(0.0), c.variable(0.0)
        asked = c.everywhere(True) if where is None else where
        needed = asked & ~c.mask(numbers[Numbers.TROUBLE])

        def step(on: Mask) -> None:
            self.step(c, t, a, stage)
            before.set(last.get())
            last.set(on.select(self.sound(measures), last.get()))
            c.copy_where(on, z, trial, n)
            taken.set(on.select(taken.get() + 1.0, taken.get()))

        step(asked)
        first = last.get()
        if stage is FIRST:
            # quadratic convergence: what a step leaves is in proportion to the square of what it finds
            kept_bend = self.bend(t)
            more = ~(kept_bend[0] * first * first <= polish) & needed
            with c.when(more.any()):
                step(more)
                m, m0 = last.get(), before.get()
                bend = m / (m0 * m0)
                kept_bend[0] = more.select(bend * SAFETY, kept_bend[0])
                again = ~(bend * m * m <= polish) & more
                with c.when(again.any()):
                    step(again)
        finish()
        measure = self.sound(measures)
        largest, found = c.variable(0.0), c.variable(0.0)
        largest.set(measures[1])
        found.set(measure)
        unsolved = ~(measure <= polish) & needed
        with c.when(unsolved.any()):
            astray = unsolved & ~(measure < first)
            if stage is FIRST:
                bent = self.bend(t)
                bent[0] = unsolved.select(float("inf"), bent[0])
            c.copy_where(astray, z, kept, n)
            a.array(Alone.UNSOLVED, "n")[0] = unsolved.select(1.0, 0.0)
            c.call(stage.solve, t)
            found.set(unsolved.select(measures[0], found.get()))
            largest.set(unsolved.select(measures[1], largest.get()))
            taken.set(unsolved.select(taken.get() + measures[2], taken.get()))
            finish()
        self.trouble(numbers, asked & ~(found.get() <= 1.0), Left.NEWTON)
        numbers[Numbers.ITERATIONS] = numbers[Numbers.ITERATIONS] + taken.get()
        residual = numbers[Numbers.RESIDUAL]
        numbers[Numbers.RESIDUAL] = asked.select(largest.get().max(residual), residual)

    def bend(self, t: Array) -> Array:
        """What a step of Newton's method leaves of a measure, over its square; kept behind the rates."""
        return t.array(Table.HISTORY, "n").part(2 * self.alone.unknowns * RATES)

    def own(self, t: Array, a: Array, slot: Table, size: int) -> Array:
        return t.array(slot, "n").part(a[Alone.SECOND] * size)

    def known(self, t: Array, a: Array) -> list[Array]:
        """What all functions may read, see `alone_functions`."""
        fixed = a[Alone.FIRST]
        return [
            t.array(Table.STATE, "n").part(fixed * self.n_state),
            t.array(Table.DERIVED, "n").part(fixed * self.n_derived),
            t.array(Table.CONSTANTS, "n").part(fixed * self.n_constants),
            self.own(t, a, Table.STATE, self.n_state),
            self.own(t, a, Table.CONSTANTS, self.n_constants),
            *(a.array(slot, "n") for slot in (Alone.CONSTANTS, Alone.WARM)),
            t.array(Table.NUMBERS, "n").part(Numbers.H),
            a.array(Alone.ALLOWED, "n"),
        ]

    def given(self, t: Array, a: Array, stage: Slots) -> list[Array]:
        """What the functions of a stage read beside its unknowns."""
        slots = (Alone.HANDED,) if stage is FIRST else (Alone.HANDED_2, Alone.UNKNOWNS)
        return [*(a.array(slot, "n") for slot in slots), *self.known(t, a)]
