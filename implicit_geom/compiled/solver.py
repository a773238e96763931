"""The semi-smooth Newton iteration of `newton.solve`, undamped, as compiled code.

Small systems are solved densely. All lanes iterate together; one that has converged is left as it is,
one that fails is given up (the caller sees its measure) without holding up the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

from implicit_geom.compiled.code import Array, Code, Module, Number, Whole
from implicit_geom.newton import NewtonOptions


class Problem(IntEnum):
    """Slots of the table that describes a system of equations; addresses unless a comment says otherwise."""

    BODIES = 0  # number of moving bodies
    SIZE = 1  # number of unknowns
    GROUPS = 2  # number of groups
    GROUP_TABLES = 3
    MOMENTUM = 4  # function
    MOMENTUM_PARAMETERS = 5
    MOMENTUM_STRIDE = 6  # number of parameters
    PREPARE = 7  # function
    Z = 8
    F = 9
    J = 10
    DZ = 11
    TRIAL = 12
    SHIFT = 13
    TOLERANCE = 14
    INPUTS = 15
    ROWS = 16
    ENTRIES = 17
    REPORT = 18  # out: measure, iterations, largest row
    H = 19  # step of the solve
    MOMENTUM_ROWS = 20  # function: rows alone
    PIVOTS = 21
    SWAPS = 22


class Group(IntEnum):
    """Slots of the table of a group of contacts of one kind."""

    COUNT = 0
    INPUTS = 1  # numbers of inputs, rows, Jacobian entries, own unknowns, of which contact point
    ROWS = 2
    ENTRIES = 3
    OWN = 4
    POINT = 5
    LINEAR = 6  # functions
    PREPARE = 7
    FINISH = 8
    GATHER = 9  # positions of inputs in z, of rows in F, of entries in J
    SCATTER = 10
    PLACES = 11
    PARAMETERS = 12
    N_PARAMETERS = 13
    FIRST = 14  # bodies
    SECOND = 15
    CONSTANTS = 16
    N_CONSTANTS = 17
    WARM = 18
    NEXT_WARM = 19
    SAVED_WARM = 20
    N_WARM = 21
    START = 22
    N_START = 23
    END = 24
    N_END = 25
    ACTIVE = 26  # place of `active` in END, or -1 where every contact takes part
    RECORD = 27
    N_RECORD = 28
    IMPULSE = 29  # place of P_n among the own unknowns
    MODES = 30  # of the first part of a step
    SIGN = 31  # place of `sign` in CONSTANTS
    ROWS_ALONE = 32  # function


GROUP_SIZE = len(Group)
HOPEFUL = 10.0  # measure expected of a point, from quadratic convergence, that makes it worth a look
THRESHOLD = 30.0  # how much larger another entry of a column must be to become its pivot


def emit_solver(m: Module, velocities: int, dim: int, options: NewtonOptions) -> None:
    """Add `newton`, and what it needs, to a module."""
    _emit_residual(m, velocities)
    _emit_linearise(m, velocities)
    _emit_factor(m)
    _emit_substitute(m)
    _emit_newton(m, velocities, dim, options)


@contextmanager
def groups(c: Code, problem: Array) -> Iterator[Array]:
    """Loop over the tables of a problem's groups."""
    tables = problem.array(Problem.GROUP_TABLES, "w")
    with c.loop(problem[Problem.GROUPS]) as g:
        yield tables.part(g * GROUP_SIZE)


def gather(c: Code, problem: Array, group: Array, i: Whole, z: Array) -> tuple[Array, Whole]:
    """The inputs of contact i of a group, copied from z; and where its own unknowns start in z."""
    inputs = problem.array(Problem.INPUTS, "n")
    n = group[Group.INPUTS]
    positions = group.array(Group.GATHER, "w").part(i * n)
    with c.loop(n) as j:
        inputs[j] = z[positions[j]]
    return inputs, positions[n - group[Group.OWN]]


