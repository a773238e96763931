"""One contact's law, solved exactly: impulses s with u = W s + b that obey Signorini and Coulomb.

Open where b_n >= 0. Otherwise u_n = 0 and u_f = -a s_f with a >= 0, zero where the contact sticks:

    (W_ff - W_fn W_nf / W_nn + a I) s_f = -(b_f - W_fn b_n / W_nn),    s_n = -(b_n + W_nf s_f) / W_nn

In the axes in which the matrix of the first equation is diagonal (a disc is the same in all axes) s costs a
few operations for each a, and the a with |s_f| = mu s_n is found by Newton's method on mu s_n / |s_f| - 1,
which is almost linear in a, is negative at a = 0 where the contact cannot stick, and grows without bound. So
there is a root, and a bracket about it keeps the method safe.

A disc without a normal of its own (rolling friction) is the same with s_n given.
"""

from __future__ import annotations

from implicit_geom.machine.code_values import Array, Number, Variable
from implicit_geom.machine.code_writer import CodeWriter

STEPS = 60  # of Newton's method, at most; four or five are usual
CLOSE = 4e-16


class Disc:
    """A friction disc of a contact in the axes of its matrix: what the code reads of it."""

    def __init__(
        self, c: CodeWriter, values: Array, mu: Number, coupling: Array | None, normal: Number
    ) -> None:
        self.c, self.values, self.mu, self.coupling, self.normal = c, values, mu, coupling, normal


def solve_disc(
    c: CodeWriter, disc: Disc, b_n: Number | None, c_f: list[Number], s_n: Variable, s_f: list[Variable]
) -> None:
    """Set s_f, and s_n where b_n is given, to the solution of the law for right sides c_f."""
    values = [disc.values[i] for i in range(len(c_f))]
    coupling = [disc.coupling[i] for i in range(len(c_f))] if disc.coupling is not None else []
    a, low, high = c.variable(0.0), c.variable(0.0), c.variable(-1.0)  # high < 0: not known yet
    slope = c.variable(0.0)
    off = c.variable(0.0)

    def evaluate() -> None:
        """s, how far it is from the disc's edge, and how that changes with a."""
        at = a.get()
        square, growth, n, dn = c.number(0.0), c.number(0.0), c.number(0.0), c.number(0.0)
        for i, (value, right) in enumerate(zip(values, c_f, strict=True)):
            inverse = c.number(1.0) / (value + at).max(1e-300)
            s = -(right * inverse)
            ds = -(s * inverse)
            s_f[i].set(s)
            square, growth = square + s * s, growth + s * ds
            if coupling:
                n, dn = n + coupling[i] * s, dn + coupling[i] * ds
        if b_n is not None:
            s_n.set(-((n + b_n) / disc.normal))
        length = square.sqrt().max(1e-300)
        ratio = disc.mu * s_n.get() / length
        off.set(ratio - 1.0)
        change = -(disc.mu * dn / disc.normal) / length if coupling else c.number(0.0)
        slope.set(change - ratio * growth / (length * length))

    evaluate()
    with c.when((off.get() < 0.0).any()):
        with c.when((~(disc.mu > 0.0)).any()):
            for part in s_f:
                part.set(0.0)
            if b_n is not None:
                s_n.set(-(b_n / disc.normal))
        with c.when((disc.mu > 0.0).any()), c.loop(STEPS):
            at, value, rate = a.get(), off.get(), slope.get()
            below = value < 0.0
            low.set(below.select(at, low.get()))
            high.set(below.select(high.get(), at))
            step = at - value / (rate > 0.0).select(rate, 1.0)
            top = high.get()
            known = top > 0.0
            middle = known.select((low.get() + top) * 0.5, at * 4.0 + values[0] + 1e-12)
            fine = (rate > 0.0) & (step > low.get()) & ((step < top) | ~known)
            a.set(fine.select(step, middle))
            evaluate()
            small = abs(off.get()) <= CLOSE
            still = abs(a.get() - at) <= a.get() * CLOSE
            c.break_if((small | still).any())
