"""Functions of a pair of any shapes, as SX: what a contact loses, stick or slide, separation."""

from __future__ import annotations

import casadi as ca

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.body import energies
from implicit_geom.compiled.structs import Struct, StructSymbol
from implicit_geom.equations.contact_kinematics import point_velocity
from implicit_geom.equations.thresholds import SLIDES, SLIDES_IN_LEDGER

CONTACT_ENERGY = Struct(dict.fromkeys(("friction", "struck", "holds", "mode"), 1))


def any_pair_functions(dim: int) -> dict[str, ca.Function]:
    """The functions that are the same for all kinds of pairs."""
    return {"contact_energy": _contact_energy(dim), "near": _near(dim)}


def _contact_energy(dim: int) -> ca.Function:
    """(records of both stages, states at the start 1 and 2, at the end 1 and 2, energies 1 and 2, basics, h)
    -> `CONTACT_ENERGY`: what the contact lost in friction, whether it struck, whether its mode holds
    throughout, and the mode.

    See `model.ledger` and `steppers.guard`; modes: 0 is open, 1 sticks, 2 slides.
    """
    records = [structs.record(dim).symbol(f"r{i}") for i in (1, 2)]
    states = [[structs.state(dim).symbol(f"s{k}{i}") for i in (1, 2)] for k in (1, 2)]
    bodies = [energies(dim).symbol(f"e{i}") for i in (1, 2)]
    basics, h = structs.pair_basics().symbol("c"), ca.SX.sym("h")
    speed = ca.fmax(bodies[0]["speed"], bodies[1]["speed"])
    slip = [ca.sumsqr(ca.vertcat(r["v_t"], r["v_o"], basics["L"] * r["v_r"])) for r in records]
    sense = ca.if_else(h < 0, -1, 1)
    both, law, struck = ca.SX(0), ca.SX(0), ca.SX(0)
    for r, s, mean, size in zip(records, states, ("mean1", "mean2"), slip, strict=True):
        tangential = _work(dim, r, s, [e[mean] for e in bodies], basics["sign"])
        hit = ca.logic_and(r["closed"] > 0, r["impact"] > 0)
        kept = ca.logic_and(r["closed"] > 0, r["impact"] == 0)
        slides = ca.logic_and(kept, size > (SLIDES_IN_LEDGER * speed) ** 2)
        counts = ca.logic_or(slides, ca.logic_and(kept, r["slid"] > 0))
        both -= ca.if_else(counts, sense * tangential, 0)
        power = r["p_t"] * r["v_t"] + r["p_o"] * r["v_o"] + r["p_r"] * r["v_r"]
        law += ca.if_else(slides, ca.fmax(-sense * power, 0), 0)
        struck = ca.fmax(struck, hit)
    modes = _mode(records, [size > (SLIDES * speed) ** 2 for size in slip], h)
    friction = sense * ca.if_else(both >= 0, both, law)
    out = CONTACT_ENERGY.join(friction=friction, struck=struck, holds=modes[0], mode=modes[1])
    inputs = [*records, *states[0], *states[1], *bodies, basics]
    return ca.Function("contact_energy", [*(x.value for x in inputs), h], [out])


def _work(dim: int, r: StructSymbol, s: list[StructSymbol], nu: list[ca.SX], sign: ca.SX) -> ca.SX:
    """Work of friction for the velocities nu of both bodies, in states s."""
    relative = point_velocity(nu[1], r["point"] - s[1]["x"]) - point_velocity(nu[0], r["point"] - s[0]["x"])
    relative = sign * relative  # in the scene's order of bodies
    tangential = r["p_t"] * ca.dot(r["tangent"], relative)
    if dim == 3:
        spin = sign * ca.dot(r["normal"], nu[1][3:] - nu[0][3:])
        tangential += r["p_o"] * ca.dot(r["binormal"], relative) + r["p_r"] * spin
    return tangential


def _mode(records: list[StructSymbol], slides: list[ca.SX], h: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Whether the mode holds throughout, and the mode."""
    a, b = records
    closed, active = a["closed"] > 0, b["closed"] > 0
    same = ca.logic_and(slides[0] == a["lagged"], slides[0] == a["slid"])
    steady = ca.logic_and(ca.logic_and(a["impact"] == 0, a["p_n"] * h >= 0), b["p_n"] * h >= 0)
    steady = ca.logic_and(ca.logic_and(steady, same), slides[0] == slides[1])
    holds = ca.if_else(closed, ca.logic_and(active, steady), ca.logic_not(active))
    return holds, ca.if_else(closed, 1 + slides[0], 0)


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
