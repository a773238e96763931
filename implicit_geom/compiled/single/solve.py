"""Newton's method for the two stages of one body in one contact, written as LLVM code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from implicit_geom.compiled.loops.extrapolation import RATES
from implicit_geom.compiled.loops.substep import StaticSizes, Substep
from implicit_geom.compiled.single.functions import SingleContactFunctions
from implicit_geom.compiled.tables import MarchSlot, ScalarSlot, SingleSlot
from implicit_geom.machine.code_values import Array, Mask, Number
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.machine.lowering import lower
from implicit_geom.model.reasons import ExitReason
from implicit_geom.solvers.newton import NewtonOptions

SAFETY = 4.0  # by which the last substep may converge better than the next


@dataclass(frozen=True)
class StageSlots:
    """Where a stage has its unknowns, and what its functions are called."""

    unknowns: SingleSlot
    next: SingleSlot
    newton: str
    residual: str
    solve: str


FIRST = StageSlots(SingleSlot.UNKNOWNS, SingleSlot.NEXT_UNKNOWNS, "newton", "residual", "solve")
SECOND = StageSlots(SingleSlot.UNKNOWNS_2, SingleSlot.NEXT_UNKNOWNS_2, "newton_2", "residual_2", "solve_2")


class SingleSolves(Substep):
    """Writes the solves of both stages, and knows what their functions read."""

    def __init__(self, m: ModuleWriter, sizes: StaticSizes, single: SingleContactFunctions) -> None:
        super().__init__(m, sizes)
        self.single = single
        self.lowered: dict[str, ir.Function] = {}
        for name, function in single.functions.items():
            reciprocals = single.reciprocals.get(name)
            self.lowered[name] = lower(m.ir, name, function, sizes.lanes, reciprocals)
            self.lowered[name].linkage = "internal"

    def emit_solve(self, stage: StageSlots) -> None:
        """Newton's method as in `loops.newton`, for a stage that the first few steps have not solved."""
        options, n = NewtonOptions(), self.size(stage)
        with self.m.function(stage.solve, "w") as (c, (t,)):
            a = t.array(MarchSlot.SINGLE, "w")
            z, trial = a.array(stage.unknowns, "n"), a.array(stage.next, "n")
            measures = a.array(SingleSlot.MEASURES, "n")
            wanted = c.mask(a.array(SingleSlot.UNSOLVED, "n")[0])
            measure, largest = c.variable(0.0), c.variable(0.0)
            iterations, limit, failed = c.variable(0.0), c.variable(0.0), c.variable(0.0)
            with c.loop(options.full_steps + 1) as k:
                self.step(c, t, a, stage)
                norm = measures[2]
                measure.set(self.finite_measure(measures))
                largest.set(measures[1])
                with c.when(k.equals(0)):
                    limit.set((norm * options.growth).max(1e-300))
                failed.set((~(norm <= limit.get())).select(1.0, failed.get()))
                going = wanted & (~(measure.get() <= 1.0)) & ~c.mask(failed.get())
                c.break_if(c.b.or_(c.b.not_(going.any()), k >= options.full_steps))
                with c.loop(n) as i:
                    z[i] = going.select(trial[i], z[i])
                iterations.set(going.select(iterations.get() + 1.0, iterations.get()))
            # one more step for a solution that is only just one, see `solvers.newton`
            coarse = (measure.get() > options.polish) | (iterations.get() < 0.5)
            rough = wanted & (measure.get() <= 1.0) & coarse
            with c.when(rough.any()):
                c.call_lowered(self.lowered[stage.residual], trial, *self.given(t, a, stage), measures)
                better = rough & (self.finite_measure(measures) < measure.get())
                with c.loop(n) as i:
                    z[i] = better.select(trial[i], z[i])
                iterations.set(better.select(iterations.get() + 1.0, iterations.get()))
                measure.set(better.select(measures[0], measure.get()))
                largest.set(better.select(measures[1], largest.get()))
            measures[0], measures[1], measures[2] = measure.get(), largest.get(), iterations.get()

    def size(self, stage: StageSlots) -> int:
        return self.single.unknowns if stage is FIRST else self.single.impulses

    def step(self, c: CodeWriter, t: Array, a: Array, stage: StageSlots) -> None:
        """The next point after z, and the measures of z."""
        outputs = (a.array(slot, "n") for slot in (stage.next, SingleSlot.MEASURES))
        c.call_lowered(
            self.lowered[stage.newton], a.array(stage.unknowns, "n"), *self.given(t, a, stage), *outputs
        )

    def finite_measure(self, measures: Array) -> Number:
        """The measure of a point; a maximum may lose a NaN, a norm does not."""
        return (measures[2] <= 1e150).select(measures[0], float("inf"))

    def solve_stage(
        self,
        c: CodeWriter,
        t: Array,
        a: Array,
        stage: StageSlots,
        finish: Callable[[], None],
        where: Mask | None = None,
    ) -> None:
        """A stage: as many steps as its start calls for, and `finish`, which measures where they lead.

        Where that is no solution, or only just one, Newton's method goes on, and `finish` is done again.
        `where`: the lanes that ask for it; the others keep what they have, to the last bit.
        """
        numbers, polish = t.array(MarchSlot.SCALARS, "n"), NewtonOptions().polish
        z, trial, measures = (a.array(x, "n") for x in (stage.unknowns, stage.next, SingleSlot.MEASURES))
        kept, n = a.array(SingleSlot.KEPT, "n"), self.size(stage)
        c.copy(kept, z, n)
        taken, last, before = c.variable(0.0), c.variable(0.0), c.variable(0.0)
        asked = c.uniform(True) if where is None else where
        needed = asked & ~c.mask(numbers[ScalarSlot.PENDING_EXIT])

        def step(on: Mask) -> None:
            self.step(c, t, a, stage)
            before.set(last.get())
            last.set(on.select(self.finite_measure(measures), last.get()))
            c.copy_where(on, z, trial, n)
            taken.set(on.select(taken.get() + 1.0, taken.get()))

        step(asked)
        first = last.get()
        if stage is FIRST:
            # quadratic convergence: what a step leaves is in proportion to the square of what it finds
            constant = self.convergence_constant(t)
            more = ~(constant[0] * first * first <= polish) & needed
            with c.when(more.any()):
                step(more)
                m, m0 = last.get(), before.get()
                found_constant = m / (m0 * m0)
                constant[0] = more.select(found_constant * SAFETY, constant[0])
                again = ~(found_constant * m * m <= polish) & more
                with c.when(again.any()):
                    step(again)
        finish()
        measure = self.finite_measure(measures)
        largest, found = c.variable(0.0), c.variable(0.0)
        largest.set(measures[1])
        found.set(measure)
        unsolved = ~(measure <= polish) & needed
        with c.when(unsolved.any()):
            astray = unsolved & ~(measure < first)
            if stage is FIRST:
                constant = self.convergence_constant(t)
                constant[0] = unsolved.select(float("inf"), constant[0])
            c.copy_where(astray, z, kept, n)
            a.array(SingleSlot.UNSOLVED, "n")[0] = unsolved.select(1.0, 0.0)
            c.call(stage.solve, t)
            found.set(unsolved.select(measures[0], found.get()))
            largest.set(unsolved.select(measures[1], largest.get()))
            taken.set(unsolved.select(taken.get() + measures[2], taken.get()))
            finish()
        self.exit_where(numbers, asked & ~(found.get() <= 1.0), ExitReason.NEWTON)
        numbers[ScalarSlot.ITERATIONS] = numbers[ScalarSlot.ITERATIONS] + taken.get()
        residual = numbers[ScalarSlot.RESIDUAL]
        numbers[ScalarSlot.RESIDUAL] = asked.select(largest.get().max(residual), residual)

    def convergence_constant(self, t: Array) -> Array:
        """What a step of Newton's method leaves of a measure, over its square; kept behind the rates."""
        return t.array(MarchSlot.HISTORY, "n").offset(2 * self.single.unknowns * RATES)

    def own(self, t: Array, a: Array, slot: MarchSlot, size: int) -> Array:
        return t.array(slot, "n").offset(a[SingleSlot.SECOND] * size)

    def known(self, t: Array, a: Array) -> list[Array]:
        """What all functions may read, see `single.functions`."""
        fixed = a[SingleSlot.FIRST]
        return [
            t.array(MarchSlot.STATE, "n").offset(fixed * self.n_state),
            t.array(MarchSlot.DERIVED, "n").offset(fixed * self.n_derived),
            t.array(MarchSlot.CONSTANTS, "n").offset(fixed * self.n_constants),
            self.own(t, a, MarchSlot.STATE, self.n_state),
            self.own(t, a, MarchSlot.CONSTANTS, self.n_constants),
            *(a.array(slot, "n") for slot in (SingleSlot.CONSTANTS, SingleSlot.WARM)),
            t.array(MarchSlot.SCALARS, "n").offset(ScalarSlot.H),
            a.array(SingleSlot.LAG_ALLOWED, "n"),
        ]

    def given(self, t: Array, a: Array, stage: StageSlots) -> list[Array]:
        """What the functions of a stage read beside its unknowns."""
        slots = (
            (SingleSlot.PRECOMPUTED,) if stage is FIRST else (SingleSlot.PRECOMPUTED_2, SingleSlot.UNKNOWNS)
        )
        return [*(a.array(slot, "n") for slot in slots), *self.known(t, a)]
