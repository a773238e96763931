"""The functions of one body in a compiled step, as SX: what `model` does with NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from implicit_geom import rotation
from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.rotation_vector import EXACT, RotationFunctions, symmetric_product
from implicit_geom.compiled.structs import Struct, StructSymbol
from implicit_geom.equations.momentum import momentum_rows
from implicit_geom.equations.thresholds import REST
from implicit_geom.process.building import built_once

SHARE = {"euler": 1.0, "position": 0.5, "velocity": 0.5}  # of the loads' impulse in a step


@dataclass(frozen=True)
class BodyFunctions:
    """SX functions by name."""

    functions: dict[str, ca.Function]
    momentum: Struct  # parameters of the momentum rows


@built_once
def body_functions(dim: int, rotations: RotationFunctions = EXACT) -> BodyFunctions:
    """All functions of a body in the plane or in space; `rotations`: exact, or as series.

    momentum_S  (nu, parameters) -> rows, Jacobian                        for each scheme S
    momentum_rows_S  (nu, parameters) -> rows
    prepare_S   (state, constants, h) -> derived, parameters, nu to start from
    advance     (state, nu, h) -> state moved with nu
    drift       (moved state, constants, h) -> state with the velocities that carry stage 1's momentum
    energy      (start, end, constants, nu, h) -> see `model.ledger`
    """
    functions: dict[str, ca.Function] = {}
    for scheme in SHARE:
        both, at = momentum_rows(dim, scheme)
        functions[f"momentum_{scheme}"] = both
        inputs = both.sx_in()
        functions[f"momentum_rows_{scheme}"] = ca.Function("rows", inputs, both.call(inputs)[:1])
        momentum = Struct({name: where.stop - where.start for name, where in at.items()})
        functions[f"prepare_{scheme}"] = _prepare(dim, scheme, momentum)
    functions["advance"] = _advance(dim, rotations)
    functions["drift"] = _drift(dim, rotations)
    functions["energy"] = _energy(dim, rotations)
    return BodyFunctions(functions, momentum)


def rotation_of(dim: int, s: StructSymbol) -> ca.SX:
    """Rotation matrix, body to world."""
    if dim == 2:
        return rotation.planar_symbolic(s["q"])
    w, v = s["q"][0], s["q"][1:]
    return (1 - 2 * ca.sumsqr(v)) * ca.SX.eye(3) + 2 * v @ v.T + 2 * w * ca.skew(v)


def _prepare(dim: int, scheme: str, momentum: Struct) -> ca.Function:
    """The parameters of the momentum rows [C07, eq. 4], see `model.momentum_rows.MomentumRows.prepare`."""
    s, k, h = structs.state(dim).symbol("s"), structs.constants(dim).symbol("k"), ca.SX.sym("h")
    R = rotation_of(dim, s)
    impulse = h * SHARE[scheme] * k["load"]
    pulled = _length(impulse[:dim]) * k["inverse_mass"]
    speed = _length(s["v"]) + k["size"] * _length(s["w"]) + pulled
    speed = ca.fmax(speed, 1e-9 * k["size"] / ca.fabs(h))
    v_free = s["v"] + impulse[:dim] * k["inverse_mass"]
    K, J_inverse = k.matrix("root"), k.matrix("inverse_inertia")
    if dim == 2:
        inertia = k["inertia"]
        values = {
            "w_free": s["w"] + impulse[2] * J_inverse,
            "gyration": ca.sqrt(inertia * k["inverse_mass"]),
        }
    else:
        K, J_inverse = symmetric_product(R, K), symmetric_product(R, J_inverse)
        values = {
            "h": h,
            "R": R,
            "J": k["inertia"],
            "K": K,
            "momentum": R @ (k.matrix("inertia") @ (R.T @ s["w"])) + impulse[3:],
        }
    p = momentum.join(U=speed, v_free=v_free, **values)
    weight = ca.vertcat(k["inverse_mass"], ca.vec(K)) / speed
    d = structs.derived(dim).join(R=R, speed=speed, pulled=pulled, weight=weight, inverse_inertia=J_inverse)
    return ca.Function("prepare", [s.value, k.value, h], [d, p, ca.vertcat(v_free, s["w"])])


def _advance(dim: int, rotations: RotationFunctions) -> ca.Function:
    """Poses at the end of a step [C07, eq. 2]: x + h v, exp(h w) R; see `model.model.State.advanced`."""
    s, h = structs.state(dim).symbol("s"), ca.SX.sym("h")
    nu = ca.SX.sym("nu", dim + structs.spins(dim))
    v, w = nu[:dim], nu[dim:]
    if dim == 2:
        q = s["q"] + h * w
    else:
        a, b = rotations.half_angle(h * w)
        b = b * (h * w)
        c, d = s["q"][0], s["q"][1:]
        q = ca.vertcat(a * c - ca.dot(b, d), a * d + c * b + ca.cross(b, d))
        q = q / ca.sqrt(ca.sumsqr(q))
    moved = structs.state(dim).join(x=s["x"] + h * v, q=q, v=v, w=w)
    return ca.Function("advance", [s.value, nu, h], [moved])


def _drift(dim: int, rotations: RotationFunctions) -> ca.Function:
    """The velocities that carry stage 1's momentum to its end, see `model.momentum_rows.stage_velocities`."""
    s, k, h = structs.state(dim).symbol("s"), structs.constants(dim).symbol("k"), ca.SX.sym("h")
    w = s["w"] if dim == 2 else _drifted(rotation_of(dim, s), k, s["w"], h, rotations)
    out = structs.state(dim).join(x=s["x"], q=s["q"], v=s["v"], w=w)
    return ca.Function("drift", [s.value, k.value, h], [out])


