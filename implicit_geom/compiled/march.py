"""Whole trajectories in compiled code: steps of `implicit-euler`, `implicit-rattle` and `implicit-rattle-4`.

A step is taken only as the steppers take their ordinary steps: full Newton steps from the warm start, no
impact with restitution, no change from sliding to sticking within a stage, no gain of energy; where the guard
of `implicit-rattle` refuses a step, the five that the stepper would compose. In all other cases the lane
leaves: its state and warm starts are those before the step.
"""

from __future__ import annotations

from implicit_geom.compiled.assembly import groups
from implicit_geom.compiled.parts import Layout, Parts
from implicit_geom.compiled.rattle_parts import RattleParts
from implicit_geom.compiled.single.functions import AloneFunctions
from implicit_geom.compiled.single.parts import AloneParts
from implicit_geom.compiled.solver import emit_solver
from implicit_geom.compiled.tables import Group, Numbers, Table
from implicit_geom.equations.thresholds import COMPOSITION
from implicit_geom.machine.code import Array, Code, Mask, Module, Number, Whole
from implicit_geom.model.reasons import Left
from implicit_geom.solvers.newton import NewtonOptions

COMPOSED = "implicit-rattle-4"


def emit_march(layout: Layout, stepper: str, alone: AloneFunctions | None = None) -> Module:
    """The module of a stepper: `march(table)` takes steps until every lane is done or has left."""
    m = Module(f"march_{stepper}_{layout.dim}_{layout.lanes}", layout.lanes)
    parts: Parts
    if alone is not None:
        parts = AloneParts(m, layout, alone)
    else:
        emit_solver(m, layout.velocities, layout.dim, NewtonOptions())
        parts = Parts(m, layout) if stepper == "implicit-euler" else RattleParts(m, layout)
    parts.emit()
    _emit_steps(m, parts, stepper)
    return m


def _emit_steps(m: Module, parts: Parts, stepper: str) -> None:
    """The loop over steps."""
    with m.function("march", "w", public=True) as (c, (t,)):
        numbers, rows = t.array(Table.NUMBERS, "n"), Rows(c, t, stepper)
        one = t.array(Table.STAGE_1, "w")
        with c.loop(t[Table.STEPS]) as k:
            done = ~(numbers[Numbers.TAKEN] < numbers[Numbers.WANTED])
            stopped = done | c.mask(numbers[Numbers.LEFT])
            c.leave(c.b.not_((~stopped).any()))
            rows.start(k)
            numbers[Numbers.TROUBLE] = stopped.select(1.0, 0.0)
            c.copy(t.array(Table.SAVED, "n"), t.array(Table.STATE, "n"), t[Table.BODIES] * parts.n_state)
            with groups(c, one) as g:
                n = g[Group.COUNT] * g[Group.N_WARM]
                c.copy(g.array(Group.SAVED_WARM, "n"), g.array(Group.WARM, "n"), n)
            lengths = COMPOSITION if stepper == COMPOSED else (1.0,)
            gain, steady = _take(c, t, parts, lengths, rows)
            if stepper == COMPOSED:
                parts.trouble(numbers, steady < 0.5, Left.MODE)
                parts.trouble(numbers, _gains(numbers, gain, numbers[Numbers.GUARD]), Left.GAIN)
            elif stepper != "implicit-euler":
                gain = (steady > 0.5).select(gain.max(numbers[Numbers.REMAINDER]), gain)
                bound = numbers[Numbers.GUARD] * numbers[Numbers.SHARE]
                refused = _gains(numbers, gain, bound) & ~c.mask(numbers[Numbers.TROUBLE])
                with c.when(refused.any()):
                    _compose(c, t, parts, refused, bound, rows)
            bad = c.mask(numbers[Numbers.TROUBLE])
            _back(c, t, parts, bad)
            left = bad & ~stopped
            numbers[Numbers.LEFT] = left.select(numbers[Numbers.TROUBLE], numbers[Numbers.LEFT])
            taken = numbers[Numbers.TAKEN]
            numbers[Numbers.TAKEN] = bad.select(taken, taken + 1.0)
            rows.finish()


