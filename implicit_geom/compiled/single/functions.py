"""The functions of a step of one body that moves, in one contact with a fixed half-space, as SX.

Composed of those of `functions.body`, `functions.pair` and `functions.any_pair`, with what is known in closed
form put in: the closest point follows from the pose, the linear velocity from the impulses, and in stage 2
the angular velocity, too. What is left to solve for is

    stage 1 (or Euler's whole step)   z = (w, P): angular velocity, impulses P = (P_n, S)
    stage 2                           z = P

by Newton's method, with a matrix small enough for straight code. Each function computes what those after it
need of its inputs alone and passes it on as one vector, `precomputed`, so that nothing is computed twice:

    known = (bodies, pair, warm, h, lag_allowed)
    start      (known)                    -> z to start from, precomputed
    newton     (z, precomputed, known)    -> next z, measures of z
    residual   (z, precomputed, known)    -> measures of z
    finish     (z, precomputed, known)    -> measures of z, warm, record, flags, nu, P to start from,
                                             precomputed_2
    newton_2, residual_2, finish_2 (P, precomputed_2, z, known): the same for stage 2, whose `finish_2` gives
                                             measures of P, state, record, summary
"""

from __future__ import annotations

import casadi as ca

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.pair_start import BodyPair
from implicit_geom.compiled.functions.rotation_vector import LARGEST
from implicit_geom.compiled.single.contact import SingleContact
from implicit_geom.compiled.single.stage_1 import StageOne
from implicit_geom.compiled.single.stage_2 import StageOneResult, stage_2
from implicit_geom.machine.lowering import Element
from implicit_geom.machine.precomputation import Precomputed, precomputed
from implicit_geom.model.reasons import ExitReason
from implicit_geom.process.lazy import cached_property

FASTEST = 1e100  # m/s: beyond it squares of squares overflow


class SingleContactFunctions(SingleContact):
    """The SX functions of a kind of pair of which `known_in_closed_form` holds."""

    @property
    def reciprocals(self) -> dict[str, dict[Element, Element]]:
        """By function, see `lowering.lower`."""
        return self._built[1]

    @property
    def functions(self) -> dict[str, ca.Function]:
        """All functions, by name."""
        return self._built[0]

    @property
    def precomputed_sizes(self) -> dict[str, int]:
        """How many numbers each function passes on, of those that do."""
        names = ("start", "finish") if self.rattle else ("start",)
        return {n: int(self.functions[n].numel_out(self.functions[n].n_out() - 1)) for n in names}

    @cached_property
    def _built(self) -> tuple[dict[str, ca.Function], dict[str, dict[Element, Element]]]:
        dim, layout = self.dim, self.kind.layout
        b, h = BodyPair.symbols(dim), ca.SX.sym("h")
        c, warm = self.pair.constants.symbol("c"), self.pair.warm.symbol("warm")
        s2, k2 = b.state[1], b.constants[1]
        fixed = [b.state[0].value, b.derived[0].value, b.constants[0].value]
        lag_allowed = ca.SX.sym("lag_allowed")  # see `SingleSubstep._solve_reversed_slip`
        known = [*fixed, s2.value, k2.value, c.value, warm.value, h, lag_allowed]
        derived, momentum, free = self.body[f"prepare_{self.scheme}"].call([s2.value, k2.value, h])
        parameters, u, tolerance, start = self.pair.prepare(self.scheme).call(
            [*fixed, s2.value, derived, k2.value, c.value, warm.value, h]
        )
        z0 = ca.vertcat(ca.if_else(u[layout.geometry] > 0, s2["w"], free[dim:]), u[layout.geometry :])
        z = ca.SX.sym("z", self.unknowns)
        if self.rattle:
            for vector, at in ((parameters, structs.parameters(self.kind).at), (start, self.pair.start.at)):
                vector[at["lag"].start] *= lag_allowed
        stage = StageOne(self, z, parameters, momentum, k2["inverse_mass"], c["multiplier_factor"])
        step, measured = stage.newton(c["tolerance"], tolerance[layout.geometry :])
        moved = self.body["advance"].call([s2.value, stage.nu, h])[0]
        next_warm, record, end, flags = self.pair.finish(self.scheme).call(
            [stage.unknowns, parameters, start, fixed[0], moved, fixed[2], k2.value, c.value, h]
        )
        within = stage.values["U"] < FASTEST
        if dim == 3:
            within = ca.logic_and(within, ca.sumsqr(h * stage.w) <= LARGEST**2)
        flags[0] = ca.fmax(flags[0], ExitReason.TURN.value * ca.logic_not(within))
        outputs = [step, measured, next_warm, record, flags, stage.nu]
        second: Precomputed | None = None
        if self.rattle:
            result = StageOneResult(moved, stage.nu, stage.kicked(derived), end, record)
            later = stage_2(self, b, c, h, result)
            second = precomputed(
                later.outputs,
                [*known, z],
                {"newton_2": (0, 2), "residual_2": (1, 2), "finish_2": (1, None)},
                lambda q: [later.P, q, z, *known],
            )
            outputs += [later.start, second.values]
        else:
            outputs.append(moved)
        first = precomputed(
            outputs,
            known,
            {"newton": (0, 2), "residual": (1, 2), "finish": (1, None)},
            lambda q: [z, q, *known],
        )
        functions = {"start": ca.Function("start", known, [z0, first.values])} | first.functions
        if second is None:
            return functions, first.reciprocals
        return functions | second.functions, first.reciprocals | second.reciprocals