def _drifted(R: ca.SX, k: StructSymbol, w: ca.SX, h: ca.SX, rotations: RotationFunctions) -> ca.SX:
    """w' with J_W w' = D(-h w)^T J_W w."""
    J, J_inverse = k.matrix("inertia"), k.matrix("inverse_inertia")
    momentum = R @ (J @ (R.T @ w))
    moved = rotations.tangent_inverse(-h * w).T @ momentum
    return R @ (J_inverse @ (R.T @ moved))


def energies(dim: int) -> Struct:
    """What the guard needs of a body, J and m/s; see `steppers.island_energy` and `EnergyScale`.

    net is change - work, speed what a slip is compared with; mean1 and mean2 are the kicks' mean velocities.
    """
    velocities = dim + structs.spins(dim)
    names = ("net", "start", "end", "kinetic", "lift", "rest", "turn", "speed")
    return Struct({**dict.fromkeys(names, 1), "mean1": velocities, "mean2": velocities})


def _energy(dim: int, rotations: RotationFunctions) -> ca.Function:
    """Change of a body's energy in a RATTLE step and what it is measured by, see `model.ledger`."""
    a, b = structs.state(dim).symbol("a"), structs.state(dim).symbol("b")
    k, h = structs.constants(dim).symbol("k"), ca.SX.sym("h")
    nu = ca.SX.sym("nu", dim + structs.spins(dim))
    left, right = nu, nu
    if dim == 3:
        left = ca.vertcat(nu[:3], _drifted(rotation_of(3, a), k, nu[3:], -h, rotations))
        right = ca.vertcat(nu[:3], _drifted(rotation_of(3, b), k, nu[3:], h, rotations))
    out = energy_terms(dim, a, b, k, h, left, right)
    return ca.Function("energy", [a.value, b.value, k.value, nu, h], [out])


def energy_terms(
    dim: int, a: StructSymbol, b: StructSymbol, k: StructSymbol, h: ca.SX, left: ca.SX, right: ca.SX
) -> ca.SX:
    """`energies` of a step from a to b; left, right: velocities after the first kick, before the second."""
    strength = _length(k["gravity"])
    kinetic, own, potential = [], [], []
    for s in (a, b):
        w = s["w"] if dim == 2 else rotation_of(dim, s).T @ s["w"]
        turning = ca.dot(w, k.matrix("inertia") @ w) / 2
        kinetic.append(k["mass"] * ca.sumsqr(s["v"]) / 2 + turning)
        potential.append(-k["mass"] * ca.dot(k["gravity"], s["x"]))
        fall = ca.fmin(ca.fmax(ca.dot(k["up"], s["x"]) - k["lowest"], 0), k["depth"])
        fall = ca.if_else(k["lowest_known"] > 0, fall, k["depth"])
        own.append(turning + k["mass"] * strength * fall)
    mean1 = (ca.vertcat(a["v"], a["w"]) + left) / 2
    mean2 = (right + ca.vertcat(b["v"], b["w"])) / 2
    applied = k["load"] - ca.vertcat(k["mass"] * k["gravity"], ca.SX.zeros(structs.spins(dim)))
    return energies(dim).join(
        net=kinetic[1] - kinetic[0] + potential[1] - potential[0] - h / 2 * ca.dot(applied, mean1 + mean2),
        start=own[0],
        end=own[1],
        kinetic=kinetic[0],
        lift=k["mass"] * strength * k["depth"],
        rest=k["mass"] * (REST * k["depth"] / h) ** 2,
        turn=ca.fabs(h) * _length(a["w"]),
        speed=_length(a["v"]) + k["size"] * _length(a["w"]) + strength * ca.fabs(h),
        mean1=mean1,
        mean2=mean2,
    )


def _length(y: ca.SX) -> ca.SX:
    return ca.sqrt(ca.sumsqr(y))
