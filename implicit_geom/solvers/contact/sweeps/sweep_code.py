"""The sweep over all contacts, as machine code."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from implicit_geom.machine.code_values import Array, Integer, Number, Variable
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter
from implicit_geom.solvers.contact.sweeps.certify_code import emit_certify
from implicit_geom.solvers.contact.sweeps.local_law import Disc, solve_disc
from implicit_geom.solvers.contact.systems.law_code import discs_of


def module(d: int) -> ir.Module:
    """For d rows a contact: `sweep(contacts, width, count, rows, H, MH, W, w, values, coupling, mu, v, s)`,
    `certify(contacts, width, rows, H, MH, w, mu, mass, radius, v, s, out)`."""
    m = ModuleWriter("sweep", 1)
    with m.function("sweep", "iiiwnnnnnnnnn", public=True) as (c, arguments):
        contacts, width, count, *arrays = arguments
        with c.loop(count), c.loop(contacts) as k:
            emit_contact(c, d, k, width, *arrays)
    with m.function("certify", "iiwnnnnnnnnn", public=True) as (c, arguments):
        emit_certify(c, d, *arguments)
    return m.ir


def emit_contact(
    c: CodeWriter,
    d: int,
    k: Integer,
    width: Integer,
    rows: Array,
    H: Array,
    MH: Array,
    W: Array,
    w: Array,
    values: Array,
    coupling: Array,
    mu: Array,
    v: Array,
    s: Array,
    *,
    beyond: Number | None = None,
) -> list[Number]:
    """Solve contact k and let its bodies follow; how its impulses change.

    beyond   share of the change that is added to it once more, within the cone (over-relaxation)
    """
    rows, H, MH = rows.offset(k * width), H.offset(k * width * d), MH.offset(k * width * d)
    W, w, s = W.offset(k * (d * d)), w.offset(k * d), s.offset(k * d)
    values, coupling, mu = values.offset(k * d), coupling.offset(k * d), mu.offset(k * (2 if d == 5 else 1))
    old = [s[i] for i in range(d)]
    u = [c.variable(w[i]) for i in range(d)]
    with c.loop(width) as r:
        moving, line = v[rows[r]], H.offset(r * d)
        for i in range(d):
            u[i].set(u[i].get() + line[i] * moving)
    free = [_without(u[i].get(), W.offset(i * d), old, range(d)) for i in range(d)]
    new = [c.variable(0.0) for _ in range(d)]
    with c.when((free[0] < 0.0).any()):
        _closed(c, d, free, W, values, coupling, mu, old, new)
        if beyond is not None:
            _relaxed(d, beyond, mu, old, new)
    change = [new[i].get() - old[i] for i in range(d)]
    for i in range(d):
        s[i] = new[i].get()
    with c.loop(width) as r:
        line, at = MH.offset(r * d), rows[r]
        total = v[at]
        for i in range(d):
            total = total + line[i] * change[i]
        v[at] = total
    return change


def _relaxed(d: int, beyond: Number, mu: Array, old: list[Number], new: list[Variable]) -> None:
    """Impulses beyond the new ones, back on their cone where they leave it."""
    further = [x.get() + beyond * (x.get() - old[i]) for i, x in enumerate(new)]
    new[0].set(further[0].max(0.0))
    for number, disc in enumerate(discs_of(d)):
        square = new[0].c.number(0.0)
        for i in disc:
            square = square + further[i] * further[i]
        edge, length = mu[number] * new[0].get(), square.sqrt()
        share = (length > edge).select(edge / length.max(1e-300), 1.0)
        for i in disc:
            new[i].set(further[i] * share)


def _without(value: Number, W: Array, s: list[Any], which: range) -> Number:
    """A contact velocity without what some of the contact's own impulses do."""
    for j in which:
        value = value - W[j] * s[j]
    return value


def _closed(
    c: CodeWriter,
    d: int,
    free: list[Number],
    W: Array,
    values: Array,
    coupling: Array,
    mu: Array,
    old: list[Number],
    new: list[Variable],
) -> None:
    """The law of a contact that cannot stay open: of n and its first disc, then of a second one."""
    friction = range(1, 3) if d == 5 else range(1, d)
    rolling = range(3, d) if d == 5 else range(0)
    right = []
    for i in range(d):
        value = free[i]
        for j in rolling:  # as they are now
            value = value + W[i * d + j] * old[j]
        right.append(value)
    normal = W[0]
    b_n = right[0]
    still_open = ~(b_n < 0.0)
    reduced = [right[i] - coupling[i] * b_n / normal for i in friction]
    disc = Disc(c, values.offset(1), mu[0], coupling.offset(1), normal)
    solve_disc(c, disc, b_n, reduced, new[0], [new[i] for i in friction])
    if not rolling:
        return
    for i in range(3):  # (moments may carry what the normal impulse would have to)
        new[i].set(still_open.select(0.0, new[i].get()))
    s = [new[i].get() for i in range(3)]
    moments = []
    for i in rolling:
        value = free[i]
        for j in range(3):
            value = value + W[i * d + j] * s[j]
        moments.append(value)
    disc = Disc(c, values.offset(3), mu[1], None, normal)
    solve_disc(c, disc, None, moments, new[0], [new[i] for i in rolling])
