"""The functions of one pair in a compiled step, as SX.

They do what `contact_group`, `rattle_problem` and the steppers do with NumPy around a solve: set the
parameters of a contact's equations at its start, and read its contact off the solution at its end. A
solution that the compiled step must not accept as it is sets `leave`: the step is then taken again
by the stepper itself, which knows what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from implicit_geom import complementarity as cc
from implicit_geom import rotation
from implicit_geom.broadphase import CROSSING
from implicit_geom.closest_points import POINT_SHIFT
from implicit_geom.compiled import blocks
from implicit_geom.compiled.blocks import Block, Part
from implicit_geom.contact_geometry import is_halfspace
from implicit_geom.flatness import FLAT, curvature_form
from implicit_geom.kernel import PairKernel
from implicit_geom.ledger import SLIDES as LEDGER_SLIDES
from implicit_geom.pair import PairKind, point_velocity, tangents
from implicit_geom.problem import GAP_ROUNDING, IMPULSE_SHIFT
from implicit_geom.rattle_problem import LAG, TOUCH
from implicit_geom.steppers.closed import IMPACT_SPEED, SLAP, SLIDES


@dataclass(frozen=True)
class Bodies:
    """The two bodies of a pair: state, derived and constant quantities as symbols."""

    state: tuple[Part, Part]
    derived: tuple[Part, Part]
    constants: tuple[Part, Part]

    @staticmethod
    def symbols(dim: int) -> Bodies:
        return Bodies(
            (blocks.state(dim).symbol("s1"), blocks.state(dim).symbol("s2")),
            (blocks.derived(dim).symbol("d1"), blocks.derived(dim).symbol("d2")),
            (blocks.constants(dim).symbol("k1"), blocks.constants(dim).symbol("k2")),
        )

    @property
    def inputs(self) -> list[ca.SX]:
        each = zip(self.state, self.derived, self.constants, strict=True)
        return [part.value for parts in each for part in parts]

    def nu(self, i: int) -> ca.SX:
        return ca.vertcat(self.state[i]["v"], self.state[i]["w"])


class PairFunctions:
    """The SX functions of a kind of pair, by scheme.

    prepare_S(bodies, constants, warm, h) -> parameters, unknowns, tolerances, start
                                                  (S = euler, position; for velocity: end instead of warm)
    rows_S(unknowns, parameters) -> rows
    linear_S(unknowns, parameters) -> rows, Jacobian
    finish_S(...) -> see each
    """

    def __init__(self, kernel: PairKernel) -> None:
        self.kernel = kernel
        self.kind = kernel.kind
        self.dim = self.kind.first.dim
        self.constants = blocks.pair_constants(self.kind)
        self.warm = blocks.warm(self.kind)
        self.start = blocks.start(self.kind)
        self.end = blocks.end(replace(self.kind, scheme="position"))
        self.record = blocks.record(self.dim)

    def functions(self, rattle: bool) -> dict[str, ca.Function]:
        """Those that a stepper needs, by name."""
        found = {}
        for scheme in ("position", "velocity") if rattle else ("euler",):
            found[f"prepare_{scheme}"] = (
                self._prepare_velocity() if scheme == "velocity" else self._prepare(scheme)
            )
            found[f"rows_{scheme}"], found[f"linear_{scheme}"] = self.kernel.scheme(scheme).exact
            found[f"finish_{scheme}"] = (
                self._finish_velocity() if scheme == "velocity" else self._finish(scheme)
            )
        return found

    def shift(self, scheme: str) -> np.ndarray:
        """The diagonal added to the Newton matrix, see `problem.StepProblem`."""
        layout = replace(self.kind, scheme=scheme).layout
        shift = np.zeros(layout.size)
        shift[layout.at["r"]] = POINT_SHIFT
        if scheme == "velocity":
            shift[layout.at["l"].start : layout.at["k"].stop] = POINT_SHIFT
        shift[layout.at["P_n"].start :] = IMPULSE_SHIFT
        return shift

    @cached_property
    def _given_direction(self) -> bool:
        return self.kind.frame != "free"

    def _prepare(self, scheme: str) -> ca.Function:
        """See `ContactGroup.prepare`, `PositionProblem._start`."""
        kind, dim = replace(self.kind, scheme=scheme), self.dim
        at, names = kind.layout.at, blocks.parameters(kind)
        b, h = Bodies.symbols(dim), ca.SX.sym("h")
        c, w = self.constants.symbol("c"), self.warm.symbol("w")
        R = [d.matrix("R") for d in b.derived]
        offset = b.state[1]["x"] - b.state[0]["x"]
        u = [w["u"][i] for i in range(kind.layout.size)]
        if not kind.layout.known_normal:
            u[at["D"].start] *= ca.fabs(w["h"] / h)
        r = c["L"] * ca.vertcat(*u[at["r"]])
        if kind.layout.known_normal:
            n = R[0] @ c["theta1"][:dim]
            gap = ca.dot(n, offset + r) + ca.dot(c["theta1"][:dim], c["com1"]) - c["theta1"][dim]
            r1, r2 = offset + r - gap * n, r
        else:
            n, gap = ca.vertcat(*u[at["n"]]), ca.fabs(h) * u[at["D"].start]
            r1, r2 = r, r + gap * n - offset
        U = ca.fmax(b.derived[0]["speed"], b.derived[1]["speed"])
        m_c = _effective_mass(b, (r1, r2), h)
        factor = w["m_c"] * h / w["h"] / m_c
        for i in range(at["P_n"].start, at["S"].stop):
            u[i] *= factor
        touching = gap <= TOUCH * c["L"]
        frame = (n, *tangents(kind, n, w["direction"], (R[0], R[1])))
        relative = point_velocity(b.nu(1), r2) - point_velocity(b.nu(0), r1)
        slip = _kept(kind, relative, b, frame)
        values = self._placed(b, c, R, offset, U, m_c, h) | {"direction": w["direction"]}
        lag = ca.SX(0)
        if scheme == "position":
            B = self._patch(kind, names, values, (r1, r2), n, ca.vertcat(*u[at["l"]], *u[at["k"]]), c["L"])
            if kind.patches:
                B = ca.if_else(touching, B, ca.SX.eye(dim))
            if kind.components:
                lag = self._lag(kind, b, c, u[at["P_n"].start], slip, touching, U, B, n)
            values |= {"r1": r1, "r2": r2, "n": n, "B": B, "lag": lag}
            values |= {"start1": b.nu(0), "start2": b.nu(1)}
        floor = GAP_ROUNDING * (cc.length(offset) + c["L"]) / (ca.fabs(h) * U)
        metres = np.zeros(kind.layout.size)
        for name in ("l", "k", "P_n", "S"):
            metres[at[name]] = 1.0
        start = self.start.join(
            gap=gap,
            normal_velocity=ca.dot(n, relative),
            slip=cc.length(slip) if kind.components else ca.SX(0),
            touching=touching,
            r2=r2,
            n=n,
            lag=lag,
        )
        outputs = [names.join(**values), ca.vertcat(*u), c["tolerance"] + floor * ca.DM(metres), start]
        return ca.Function("prepare", [*b.inputs, c.value, w.value, h], [ca.densify(o) for o in outputs])

    def _placed(
        self, b: Bodies, c: Part, R: list[ca.SX], offset: ca.SX, U: ca.SX, m_c: ca.SX, h: ca.SX
    ) -> dict[str, ca.SX]:
        """The parameters that every scheme has, but for the tangent's direction."""
        values = {name: c[name] for name in ("L", "mu", "e", "com1", "com2", "theta1", "theta2")}
        values |= {"h": h, "eps": ca.SX(0), "c": c["L"], "U": U, "m_c": m_c, "offset": offset}
        values |= {"R1": R[0], "R2": R[1]}
        return values | {"weight1": b.derived[0]["weight"], "weight2": b.derived[1]["weight"]}

    def _lag(
        self,
        kind: PairKind,
        b: Bodies,
        c: Part,
        P_n: ca.SX,
        slip: ca.SX,
        touching: ca.SX,
        U: ca.SX,
        B: ca.SX,
        n: ca.SX,
    ) -> ca.SX:
        """Whether friction opposes the slip at the start, see `PositionProblem._start`."""
        pressed = ca.fmax(P_n, ca.fmax(b.derived[0]["pulled"], b.derived[1]["pulled"]))
        speed = ca.sqrt(ca.sumsqr(c["e"] * slip))
        lag = ca.logic_and(touching, speed > LAG * c["mu"] * pressed)
        lag = ca.logic_and(lag, speed > 1e-9 * U)
        if kind.patches and self.dim == 3:
            spin = ca.dot(n, b.state[1]["w"] - b.state[0]["w"])
            round_there = ca.sumsqr(B) == 0
            lag = ca.logic_and(lag, ca.logic_or(round_there, speed > LAG * ca.fabs(spin) * c["L"]))
        return lag

    def _patch(
        self,
        kind: PairKind,
        names: Block,
        values: dict[str, ca.SX],
        points: tuple[ca.SX, ca.SX],
        n: ca.SX,
        multipliers: ca.SX,
        L: ca.SX,
    ) -> ca.SX:
        """Projector on the directions in which the contact is flat, see `flatness.patch_projector`."""
        if not kind.patches:
            return ca.SX.zeros(self.dim, self.dim)
        known = {name: ca.SX.zeros(where.stop - where.start) for name, where in names.at.items()}
        known |= values | {"r1": points[0], "r2": points[1], "n": n}
        C = L * curvature_form(kind)(multipliers, names.join(**known))
        if self.dim == 2:
            t = ca.vertcat(n[1], -n[0])
            return ca.if_else(ca.dot(t, C @ t) < FLAT, t @ t.T, 0)
        # a basis of the tangent plane, and the eigenvalues of the form in it
        axis = ca.if_else(ca.fabs(n[0]) < 0.6, ca.DM([1, 0, 0]), ca.DM([0, 1, 0]))
        t = axis - ca.dot(axis, n) * n
        t = t / cc.length(t)
        basis = ca.horzcat(t, ca.cross(n, t))
        form = basis.T @ C @ basis
        middle, half = (form[0, 0] + form[1, 1]) / 2, (form[0, 0] - form[1, 1]) / 2
        radius = ca.sqrt(half**2 + ((form[0, 1] + form[1, 0]) / 2) ** 2)
        one = (middle + radius) * ca.SX.eye(2) - form  # 2 radius times the projector on the flatter direction
        flat_one = one / ca.fmax(2 * radius, cc.TINY)
        flat = ca.if_else(middle + radius < FLAT, ca.SX.eye(2), flat_one)
        return ca.if_else(middle - radius < FLAT, basis @ flat @ basis.T, 0)

    def _finish(self, scheme: str) -> ca.Function:
        """(unknowns, parameters, start, end states 1 and 2, constants of both bodies, of the pair, h)
        -> warm, record, end, flags.

        See `EulerStepper._accept`. `flags` are leave and the overlap at the start.
        """
        kind, dim, kernel = replace(self.kind, scheme=scheme), self.dim, self.kernel.scheme(scheme)
        at, layout = kind.layout.at, kind.layout
        p, h, c = kernel.symbols.parameters, ca.SX.sym("h"), self.constants.symbol("c")
        info = self.start.symbol("start")
        states = [blocks.state(dim).symbol(f"s{i}") for i in (1, 2)]
        bodies = [blocks.constants(dim).symbol(f"k{i}") for i in (1, 2)]
        seen, nu, u = self._seen(kernel)
        values = Part(blocks.parameters(kind), p)
        at_start = scheme == "position"
        r1, r2, n, t, o = (seen[f"end_{x}" if at_start else x] for x in ("r1", "r2", "n", "t", "o"))
        gap, p_n = seen["gap"], seen["p_n"]
        m_c, L, U = values["m_c"], c["L"], values["U"]
        closed = p_n / m_c > gap / ca.fabs(h)
        active = ca.logic_or(closed, gap <= TOUCH * L)
        fast = (IMPACT_SPEED if at_start else SLAP) * U
        slow = info["normal_velocity"] >= -fast
        impact = ca.logic_not(ca.logic_and(info["touching"], slow))
        slid = info["slip"] > SLIDES * ca.fmax(1, U)
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
        leave = self._leave(kind, seen, u, info, closed, active, nu, bodies, c, h, t)
        flags = ca.vertcat(leave, ca.fmax(-info["gap"], 0))
        inputs = [kernel.unknowns, p, info.value, states[0].value, states[1].value]
        inputs += [bodies[0].value, bodies[1].value, c.value, h]
        return ca.Function("finish", inputs, [ca.densify(x) for x in (warm, record, end, flags)])

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
        """The tangent's reference for the next step, see `Stepper._direction`."""
        if self._given_direction:
            return last
        if at_start:
            return t
        dim = self.dim
        away = [ca.fabs(n[i]) for i in range(dim)]
        fresh = ca.DM(np.eye(dim)[dim - 1])
        for i in reversed(range(dim - 1)):
            least = away[i] <= away[i + 1]
            for j in range(i + 2, dim):
                least = ca.logic_and(least, away[i] <= away[j])
            fresh = ca.if_else(least, ca.DM(np.eye(dim)[i]), fresh)
        return ca.if_else(ca.fabs(ca.dot(last, n)) < 0.9, last, fresh)

    def _record(
        self,
        kind: PairKind,
        seen: dict[str, ca.SX],
        c: Part,
        point: ca.SX,
        end_point: ca.SX,
        gap: ca.SX,
        impact: ca.SX,
        lagged: ca.SX,
        slid: ca.SX,
        closed: ca.SX,
    ) -> ca.SX:
        """See `steppers.closed.contact_record`."""
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

    def _leave(
        self,
        kind: PairKind,
        seen: dict[str, ca.SX],
        u: ca.SX,
        info: Part,
        closed: ca.SX,
        active: ca.SX,
        nu: list[ca.SX],
        bodies: list[Part],
        c: Part,
        h: ca.SX,
        t: ca.SX,
    ) -> ca.SX:
        """Whether the stepper itself must look at this contact."""
        at, _dim = kind.layout.at, self.dim
        rattle = kind.scheme == "position"
        # the mirrored root: a normal that points into its body
        signs = self.kernel.signs
        mask = np.concatenate([signs[0], signs[1]])
        multipliers = ca.vertcat(u[at["l"]], u[at["k"]])
        least = ca.mmin(ca.vertcat(0, multipliers * ca.DM(mask)))
        leave = ca.logic_not(least >= -1e-9)
        # restitution: an impact has a velocity stage of its own law
        touches = ca.logic_and(c["restitution"] > 0, active)
        if rattle:
            speed = info["normal_velocity"]
            resting = ca.logic_and(info["touching"], speed >= -IMPACT_SPEED * (1 + ca.fabs(speed)))
            touches = ca.logic_and(touches, ca.logic_and(ca.logic_not(resting), h > 0))
        leave = ca.logic_or(leave, touches)
        if self._given_direction:
            leave = ca.logic_or(leave, ca.fabs(ca.sqrt(ca.sumsqr(t)) - 1) > 1e-6)
        if rattle and kind.components:
            back = ca.dot(c["e"] * seen["mean_slip"], c["e"] * seen["start_slip"]) <= 0
            leave = ca.logic_or(leave, ca.logic_and(info["lag"] > 0, back))
        if not is_halfspace(kind.first):
            n = seen["end_n" if rattle else "n"]
            leave = ca.logic_or(leave, self._may_cross(seen["gap"], n, info, closed, nu, bodies, c, h))
        if kind.patches:
            leave = ca.logic_or(leave, self._jumped(seen["end_r2" if rattle else "r2"], info, nu, c, h))
        return leave

    def _jumped(self, r2: ca.SX, info: Part, nu: list[ca.SX], c: Part, h: ca.SX) -> ca.SX:
        """Whether a contact may have slapped on another part of its body, see `VelocityStage._slapped`."""
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
        info: Part,
        closed: ca.SX,
        nu: list[ca.SX],
        bodies: list[Part],
        c: Part,
        h: ca.SX,
    ) -> ca.SX:
        """Whether a closer look is needed at what the motion passes through, see `BroadPhase._crosses`."""
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

    def _prepare_velocity(self) -> ca.Function:
        """(bodies at the end of stage 1, constants, end, h) -> parameters, unknowns, tolerances.

        See `VelocityProblem.prepare_contacts`.
        """
        kind, dim = replace(self.kind, scheme="velocity"), self.dim
        at, names = kind.layout.at, blocks.parameters(kind)
        b, h = Bodies.symbols(dim), ca.SX.sym("h")
        c, end = self.constants.symbol("c"), self.end.symbol("end")
        R = [d.matrix("R") for d in b.derived]
        offset = b.state[1]["x"] - b.state[0]["x"]
        U = ca.fmax(b.derived[0]["speed"], b.derived[1]["speed"])
        points = (end["r1"], end["r2"])
        m_c = _effective_mass(b, points, h)
        values = self._placed(b, c, R, offset, U, m_c, h)
        values |= {name: end[name] for name in ("r1", "r2", "n", "t", "o", "sense")}
        values |= {"direction": ca.SX.zeros(dim), "bounce": ca.SX(0)}
        values["B"] = self._patch(kind, names, values, points, end["n"], end["multipliers"], c["L"])
        u = ca.SX.zeros(kind.layout.size)
        u[at["P_n"].start :] = end["impulses"] * end["m_c"] / m_c
        tolerances = ca.SX.ones(kind.layout.size) * c["tolerance"]
        floor = 32e-15 * c["L"] / (ca.fabs(h) * U)
        for i in range(at["l"].start, at["k"].stop):
            tolerances[i] += floor
        outputs = [names.join(**values), u, tolerances]
        return ca.Function("prepare", [*b.inputs, c.value, end.value, h], [ca.densify(x) for x in outputs])

    def _finish_velocity(self) -> ca.Function:
        """(unknowns, parameters, end, stage 1's record, constants of the pair, end state 2) -> record."""
        kind, dim, kernel = replace(self.kind, scheme="velocity"), self.dim, self.kernel.scheme("velocity")
        c, end = self.constants.symbol("c"), self.end.symbol("end")
        first = self.record.symbol("first")
        state = blocks.state(dim).symbol("s2")
        seen, _, _u = self._seen(kernel)
        point = state["x"] + seen["r2"]
        impact, slid = (first[name] * first["closed"] for name in ("impact", "slid"))
        record = self._record(kind, seen, c, point, point, end["gap"], impact, ca.SX(0), slid, end["active"])
        inputs = [kernel.unknowns, kernel.symbols.parameters, end.value, first.value, c.value, state.value]
        return ca.Function("finish", inputs, [ca.densify(record)])


