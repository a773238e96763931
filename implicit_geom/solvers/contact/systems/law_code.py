"""The inner problem's terms at a velocity, for all contacts in one call of machine code.

z = pb - rho u,    P_n = max(0, z_n),    P_f = z_f on the disc mu P_n       [Alart and Curnier 1991]
D = -dP/du:  open 0;  stick rho;  slip D_nn = rho, D_fn = mu rho e, D_ff = rho mu P_n/|z_f| (I - e e^T)
R = M (v - v_free) - H P,   X = M^-1 R
"""

from __future__ import annotations

from llvmlite import ir

from implicit_geom.machine.code_values import Array, Integer, Number
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter


def discs_of(d: int) -> list[range]:
    """The friction rows of a contact, by disc."""
    return [range(1, 3), range(3, 5)] if d == 5 else [range(1, d)]


def law_module(d: int) -> ir.Module:
    m = ModuleWriter("law", 1)
    emit_law(m, d, public=True)
    return m.ir


def emit_law(m: ModuleWriter, d: int, *, public: bool = False) -> None:
    """Add `terms(contacts, width, rows, H, w, rho, mu, v, pb, P, D)` and `momentum(contacts, width, bodies,
    size, rows, H, mass, inverse, change, P, R, X, square)` to a module."""
    with (
        m.function("terms", "iiwnnnnnnnn", public=public) as (c, (contacts, width, *arrays)),
        c.loop(contacts) as k,
    ):
        _terms(c, d, k, width, *arrays)
    with m.function("momentum", "iiiiwnnnnnnnn", public=public) as (c, arguments):
        _momentum(c, d, *arguments)


def _terms(
    c: CodeWriter,
    d: int,
    k: Integer,
    width: Integer,
    rows: Array,
    H: Array,
    w: Array,
    rho: Array,
    mu: Array,
    v: Array,
    pb: Array,
    P: Array,
    D: Array,
) -> None:
    """P and D of contact k at the velocities v."""
    discs = discs_of(d)
    rows, H, w = rows.offset(k * width), H.offset(k * width * d), w.offset(k * d)
    rho, mu, pb = rho.offset(k * d), mu.offset(k * len(discs)), pb.offset(k * d)
    P, D = P.offset(k * d), D.offset(k * (d * d))
    u = [c.variable(w[i]) for i in range(d)]
    with c.loop(width) as r:
        moving, line = v[rows[r]], H.offset(r * d)
        for i in range(d):
            u[i].set(u[i].get() + line[i] * moving)
    z = [pb[i] - rho[i] * u[i].get() for i in range(d)]
    for i in range(d * d):
        D[i] = 0.0
    for i in range(d):
        P[i] = 0.0
    with c.when((z[0] > 0.0).any()):
        P[0], D[0] = z[0], rho[0]
        for number, disc in enumerate(discs):
            _friction(c, d, disc, z, mu[number], rho, P, D)


def _friction(
    c: CodeWriter, d: int, disc: range, z: list[Number], mu: Number, rho: Array, P: Array, D: Array
) -> None:
    """Friction on one disc of a contact that is closed."""
    square = c.number(0.0)
    for i in disc:
        square = square + z[i] * z[i]
    length, radius = square.sqrt(), mu * z[0]
    slips = length > radius
    share = slips.select(radius / length.max(1e-300), 1.0)
    inverse = c.number(1.0) / length.max(1e-300)
    for i in disc:
        P[i] = z[i] * share
        e_i = slips.select(z[i] * inverse, 0.0)
        D[i * d] = mu * rho[0] * e_i
        for j in disc:
            whole = 1.0 if i == j else 0.0
            D[i * d + j] = rho[i] * share * (c.number(whole) - e_i * (z[j] * inverse))


def _momentum(
    c: CodeWriter,
    d: int,
    contacts: Integer,
    width: Integer,
    bodies: Integer,
    size: Integer,
    rows: Array,
    H: Array,
    mass: Array,
    inverse: Array,
    change: Array,
    P: Array,
    R: Array,
    X: Array,
    square: Array,
) -> None:
    """R = M change - H P by body, X = M^-1 R and R . X."""
    _by_body(c, bodies, size, mass, change, R)
    with c.loop(contacts) as k, c.loop(width) as r:
        own, line, at = P.offset(k * d), H.offset((k * width + r) * d), rows[k * width + r]
        total = R[at]
        for i in range(d):
            total = total - line[i] * own[i]
        R[at] = total
    _by_body(c, bodies, size, inverse, R, X)
    norm = c.variable(0.0)
    with c.loop(bodies * size) as row:
        norm.set(norm.get() + R[row] * X[row])
    square[0] = norm.get()


def _by_body(c: CodeWriter, bodies: Integer, size: Integer, matrices: Array, x: Array, y: Array) -> None:
    """y = A x, block by block."""
    with c.loop(bodies) as k, c.loop(size) as i:
        line = matrices.offset((k * size + i) * size)
        own, total = x.offset(k * size), c.variable(0.0)
        with c.loop(size) as j:
            total.set(total.get() + line[j] * own[j])
        y[k * size + i] = total.get()
