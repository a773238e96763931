"""The equations of one contact, written once per kind of pair and evaluated for all pairs of that kind.

Unknowns of a contact (all index arithmetic is in `Layout`):

    r    closest point on the second body (on the first, where no half-space is involved), from
         that body's centre of mass, world axes, over the pair's length L
    D    gap over step, m/s            } absent against a half-space,
    n    common unit normal            } whose normal is known
    l, k multipliers of the two bodies' constraints
    P_n  normal impulse over the effective mass m_c, m/s
    S    scaled friction impulse E^-1 (p_t, p_o, p_r) / m_c, m/s; components with e = 0 are left out

Rows are dimensionless: velocities over U, lengths over h U, where U is the pair's speed scale. Row i
belongs to unknown i, so that a small multiple of the identity may be added to the Jacobian.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from implicit_geom import complementarity as cc
from implicit_geom.contact_geometry import is_halfspace, multiplier_count, sign_mask, surface_rows
from implicit_geom.friction import friction_rows
from implicit_geom.rotation import exp_symbolic, planar_symbolic
from shapes.shape import Shape


@dataclass(frozen=True)
class Layout:
    """Where each unknown of a contact sits."""

    dim: int
    known_normal: bool
    first: int  # multipliers of the first body
    second: int
    components: int  # friction components
    slack: int  # 1 where the friction residual carries its own multiplier sigma

    @cached_property
    def at(self) -> dict[str, slice]:
        sizes = {
            "r": self.dim,
            "D": 0 if self.known_normal else 1,
            "n": 0 if self.known_normal else self.dim,
            "l": self.first,
            "k": self.second,
            "P_n": 1,
            "S": self.components,
            "sigma": self.slack,
        }
        slices, start = {}, 0
        for name, size in sizes.items():
            slices[name] = slice(start, start + size)
            start += size
        return slices

    @property
    def geometry(self) -> int:
        """The number of geometry unknowns; they come first."""
        return self.at["P_n"].start

    @property
    def size(self) -> int:
        return self.at["sigma"].stop


@dataclass(frozen=True)
class PairKind:
    """What distinguishes one compiled contact from another; everything else is a parameter."""

    first: Shape
    second: Shape
    components: tuple[str, ...]  # of "t", "o", "r"
    friction: str = "projection"
    moves: tuple[bool, bool] = (True, True)
    frame: str = "world"  # where the tangent's direction is attached: world, first, second

    @property
    def key(self) -> Hashable:
        shapes = (self.first.structure, self.second.structure)
        sizes = (self.first.values.size, self.second.values.size)
        return (self.first.dim, shapes, sizes, self.components, self.friction, self.moves, self.frame)

    @cached_property
    def layout(self) -> Layout:
        known = is_halfspace(self.first)
        return Layout(
            dim=self.first.dim,
            known_normal=known,
            first=0 if known else multiplier_count(self.first),
            second=multiplier_count(self.second),
            components=len(self.components),
            slack=1 if self.friction == "fritz-john" and self.components else 0,
        )


class Symbols:
    """The inputs of a contact's equations, by name; `at` says where each sits in the parameter vector."""

    def __init__(self, kind: PairKind) -> None:
        dim = kind.first.dim
        velocities = dim + (3 if dim == 3 else 1)
        self.nu = [ca.SX.sym(f"nu_{i}", velocities) for i in (1, 2)]
        self.u = ca.SX.sym("u", kind.layout.size)
        rotations = velocities - dim
        shapes = {
            "h": 1,  # step, s
            "eps": 1,  # smoothing, dimensionless
            "L": 1,  # length scale, m
            "c": 1,  # weight of a multiplier against its constraint in the natural maps, m
            "U": 1,  # speed scale, m/s
            "m_c": 1,  # effective mass, kg
            "mu": 1,
            "e": len(kind.components),
            "direction": dim,  # reference for the tangent t
            "offset": dim,  # from the first to the second centre of mass at the start, m
            "R1": dim * dim,  # orientations at the start, column-major
            "R2": dim * dim,
            "com1": dim,  # centre of mass in the shape's frame
            "com2": dim,
            "weight1": 1 + rotations**2,  # 1/(m U) and the angular rows' scaling over U
            "weight2": 1 + rotations**2,
            "theta1": kind.first.values.size,
            "theta2": kind.second.values.size,
        }
        self.at: dict[str, slice] = {}
        start = 0
        for name, size in shapes.items():
            self.at[name] = slice(start, start + size)
            start += size
        self.parameters = ca.SX.sym("p", start)

    def __getitem__(self, name: str) -> ca.SX:
        return self.parameters[self.at[name]]