def _effective_mass(b: Bodies, points: tuple[ca.SX, ca.SX], h: ca.SX) -> ca.SX:
    """See `ContactGroup._effective_mass`; the largest eigenvalue in closed form."""
    dim = points[0].numel()
    block = ca.SX.zeros(dim, dim)
    for i, r in enumerate(points):
        lever = ca.skew(r) if dim == 3 else ca.horzcat(-r[1], r[0])
        block += b.constants[i]["inverse_mass"] * ca.SX.eye(dim)
        block += lever.T @ b.derived[i].matrix("inverse_inertia") @ lever
    mean = ca.trace(block) / dim
    if dim == 2:
        radius = ca.sqrt((block[0, 0] - block[1, 1]) ** 2 / 4 + block[0, 1] ** 2)
        return ca.sign(h) / (mean + radius)
    rest = block - mean * ca.SX.eye(3)
    spread = ca.sqrt(ca.fmax(ca.sumsqr(rest) / 6, cc.TINY))
    angle = ca.acos(ca.fmin(ca.fmax(ca.det(rest / spread) / 2, -1), 1)) / 3
    return ca.sign(h) / (mean + 2 * spread * ca.cos(angle))


def _kept(kind: PairKind, relative: ca.SX, b: Bodies, frame: tuple[ca.SX, ca.SX, ca.SX]) -> ca.SX:
    """Slip in the kept components."""
    n, t, o = frame
    spin = ca.dot(n, b.state[1]["w"] - b.state[0]["w"]) if relative.numel() == 3 else ca.SX(0)
    values = {"t": ca.dot(t, relative), "o": ca.dot(o, relative), "r": spin}
    return ca.vertcat(ca.SX(0, 1), *[values[name] for name in kind.components])


