"""The semi-smooth Newton iteration of `newton.solve`, undamped, as compiled code.

Small systems are solved densely. All lanes iterate together; one that has converged is left as it is,
one that fails is given up (the caller sees its measure) without holding up the others.
"""

from __future__ import annotations

from typing import Any

from implicit_geom.compiled.assembly import emit_assembly, groups
from implicit_geom.compiled.code import Array, Code, Module, Number
from implicit_geom.compiled.elimination import emit_elimination
from implicit_geom.compiled.tables import Group, Problem
from implicit_geom.newton import NewtonOptions

HOPEFUL = 10.0  # measure expected of a point, from quadratic convergence, that makes it worth a look


def emit_solver(m: Module, velocities: int, dim: int, options: NewtonOptions) -> None:
    """Add `newton(problem)`, and what it needs, to a module."""
    emit_assembly(m, velocities)
    emit_elimination(m)
    _emit_newton(m, velocities, dim, options)


def _emit_newton(m: Module, velocities: int, dim: int, options: NewtonOptions) -> None:
    """Full Newton steps from z, in place; the report says how it went."""
    with m.function("direction", "w") as (c, (p,)):
        _direction(c, p, velocities, dim)
    with m.function("newton", "w") as (c, (p,)):
        z, report, trial = p.array(Problem.Z, "n"), p.array(Problem.REPORT, "n"), p.array(Problem.TRIAL, "n")
        N, dz = p[Problem.SIZE], p.array(Problem.DZ, "n")
        measure, largest, before = c.variable(0.0), c.variable(0.0), c.variable(float("inf"))
        iterations, limit, failed = c.variable(0.0), c.variable(0.0), c.variable(0.0)
        fresh = c.counter(1)  # whether the matrix is that of z, not yet factored
        with c.loop(options.full_steps + 1) as k:
            # where the next point should be a solution its rows are enough to see it
            expected = measure.get() * measure.get() * measure.get() / (before.get() * before.get())
            fresh.set(0)
            with c.when((~(expected <= HOPEFUL)).any()):
                fresh.set(1)
            with c.when(k < 2):
                fresh.set(1)
            before.set(measure.get())
            with c.when(fresh.get().equals(0)):
                c.call("residual", p, z)
                _measure(c, p, measure, largest)
                with c.when((~(measure.get() <= 1.0)).any()):
                    fresh.set(1)
            with c.when(fresh.get().equals(1)):
                c.call("linearise", p, z)
            norm = _measure(c, p, measure, largest)
            with c.when(k.equals(0)):
                limit.set((norm * options.growth).max(1e-300))
            over = ~(norm <= limit.get())
            failed.set(over.select(1.0, failed.get()))
            going = (~(measure.get() <= 1.0)) & ~c.mask(failed.get())
            c.leave(c.b.or_(c.b.not_(going.any()), k >= options.full_steps))
            _factor(c, p)
            c.call("direction", p)
            with c.loop(N) as i:
                z[i] = going.select(z[i] + dz[i], z[i])
            iterations.set(going.select(iterations.get() + 1.0, iterations.get()))
        # one more step for a solution that is only just one, see `newton._polish`
        # (a start that is one already has not been corrected at all)
        coarse = (measure.get() > options.polish) | (iterations.get() < 0.5)
        rough = (measure.get() <= 1.0) & coarse
        with c.when(rough.any()):
            with c.when(fresh.get().equals(1)):
                _factor(c, p)
            c.call("direction", p)
            with c.loop(N) as i:
                trial[i] = z[i] + dz[i]
            last, last_largest = measure.get(), largest.get()
            c.call("residual", p, trial)
            _measure(c, p, measure, largest)
            better = rough & (measure.get() < last)
            c.copy_where(better, z, trial, N)
            iterations.set(better.select(iterations.get() + 1.0, iterations.get()))
            measure.set(better.select(measure.get(), last))
            largest.set(better.select(largest.get(), last_largest))
        report[0], report[1], report[2] = measure.get(), iterations.get(), largest.get()


def _factor(c: Code, p: Array) -> None:
    """Factor J + shift; J is used up."""
    N, J, shift = p[Problem.SIZE], p.array(Problem.J, "n"), p.array(Problem.SHIFT, "n")
    with c.loop(N) as i:
        J.add(i * N + i, shift[i])
    c.call("factor", N, J, p.array(Problem.PIVOTS, "w"), p.array(Problem.SWAPS, "n"))


def _direction(c: Code, p: Array, velocities: int, dim: int) -> None:
    """dz = -(J + shift)^-1 F with the factors at hand, shortened as `StepProblem.restrict` does."""
    N, F, J, dz = p[Problem.SIZE], p.array(Problem.F, "n"), p.array(Problem.J, "n"), p.array(Problem.DZ, "n")
    with c.loop(N) as i:
        dz[i] = -F[i]
    c.call("substitute", N, J, p.array(Problem.PIVOTS, "w"), p.array(Problem.SWAPS, "n"), dz)
    h = abs(p.array(Problem.H, "n")[0])
    with c.loop(p[Problem.BODIES]) as b:
        part = dz.part(b * velocities)
        turn = h * _length(part.part(dim), velocities - dim)
        factor = c.number(1.0) / turn.max(1.0)
        with c.when((turn > 1.0).any()), c.loop(velocities) as j:
            part[j] = part[j] * factor
    with groups(c, p) as g, c.when(g[Group.POINT] > 0), c.loop(g[Group.COUNT]) as i:
        n = g[Group.INPUTS]
        start = g.array(Group.GATHER, "w").part(i * n)[n - g[Group.OWN]]
        part = dz.part(start)
        length = _length(part, dim)
        factor = c.number(1.0) / length.max(1.0)
        with c.when((length > 1.0).any()), c.loop(dim) as j:
            part[j] = part[j] * factor


def _length(a: Array, n: int) -> Number:
    total = a[0] * a[0]
    for i in range(1, n):
        total = total + a[i] * a[i]
    return total.sqrt()


def _measure(c: Code, p: Array, measure: Any, largest: Any) -> Number:
    """Sets |F| over tolerance and |F|, largest rows; returns the norm of F."""
    F, tolerance = p.array(Problem.F, "n"), p.array(Problem.TOLERANCE, "n")
    measure.set(0.0)
    largest.set(0.0)
    total = c.variable(0.0)
    with c.loop(p[Problem.SIZE]) as i:
        row = abs(F[i])
        measure.set((row / tolerance[i]).max(measure.get()))
        largest.set(row.max(largest.get()))
        total.set(total.get() + row * row)
    # (a maximum may lose a NaN, a sum does not)
    finite = total.get() <= 1e300
    measure.set(finite.select(measure.get(), float("inf")))
    return total.get().sqrt()