@dataclass(frozen=True)
class Contact:
    """The expressions of a contact at the end of the step."""

    r1: ca.SX  # closest points from the centres of mass, world axes, m
    r2: ca.SX
    n: ca.SX
    t: ca.SX
    o: ca.SX
    d: ca.SX  # gap, m
    slip: ca.SX  # (v_t, v_o, v_r) for the kept components; m/s, m/s, rad/s
    rows: ca.SX  # geometry rows, dimensionless


def closest_point(kind: PairKind, s: Symbols, smooth: bool) -> Contact:
    """The closest-point rows [C07, eqs. 9, 22] at the end-of-step poses x + h v, exp(h omega) R."""
    dim, at = kind.first.dim, kind.layout.at
    h, L, U = s["h"], s["L"], s["U"]
    eps = s["eps"] * ca.fmin(L, h * U) if smooth else None
    velocity = [nu if move else ca.SX.zeros(nu.shape) for nu, move in zip(s.nu, kind.moves, strict=True)]
    R = [_end_rotation(s[f"R{i + 1}"], velocity[i], h, dim) for i in (0, 1)]
    offset = s["offset"] + h * (velocity[1][:dim] - velocity[0][:dim])
    if kind.layout.known_normal:
        r2 = L * s.u[at["r"]]
        n = R[0] @ s["theta1"][:dim]
        height = ca.dot(s["theta1"][:dim], s["com1"]) - s["theta1"][dim]
        d = ca.dot(n, offset + r2) + height
        r1 = offset + r2 - d * n
        body = surface_rows(
            kind.second, R[1].T @ r2 + s["com2"], s["theta2"], R[1], s.u[at["k"]], s["c"], eps
        )
        rows = ca.vertcat(n + body.normal, body.rows / (h * U))
    else:
        r1, n, d = L * s.u[at["r"]], s.u[at["n"]], h * s.u[at["D"]]
        r2 = r1 + d * n - offset
        one = surface_rows(kind.first, R[0].T @ r1 + s["com1"], s["theta1"], R[0], s.u[at["l"]], s["c"], eps)
        two = surface_rows(kind.second, R[1].T @ r2 + s["com2"], s["theta2"], R[1], s.u[at["k"]], s["c"], eps)
        rows = ca.vertcat(
            one.normal - n,
            (ca.sumsqr(n) - 1) / 2,
            two.normal + n,
            one.rows / (h * U),
            two.rows / (h * U),
        )
    reference = s["direction"]
    if kind.frame != "world":
        reference = R[0 if kind.frame == "first" else 1] @ reference
    t, o = _tangents(n, reference, dim)
    relative = _point_velocity(velocity[1], r2, dim) - _point_velocity(velocity[0], r1, dim)
    spin = ca.dot(n, velocity[1][dim:] - velocity[0][dim:]) if dim == 3 else ca.SX(0)
    slip = {"t": ca.dot(t, relative), "o": ca.dot(o, relative), "r": spin}
    return Contact(r1, r2, n, t, o, d, ca.vertcat(*[slip[c] for c in kind.components]), rows)


def impulses(kind: PairKind, s: Symbols, c: Contact, smooth: bool) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Normal impulse, friction impulses (N s, N m s) and the rows of the contact laws."""
    at, U = kind.layout.at, s["U"]
    eps = s["eps"] * U if smooth else None
    law = friction_rows(
        kind.friction,
        s.u[at["P_n"]],
        s.u[at["S"]],
        s.u[at["sigma"]],
        c.d / s["h"],
        s["e"] * c.slip,
        s["mu"],
        U,
        eps,
    )
    return s["m_c"] * law.P_n, s["m_c"] * s["e"] * law.S, law.rows / U


def equations(kind: PairKind, smooth: bool) -> tuple[Symbols, ca.SX, Contact, ca.SX, ca.SX]:
    """All rows of a contact: its own, then its share in the two bodies' momentum balances."""
    s = Symbols(kind)
    c = closest_point(kind, s, smooth)
    p_n, p_f, rows = impulses(kind, s, c, smooth)
    dim = kind.first.dim
    along = {"t": c.t, "o": c.o}
    force = p_n * c.n
    moment = ca.SX.zeros(3 if dim == 3 else 1)
    for i, name in enumerate(kind.components):
        if name == "r":
            moment += p_f[i] * c.n
        else:
            force += p_f[i] * along[name]
    shares = []
    for sign, r, i in ((-1, c.r1, 1), (1, c.r2, 2)):
        if not kind.moves[i - 1]:
            continue
        w = s[f"weight{i}"]
        K = ca.reshape(w[1:], 3, 3) if dim == 3 else w[1:]
        torque = sign * (_cross(r, force, dim) + moment)
        shares += [-sign * w[0] * force, -(K @ torque)]
    return s, ca.vertcat(c.rows, rows, *shares), c, p_n, p_f


