"""One pair at the start of a solve, as SX: parameters of its equations, initial guess, tolerances."""

from __future__ import annotations

from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from implicit_geom.compiled import structs
from implicit_geom.compiled.structs import Struct, StructSymbol
from implicit_geom.equations.complementarity import TINY, length
from implicit_geom.equations.contact_kinematics import point_velocity, slip
from implicit_geom.equations.contact_patch import FLAT, curvature_form
from implicit_geom.equations.pair_kernel import PairKernel
from implicit_geom.equations.tangent import tangents
from implicit_geom.equations.thresholds import GAP_ROUNDING, LAG, TOUCH
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.process.lazy import cached_property


@dataclass(frozen=True)
class BodyPair:
    """The two bodies of a pair: state, derived and constant quantities as symbols."""

    state: tuple[StructSymbol, StructSymbol]
    derived: tuple[StructSymbol, StructSymbol]
    constants: tuple[StructSymbol, StructSymbol]

    @staticmethod
    def symbols(dim: int) -> BodyPair:
        return BodyPair(
            (structs.state(dim).symbol("s1"), structs.state(dim).symbol("s2")),
            (structs.derived(dim).symbol("d1"), structs.derived(dim).symbol("d2")),
            (structs.constants(dim).symbol("k1"), structs.constants(dim).symbol("k2")),
        )

    @property
    def inputs(self) -> list[ca.SX]:
        each = zip(self.state, self.derived, self.constants, strict=True)
        return [part.value for parts in each for part in parts]

    def nu(self, i: int) -> ca.SX:
        return ca.vertcat(self.state[i]["v"], self.state[i]["w"])


class PairStart:
    """The SX functions that set the parameters of a contact's equations."""

    def __init__(self, kernel: PairKernel) -> None:
        self.kernel = kernel
        self.kind = kernel.kind
        self.dim = self.kind.first.dim
        self.constants = structs.pair_constants(self.kind)
        self.warm = structs.warm(self.kind)
        self.start = structs.start(self.kind)
        self.end = structs.end(replace(self.kind, scheme="position"))
        self.record = structs.record(self.dim)

    @cached_property
    def _given_direction(self) -> bool:
        return self.kind.frame != "free"

    def prepare(self, scheme: str) -> ca.Function:
        """See `model.contact_group.ContactGroup.prepare`, and `contact.rattle_ncp` for stage 1."""
        kind, dim = replace(self.kind, scheme=scheme), self.dim
        at, names = kind.layout.at, structs.parameters(kind)
        b, h = BodyPair.symbols(dim), ca.SX.sym("h")
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
        m_c = _effective_mass(b, (r1, r2), h, kind.moves)
        factor = w["m_c"] * h / w["h"] / m_c
        for i in range(at["P_n"].start, at["S"].stop):
            u[i] *= factor
        touching = gap <= TOUCH * c["L"]
        frame = (n, *tangents(n, w["direction"], kind.frame, (R[0], R[1])))
        relative = point_velocity(b.nu(1), r2) - point_velocity(b.nu(0), r1)
        start_slip = slip(kind, [b.nu(0), b.nu(1)], (r1, r2), frame)
        values = self._placed(b, c, R, offset, U, m_c, h) | {"direction": w["direction"]}
        lag = ca.SX(0)
        if scheme == "position":
            B = self._patch(kind, names, values, (r1, r2), n, ca.vertcat(*u[at["l"]], *u[at["k"]]), c["L"])
            if kind.patches:
                B = ca.if_else(touching, B, ca.SX.eye(dim))
            if kind.components:
                lag = self._lag(kind, b, c, u[at["P_n"].start], start_slip, touching, U, B, n)
            values |= {"r1": r1, "r2": r2, "n": n, "B": B, "lag": lag}
            values |= {"start1": b.nu(0), "start2": b.nu(1)}
        floor = GAP_ROUNDING * (length(offset) + c["L"]) / (ca.fabs(h) * U)
        metres = np.zeros(kind.layout.size)
        for name in ("l", "k", "P_n", "S"):
            metres[at[name]] = 1.0
        start = self.start.join(
            gap=gap,
            normal_velocity=ca.dot(n, relative),
            slip=length(self._metres(start_slip, c["L"])) if kind.components else ca.SX(0),
            touching=touching,
            r2=r2,
            n=n,
            lag=lag,
        )
        outputs = [names.join(**values), ca.vertcat(*u), c["tolerance"] + floor * ca.DM(metres), start]
        return ca.Function("prepare", [*b.inputs, c.value, w.value, h], [ca.densify(o) for o in outputs])

    def _metres(self, slip: ca.SX, L: ca.SX) -> ca.SX:
        """A slip with its turning as a velocity, m/s."""
        return ca.vertcat(*(slip[i] * (L if x == "r" else 1) for i, x in enumerate(self.kind.components)))

    def _placed(
        self, b: BodyPair, c: StructSymbol, R: list[ca.SX], offset: ca.SX, U: ca.SX, m_c: ca.SX, h: ca.SX
    ) -> dict[str, ca.SX]:
        """The parameters that every scheme has, but for the tangent's direction."""
        values = {name: c[name] for name in ("L", "mu", "e", "com1", "com2", "theta1", "theta2")}
        values |= {"h": h, "eps": ca.SX(0), "c": c["L"], "U": U, "m_c": m_c, "offset": offset}
        values |= {"R1": R[0], "R2": R[1]}
        return values | {"weight1": b.derived[0]["weight"], "weight2": b.derived[1]["weight"]}

    def _lag(
        self,
        kind: PairKind,
        b: BodyPair,
        c: StructSymbol,
        P_n: ca.SX,
        start_slip: ca.SX,
        touching: ca.SX,
        U: ca.SX,
        B: ca.SX,
        n: ca.SX,
    ) -> ca.SX:
        """Whether friction opposes the slip at the start, see `contact.rattle_ncp`."""
        pressed = ca.fmax(P_n, ca.fmax(b.derived[0]["pulled"], b.derived[1]["pulled"]))
        speed = ca.sqrt(ca.sumsqr(c["e"] * start_slip))
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
        names: Struct,
        values: dict[str, ca.SX],
        points: tuple[ca.SX, ca.SX],
        n: ca.SX,
        multipliers: ca.SX,
        L: ca.SX,
    ) -> ca.SX:
        """Projector on the directions in which the contact is flat, see `equations.contact_patch`."""
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
        t = t / length(t)
        basis = ca.horzcat(t, ca.cross(n, t))
        form = basis.T @ C @ basis
        middle, half = (form[0, 0] + form[1, 1]) / 2, (form[0, 0] - form[1, 1]) / 2
        radius = ca.sqrt(half**2 + ((form[0, 1] + form[1, 0]) / 2) ** 2)
        one = (middle + radius) * ca.SX.eye(2) - form  # 2 radius times the projector on the flatter direction
        flat_one = one / ca.fmax(2 * radius, TINY)
        flat = ca.if_else(middle + radius < FLAT, ca.SX.eye(2), flat_one)
        return ca.if_else(middle - radius < FLAT, basis @ flat @ basis.T, 0)

    def prepare_velocity(self) -> ca.Function:
        """(bodies at the end of stage 1, constants, end, h) -> parameters, unknowns, tolerances.

        See `contact.rattle_ncp`.
        """
        kind, dim = replace(self.kind, scheme="velocity"), self.dim
        at, names = kind.layout.at, structs.parameters(kind)
        b, h = BodyPair.symbols(dim), ca.SX.sym("h")
        c, end = self.constants.symbol("c"), self.end.symbol("end")
        R = [d.matrix("R") for d in b.derived]
        offset = b.state[1]["x"] - b.state[0]["x"]
        U = ca.fmax(b.derived[0]["speed"], b.derived[1]["speed"])
        points = (end["r1"], end["r2"])
        m_c = _effective_mass(b, points, h, kind.moves)
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


