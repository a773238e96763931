"""Stage 2 of RATTLE for one body in one contact, and the step's energy balance, as expressions.

The impulses P are all that is left to solve for: poses are those at the end of stage 1, and the velocities
follow from the impulses [C07, eq. 4].
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.any_pair import CONTACT_ENERGY, any_pair_functions
from implicit_geom.compiled.functions.body import body_functions, energies, energy_terms
from implicit_geom.compiled.functions.pair_start import BodyPair
from implicit_geom.compiled.single.contact import SingleContact
from implicit_geom.compiled.single.stage_1 import measures
from implicit_geom.compiled.structs import Struct, StructSymbol
from implicit_geom.machine import small_systems

SUMMARY = Struct(
    dict.fromkeys(("made", "left", "start", "end", "rounding", "rest", "turn", "holds", "mode"), 1)
)


@dataclass(frozen=True)
class StageOneResult:
    """What stage 1 leaves: the moved state, its velocities, those after its kick, the contact, its record."""

    moved: ca.SX
    nu: ca.SX
    kicked: ca.SX
    end: ca.SX
    record: ca.SX


@dataclass(frozen=True)
class StageTwo:
    """Unknowns P, where to start; and the next point, measures of P, state, record, summary."""

    P: ca.SX
    start: ca.SX
    outputs: list[ca.SX]


def stage_2(
    contact: SingleContact, b: BodyPair, c: StructSymbol, h: ca.SX, first: StageOneResult
) -> StageTwo:
    """The velocity stage: impulses that leave no closed contact approaching."""
    dim, k2, n = contact.dim, b.constants[1], contact.impulses
    fixed = [b.state[0].value, b.derived[0].value, b.constants[0].value]
    kernel = contact.kernel.scheme("velocity")
    drifted = contact.body["drift"].call([first.moved, k2.value, h])[0]
    derived, momentum, _ = contact.body["prepare_velocity"].call([drifted, k2.value, h])
    parameters, start, tolerance = contact.pair.prepare_velocity().call(
        [*fixed, drifted, derived, k2.value, c.value, first.end, h]
    )
    P, active = ca.SX.sym("P", n), StructSymbol(contact.pair.end, first.end)["active"]
    own, at = StructSymbol(structs.derived(dim), derived), body_functions(dim).momentum.at
    seen = kernel.report.call([ca.vertcat(ca.SX.zeros(first.nu.shape), P), parameters])[0]
    force, moment = contact.wrench({name: seen[where] for name, where in kernel.seen.items()})
    v = momentum[at["v_free"]] + active * k2["inverse_mass"] * force
    if dim == 3:
        w = own.matrix("inverse_inertia") @ (momentum[at["momentum"]] + active * moment)
    else:
        w = momentum[at["w_free"]] + active * own["inverse_inertia"] * moment
    after = ca.vertcat(v, w)
    rows = kernel.exact[0].call([ca.vertcat(after, P), parameters])[0][:n]
    F = active * rows + (1 - active) * P
    step = P + small_systems.solve(ca.densify(ca.jacobian(F, P)), -F)
    at_v, at_w = (structs.state(dim).at[name] for name in "vw")
    ended = ca.vertcat(drifted[: at_v.start], after)
    record = contact.pair.finish_velocity().call(
        [ca.vertcat(after, P), parameters, first.end, first.record, c.value, ended]
    )[0]
    kicked = (first.kicked, ca.vertcat(drifted[at_v], drifted[at_w]))
    summary = _summary(dim, b, c, h, ended, kicked, (first.record, record))
    return StageTwo(P, active * start, [step, measures(F, tolerance), ended, record, summary])


def _summary(
    dim: int,
    b: BodyPair,
    c: StructSymbol,
    h: ca.SX,
    ended: ca.SX,
    kicked: tuple[ca.SX, ca.SX],
    records: tuple[ca.SX, ca.SX],
) -> ca.SX:
    """What the energy guard needs, see `loops.islands`; `kicked`: see `energy_terms`."""
    s1, s2 = b.state[0].value, b.state[1].value
    start, end = StructSymbol(structs.state(dim), s2), StructSymbol(structs.state(dim), ended)
    own = StructSymbol(energies(dim), energy_terms(dim, start, end, b.constants[1], h, *kicked))
    basics = structs.pair_basics()
    known = [s1, s2, s1, ended, ca.SX.zeros(own.value.shape), own.value, c.value[: basics.size], h]
    outcome = any_pair_functions(dim)["contact_energy"].call([*records, *known])[0]
    found = StructSymbol(CONTACT_ENERGY, outcome)
    net, kinetic = own["net"] + found["friction"], []
    first, second = (StructSymbol(structs.record(dim), r) for r in records)
    for s in (start, end):
        towards = [r["closed"] * ca.dot(r["normal"], s["v"]) ** 2 for r in (first, second)]
        kinetic.append(b.constants[1]["mass"] / 2 * ca.fmax(*towards))
    return SUMMARY.join(
        made=net, left=ca.if_else(found["struck"] > 0, 0, net),
        start=own["start"] + kinetic[0], end=own["end"] + kinetic[1],
        rounding=own["kinetic"] + own["lift"], rest=own["rest"], turn=own["turn"],
        holds=found["holds"], mode=found["mode"],
    )  # fmt: skip