def _emit_residual(m: Module, velocities: int) -> None:
    """F at z."""
    with m.function("residual", "wn") as (c, (p, z)):
        F, rows = p.array(Problem.F, "n"), p.array(Problem.ROWS, "n")
        parameters = p.array(Problem.MOMENTUM_PARAMETERS, "n")
        c.fill(F.part(p[Problem.BODIES] * velocities), p[Problem.SIZE] - p[Problem.BODIES] * velocities, 0.0)
        with c.loop(p[Problem.BODIES]) as b:
            own = parameters.part(b * p[Problem.MOMENTUM_STRIDE])
            first = b * velocities
            c.call_at(p[Problem.MOMENTUM_ROWS], z.part(first), own, F.part(first))
        with groups(c, p) as g, c.loop(g[Group.COUNT]) as i:
            inputs, _ = gather(c, p, g, i, z)
            own = g.array(Group.PARAMETERS, "n").part(i * g[Group.N_PARAMETERS])
            c.call_at(g[Group.ROWS_ALONE], inputs, own, rows)
            with c.when(g[Group.ACTIVE] >= 0):
                off = c.number(1.0) - _active(g, i)
                with c.loop(g[Group.ROWS]) as r:
                    rows[r] = rows[r] * _active(g, i)
                with c.loop(g[Group.OWN]) as k:
                    rows[k] = rows[k] + off * inputs[g[Group.INPUTS] - g[Group.OWN] + k]
            positions = g.array(Group.SCATTER, "w").part(i * g[Group.ROWS])
            with c.loop(g[Group.ROWS]) as r:
                F.add(positions[r], rows[r])


def _active(g: Array, i: Whole) -> Number:
    return g.array(Group.END, "n").part(i * g[Group.N_END])[g[Group.ACTIVE]]


def _emit_linearise(m: Module, velocities: int) -> None:
    """F and J at z."""
    with m.function("linearise", "wn") as (c, (p, z)):
        N, F, J = p[Problem.SIZE], p.array(Problem.F, "n"), p.array(Problem.J, "n")
        rows, entries = p.array(Problem.ROWS, "n"), p.array(Problem.ENTRIES, "n")
        c.fill(F, N, 0.0)
        c.fill(J, N * N, 0.0)
        parameters = p.array(Problem.MOMENTUM_PARAMETERS, "n")
        with c.loop(p[Problem.BODIES]) as b:
            first = b * velocities
            own = parameters.part(b * p[Problem.MOMENTUM_STRIDE])
            c.call_at(p[Problem.MOMENTUM], z.part(first), own, rows, entries)
            with c.loop(velocities) as i:
                F[first + i] = rows[i]
                with c.loop(velocities) as j:
                    J[(first + i) * N + first + j] = entries[j * velocities + i]
        with groups(c, p) as g, c.loop(g[Group.COUNT]) as i:
            inputs, own_start = gather(c, p, g, i, z)
            own = g.array(Group.PARAMETERS, "n").part(i * g[Group.N_PARAMETERS])
            c.call_at(g[Group.LINEAR], inputs, own, rows, entries)
            with c.when(g[Group.ACTIVE] >= 0):
                _switch_off(c, g, i, inputs, rows, entries, J, own_start, N)
            n_rows, n_entries = g[Group.ROWS], g[Group.ENTRIES]
            positions = g.array(Group.SCATTER, "w").part(i * n_rows)
            with c.loop(n_rows) as r:
                F.add(positions[r], rows[r])
            places = g.array(Group.PLACES, "w").part(i * n_entries)
            with c.loop(n_entries) as e:
                J.add(places[e], entries[e])


