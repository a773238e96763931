"""Functions of a pair of any shapes, as SX: work of friction, stick or slide, separation."""

from __future__ import annotations

import casadi as ca

from implicit_geom.compiled import structs
from implicit_geom.compiled.structs import StructSymbol
from implicit_geom.equations.contact_kinematics import point_velocity
from implicit_geom.equations.thresholds import SLIDES, SLIDES_IN_LEDGER


def any_pair_functions(dim: int) -> dict[str, ca.Function]:
    """The functions that are the same for all kinds of pairs."""
    return {"work": _work(dim), "mode": _mode(dim), "near": _near(dim)}


def _work(dim: int) -> ca.Function:
    """(record, states 1 and 2 at the kick's poses, mean velocities of both, sign) -> work of friction.

    See `model.ledger`: the work counts where the contact slides, or slid at the start.
    """
    s = [structs.state(dim).symbol(f"s{i}") for i in (1, 2)]
    nu = [ca.SX.sym(f"nu{i}", dim + structs.spins(dim)) for i in (1, 2)]
    r, sign = structs.record(dim).symbol("r"), ca.SX.sym("sign")
    relative = point_velocity(nu[1], r["point"] - s[1]["x"]) - point_velocity(nu[0], r["point"] - s[0]["x"])
    relative = sign * relative  # in the scene's order of bodies
    work = r["p_t"] * ca.dot(r["tangent"], relative)
    if dim == 3:
        spin = sign * ca.dot(r["normal"], nu[1][3:] - nu[0][3:])
        work += r["p_o"] * ca.dot(r["binormal"], relative) + r["p_r"] * spin
    fastest = ca.mmax(ca.vertcat(1, ca.fabs(ca.vertcat(*nu))))
    counts = ca.logic_or(r["slid"] > 0, _slip(r) > SLIDES_IN_LEDGER * fastest)
    counts = ca.logic_and(counts, ca.logic_and(r["closed"] > 0, r["impact"] == 0))
    return ca.Function("work", [r.value, s[0].value, s[1].value, *nu, sign], [ca.if_else(counts, work, 0)])


def _mode(dim: int) -> ca.Function:
    """(records of both stages, speed scale, h) -> whether the mode holds throughout, and the mode.

    See `steppers.guard`; 0 is open, 1 sticks, 2 slides.
    """
    a, b = structs.record(dim).symbol("a"), structs.record(dim).symbol("b")
    speed, h = ca.SX.sym("speed"), ca.SX.sym("h")
    closed, active = a["closed"] > 0, b["closed"] > 0
    slides = [_slip(r) > SLIDES * speed for r in (a, b)]
    same = ca.logic_and(slides[0] == a["lagged"], slides[0] == a["slid"])
    steady = ca.logic_and(ca.logic_and(a["impact"] == 0, a["p_n"] * h >= 0), b["p_n"] * h >= 0)
    steady = ca.logic_and(ca.logic_and(steady, same), slides[0] == slides[1])
    holds = ca.if_else(closed, ca.logic_and(active, steady), ca.logic_not(active))
    mode = ca.if_else(closed, 1 + slides[0], 0)
    return ca.Function("mode", [a.value, b.value, speed, h], [ca.vertcat(holds, mode)])


def _near(dim: int) -> ca.Function:
    """(states, velocities, constants of both bodies, plane, h) -> whether they may meet in the step.

    `plane` is (1, normal, offset) where the first body is a half-space, else zero; see
    `geometry.broad_phase`.
    """
    s = [structs.state(dim).symbol(f"s{i}") for i in (1, 2)]
    nu = [ca.SX.sym(f"nu{i}", dim + structs.spins(dim)) for i in (1, 2)]
    k = [structs.constants(dim).symbol(f"k{i}") for i in (1, 2)]
    plane, h = ca.SX.sym("plane", 2 + dim), ca.SX.sym("h")
    spin = sum(ca.sqrt(ca.sumsqr(nu[i][dim:])) * k[i]["reach"] for i in (0, 1))
    motion = ca.fabs(h) * (ca.sqrt(ca.sumsqr(nu[1][:dim] - nu[0][:dim])) + spin)
    apart = ca.sqrt(ca.sumsqr(s[1]["x"] - s[0]["x"])) - k[0]["reach"] - k[1]["reach"]
    height = ca.dot(plane[1 : 1 + dim], s[1]["x"]) - plane[1 + dim] - k[1]["reach"]
    distance = ca.if_else(plane[0] > 0, height, apart)
    inputs = [s[0].value, s[1].value, *nu, k[0].value, k[1].value, plane, h]
    return ca.Function("near", inputs, [ca.logic_not(distance > motion)])


def _slip(r: StructSymbol) -> ca.SX:
    return ca.sqrt(r["v_t"] ** 2 + r["v_o"] ** 2 + r["v_r"] ** 2)
