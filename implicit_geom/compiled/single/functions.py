"""One body that moves, in one contact with a fixed half-space: the functions of its steps, as SX.

Composed of those of `body_functions`, `pair_functions` and `shared_functions`, with what is known in closed
form put in: the closest point follows from the pose, the linear velocity from the impulses, and in stage 2
the angular velocity, too. What is left to solve for is

    stage 1 (or Euler's whole step)   z = (w, P): angular velocity, impulses P = (P_n, S)
    stage 2                           z = P

by Newton's method, with a matrix small enough for straight code. Each function computes what those after it
need of its inputs and hands it on as one vector, so that nothing is computed twice:

    known = (bodies, pair, warm, h, allowed)
    open     (known)               -> z to start from, handed
    newton   (z, handed, known)    -> next z, measures of z
    check    (z, handed, known)    -> measures of z
    turn     (z, handed, known)    -> measures of z, warm, record, flags, nu, P to start from, handed_2
    newton_2, check_2, close (P, handed_2, z, known): the same for stage 2, whose `close` gives
                                      measures of P, state, record, summary
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from implicit_geom import rotation
from implicit_geom.compiled import blocks, support_maps
from implicit_geom.compiled.blocks import Block, Part
from implicit_geom.compiled.body_functions import body_functions, energies, energy_terms
from implicit_geom.compiled.pair_functions import PairFunctions
from implicit_geom.compiled.pair_start import Bodies
from implicit_geom.compiled.shared_functions import shared_functions
from implicit_geom.compiled.single.stage import Stage, measures
from implicit_geom.compiled.turns import LARGEST, SHORT
from implicit_geom.equations.contact_functions import KINDS, PairKernel
from implicit_geom.equations.contact_ncp import Equations, equations
from implicit_geom.equations.unknowns import cross
from implicit_geom.machine import small_systems
from implicit_geom.machine.lowering import Element
from implicit_geom.machine.shared_results import handed_on
from implicit_geom.model.model import Model
from implicit_geom.model.reasons import Left
from implicit_geom.process.building import Kept
from implicit_geom.process.lazy import cached_property

FASTEST = 1e100  # m/s: beyond it squares of squares overflow
SUMMARY = (
    "gain", "friction", "above_start", "above_end", "rounding", "rest", "turn", "holds", "mode",
)  # fmt: skip


class AlonePair(PairFunctions):
    """The functions of the pair, with rotations as series."""

    def __init__(self, kernel: PairKernel) -> None:
        super().__init__(kernel)
        self.turns = SHORT

    def turned(self, w: ca.SX, h: ca.SX, R: ca.SX) -> ca.SX:
        """exp(h w) R."""
        if self.dim == 2:
            return rotation.planar_symbolic(h * w) @ R
        return self.turns.matrix(h * w) @ R

    def _seen(self, kernel: PairKernel) -> tuple[dict[str, ca.SX], list[ca.SX], ca.SX]:
        if kernel.kind.scheme == "velocity":
            return super()._seen(kernel)
        found = equations(
            kernel.kind, False, lambda s: self.turned(s.nu[1][self.dim :], s["h"], s.matrix("R2"))
        )
        old, new = found.symbols, kernel.symbols
        names, values = list(found.report), list(found.report.values())
        values = ca.substitute(values, [old.nu[1], old.u, old.parameters], [new.nu[1], new.u, new.parameters])
        nu = [ca.SX.zeros(new.nu[0].shape), new.nu[1]]
        return dict(zip(names, values, strict=True)), nu, new.u


class AloneFunctions:
    """The SX functions of a kind of pair of which `support_maps.known` holds."""

    def __init__(self, kernel: PairKernel, rattle: bool) -> None:
        self.kernel, self.rattle = kernel, rattle
        self.scheme = "position" if rattle else "euler"
        self.kind = replace(kernel.kind, scheme=self.scheme)
        self.dim, self.spins = self.kind.first.dim, blocks.spins(self.kind.first.dim)
        self.pair = AlonePair(kernel)
        self.impulses = self.kind.layout.size - self.kind.layout.geometry
        self.unknowns = self.spins + self.impulses
        self.summary = Block(dict.fromkeys(SUMMARY, 1))
        self.reciprocals: dict[str, dict[Element, Element]] = {}  # by function, see `lowering.lower`

    @cached_property
    def body(self) -> dict[str, ca.Function]:
        return body_functions(self.dim, SHORT).functions

    @cached_property
    def equations(self) -> Equations:
        """Of the pair, with the orientation at the end of the step, `turned`, for a symbol."""
        return equations(self.kind, False, lambda _: self.turned)

    @cached_property
    def turned(self) -> ca.SX:
        return ca.SX.sym("R", self.dim, self.dim)

    @property
    def handed(self) -> dict[str, int]:
        """How many numbers the functions hand on that do."""
        names = ("open", "turn") if self.rattle else ("open",)
        return {n: int(self.functions[n].numel_out(self.functions[n].n_out() - 1)) for n in names}

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """All functions, by name."""
        dim, layout = self.dim, self.kind.layout
        b, h = Bodies.symbols(dim), ca.SX.sym("h")
        c, warm = self.pair.constants.symbol("c"), self.pair.warm.symbol("warm")
        s2, k2 = b.state[1], b.constants[1]
        fixed = [b.state[0].value, b.derived[0].value, b.constants[0].value]
        allowed = ca.SX.sym("allowed")  # 0 where friction may not lag, see `AloneParts._turn_back`
        known = [*fixed, s2.value, k2.value, c.value, warm.value, h, allowed]
        derived, momentum, free = self.body[f"prepare_{self.scheme}"].call([s2.value, k2.value, h])
        parameters, u, tolerance, start = self.pair.prepare(self.scheme).call(
            [*fixed, s2.value, derived, k2.value, c.value, warm.value, h]
        )
        z0 = ca.vertcat(ca.if_else(u[layout.geometry] > 0, s2["w"], free[dim:]), u[layout.geometry :])
        z = ca.SX.sym("z", self.unknowns)
        if self.rattle:
            for vector, at in ((parameters, blocks.parameters(self.kind).at), (start, self.pair.start.at)):
                vector[at["lag"].start] *= allowed
        stage = Stage(self, z, parameters, momentum, k2["inverse_mass"], c["stretch"])
        step, measured = stage.newton(c["tolerance"], tolerance[layout.geometry :])
        moved = self.body["advance"].call([s2.value, stage.nu, h])[0]
        next_warm, record, end, flags = self.pair.finish(self.scheme).call(
            [stage.unknowns, parameters, start, fixed[0], moved, fixed[2], k2.value, c.value, h]
        )
        within = stage.values["U"] < FASTEST
        if dim == 3:
            within = ca.logic_and(within, ca.sumsqr(h * stage.w) <= LARGEST**2)
        flags[0] = ca.fmax(flags[0], Left.TURN.value * ca.logic_not(within))
        outputs = [step, measured, next_warm, record, flags, stage.nu]
        second = None
        if self.rattle:
            P, start_2, later = self._stage_2(
                fixed, b, c, h, moved, stage.nu, stage.kicked(derived), end, record
            )
            second = handed_on(
                later,
                [*known, z],
                {"newton_2": (0, 2), "check_2": (1, 2), "close": (1, None)},
                lambda q: [P, q, z, *known],
            )
            outputs += [start_2, second.handed]
            self.reciprocals |= second.reciprocals
        else:
            outputs.append(moved)
        first = handed_on(
            outputs,
            known,
            {"newton": (0, 2), "check": (1, 2), "turn": (1, None)},
            lambda q: [z, q, *known],
        )
        self.reciprocals |= first.reciprocals
        opened = {"open": ca.Function("open", known, [z0, first.handed])}
        return opened | first.functions | (second.functions if second else {})

    def wrench(self, seen: dict[str, ca.SX]) -> tuple[ca.SX, ca.SX]:
        """Impulse, and its moment about the moving body's centre of mass."""
        force, moment = seen["p_n"] * seen["n"], ca.SX.zeros(self.spins)
        for i, name in enumerate(self.kind.components):
            if name == "r":
                moment += seen["p_f"][i] * seen["n"]
            else:
                force += seen["p_f"][i] * seen[name]
        return force, moment + cross(seen["r2"], force)

    def _stage_2(
        self,
        fixed: list[ca.SX],
        b: Bodies,
        c: Part,
        h: ca.SX,
        moved: ca.SX,
        nu: ca.SX,
        left: ca.SX,
        end: ca.SX,
        first: ca.SX,
    ) -> tuple[ca.SX, ca.SX, list[ca.SX]]:
        """Its unknowns, where to start, and: the next point, measures, state, record, summary."""
        dim, k2, n = self.dim, b.constants[1], self.impulses
        kernel = self.kernel.scheme("velocity")
        drifted = self.body["drift"].call([moved, k2.value, h])[0]
        derived, momentum, _ = self.body["prepare_velocity"].call([drifted, k2.value, h])
        parameters, start, tolerance = self.pair.prepare_velocity().call(
            [*fixed, drifted, derived, k2.value, c.value, end, h]
        )
        P, active = ca.SX.sym("P", n), Part(self.pair.end, end)["active"]
        own, at = Part(blocks.derived(dim), derived), body_functions(dim).momentum.at
        seen = kernel.report.call([ca.vertcat(ca.SX.zeros(nu.shape), P), parameters])[0]
        force, moment = self.wrench({name: seen[where] for name, where in kernel.seen.items()})
        v = momentum[at["v_free"]] + active * k2["inverse_mass"] * force
        if dim == 3:
            w = own.matrix("inverse_inertia") @ (momentum[at["momentum"]] + active * moment)
        else:
            w = momentum[at["w_free"]] + active * own["inverse_inertia"] * moment
        after = ca.vertcat(v, w)
        rows = kernel.exact[0].call([ca.vertcat(after, P), parameters])[0][:n]
        F = active * rows + (1 - active) * P
        step = P + small_systems.solve(ca.densify(ca.jacobian(F, P)), -F)
        at_v, at_w = (blocks.state(dim).at[name] for name in "vw")
        ended = ca.vertcat(drifted[: at_v.start], after)
        record = self.pair.finish_velocity().call(
            [ca.vertcat(after, P), parameters, end, first, c.value, ended]
        )[0]
        summary = self._summary(
            b, c, h, ended, nu, (left, ca.vertcat(drifted[at_v], drifted[at_w])), first, record
        )
        return P, active * start, [step, measures(F, tolerance), ended, record, summary]

    def _summary(
        self,
        b: Bodies,
        c: Part,
        h: ca.SX,
        ended: ca.SX,
        nu: ca.SX,
        kicked: tuple[ca.SX, ca.SX],
        first: ca.SX,
        second: ca.SX,
    ) -> ca.SX:
        """What the guard needs, see `RattleParts.energy`; `kicked`: see `energy_terms`."""
        s1, s2, shared = b.state[0].value, b.state[1].value, shared_functions(self.dim)
        start, end = Part(blocks.state(self.dim), s2), Part(blocks.state(self.dim), ended)
        terms = energy_terms(self.dim, start, end, b.constants[1], h, *kicked)
        own = Part(energies(self.dim), terms)
        still = ca.SX.zeros(nu.shape)
        works = [
            shared["work"].call([record, s1, s, still, own[mean], c["sign"]])[0]
            for record, s, mean in ((first, s2, "mean1"), (second, ended, "mean2"))
        ]
        speed = ca.mmax(ca.vertcat(1, ca.fabs(nu)))
        modes = shared["mode"].call([first, second, speed, h])[0]
        return self.summary.join(
            gain=own["change"] - own["work"], friction=-(works[0] + works[1]),
            above_start=own["above_start"], above_end=own["above_end"],
            rounding=own["kinetic"] + own["lift"], rest=own["rest"], turn=own["turn"],
            holds=modes[0], mode=modes[1],
        )  # fmt: skip


def alone_functions(model: Model, candidates: list[int], rattle: bool) -> AloneFunctions | None:
    """The functions for a scene of one body that moves, with one candidate pair of a known kind."""
    if model.moving.size != 1 or len(candidates) != 1:
        return None
    kernel = model.pairs[candidates[0]].kernel
    if not support_maps.known(kernel.kind):
        return None
    return _FUNCTIONS.get((kernel.kind.key, rattle), lambda: AloneFunctions(kernel, rattle))


_FUNCTIONS: Kept[AloneFunctions] = Kept(KINDS)