def _effective_mass(b: BodyPair, points: tuple[ca.SX, ca.SX], h: ca.SX, moves: tuple[bool, bool]) -> ca.SX:
    """m_c, see `model.contact_group`; the largest eigenvalue in closed form."""
    dim = points[0].numel()
    block = ca.SX.zeros(dim, dim)
    for i, r in enumerate(points):
        if not moves[i]:
            continue
        lever = ca.skew(r) if dim == 3 else ca.horzcat(-r[1], r[0])
        block += b.constants[i]["inverse_mass"] * ca.SX.eye(dim)
        block += lever.T @ b.derived[i].matrix("inverse_inertia") @ lever
    mean = ca.trace(block) / dim
    if dim == 3 and moves.count(True) == 1:
        # lever^T J^-1 lever takes the lever itself to zero: its other eigenvalues solve a quadratic equation
        i = moves.index(True)
        block -= b.constants[i]["inverse_mass"] * ca.SX.eye(3)
        half = ca.trace(block) / 2
        minors = sum(block[i, i] * block[j, j] - block[i, j] ** 2 for i, j in ((0, 1), (0, 2), (1, 2)))
        largest = half + ca.sqrt(ca.fmax(half**2 - minors, TINY))
        return ca.sign(h) / (b.constants[moves.index(True)]["inverse_mass"] + largest)
    if dim == 2:
        radius = ca.sqrt((block[0, 0] - block[1, 1]) ** 2 / 4 + block[0, 1] ** 2)
        return ca.sign(h) / (mean + radius)
    rest = block - mean * ca.SX.eye(3)
    spread = ca.sqrt(ca.fmax(ca.sumsqr(rest) / 6, TINY))
    angle = ca.acos(ca.fmin(ca.fmax(ca.det(rest / spread) / 2, -1), 1)) / 3
    return ca.sign(h) / (mean + 2 * spread * ca.cos(angle))
