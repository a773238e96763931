"""Dense linear systems by Gaussian elimination with pivoting, lane by lane, written as LLVM code."""

from __future__ import annotations

from implicit_geom.machine.code_values import Array, Integer
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter


def emit_elimination(m: ModuleWriter) -> None:
    """Add `factor(N, A, pivots, swaps)` and `substitute(N, A, pivots, swaps, b)` to a module."""
    _emit_factor(m)
    _emit_substitute(m)


def _emit_factor(m: ModuleWriter) -> None:
    """A = P L U in place by Gaussian elimination, lane by lane; the diagonal holds reciprocals."""
    with m.function("factor", "inwn") as (c, (N, A, pivots, swaps)), c.loop(N) as k:
        row = A.offset(k * N)
        if m.lanes == 1:
            _pivot_one(c, N, A, k, pivots)
        else:
            _pivot_lanes(c, N, A, k, pivots, swaps)
        inverse = c.number(1.0) / row[k]
        row[k] = inverse
        with c.loop(N, k + 1) as i:
            other = A.offset(i * N)
            f = other[k] * inverse
            other[k] = f
            needed = f.differs(0.0)
            with c.when(needed.any()), c.loop(N, k + 1) as j:
                # (x - 0 y may differ from x in the sign of a zero)
                other[j] = needed.select(other[j] - f * row[j], other[j])


def _pivot_one(c: CodeWriter, N: Integer, A: Array, k: Integer, pivots: Array) -> None:
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
        one, two = A.offset(k * N), A.offset(found * N)
        with c.loop(N) as j:
            kept = one[j]
            one[j] = two[j]
            two[j] = kept


def _pivot_lanes(c: CodeWriter, N: Integer, A: Array, k: Integer, pivots: Array, swaps: Array) -> None:
    """The same where lanes differ: rows change places one after another, each lane as it needs."""
    best, at = c.variable(-1.0), c.variable(0.0)
    place = c.variable(0.0)
    with c.loop(N, k) as i:
        size = abs(A[i * N + k])
        larger = size > best.get()
        best.set(larger.select(size, best.get()))
        at.set(larger.select(place.get(), at.get()))
        swaps[k * N + i] = 0.0
        place.set(place.get() + 1.0)
    one, found = A.offset(k * N), at.get()
    pivots[k] = 0
    place.set(0.0)
    with c.loop(N, k + 1) as i:
        place.set(place.get() + 1.0)
        swap = ~found.differs(place.get())
        with c.when(swap.any()):
            pivots[k] = 1
            swaps[k * N + i] = swap.select(1.0, 0.0)
            two = A.offset(i * N)
            with c.loop(N) as j:
                x, y = one[j], two[j]
                one[j], two[j] = swap.select(y, x), swap.select(x, y)


def _emit_substitute(m: ModuleWriter) -> None:
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
            _reduce(c, A.offset(i * N), b, i, c.integer(0), i)
        with c.loop(N) as back:
            k = c.integer(0) + N - 1 - back
            _reduce(c, A.offset(k * N), b, k, k + 1, N)
            b[k] = b[k] * A[k * N + k]


def _reduce(c: CodeWriter, row: Array, b: Array, i: Integer, start: Integer, stop: Integer) -> None:
    """b_i -= sum of row_j b_j over start <= j < stop."""
    total = c.variable(0.0)
    total.set(b[i])
    with c.loop(stop, start) as j:
        total.set(total.get() - row[j] * b[j])
    b[i] = total.get()