def shared_functions(dim: int) -> dict[str, ca.Function]:
    """The functions that are the same for all kinds of pairs."""
    return {"work": _work(dim), "mode": _mode(dim), "near": _near(dim)}


def _work(dim: int) -> ca.Function:
    """(record, states 1 and 2 at the kick's poses, mean velocities of both, sign) -> work of friction.

    See `ledger`: the work counts where the contact slides, or slid at the start.
    """
    s = [blocks.state(dim).symbol(f"s{i}") for i in (1, 2)]
    nu = [ca.SX.sym(f"nu{i}", dim + blocks.spins(dim)) for i in (1, 2)]
    r, sign = blocks.record(dim).symbol("r"), ca.SX.sym("sign")
    relative = point_velocity(nu[1], r["point"] - s[1]["x"]) - point_velocity(nu[0], r["point"] - s[0]["x"])
    relative = sign * relative  # in the scene's order of bodies
    work = r["p_t"] * ca.dot(r["tangent"], relative)
    if dim == 3:
        spin = sign * ca.dot(r["normal"], nu[1][3:] - nu[0][3:])
        work += r["p_o"] * ca.dot(r["binormal"], relative) + r["p_r"] * spin
    fastest = ca.mmax(ca.vertcat(1, ca.fabs(ca.vertcat(*nu))))
    counts = ca.logic_or(r["slid"] > 0, _slip(r) > LEDGER_SLIDES * fastest)
    counts = ca.logic_and(counts, ca.logic_and(r["closed"] > 0, r["impact"] == 0))
    return ca.Function("work", [r.value, s[0].value, s[1].value, *nu, sign], [ca.if_else(counts, work, 0)])