class PairKernel:
    """The compiled functions of one kind of pair."""

    def __init__(self, kind: PairKind) -> None:
        self.kind = kind
        self.layout = kind.layout
        known = kind.layout.known_normal
        self.signs = (np.zeros(0) if known else sign_mask(kind.first), sign_mask(kind.second))
        self.symbols, self.rows, contact, p_n, p_f = equations(kind, smooth=False)
        s = self.symbols
        self.unknowns = ca.vertcat(*[nu for nu, move in zip(s.nu, kind.moves, strict=True) if move], s.u)
        self.exact = self._functions(self.rows, "exact")
        seen = ca.vertcat(contact.r2, contact.n, contact.t, contact.o, contact.d, p_n, p_f, contact.slip)
        self.report = ca.Function("report", [self.unknowns, s.parameters], [ca.densify(seen)])

    @cached_property
    def smooth(self) -> tuple[ca.Function, ca.Function]:
        """The smoothed functions, built only when a step needs the path."""
        s, rows, *_ = equations(self.kind, smooth=True)
        unknowns = ca.vertcat(*[nu for nu, move in zip(s.nu, self.kind.moves, strict=True) if move], s.u)
        own = ca.Function("own", [unknowns, s.parameters], [rows])
        return self._functions(own(self.unknowns, self.symbols.parameters), "smooth")

    def _functions(self, rows: ca.SX, name: str) -> tuple[ca.Function, ca.Function]:
        inputs = [self.unknowns, self.symbols.parameters]
        jacobian = ca.jacobian(rows, self.unknowns)
        return (
            ca.Function(f"{name}_rows", inputs, [ca.densify(rows)]),
            ca.Function(f"{name}_linear", inputs, [ca.densify(rows), jacobian]),
        )


_KERNELS: dict[Hashable, PairKernel] = {}


def pair_kernel(kind: PairKind) -> PairKernel:
    """The kernel of a kind of pair, built on first use and kept."""
    if kind.key not in _KERNELS:
        _KERNELS[kind.key] = PairKernel(kind)
    return _KERNELS[kind.key]


def _end_rotation(R_flat: ca.SX, nu: ca.SX, h: ca.SX, dim: int) -> ca.SX:
    R = ca.reshape(R_flat, dim, dim)
    return exp_symbolic(h * nu[3:]) @ R if dim == 3 else planar_symbolic(h * nu[2]) @ R


def _cross(r: ca.SX, f: ca.SX, dim: int) -> ca.SX:
    return ca.cross(r, f) if dim == 3 else r[0] * f[1] - r[1] * f[0]


def _point_velocity(nu: ca.SX, r: ca.SX, dim: int) -> ca.SX:
    if dim == 3:
        return nu[:3] + ca.cross(nu[3:], r)
    return nu[:2] + nu[2] * ca.vertcat(-r[1], r[0])


def _tangents(n: ca.SX, reference: ca.SX, dim: int) -> tuple[ca.SX, ca.SX]:
    """t along the reference direction, orthogonal to n; o = n x t (in the plane: n turned by -90 deg)."""
    if dim == 2:
        return ca.vertcat(n[1], -n[0]), ca.SX.zeros(2)
    along = reference - ca.dot(reference, n) * n
    t = along / cc.length(along)
    return t, ca.cross(n, t)


def flat(R: np.ndarray) -> np.ndarray:
    """A matrix in the order the parameter vector expects (column-major)."""
    return np.asarray(R, float).T.ravel()
