"""The semi-smooth Newton iteration of `solvers.newton`, undamped, written as LLVM code.

Small systems are solved densely. All lanes iterate together; one that has converged is left as it is,
one that fails is given up (the caller sees its measure) without holding up the others. What a lane does is
its own affair, to the last bit: no decision of another lane touches it.
"""

from __future__ import annotations

from implicit_geom.compiled.loops.assembly import emit_assembly, groups
from implicit_geom.compiled.tables import GroupSlot, SystemSlot
from implicit_geom.machine.code_values import Array, Mask, Number
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.machine.elimination import emit_elimination
from implicit_geom.solvers.newton import NewtonOptions

HOPEFUL = 10.0  # measure expected of a point, from quadratic convergence, that makes it worth a look


def emit_newton(m: ModuleWriter, velocities: int, dim: int, options: NewtonOptions) -> None:
    """Add `newton(problem)`, and what it needs, to a module."""
    emit_assembly(m, velocities)
    emit_elimination(m)
    _emit_newton(m, velocities, dim, options)


def _emit_newton(m: ModuleWriter, velocities: int, dim: int, options: NewtonOptions) -> None:
    """Full Newton steps from z, in place; the report says how it went."""
    with m.function("direction", "w") as (c, (p,)):
        _direction(c, p, velocities, dim)
    with m.function("newton", "w") as (c, (p,)):
        z, report, trial = (
            p.array(SystemSlot.Z, "n"),
            p.array(SystemSlot.REPORT, "n"),
            p.array(SystemSlot.TRIAL, "n"),
        )
        N, dz = p[SystemSlot.SIZE], p.array(SystemSlot.DZ, "n")
        measure, largest, before = c.variable(0.0), c.variable(0.0), c.variable(float("inf"))
        iterations, limit = c.variable(0.0), c.variable(0.0)
        open_ = c.variable(1.0)  # lanes that have neither converged nor failed

        def polish(ended: Mask) -> Mask:
            """Lanes whose solution is only just one, see `solvers.newton`."""
            # (a start that is one already has not been corrected at all)
            return ended & ((measure.get() > options.polish) | (iterations.get() < 0.5))

        def last_step(rough: Mask) -> None:
            """One more step along dz, where that is nearer."""
            with c.loop(N) as i:
                trial[i] = z[i] + dz[i]
            c.call("residual", p, trial)
            _, there, largest_there = _measured(c, p)
            better = rough & (there < measure.get())
            c.copy_where(better, z, trial, N)
            iterations.set(better.select(iterations.get() + 1.0, iterations.get()))
            measure.set(better.select(there, measure.get()))
            largest.set(better.select(largest_there, largest.get()))

        def seen(where: Mask) -> Number:
            """The rows at z, for lanes that ask."""
            norm, there, largest_there = _measured(c, p)
            measure.set(where.select(there, measure.get()))
            largest.set(where.select(largest_there, largest.get()))
            return norm

        with c.loop(options.full_steps + 1) as k:
            # where the next point should be a solution its rows are enough to see it
            expected = measure.get() * measure.get() * measure.get() / (before.get() * before.get())
            hopeful = (expected <= HOPEFUL) & c.mask(open_.get())
            before.set(measure.get())
            with c.when(c.b.and_(k >= 2, hopeful.any())):
                c.call("residual", p, z)
                seen(hopeful)
                ended = hopeful & (measure.get() <= 1.0)
                open_.set(ended.select(0.0, open_.get()))
                rough = polish(ended)
                with c.when(rough.any()):
                    c.call("direction", p)  # (with the factors of the point before)
                    last_step(rough)
            waiting = c.mask(open_.get())
            c.break_if(c.b.not_(waiting.any()))
            c.call("linearise", p, z)
            norm = seen(waiting)
            with c.when(k.equals(0)):
                limit.set((norm * options.growth).max(1e-300))
            ended = waiting & (measure.get() <= 1.0)
            going = waiting & ~ended & (norm <= limit.get())
            open_.set(going.select(1.0, 0.0))
            rough = polish(ended)
            # (as many steps as there may be: whoever is still going has failed)
            going = going & c.uniform(k < options.full_steps)
            c.break_if(c.b.not_((going | rough).any()))
            _factor(c, p)
            c.call("direction", p)
            with c.loop(N) as i:
                z[i] = going.select(z[i] + dz[i], z[i])
            iterations.set(going.select(iterations.get() + 1.0, iterations.get()))
            with c.when(rough.any()):
                last_step(rough)
        report[0], report[1], report[2] = measure.get(), iterations.get(), largest.get()


def _factor(c: CodeWriter, p: Array) -> None:
    """Factor J + shift; J is used up."""
    N, J, shift = p[SystemSlot.SIZE], p.array(SystemSlot.J, "n"), p.array(SystemSlot.SHIFT, "n")
    with c.loop(N) as i:
        J.add(i * N + i, shift[i])
    c.call("factor", N, J, p.array(SystemSlot.PIVOTS, "w"), p.array(SystemSlot.SWAPS, "n"))


def _direction(c: CodeWriter, p: Array, velocities: int, dim: int) -> None:
    """dz = -(J + shift)^-1 F with the factors at hand, shortened as in `contact.step_ncp`."""
    N, F, J, dz = (
        p[SystemSlot.SIZE],
        p.array(SystemSlot.F, "n"),
        p.array(SystemSlot.J, "n"),
        p.array(SystemSlot.DZ, "n"),
    )
    with c.loop(N) as i:
        dz[i] = -F[i]
    c.call("substitute", N, J, p.array(SystemSlot.PIVOTS, "w"), p.array(SystemSlot.SWAPS, "n"), dz)
    h = abs(p.array(SystemSlot.H, "n")[0])
    with c.loop(p[SystemSlot.BODIES]) as b:
        own = dz.offset(b * velocities)
        turn = h * _length(own.offset(dim), velocities - dim)
        factor = c.number(1.0) / turn.max(1.0)
        with c.when((turn > 1.0).any()), c.loop(velocities) as j:
            own[j] = own[j] * factor
    with groups(c, p) as g, c.when(g[GroupSlot.POINT] > 0), c.loop(g[GroupSlot.COUNT]) as i:
        n = g[GroupSlot.INPUTS]
        start = g.array(GroupSlot.GATHER, "w").offset(i * n)[n - g[GroupSlot.OWN]]
        own = dz.offset(start)
        length = _length(own, dim)
        factor = c.number(1.0) / length.max(1.0)
        with c.when((length > 1.0).any()), c.loop(dim) as j:
            own[j] = own[j] * factor


def _length(a: Array, n: int) -> Number:
    total = a[0] * a[0]
    for i in range(1, n):
        total = total + a[i] * a[i]
    return total.sqrt()


def _measured(c: CodeWriter, p: Array) -> tuple[Number, Number, Number]:
    """The norm of F, its largest row over tolerance, and its largest row."""
    F, tolerance = p.array(SystemSlot.F, "n"), p.array(SystemSlot.TOLERANCE, "n")
    measure, largest, total = (c.variable(0.0) for _ in range(3))
    with c.loop(p[SystemSlot.SIZE]) as i:
        row = abs(F[i])
        measure.set((row / tolerance[i]).max(measure.get()))
        largest.set(row.max(largest.get()))
        total.set(total.get() + row * row)
    # (a maximum may lose a NaN, a sum does not)
    finite = total.get() <= 1e300
    return total.get().sqrt(), finite.select(measure.get(), float("inf")), largest.get()
