"""The residuals of all contacts (`law.contact_residuals`) at given impulses, as machine code."""

from __future__ import annotations

from implicit_geom.machine.code_values import Array, Integer, Number
from implicit_geom.machine.code_writer import CodeWriter


def emit_certify(
    c: CodeWriter,
    d: int,
    contacts: Integer,
    width: Integer,
    rows: Array,
    H: Array,
    MH: Array,
    w: Array,
    mu: Array,
    mass: Array,
    radius: Array,
    v: Array,
    s: Array,
    out: Array,
) -> None:
    """Add M^-1 H s to v; the largest residual to out[0], their sum (NaN if one of them is) to out[1]."""
    with c.loop(contacts) as k, c.loop(width) as r:
        own, line, at = s.offset(k * d), MH.offset((k * width + r) * d), rows[k * width + r]
        total = v[at]
        for i in range(d):
            total = total + line[i] * own[i]
        v[at] = total
    discs = [range(1, 3), range(3, 5)] if d == 5 else [range(1, d)]
    worst, everything = c.variable(0.0), c.variable(0.0)
    with c.loop(contacts) as k:
        u = [c.variable(w[k * d + i]) for i in range(d)]
        with c.loop(width) as r:
            moving, line = v[rows[k * width + r]], H.offset((k * width + r) * d)
            for i in range(d):
                u[i].set(u[i].get() + line[i] * moving)
        impulses, m = [s[k * d + i] for i in range(d)], mass[k]
        speeds = [x.get() for x in u]
        pressed = impulses[0] / m
        found = [abs((speeds[0] < pressed).select(speeds[0], pressed)), -pressed]
        for number, disc in enumerate(discs):
            at = k * len(discs) + number
            found += _friction(c, disc, speeds, impulses, mu[at], m, radius[at])
        for value in found:
            worst.set(worst.get().max(value))
            everything.set(everything.get() + value)
    out[0], out[1] = worst.get(), everything.get()


def _friction(
    c: CodeWriter, disc: range, u: list[Number], s: list[Number], mu: Number, m: Number, r: Number
) -> list[Number]:
    """How far impulses are outside their disc, and from maximum dissipation."""
    edge, scale = mu * s[0].max(0.0), m * r
    z = {i: s[i] - scale * r * u[i] for i in disc}
    inside, length, rest = c.number(0.0), c.number(0.0), c.number(0.0)
    for i in disc:
        inside, length = inside + s[i] * s[i], length + z[i] * z[i]
    reached = length.sqrt()
    share = (reached > edge).select(edge / reached.max(1e-300), 1.0)
    for i in disc:
        off = s[i] - z[i] * share
        rest = rest + off * off
    return [(inside.sqrt() - edge) / scale, rest.sqrt() / scale]
