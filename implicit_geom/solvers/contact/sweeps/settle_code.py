"""Sweeps until the contact laws hold, in one call of machine code; with over-relaxation.

The largest change of an impulse in a sweep, as a velocity, says when the residuals are worth looking at, and
how quickly the sweeps converge: rate r a sweep. Impulses then go beyond each contact's own solution by the
share that is best for linear systems, 2 / (1 + sqrt(1 - r)) - 1 [Young 1954], at most `MOST`. Contacts are
not linear: where the changes hardly fall, or grow, the share is halved.
"""

from __future__ import annotations

from llvmlite import ir

from implicit_geom.machine.code_values import Array, Integer, Number
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.solvers.contact.sweeps.arrays import ARRAYS, CERTIFIED, SWEPT
from implicit_geom.solvers.contact.sweeps.certify_code import emit_certify
from implicit_geom.solvers.contact.sweeps.sweep_code import emit_contact

WINDOW = 8  # sweeps over which a rate is measured; three square roots give that of one
MOST = 0.3  # beyond a contact's own solution; more is quicker for some, and never ends for others
SLOW = 0.9  # change over that of a window before, from which relaxation is taken to be at fault
LOOSE = 4.0  # changes over the tolerance at which the residuals are looked at


def settle_module(d: int) -> ir.Module:
    """`settle(contacts, width, count, length, addresses, v, s, numbers)` for contacts of d rows.

    v         (length,) velocities by body that belong to s; both change
    numbers   in: tolerance; out: the largest residual, their sum, sweeps done
    """
    m = ModuleWriter("settle", 1)
    with m.function("settle", "iiiiwnnn", public=True) as (c, arguments):
        contacts, width, count, length, addresses, v, s, numbers = arguments
        arrays = {name: addresses.array(i, "w" if name == "rows" else "n") for i, name in enumerate(ARRAYS)}
        _Settle(c, d, contacts, width, length, arrays, v, s, numbers).emit(count)
    return m.ir


class _Settle:
    def __init__(
        self,
        c: CodeWriter,
        d: int,
        contacts: Integer,
        width: Integer,
        length: Integer,
        arrays: dict[str, Array],
        v: Array,
        s: Array,
        numbers: Array,
    ) -> None:
        self.c, self.d, self.contacts, self.width, self.length = c, d, contacts, width, length
        self.a, self.v, self.s, self.numbers = arrays, v, s, numbers
        self.tolerance = numbers[0]
        self.beyond, self.earlier = c.variable(0.0), c.variable(0.0)
        self.measured, self.since = c.counter(0), c.counter(0)

    def emit(self, count: Integer) -> None:
        c, numbers = self.c, self.numbers
        numbers[0] = 1e300
        done, bound = c.counter(0), c.variable(self.tolerance * LOOSE)
        with c.loop(count):
            done.set(done.get() + 1)
            change = self._sweep()
            with c.when((change < bound.get()).any()):
                self._certify()
                bound.set(change * 0.5)
            c.break_if((numbers[0] < self.tolerance).any())
            self.since.set(self.since.get() + 1)
            with c.when(self.since.get() >= WINDOW):
                self._relax(change)
        with c.when((~(numbers[0] < self.tolerance)).any()):
            self._certify()
        numbers[2] = Number(c, c.b.sitofp(done.get().v, c.T))

    def _sweep(self) -> Number:
        """One sweep; the largest change of an impulse over its contact's mass."""
        c, a = self.c, self.a
        largest = c.variable(0.0)
        with c.loop(self.contacts) as k:
            arrays = [*(a[x] for x in SWEPT), self.v, self.s]
            changes = emit_contact(c, self.d, k, self.width, *arrays, beyond=self.beyond.get())
            inverse = c.number(1.0) / a["mass"][k]
            for change in changes:
                largest.set(largest.get().max(abs(change) * inverse))
        found: Number = largest.get()
        return found

    def _certify(self) -> None:
        c, a = self.c, self.a
        c.copy(self.v, a["free"], self.length)
        arrays = [*(a[x] for x in CERTIFIED), self.v, self.s, self.numbers]
        emit_certify(c, self.d, self.contacts, self.width, *arrays)

    def _relax(self, change: Number) -> None:
        """The share to go beyond, once a rate is known; half of it where changes hardly fall."""
        c, one = self.c, self.c.number(1.0)
        ratio = change / self.earlier.get().max(1e-300)
        with c.when(self.measured.get().equals(1)):
            rate = (ratio < 1.0).select(ratio, 1.0)
            for _ in range(3):
                rate = rate.sqrt()
            best = c.number(2.0) / (one + (one - rate).sqrt()) - 1.0
            self.beyond.set((best < MOST).select(best, MOST))
        with c.when(c.b.and_(self.measured.get() > 1, (ratio > SLOW).any())):
            self.beyond.set(self.beyond.get() * 0.5)
        self.measured.set(self.measured.get() + 1)
        self.earlier.set(change)
        self.since.set(0)
