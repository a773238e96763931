"""The NCP of one contact [C07, eqs. 10, 11] in its three forms, written once per kind of pair.

    euler      the whole step of C07: closest points, wrench and slip at the end of the step
    position   stage 1 of the RATTLE step: wrench at the start, gap at the end,
               slip in between (its mean over both ends, or that of the start)
    velocity   stage 2: everything at the end; the law is on the normal velocity

Each returns the contact's own rows, then its share in the two bodies' momentum balances. Of [C07, eq. 10]
these are the closest points (`closest_point`), friction with [C07, eq. 11] (`friction_law`), and the wrenches
W p of the first row, whose other terms are in `momentum`.

Where bodies touch along a line or a face the contact point is part of the solution: the moment
balance picks it within the patch. In stage 1 it is the end-of-step point r, carried back to the
start with its body, of which only the part in the patch's directions counts:

    rho = r_0 + B (R R+^T r - r_0),       B projects on the directions in which the contact is flat

In stage 2 it is the point of the patch that approaches fastest, the velocity-level counterpart of
the closest-point conditions:

    B (n x (w_2 - w_1) + sum_i l_i grad f_i + sum_j k_j grad g_j) = 0,    (I - B) (r - r_0) = 0
    0 <= l_i _|_ -f_i(r) >= 0,   0 <= k_j _|_ -g_j(r) >= 0

B = 0 leaves one point at each end (and l = k = 0 in stage 2), B = I pushes at the end-of-step point alone.

In a step that runs backwards an impulse drives a velocity the other way, and a natural map such as
P = max(P - u, 0) finds an open solution beside the closed one. Where a contact is to stay closed
(sticking), u enters with the sign of h: the solution sought is the same, u = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from implicit_geom.equations.closest_point import Turned, closest_point_rows, surface_rows
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.equations.contact_kinematics import cross, point_velocity, slip, velocities
from implicit_geom.equations.friction_law import contact_law_rows
from implicit_geom.equations.tangent import tangents
from implicit_geom.equations.unknowns import PairKind, Symbols

Frame = tuple[ca.SX, ca.SX, ca.SX]  # n, t, o


@dataclass(frozen=True)
class ContactEquations:
    """Symbols, rows, and what is worth reporting of a solution: expressions by name."""

    symbols: Symbols
    rows: ca.SX
    report: dict[str, ca.SX]


def contact_equations(kind: PairKind, smooth: bool, turned: Turned | None = None) -> ContactEquations:
    """The rows of a contact in the kind's scheme, exact or smoothed; `turned`: see `closest_point`."""
    if kind.scheme == "velocity":
        return _velocity(kind, smooth)
    return {"euler": _euler, "position": _position}[kind.scheme](kind, smooth, turned)


def _euler(kind: PairKind, smooth: bool, turned: Turned | None) -> ContactEquations:
    """The whole step of C07, everything at its end [C07, eqs. 10, 11, with 22 for 9]."""
    s = Symbols(kind)
    c = closest_point_rows(kind, s, smooth, turned)
    frame = (c.n, *tangents(c.n, s["direction"], kind.frame, c.R))
    v = slip(kind, velocities(kind, s), (c.r1, c.r2), frame)
    return _assemble(kind, s, c.rows, c.d, v, (c.r1, c.r2), frame, smooth, {"gap": c.d})


def _position(kind: PairKind, smooth: bool, turned: Turned | None) -> ContactEquations:
    """Stage 1 of RATTLE: closest points at the end [C07, eqs. 9, 22], W p at the start, mean slip."""
    s = Symbols(kind)
    c = closest_point_rows(kind, s, smooth, turned)
    nu = velocities(kind, s)
    start = (s.matrix("R1"), s.matrix("R2"))
    frame = (s["n"], *tangents(s["n"], s["direction"], kind.frame, start))
    end = carried = (c.n, *tangents(c.n, s["direction"], kind.frame, c.R))
    if kind.isotropic and kind.first.dim == 3:
        # no frame is better than another: turn with the normal and no further
        turn = _shortest_rotation(s["n"], c.n)
        carried = (c.n, turn @ frame[1], turn @ frame[2])
        end = carried if kind.frame == "free" else end
    levers = _levers(kind, s, (c.r1, c.r2), c.R)
    mean = (slip(kind, nu, levers, frame) + slip(kind, nu, (c.r1, c.r2), carried)) / 2
    begin = slip(kind, [s["start1"], s["start2"]], levers, frame)
    v = ca.if_else(s["lag"] > 0, begin, mean) if kind.components else mean
    sense = ca.if_else(s["lag"] > 0, 1, ca.sign(s["h"]))
    report = {
        "gap": c.d,
        "mean_slip": mean,
        "start_slip": begin,
        "end_r1": c.r1,
        "end_r2": c.r2,
        "end_n": c.n,
        "end_t": end[1],
        "end_o": end[2],
    }
    return _assemble(kind, s, c.rows, c.d, v, levers, frame, smooth, report, sense)