def _switch_off(
    c: Code, g: Array, i: Whole, inputs: Array, rows: Array, entries: Array, J: Array, start: Whole, N: Whole
) -> None:
    """Where a contact takes no part: its unknowns stay zero and the bodies feel nothing of it."""
    active = _active(g, i)
    with c.when((active < 0.5).any()):
        with c.loop(g[Group.ROWS]) as r:
            rows[r] = rows[r] * active
        with c.loop(g[Group.ENTRIES]) as e:
            entries[e] = entries[e] * active
        own, n = g[Group.OWN], g[Group.INPUTS]
        off = c.number(1.0) - active
        with c.loop(own) as k:
            rows[k] = rows[k] + off * inputs[n - own + k]
            J.add((start + k) * N + start + k, off)


def _emit_factor(m: Module) -> None:
    """A = P L U in place by Gaussian elimination, lane by lane; the diagonal holds reciprocals."""
    with m.function("factor", "inwn") as (c, (N, A, pivots, swaps)), c.loop(N) as k:
        row = A.part(k * N)
        if m.lanes == 1:
            _pivot_one(c, N, A, k, pivots)
        else:
            _pivot_lanes(c, N, A, k, pivots, swaps)
        inverse = c.number(1.0) / row[k]
        row[k] = inverse
        with c.loop(N, k + 1) as i:
            other = A.part(i * N)
            f = other[k] * inverse
            other[k] = f
            with c.when(f.differs(0.0).any()), c.loop(N, k + 1) as j:
                other[j] = other[j] - f * row[j]


def _pivot_one(c: Code, N: Whole, A: Array, k: Whole, pivots: Array) -> None:
    """Bring the largest entry of column k to the diagonal."""
    best, at = c.variable(-1.0), c.counter(0)
    at.set(k)
    with c.loop(N, k) as i:
        size = abs(A[i * N + k])
        with c.when((size > best.get()).any()):
            best.set(size)
            at.set(i)
    found = at.get()
    pivots[k] = found
    with c.when(found.differs(k)):
        one, two = A.part(k * N), A.part(found * N)
        with c.loop(N) as j:
            kept = one[j]
            one[j] = two[j]
            two[j] = kept


def _pivot_lanes(c: Code, N: Whole, A: Array, k: Whole, pivots: Array, swaps: Array) -> None:
    """The same where lanes differ: rows change places one after another, each lane as it needs.

    Only a much larger entry is worth it: most pivots are good where they are, and the residual is
    checked in every iteration.
    """
    one = A.part(k * N)
    pivots[k] = 0
    with c.loop(N, k + 1) as i:
        two = A.part(i * N)
        swap = abs(two[k]) > abs(one[k]) * THRESHOLD
        swaps[k * N + i] = swap.select(1.0, 0.0)
        with c.when(swap.any()):
            pivots[k] = 1
            with c.loop(N) as j:
                x, y = one[j], two[j]
                one[j], two[j] = swap.select(y, x), swap.select(x, y)


def _emit_substitute(m: Module) -> None:
    """b becomes the solution of A x = b, with the factors of A."""
    with m.function("substitute", "inwnn") as (c, (N, A, pivots, swaps, b)):
        with c.loop(N) as k:
            if m.lanes == 1:
                other = pivots[k]
                x, y = b[k], b[other]
                b[k], b[other] = y, x
            else:
                with c.when(pivots[k].equals(1)), c.loop(N, k + 1) as i:
                    swap = c.mask(swaps[k * N + i])
                    x, y = b[k], b[i]
                    b[k], b[i] = swap.select(y, x), swap.select(x, y)
        with c.loop(N) as i:
            _reduce(c, A.part(i * N), b, i, c.whole(0), i)
        with c.loop(N) as back:
            k = c.whole(0) + N - 1 - back
            _reduce(c, A.part(k * N), b, k, k + 1, N)
            b[k] = b[k] * A[k * N + k]


def _reduce(c: Code, row: Array, b: Array, i: Whole, start: Whole, stop: Whole) -> None:
    """b_i -= sum of row_j b_j over start <= j < stop."""
    total = c.variable(0.0)
    total.set(b[i])
    with c.loop(stop, start) as j:
        total.set(total.get() - row[j] * b[j])
    b[i] = total.get()


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