def _mode(dim: int) -> ca.Function:
    """(records of both stages, speed scale, h) -> whether the mode holds throughout, and the mode.

    See `RattleStepper._modes`; 0 is open, 1 sticks, 2 slides.
    """
    a, b = blocks.record(dim).symbol("a"), blocks.record(dim).symbol("b")
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

    `plane` is (1, normal, offset) where the first body is a half-space, else zero. See `BroadPhase.missed`.
    """
    s = [blocks.state(dim).symbol(f"s{i}") for i in (1, 2)]
    nu = [ca.SX.sym(f"nu{i}", dim + blocks.spins(dim)) for i in (1, 2)]
    k = [blocks.constants(dim).symbol(f"k{i}") for i in (1, 2)]
    plane, h = ca.SX.sym("plane", 2 + dim), ca.SX.sym("h")
    spin = sum(ca.sqrt(ca.sumsqr(nu[i][dim:])) * k[i]["reach"] for i in (0, 1))
    motion = ca.fabs(h) * (ca.sqrt(ca.sumsqr(nu[1][:dim] - nu[0][:dim])) + spin)
    apart = ca.sqrt(ca.sumsqr(s[1]["x"] - s[0]["x"])) - k[0]["reach"] - k[1]["reach"]
    height = ca.dot(plane[1 : 1 + dim], s[1]["x"]) - plane[1 + dim] - k[1]["reach"]
    distance = ca.if_else(plane[0] > 0, height, apart)
    inputs = [s[0].value, s[1].value, *nu, k[0].value, k[1].value, plane, h]
    return ca.Function("near", inputs, [ca.logic_not(distance > motion)])


def _slip(r: Part) -> ca.SX:
    return ca.sqrt(r["v_t"] ** 2 + r["v_o"] ** 2 + r["v_r"] ** 2)
