"""The loop over the time steps of `implicit-euler`, `implicit-rattle` or `implicit-rattle-4`, as LLVM code.

A step is taken only as the steppers take their ordinary steps: full Newton steps from the warm start, no
impact with restitution, no change from sliding to sticking within a stage, no gain of energy; where the guard
of `implicit-rattle` refuses a step, the five that the stepper would compose. In all other cases the lane
leaves: its state and warm starts are those before the step.
"""

from __future__ import annotations

from implicit_geom.compiled.loops.assembly import groups
from implicit_geom.compiled.loops.islands import refused_by_guard
from implicit_geom.compiled.loops.newton import emit_newton
from implicit_geom.compiled.loops.rattle_substep import RattleSubstep
from implicit_geom.compiled.loops.substep import StaticSizes, Substep
from implicit_geom.compiled.single.functions import SingleContactFunctions
from implicit_geom.compiled.single.substep import SingleSubstep
from implicit_geom.compiled.tables import GroupSlot, MarchSlot, ScalarSlot
from implicit_geom.equations.thresholds import COMPOSITION
from implicit_geom.machine.code_values import Array, Integer, Mask, Number
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.model.reasons import ExitReason
from implicit_geom.solvers.newton import NewtonOptions

COMPOSED = "implicit-rattle-4"


def emit_march(
    sizes: StaticSizes, stepper: str, single: SingleContactFunctions | None = None
) -> ModuleWriter:
    """The module of a stepper: `march(table)` takes steps until every lane is done or has left."""
    m = ModuleWriter(f"march_{stepper}_{sizes.dim}_{sizes.lanes}", sizes.lanes)
    substep: Substep
    if single is not None:
        substep = SingleSubstep(m, sizes, single)
    else:
        emit_newton(m, sizes.velocities, sizes.dim, NewtonOptions())
        substep = Substep(m, sizes) if stepper == "implicit-euler" else RattleSubstep(m, sizes)
    substep.emit()
    _emit_steps(m, substep, stepper)
    return m


def _emit_steps(m: ModuleWriter, substep: Substep, stepper: str) -> None:
    """The loop over steps."""
    with m.function("march", "w", public=True) as (c, (t,)):
        numbers, rows = t.array(MarchSlot.SCALARS, "n"), OutputRows(c, t, stepper)
        one = t.array(MarchSlot.STAGE_1, "w")
        with c.loop(t[MarchSlot.STEPS]) as k:
            done = ~(numbers[ScalarSlot.TAKEN] < numbers[ScalarSlot.WANTED])
            stopped = done | c.mask(numbers[ScalarSlot.EXIT_REASON])
            c.break_if(c.b.not_((~stopped).any()))
            rows.start(k)
            numbers[ScalarSlot.PENDING_EXIT] = stopped.select(1.0, 0.0)
            c.copy(
                t.array(MarchSlot.SAVED, "n"),
                t.array(MarchSlot.STATE, "n"),
                t[MarchSlot.BODIES] * substep.n_state,
            )
            with groups(c, one) as g:
                n = g[GroupSlot.COUNT] * g[GroupSlot.N_WARM]
                c.copy(g.array(GroupSlot.SAVED_WARM, "n"), g.array(GroupSlot.WARM, "n"), n)
            lengths = COMPOSITION if stepper == COMPOSED else (1.0,)
            steady = _take_substeps(c, t, substep, lengths, rows)
            if stepper == COMPOSED:
                substep.exit_where(numbers, steady < 0.5, ExitReason.MODE)
                substep.exit_where(numbers, refused_by_guard(c, t, composed=True), ExitReason.GAIN)
            elif stepper != "implicit-euler":
                refused = refused_by_guard(c, t, composed=False) & ~c.mask(numbers[ScalarSlot.PENDING_EXIT])
                with c.when(refused.any()):
                    _compose(c, t, substep, refused, rows)
            bad = c.mask(numbers[ScalarSlot.PENDING_EXIT])
            _restore(c, t, substep, bad)
            left = bad & ~stopped
            numbers[ScalarSlot.EXIT_REASON] = left.select(
                numbers[ScalarSlot.PENDING_EXIT], numbers[ScalarSlot.EXIT_REASON]
            )
            taken = numbers[ScalarSlot.TAKEN]
            numbers[ScalarSlot.TAKEN] = bad.select(taken, taken + 1.0)
            rows.finish()