def _take(
    c: Code, t: Array, parts: Parts, lengths: tuple[float, ...], rows: Rows, fresh: Mask | None = None
) -> tuple[Number, Number]:
    """Parts of a step, one after another; the energy they gain, and whether no contact changes its mode.

    `fresh`: lanes whose last solutions are of no use, those of steps of other lengths.
    """
    numbers = t.array(Table.NUMBERS, "n")
    gain, steady = c.variable(0.0), c.variable(1.0)
    for i, length in enumerate(lengths):
        if fresh is not None:
            numbers[Numbers.KNOWN] = fresh.select(0.0, numbers[Numbers.KNOWN])
        numbers[Numbers.H] = numbers[Numbers.STEP] * length
        c.call("part", t, rows.of_part(i), i)
        gain.set(gain.get() + numbers[Numbers.GAIN])
        steady.set((numbers[Numbers.STEADY] > 0.5).select(steady.get(), 0.0))
        parts.commit(c, t)
    return gain.get(), steady.get()


def _gains(numbers: Array, gain: Number, bound: Number) -> Mask:
    """Where a step gains too much energy, see `RattleStepper._part`, `_composed`."""
    above = numbers[Numbers.ABOVE].max(numbers[Numbers.ABOVE_START])
    return ~(gain <= bound * above + numbers[Numbers.ROUNDING])


def _compose(c: Code, t: Array, parts: Parts, refused: Mask, bound: Number, rows: Rows) -> None:
    """Where the guard refuses a step, five instead, see `RattleStepper.step`; other lanes are left alone."""
    numbers = t.array(Table.NUMBERS, "n")
    before = numbers[Numbers.TROUBLE]
    _back(c, t, parts, refused)
    numbers[Numbers.TROUBLE] = refused.select(0.0, 1.0)
    gain, steady = _take(c, t, parts, COMPOSITION, rows, refused)
    parts.trouble(numbers, steady < 0.5, Left.GAIN)  # (of the step that was refused)
    parts.trouble(numbers, _gains(numbers, gain, bound), Left.GAIN)
    numbers[Numbers.KNOWN] = refused.select(0.0, numbers[Numbers.KNOWN])
    found = refused & ~c.mask(numbers[Numbers.TROUBLE])
    numbers[Numbers.TROUBLE] = refused.select(numbers[Numbers.TROUBLE], before)
    rows.composed(found, parts)


def _back(c: Code, t: Array, parts: Parts, where: Mask) -> None:
    """States and warm starts as they were before the step."""
    c.copy_where(where, t.array(Table.STATE, "n"), t.array(Table.SAVED, "n"), t[Table.BODIES] * parts.n_state)
    with groups(c, t.array(Table.STAGE_1, "w")) as g:
        n = g[Group.COUNT] * g[Group.N_WARM]
        c.copy_where(where, g.array(Group.WARM, "n"), g.array(Group.SAVED_WARM, "n"), n)


class Rows:
    """Where the rows of output go: one after another, of a step as many as it has parts.

    Lanes differ in which steps are composed; they share one row a step, which holds the states at its end.
    """

    def __init__(self, c: Code, t: Array, stepper: str) -> None:
        self.c, self.t = c, t
        self.rows, self.stride = t.array(Table.SOLVE_ROWS, "n"), t[Table.SOLVE_STRIDE]
        self.parts = len(COMPOSITION) if stepper == COMPOSED else 1
        self.place, self.count = c.counter(0), c.counter(0)
        self.single = c.lanes == 1

    def start(self, k: Whole) -> None:
        """The march ends where a step may find no room."""
        self.k = k
        self.c.leave(self.place.get() + len(COMPOSITION) > self.t[Table.ROOM])
        self.t.array(Table.COMPOSED, "n")[k] = 0.0
        self.count.set(self.parts)

    def of_part(self, i: int) -> Array:
        at = self.place.get() if self.parts == 1 and not self.single else self.place.get() + i
        return self.rows.part(at * self.stride)

    def composed(self, found: Mask, parts: Parts) -> None:
        """The step is composed, in the lanes where that was found."""
        self.t.array(Table.COMPOSED, "n")[self.k] = found.select(1.0, 0.0)
        if self.single:
            self.count.set(len(COMPOSITION))
        else:
            states = self.t[Table.BODIES] * parts.n_state
            self.c.copy(self.of_part(0), self.t.array(Table.STATE, "n"), states)

    def finish(self) -> None:
        self.place.set(self.place.get() + self.count.get())
