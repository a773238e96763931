"""Block LU of M + H D H^T by body, as machine code; rows change places within a body only.

Once a body is eliminated its diagonal block holds the inverse, the blocks (k, tie) are those of U, the blocks
(tie, k) those of L.
"""

from __future__ import annotations

from llvmlite import ir

from implicit_geom.machine.code_values import Array, Integer, Variable
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter


def lu_module(size: int, d: int) -> ir.Module:
    m = ModuleWriter("lu", 1)
    emit_lu(m, size, d, public=True)
    return m.ir


def emit_lu(m: ModuleWriter, size: int, d: int, *, public: bool = False) -> None:
    """Add `factor` and `substitute` to a module."""
    _emit_invert(m, size)
    _emit_multiply(m, size, add=False)
    _emit_multiply(m, size, add=True)
    _emit_assemble(m, size, d)
    _emit_factor(m, size, public)
    _emit_substitute(m, size, public)


def _emit_invert(m: ModuleWriter, size: int) -> None:
    """A = A^-1 by Gauss and Jordan with row pivoting; B has room for another one."""
    with m.function("invert", "nn") as (c, (A, B)):
        with c.loop(size * size) as i:
            B[i] = 0.0
        for j in range(size):
            B[j * size + j] = 1.0
        with c.loop(size) as k:
            best, at = c.variable(-1.0), c.counter(0)
            at.set(k)
            with c.loop(size, k) as i:
                large = abs(A[i * size + k])
                with c.when((large > best.get()).any()):
                    best.set(large)
                    at.set(i)
            found = at.get()
            for X in (A, B):
                one, two = X.offset(k * size), X.offset(found * size)
                for j in range(size):
                    one[j], two[j] = two[j], one[j]
            inverse = c.number(1.0) / A[k * size + k]
            for X in (A, B):
                for j in range(size):
                    X[k * size + j] = X[k * size + j] * inverse
            with c.loop(size) as i, c.when(i.differs(k)):
                factor = A[i * size + k]
                for X in (A, B):
                    for j in range(size):
                        X[i * size + j] = X[i * size + j] - factor * X[k * size + j]
        c.copy(A, B, size * size)


def _emit_multiply(m: ModuleWriter, size: int, add: bool) -> None:
    """C = A B, or C -= A B."""
    with (
        m.function("subtract" if add else "multiply", "nnn") as (c, (C, A, B)),
        c.loop(size) as i,
    ):
        line, out = A.offset(i * size), C.offset(i * size)
        factors = [line[k] for k in range(size)]
        for j in range(size):
            total = out[j] if add else c.number(0.0)
            for k in range(size):
                total = total - factors[k] * B[k * size + j] if add else total + factors[k] * B[k * size + j]
            out[j] = total


def _emit_assemble(m: ModuleWriter, size: int, d: int) -> None:
    """Add H_a D H_b^T to blocks; a negative place means that there is none."""
    with m.function("assemble", "innwn") as (c, (contacts, H, D, places, blocks)), c.loop(contacts) as k:
        own = D.offset(k * (d * d))
        with c.when((own[0] > 0.0).any()):
            for a in range(2):
                for b in range(2):
                    at = places[k * 4 + (2 * a + b)]
                    with c.when(at >= 0):
                        left, right = (H.offset((k * 2 + x) * (size * d)) for x in (a, b))
                        _outer(c, size, d, left, own, right, blocks.offset(at * (size * size)))


def _outer(c: CodeWriter, size: int, d: int, left: Array, D: Array, right: Array, block: Array) -> None:
    """block += left D right^T."""
    with c.loop(size) as i:
        row, out = left.offset(i * d), block.offset(i * size)
        factors = []
        for k in range(d):
            total = row[0] * D[k]
            for q in range(1, d):
                total = total + row[q] * D[q * d + k]
            factors.append(c.variable(total))
        with c.loop(size) as j:
            other, total = right.offset(j * d), out[j]
            for k in range(d):
                total = total + other[k] * factors[k].get()
            out[j] = total


def _emit_factor(m: ModuleWriter, size: int, public: bool) -> None:
    """`factor(contacts, count, total, mass, H, D, places, order, first, upper, lower, corner, targets,
    blocks, room)`: the blocks of M + H D H^T, and their factors."""
    square = size * size
    with m.function("factor", "iiinnnwwwwwwwnn", public=public) as (c, arguments):
        contacts, count, total, mass, H, D, places, order, first, *where, blocks, room = arguments
        upper, lower, corner, targets = where
        c.fill(blocks, total * square, 0.0)
        c.copy(blocks, mass, count * square)
        c.call("assemble", contacts, H, D, places, blocks)
        with c.loop(count) as n:
            pivot, begin, end = order[n], first[n], first[n + 1]
            diagonal = blocks.offset(pivot * square)
            c.call("invert", diagonal, room)
            target = c.counter(0)
            target.set(corner[n])
            with c.loop(end, begin) as a:
                factor = blocks.offset(lower[a] * square)
                c.call("multiply", room, factor, diagonal)
                c.copy(factor, room, square)
                _update(c, begin, end, target, targets, upper, blocks, square, room)


def _update(
    c: CodeWriter,
    begin: Integer,
    end: Integer,
    target: Variable,
    targets: Array,
    upper: Array,
    blocks: Array,
    square: int,
    factor: Array,
) -> None:
    """Take the product of a block of L with each block of U in the pivot's row from where it belongs."""
    with c.loop(end, begin) as b:
        at = target.get()
        c.call("subtract", blocks.offset(targets[at] * square), factor, blocks.offset(upper[b] * square))
        target.set(at + 1)


def _emit_substitute(m: ModuleWriter, size: int, public: bool) -> None:
    """x = A^-1 x from the factors."""
    square = size * size
    with m.function("substitute", "iwwwwwnnn", public=public) as (c, arguments):
        count, order, first, ties, upper, lower, blocks, x, room = arguments
        with c.loop(count) as n:
            own = x.offset(order[n] * size)
            with c.loop(first[n + 1], first[n]) as a:
                _less(c, size, blocks.offset(lower[a] * square), own, x.offset(ties[a] * size))
        with c.loop(count) as back:
            n = count - back - 1
            own = x.offset(order[n] * size)
            with c.loop(first[n + 1], first[n]) as b:
                _less(c, size, blocks.offset(upper[b] * square), x.offset(ties[b] * size), own)
            c.copy(room, own, size)
            inverse = blocks.offset(order[n] * square)
            with c.loop(size) as i:
                total = inverse[i * size] * room[0]
                for j in range(1, size):
                    total = total + inverse[i * size + j] * room[j]
                own[i] = total


def _less(c: CodeWriter, size: int, A: Array, x: Array, y: Array) -> None:
    """y -= A x."""
    with c.loop(size) as i:
        total = y[i]
        for j in range(size):
            total = total - A[i * size + j] * x[j]
        y[i] = total
