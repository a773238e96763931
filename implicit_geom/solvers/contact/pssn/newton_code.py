"""Newton's method on the inner problem of `pssn`, as machine code (see `newton`)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from implicit_geom.machine.code_values import Array, Integer, Number
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.solvers.contact.pssn.limits import HALVINGS, PATIENCE, REFINED, STEPS
from implicit_geom.solvers.contact.systems.law_code import emit_law
from implicit_geom.solvers.contact.systems.lu_code import emit_lu

# arrays of `inner`, in the order of their addresses; a letter each as in `ModuleWriter.function`
ARRAYS = {
    "rows": "w",
    "H": "n",
    "w": "n",
    "rho": "n",
    "mu": "n",
    "pb": "n",
    "mass": "n",
    "inverse": "n",
    "free": "n",
    "v": "n",
    "P": "n",
    "D": "n",
    "R": "n",
    "X": "n",
    "change": "n",
    "old": "n",
    "places": "w",
    "order": "w",
    "first": "w",
    "ties": "w",
    "upper": "w",
    "lower": "w",
    "corner": "w",
    "targets": "w",
    "blocks": "n",
    "room": "n",
    "square": "n",
}


def module(size: int, d: int) -> ir.Module:
    """`inner(contacts, bodies, total, addresses, numbers)` for bodies of `size` rows and contacts of d rows.

    numbers   in: tolerance, c; out: Newton steps, 1 where the inner problem is solved
    """
    m = ModuleWriter("newton", 1)
    emit_law(m, d)
    emit_lu(m, size, d)
    with m.function("inner", "iiiwn", public=True) as (c, (contacts, bodies, total, addresses, numbers)):
        arrays = {name: addresses.array(i, kind) for i, (name, kind) in enumerate(ARRAYS.items())}
        _Inner(c, size, d, contacts, bodies, total, arrays, numbers).emit()
    return m.ir


class _Inner:
    def __init__(
        self,
        c: CodeWriter,
        size: int,
        d: int,
        contacts: Integer,
        bodies: Integer,
        total: Integer,
        a: dict[str, Array],
        numbers: Array,
    ) -> None:
        self.c, self.size, self.d, self.a, self.numbers = c, size, d, a, numbers
        self.contacts, self.bodies, self.total = contacts, bodies, total
        self.n = bodies * size

    def emit(self) -> None:
        c, a, numbers = self.c, self.a, self.numbers
        tolerance, weight = numbers[0], numbers[1]
        solved, steps, since = c.counter(0), c.counter(0), c.counter(0)
        self._evaluate()
        least = c.variable(a["square"][0])
        with c.loop(STEPS + 1) as k:
            steps.set(k)
            with c.when((self._largest("X") < self._bound(tolerance)).any()):
                solved.set(1)
            usable = (a["square"][0] < 1e300).any()
            c.break_if(c.b.or_(solved.get().differs(0), c.b.not_(usable)))
            c.break_if(c.b.or_(k.equals(STEPS), since.get() > PATIENCE))
            self._step()
            since.set(since.get() + 1)
            with c.when((a["square"][0] < least.get() * 0.25).any()):
                least.set(a["square"][0])
                since.set(0)
        refine = c.b.and_(solved.get().differs(0), (steps.get() > 0))
        with c.when(c.b.and_(refine, (weight > REFINED).any())), c.loop(2):
            self._refine()
        for i, counter in enumerate((steps, solved)):
            numbers[i] = Number(c, c.b.sitofp(counter.get().v, c.T))

    def _evaluate(self) -> None:
        c, a = self.c, self.a
        width = 2 * self.size
        arrays = [a[x] for x in ("rows", "H", "w", "rho", "mu", "v", "pb", "P", "D")]
        c.call("terms", self.contacts, width, *arrays)
        self._momentum()

    def _momentum(self) -> None:
        c, a = self.c, self.a
        with c.loop(self.n) as i:
            a["change"][i] = a["v"][i] - a["free"][i]
        arrays = [a[x] for x in ("rows", "H", "mass", "inverse", "change", "P", "R", "X", "square")]
        c.call("momentum", self.contacts, 2 * self.size, self.bodies, self.size, *arrays)

    def _largest(self, name: str) -> Any:
        top = self.c.variable(0.0)
        with self.c.loop(self.n) as i:
            top.set(top.get().max(abs(self.a[name][i])))
        return top.get()

    def _bound(self, tolerance: Any) -> Any:
        """What is left of momentum, as a velocity, at which the inner problem counts as solved."""
        c, a = self.c, self.a
        moved = c.variable(0.0)
        with c.loop(self.contacts * self.d) as i:
            moved.set(moved.get().max(abs(a["P"][i] - a["pb"][i]) / a["rho"][i]))
        part = moved.get() * 0.1
        return (part < 1e-3).select(part, 1e-3).max(tolerance * 0.1)

    def _solve(self) -> None:
        """change = K^-1 R."""
        c, a = self.c, self.a
        c.copy(a["change"], a["R"], self.n)
        arrays = [a[x] for x in ("order", "first", "ties", "upper", "lower", "blocks", "change", "room")]
        c.call("substitute", self.bodies, *arrays)

    def _step(self) -> None:
        """A Newton step, halved until |R| falls."""
        c, a = self.c, self.a
        names = ("mass", "H", "D", "places", "order", "first", "upper", "lower", "corner", "targets")
        arrays = [a[x] for x in (*names, "blocks", "room")]
        c.call("factor", self.contacts, self.bodies, self.total, *arrays)
        self._solve()
        c.copy(a["old"], a["v"], self.n)
        direction = a["old"].offset(self.n)
        c.copy(direction, a["change"], self.n)
        before, t = a["square"][0], c.variable(1.0)
        with c.loop(HALVINGS + 1):
            with c.loop(self.n) as i:
                a["v"][i] = a["old"][i] - t.get() * direction[i]
            self._evaluate()
            c.break_if((a["square"][0] < before).any())
            t.set(t.get() * 0.5)

    def _refine(self) -> None:
        """v and P corrected as independent unknowns with the last factors."""
        c, a, d = self.c, self.a, self.d
        width = 2 * self.size
        self._solve()
        with c.loop(self.n) as row:
            a["v"][row] = a["v"][row] - a["change"][row]
        with c.loop(self.contacts) as k:
            du = [c.variable(0.0) for _ in range(d)]
            with c.loop(width) as r:
                at = a["rows"][k * width + r]
                with c.when(at < self.n):
                    moving, line = a["change"][at], a["H"].offset((k * width + r) * d)
                    for i in range(d):
                        du[i].set(du[i].get() + line[i] * moving)
            D, P = a["D"].offset(k * (d * d)), a["P"].offset(k * d)
            for i in range(d):
                total = P[i]
                for j in range(d):
                    total = total + D[i * d + j] * du[j].get()
                P[i] = total
        self._momentum()
