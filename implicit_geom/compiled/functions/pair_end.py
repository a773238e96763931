"""What is read off the solution of one pair, as SX: its contact record, and the next warm start.

A solution that the compiled step must not accept as it is sets an exit reason: the step is then taken again
by the stepper itself (`steppers.euler`, `steppers.rattle`), which knows what to do.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from implicit_geom import rotation
from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.pair_start import PairStart
from implicit_geom.compiled.structs import StructSymbol
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.equations.pair_kernel import PairKernel
from implicit_geom.equations.tangent import reference_symbolic
from implicit_geom.equations.thresholds import CROSSING, IMPACT_SPEED, SLAP, SLIDES, TOUCH
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.model.reasons import ExitReason


class PairEnd(PairStart):
    """The SX functions that make warm starts, records and ends of stages."""

    def finish(self, scheme: str) -> ca.Function:
        """(unknowns, parameters, start, end states 1 and 2, constants of both bodies, of the pair, h)
        -> warm, record, end, flags.

        See `steppers.euler`. `flags` are the exit reason, the overlap at the start, and whether friction that
        opposes the start's slip has turned it round.
        """
        kind, dim, kernel = replace(self.kind, scheme=scheme), self.dim, self.kernel.scheme(scheme)
        at, layout = kind.layout.at, kind.layout
        p, h, c = kernel.symbols.parameters, ca.SX.sym("h"), self.constants.symbol("c")
        info = self.start.symbol("start")
        states = [structs.state(dim).symbol(f"s{i}") for i in (1, 2)]
        bodies = [structs.constants(dim).symbol(f"k{i}") for i in (1, 2)]
        seen, nu, u = self._seen(kernel)
        values = StructSymbol(structs.parameters(kind), p)
        at_start = scheme == "position"
        r1, r2, n, t, o = (seen[f"end_{x}" if at_start else x] for x in ("r1", "r2", "n", "t", "o"))
        gap, p_n = seen["gap"], seen["p_n"]
        m_c, L, U = values["m_c"], c["L"], values["U"]
        closed = p_n / m_c > gap / ca.fabs(h)
        active = ca.logic_or(closed, gap <= TOUCH * L)
        fast = (IMPACT_SPEED if at_start else SLAP) * U
        slow = info["normal_velocity"] >= -fast
        impact = ca.logic_not(ca.logic_and(info["touching"], slow))
        slid = info["slip"] > SLIDES * U
        direction = self._direction(values["direction"], n, t, at_start)
        warm = self.warm.join(u=u, direction=direction, m_c=m_c, h=h, n=n)
        where = states[1]["x"] - (h * nu[1][:dim] if at_start else 0)
        record = self._record(
            kind, seen, c, where + seen["r2"], states[1]["x"] + r2, gap, impact, info["lag"], slid, closed
        )
        sense = ca.if_else(info["lag"] > 0, 1, ca.sign(h))
        end = self.end.join(
            r1=r1, r2=r2, n=n, t=t, o=o, gap=gap, multipliers=ca.vertcat(u[at["l"]], u[at["k"]]),
            impulses=u[at["P_n"].start : layout.size], m_c=m_c, sense=sense, active=active,
        )  # fmt: skip
        reason = self._exit_reason(kind, seen, u, info, closed, active, nu, bodies, c, h, t, U)
        back = ca.SX(0)
        if at_start and kind.components:
            along = ca.dot(c["e"] * seen["mean_slip"], c["e"] * seen["start_slip"])
            back = ca.logic_and(info["lag"] > 0, along <= 0)
        flags = ca.vertcat(reason, ca.fmax(-info["gap"], 0), back)
        inputs = [kernel.unknowns, p, info.value, states[0].value, states[1].value]
        inputs += [bodies[0].value, bodies[1].value, c.value, h]
        return ca.Function("finish", inputs, [ca.densify(x) for x in (warm, record, end, flags)])

    def finish_velocity(self) -> ca.Function:
        """(unknowns, parameters, end, stage 1's record, constants of the pair, end state 2) -> record."""
        kind, dim, kernel = replace(self.kind, scheme="velocity"), self.dim, self.kernel.scheme("velocity")
        c, end = self.constants.symbol("c"), self.end.symbol("end")
        first = self.record.symbol("first")
        state = structs.state(dim).symbol("s2")
        seen, _, _u = self._seen(kernel)
        point = state["x"] + seen["r2"]
        impact, slid = first["impact"], first["slid"]
        record = self._record(kind, seen, c, point, point, end["gap"], impact, ca.SX(0), slid, end["active"])
        inputs = [kernel.unknowns, kernel.symbols.parameters, end.value, first.value, c.value, state.value]
        return ca.Function("finish", inputs, [ca.densify(record)])

    def _seen(self, kernel: PairKernel) -> tuple[dict[str, ca.SX], list[ca.SX], ca.SX]:
        """The kernel's report, velocities of the two bodies and the pair's own unknowns, as expressions."""
        everything = kernel.report(kernel.unknowns, kernel.symbols.parameters)
        seen = {name: everything[where] for name, where in kernel.seen.items()}
        symbols = kernel.symbols
        nu = [
            x if move else ca.SX.zeros(x.shape) for x, move in zip(symbols.nu, self.kind.moves, strict=True)
        ]
        return seen, nu, symbols.u

    def _direction(self, last: ca.SX, n: ca.SX, t: ca.SX, at_start: bool) -> ca.SX:
        """The tangent's reference for the next step, see `equations.tangent`."""
        if self._given_direction:
            return last
        if at_start:
            return t
        return reference_symbolic(n, last)

    def _record(
        self,
        kind: PairKind,
        seen: dict[str, ca.SX],
        c: StructSymbol,
        point: ca.SX,
        end_point: ca.SX,
        gap: ca.SX,
        impact: ca.SX,
        lagged: ca.SX,
        slid: ca.SX,
        closed: ca.SX,
    ) -> ca.SX:
        """See `steppers.closed_contacts.contact_records`."""
        sign = c["sign"]
        numbers = {name: ca.SX(0) for name in ("p_t", "p_o", "p_r", "v_t", "v_o", "v_r")}
        for i, name in enumerate(kind.components):
            flip = sign if name == "t" else 1
            numbers[f"p_{name}"], numbers[f"v_{name}"] = flip * seen["p_f"][i], flip * seen["slip"][i]
        return self.record.join(
            point=point, normal=sign * seen["n"], tangent=seen["t"], binormal=sign * seen["o"],
            end_point=end_point, gap=gap, p_n=seen["p_n"], impact=impact, lagged=lagged, slid=slid,
            closed=closed, **numbers,
        )  # fmt: skip

    def _exit_reason(
        self,
        kind: PairKind,
        seen: dict[str, ca.SX],
        u: ca.SX,
        info: StructSymbol,
        closed: ca.SX,
        active: ca.SX,
        nu: list[ca.SX],
        bodies: list[StructSymbol],
        c: StructSymbol,
        h: ca.SX,
        t: ca.SX,
        U: ca.SX,
    ) -> ca.SX:
        """Why the stepper itself must look at this contact (`ExitReason`), or 0."""
        at = kind.layout.at
        rattle = kind.scheme == "position"
        # the mirrored root: a normal that points into its body
        signs = self.kernel.signs
        mask = np.concatenate([signs[0], signs[1]])
        multipliers = ca.vertcat(u[at["l"]], u[at["k"]])
        least = ca.mmin(ca.vertcat(0, multipliers * ca.DM(mask)))
        reason = ExitReason.INWARD.value * ca.logic_not(least >= -1e-9)
        # restitution: an impact has a velocity stage of its own law
        touches = ca.logic_and(c["restitution"] > 0, active)
        if rattle:
            speed = info["normal_velocity"]
            resting = ca.logic_and(info["touching"], speed >= -IMPACT_SPEED * U)
            touches = ca.logic_and(touches, ca.logic_and(ca.logic_not(resting), h > 0))
            # (a restitution above one stands for impacts as events, see `steppers.events.stepper`)
            still = ca.logic_and(info["touching"], ca.fabs(speed) <= IMPACT_SPEED * U)
            event = ca.logic_and(active, ca.logic_and(ca.logic_not(still), h > 0))
            touches = ca.if_else(c["restitution"] > 1.5, event, touches)
        reason = ca.fmax(reason, ExitReason.IMPACT.value * touches)
        if self._given_direction:
            reason = ca.fmax(reason, ExitReason.TANGENT.value * (ca.fabs(ca.sqrt(ca.sumsqr(t)) - 1) > 1e-6))
        if not is_halfspace(kind.first):
            n = seen["end_n" if rattle else "n"]
            crosses = self._may_cross(seen["gap"], n, info, closed, nu, bodies, c, h)
            reason = ca.fmax(reason, ExitReason.CROSSING.value * crosses)
        if kind.patches:
            jumped = self._jumped(seen["end_r2" if rattle else "r2"], info, nu, c, h)
            reason = ca.fmax(reason, ExitReason.JUMP.value * jumped)
        return reason

    def _jumped(self, r2: ca.SX, info: StructSymbol, nu: list[ca.SX], c: StructSymbol, h: ca.SX) -> ca.SX:
        """Whether a contact may have slapped on another part of its body, see `steppers.closed_contacts`."""
        dim = self.dim
        back = -h * nu[1][dim:]
        turn = rotation.exp_symbolic(back) if dim == 3 else rotation.planar_symbolic(back)
        rolled = ca.fabs(h) * (ca.sqrt(ca.sumsqr(nu[0][dim:])) + ca.sqrt(ca.sumsqr(nu[1][dim:])))
        jump = ca.sqrt(ca.sumsqr(turn @ r2 - info["r2"]))
        return ca.logic_and(info["touching"], jump > (SLAP + 2 * rolled) * c["L"])

    def _may_cross(
        self,
        gap: ca.SX,
        n: ca.SX,
        info: StructSymbol,
        closed: ca.SX,
        nu: list[ca.SX],
        bodies: list[StructSymbol],
        c: StructSymbol,
        h: ca.SX,
    ) -> ca.SX:
        """Whether a closer look is needed at what the motion passes through, see `geometry.broad_phase`."""
        dim = self.dim
        spin = [ca.sqrt(ca.sumsqr(nu[i][dim:])) * bodies[i]["reach"] for i in (0, 1)]
        motion = ca.fabs(h) * (ca.sqrt(ca.sumsqr(nu[1][:dim] - nu[0][:dim])) + spin[0] + spin[1])
        rolls = ca.logic_and(closed, motion <= c["thin"] / 2)
        small = CROSSING * c["L"]
        apart = ca.logic_and(ca.fmin(info["gap"], gap) > small, ca.logic_not(closed))
        touching = ca.logic_and(ca.dot(info["n"], n) > 0, ca.logic_not(apart))
        allowed = ca.if_else(touching, ca.fmax(c["thin"] / 8, small), small)
        clear = (info["gap"] + gap - motion) / 2 >= -allowed
        return ca.logic_not(ca.logic_or(rolls, clear))
