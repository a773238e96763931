"""Whole trajectories in compiled code: steps of `implicit-euler`, `implicit-rattle` and `implicit-rattle-4`.

A step is taken only as the steppers take their ordinary steps: full Newton steps from the warm start, no
impact with restitution, no change from sliding to sticking within a stage, no gain of energy. In
all other cases the lane leaves: its state and warm starts are those before the step.
"""

from __future__ import annotations

from implicit_geom.compiled.assembly import groups
from implicit_geom.compiled.code import Array, Module, Number
from implicit_geom.compiled.parts import Layout, Parts
from implicit_geom.compiled.rattle_parts import RattleParts
from implicit_geom.compiled.solver import emit_solver
from implicit_geom.compiled.tables import Group, Numbers, Table
from implicit_geom.newton import NewtonOptions
from implicit_geom.steppers.rattle import PARTS


def emit_march(layout: Layout, stepper: str) -> Module:
    """The module of a stepper: `march(table)` takes steps until every lane is done or has left."""
    m = Module(f"march_{stepper}_{layout.dim}_{layout.lanes}", layout.lanes)
    emit_solver(m, layout.velocities, layout.dim, NewtonOptions())
    parts = Parts(m, layout) if stepper == "implicit-euler" else RattleParts(m, layout)
    parts.emit()
    _emit_steps(m, parts, stepper, PARTS if stepper == "implicit-rattle-4" else (1.0,))
    return m


def _emit_steps(m: Module, parts: Parts, stepper: str, lengths: tuple[float, ...]) -> None:
    """The loop over steps."""
    with m.function("march", "w", public=True) as (c, (t,)):
        numbers = t.array(Table.NUMBERS, "n")
        rows, stride = t.array(Table.SOLVE_ROWS, "n"), t[Table.SOLVE_STRIDE]
        B, one = t[Table.BODIES], t.array(Table.STAGE_1, "w")
        with c.loop(t[Table.STEPS]) as k:
            done = ~(numbers[Numbers.TAKEN] < numbers[Numbers.WANTED])
            stopped = done | c.mask(numbers[Numbers.LEFT])
            c.leave(c.b.not_((~stopped).any()))
            numbers[Numbers.TROUBLE] = stopped.select(1.0, 0.0)
            c.copy(t.array(Table.SAVED, "n"), t.array(Table.STATE, "n"), B * parts.n_state)
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
                parts.commit(c, t)
            if stepper != "implicit-euler":
                _guard(parts, numbers, stepper, gain.get(), steady.get())
            bad = c.mask(numbers[Numbers.TROUBLE])
            c.copy_where(bad, t.array(Table.STATE, "n"), t.array(Table.SAVED, "n"), B * parts.n_state)
            with groups(c, one) as g:
                n = g[Group.COUNT] * g[Group.N_WARM]
                c.copy_where(bad, g.array(Group.WARM, "n"), g.array(Group.SAVED_WARM, "n"), n)
            left = bad & ~stopped
            numbers[Numbers.LEFT] = left.select(1.0, numbers[Numbers.LEFT])
            taken = numbers[Numbers.TAKEN]
            numbers[Numbers.TAKEN] = bad.select(taken, taken + 1.0)


def _guard(
    parts: Parts,
    numbers: Array,
    stepper: str,
    gain: Number,
    steady: Number,
) -> None:
    """The lane leaves where the step gains too much energy, see `RattleStepper._part`, `_composed`."""
    above = numbers[Numbers.ABOVE].max(numbers[Numbers.ABOVE_START])
    bound = numbers[Numbers.GUARD]
    if stepper == "implicit-rattle-4":
        parts.trouble(numbers, steady < 0.5)
    else:
        bound = bound * numbers[Numbers.SHARE]
        gain = (steady > 0.5).select(gain.max(numbers[Numbers.REMAINDER]), gain)
    parts.trouble(numbers, ~(gain <= bound * above + numbers[Numbers.ROUNDING]))