def _velocity(kind: PairKind, smooth: bool) -> ContactEquations:
    """Stage 2 of RATTLE: 0 <= p_n _|_ v_n + bounce >= 0 and friction at the end, at points of the patch."""
    s = Symbols(kind)
    nu, at, dim = velocities(kind, s), kind.layout.at, kind.first.dim
    frame = (s["n"], s["t"], s["o"])
    points, rows = (s["r1"], s["r2"]), ca.SX(0, 1)
    if kind.patches:
        length = ca.fabs(s["h"]) * s["U"]
        eps = s["eps"] * ca.fmin(s["L"], length) if smooth else None
        step = s.u[at["r"]]
        points = (s["r1"] + s["L"] * step, s["r2"] + s["L"] * step)
        faces = []
        for i, shape, name in ((0, kind.first, "l"), (1, kind.second, "k")):
            if is_halfspace(shape):
                continue
            R = s.matrix(f"R{i + 1}")
            local = R.T @ points[i] + s[f"com{i + 1}"]
            faces.append(surface_rows(shape, local, s[f"theta{i + 1}"], R, s.u[at[name]], s["c"], eps))
        turning = nu[1][dim:] - nu[0][dim:]
        # gradient of the normal velocity along the patch, over 1/|h|
        gradient = (
            ca.cross(frame[0], turning) if dim == 3 else turning * ca.vertcat(frame[0][1], -frame[0][0])
        )
        gradient = ca.fabs(s["h"]) * gradient + sum((face.normal for face in faces), ca.SX.zeros(dim))
        B = s.matrix("B")
        along = B @ gradient + (ca.SX.eye(dim) - B) @ step
        # a point that is given does not feel the multipliers: on an edge, where both sides of their rows
        # are zero, rounding would choose between the two, and with it where Newton's method goes
        free = ca.sumsqr(B) > 0
        own = ca.vertcat(*[face.rows for face in faces])
        rows = ca.vertcat(along, ca.if_else(free, own, s["c"] * s.u[at["l"].start : at["k"].stop]) / length)
    normal = ca.dot(frame[0], point_velocity(nu[1], points[1]) - point_velocity(nu[0], points[0]))
    v = slip(kind, nu, points, frame)
    report = {"normal_velocity": normal}
    d = (normal + s["bounce"]) * s["h"]  # with the sign of h, see above
    return _assemble(kind, s, rows, d, v, points, frame, smooth, report, s["sense"])


def _assemble(
    kind: PairKind,
    s: Symbols,
    own: ca.SX,
    d: ca.SX,
    v: ca.SX,
    points: tuple[ca.SX, ca.SX],
    frame: Frame,
    smooth: bool,
    report: dict[str, ca.SX],
    sense: ca.SX | float = 1.0,
) -> ContactEquations:
    """0 <= p_n _|_ d >= 0 and friction against the slip v [C07, eq. 11], wrenches W p at the given points."""
    at, U = kind.layout.at, s["U"]
    law = contact_law_rows(
        kind.friction,
        s.u[at["P_n"]],
        s.u[at["S"]],
        s.u[at["sigma"]],
        d / ca.fabs(s["h"]),
        sense * s["e"] * v,
        s["mu"],
        U,
        s["eps"] * U if smooth else None,
    )
    p_n = s["m_c"] * law.P_n
    p_f = s["m_c"] * s["e"] * law.S if kind.components else ca.SX(0, 1)
    n, t, o = frame
    shares = _momentum_shares(kind, s, p_n, p_f, points, frame)
    seen = {
        "r1": points[0],
        "r2": points[1],
        "n": n,
        "t": t,
        "o": o,
        "p_n": p_n,
        "p_f": p_f,
        "slip": v,
        **report,
    }
    return ContactEquations(s, ca.vertcat(own, law.rows / U, *shares), seen)


def _momentum_shares(
    kind: PairKind, s: Symbols, p_n: ca.SX, p_f: ca.SX, points: tuple[ca.SX, ca.SX], frame: Frame
) -> list[ca.SX]:
    """-(W_n p_n + W_t p_t + W_o p_o + W_r p_r) of [C07, eq. 10] for each moving body, scaled as its rows."""
    dim = kind.first.dim
    force, couple = impulse_and_couple(kind, p_n, p_f, frame)
    shares = []
    for sign, r, i in ((-1, points[0], 1), (1, points[1], 2)):
        if not kind.moves[i - 1]:
            continue
        w = s[f"weight{i}"]
        K = ca.reshape(w[1:], 3, 3) if dim == 3 else w[1:]
        torque = sign * (cross(r, force) + couple)
        shares += [-sign * w[0] * force, -(K @ torque)]
    return shares


def impulse_and_couple(kind: PairKind, p_n: ca.SX, p_f: ca.SX, frame: Frame) -> tuple[ca.SX, ca.SX]:
    """On the second body, p_n n + p_t t + p_o o and p_r n: the columns W_n, W_t, W_o, W_r of [C07, eq. 1]."""
    n, t, o = frame
    along = {"t": t, "o": o}
    force, couple = p_n * n, ca.SX.zeros(3 if kind.first.dim == 3 else 1)
    for i, name in enumerate(kind.components):
        if name == "r":
            couple += p_f[i] * n
        else:
            force += p_f[i] * along[name]
    return force, couple


def _levers(
    kind: PairKind, s: Symbols, ends: tuple[ca.SX, ca.SX], R_end: tuple[ca.SX, ca.SX]
) -> tuple[ca.SX, ca.SX]:
    """Where stage 1 pushes, from the two centres of mass at the start: one point, so that action is reaction.

    Half-way between the two bodies' points where both move, on the moving one otherwise.
    """
    B = s.matrix("B")
    own = []
    for i in (0, 1):
        start = s[f"r{i + 1}"]
        carried = s.matrix(f"R{i + 1}") @ (R_end[i].T @ ends[i])
        own.append(start + B @ (carried - start))
    from_first = {
        (True, True): (own[0] + s["offset"] + own[1]) / 2,
        (True, False): own[0],
        (False, True): s["offset"] + own[1],
    }
    if is_halfspace(kind.first):
        point = s["offset"] + own[1]
    else:
        point = from_first[kind.moves]
    return point, point - s["offset"]


def _shortest_rotation(a: ca.SX, b: ca.SX) -> ca.SX:
    """The rotation about a x b that takes the unit vector a to b."""
    x = ca.skew(ca.cross(a, b))
    return ca.SX.eye(3) + x + x @ x / (1 + ca.dot(a, b))