def _take_substeps(
    c: CodeWriter,
    t: Array,
    substep: Substep,
    lengths: tuple[float, ...],
    rows: OutputRows,
    fresh: Mask | None = None,
) -> Number:
    """Substeps of a step, one after another; whether no contact changes its mode.

    `fresh`: lanes whose last solutions are of no use, those of steps of other lengths.
    """
    numbers = t.array(MarchSlot.SCALARS, "n")
    steady = c.variable(1.0)
    for i, length in enumerate(lengths):
        if fresh is not None:
            numbers[ScalarSlot.KNOWN] = fresh.select(0.0, numbers[ScalarSlot.KNOWN])
        numbers[ScalarSlot.H] = numbers[ScalarSlot.STEP] * length
        c.call("substep", t, rows.of_substep(i), i)
        steady.set((numbers[ScalarSlot.STEADY] > 0.5).select(steady.get(), 0.0))
        substep.commit(c, t)
    kept: Number = steady.get()
    return kept


def _compose(c: CodeWriter, t: Array, substep: Substep, refused: Mask, rows: OutputRows) -> None:
    """Where the guard refuses a step, five instead, see `steppers.rattle`; other lanes are left alone."""
    numbers = t.array(MarchSlot.SCALARS, "n")
    before = numbers[ScalarSlot.PENDING_EXIT]
    _restore(c, t, substep, refused)
    numbers[ScalarSlot.PENDING_EXIT] = refused.select(0.0, 1.0)
    steady = _take_substeps(c, t, substep, COMPOSITION, rows, refused)
    substep.exit_where(numbers, steady < 0.5, ExitReason.GAIN)  # (of the step that was refused)
    substep.exit_where(numbers, refused_by_guard(c, t, composed=True), ExitReason.GAIN)
    numbers[ScalarSlot.KNOWN] = refused.select(0.0, numbers[ScalarSlot.KNOWN])
    found = refused & ~c.mask(numbers[ScalarSlot.PENDING_EXIT])
    numbers[ScalarSlot.PENDING_EXIT] = refused.select(numbers[ScalarSlot.PENDING_EXIT], before)
    rows.composed(found, substep)


def _restore(c: CodeWriter, t: Array, substep: Substep, where: Mask) -> None:
    """States and warm starts as they were before the step."""
    c.copy_where(
        where,
        t.array(MarchSlot.STATE, "n"),
        t.array(MarchSlot.SAVED, "n"),
        t[MarchSlot.BODIES] * substep.n_state,
    )
    with groups(c, t.array(MarchSlot.STAGE_1, "w")) as g:
        n = g[GroupSlot.COUNT] * g[GroupSlot.N_WARM]
        c.copy_where(where, g.array(GroupSlot.WARM, "n"), g.array(GroupSlot.SAVED_WARM, "n"), n)


class OutputRows:
    """Where the rows of output go: one after another, of a step as many as it has substeps.

    Lanes differ in which steps are composed; they share one row a step, which holds the states at its end.
    """

    def __init__(self, c: CodeWriter, t: Array, stepper: str) -> None:
        self.c, self.t = c, t
        self.rows, self.stride = t.array(MarchSlot.SOLVE_ROWS, "n"), t[MarchSlot.SOLVE_STRIDE]
        self.substeps = len(COMPOSITION) if stepper == COMPOSED else 1
        self.place, self.count = c.counter(0), c.counter(0)
        self.one_lane = c.lanes == 1

    def start(self, k: Integer) -> None:
        """The march ends where a step may find no room."""
        self.k = k
        self.c.break_if(self.place.get() + len(COMPOSITION) > self.t[MarchSlot.ROOM])
        self.t.array(MarchSlot.COMPOSED, "n")[k] = 0.0
        self.count.set(self.substeps)

    def of_substep(self, i: int) -> Array:
        at = self.place.get() if self.substeps == 1 and not self.one_lane else self.place.get() + i
        return self.rows.offset(at * self.stride)

    def composed(self, found: Mask, substep: Substep) -> None:
        """The step is composed, in the lanes where that was found."""
        self.t.array(MarchSlot.COMPOSED, "n")[self.k] = found.select(1.0, 0.0)
        if self.one_lane:
            self.count.set(len(COMPOSITION))
        else:
            states = self.t[MarchSlot.BODIES] * substep.n_state
            self.c.copy(self.of_substep(0), self.t.array(MarchSlot.STATE, "n"), states)

    def finish(self) -> None:
        self.place.set(self.place.get() + self.count.get())
