"""Independent check of a solved step: the NCP [C07, eqs. 3 to 5] recomputed with NumPy.

Nothing here is used by the solver. From the states at the start and the end, the velocities that moved
the bodies and the table of contacts of a solve it recomputes, stage by stage,

    dynamics          m/s   momentum balance, linear rows over m, angular rows over sqrt(m J), and the
                            pose that follows from the velocities
    gap               m     largest penetration, or distance left between bodies that press
    complementarity   m/s   min(p_n / m_c, gap / h), and any negative p_n / m_c; in a velocity stage
                            min(p_n / m_c, normal velocity + bounce)
    friction          m/s   |s - Proj(s - w)| for the friction ellipsoid, w the slip its stage names

with 1/m_c = 1/m_1 + 1/m_2. `geometry_residual` goes further: it proves each closed contact from
the shapes alone, and asks `distance()` for every other pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.closest_points import Placed
from implicit_geom.distance import closest
from implicit_geom.model import Model, State
from implicit_geom.steppers.solve import EULER, POSITION, VELOCITY
from shapes.shape import Inequality, Shape, Slab

ACTIVE = 1e-6  # a constraint this close to its bound, relative to the body, counts as active
NAMES = ("dynamics", "gap", "complementarity", "friction")


def step_residuals(model: Model, solve: Any) -> dict[str, float]:
    """The four residuals of one solve, largest over bodies and contacts."""
    contacts = solve.contacts
    gaps = np.array([c.gap for c in contacts])
    worst = {
        "dynamics": _dynamics(model, solve),
        "gap": float(np.max(np.abs(gaps), initial=0.0)),
        "complementarity": 0.0,
        "friction": 0.0,
    }
    sign = np.sign(
        solve.h
    )  # a step that runs backwards has the same forces, and so impulses of the other sign
    for c in contacts:
        m_c = sign * _pair_mass(model, c.pair)
        distance = c.gap / abs(solve.h)
        if c.stage == VELOCITY:
            relative, _ = contact_velocity(model, solve.end, c)
            distance = float(c.normal @ relative) + c.bounce
        natural = min(c.p_n / m_c, distance)
        worst["complementarity"] = max(worst["complementarity"], abs(natural), -c.p_n / m_c)
        worst["friction"] = max(worst["friction"], _friction(model, solve, c, m_c))
    return worst


def contact_velocity(model: Model, state: State, c: Any) -> tuple[np.ndarray, float]:
    """Velocity of the second body's contact point relative to the first's, and spin about the normal."""
    first, second = scene_order(model, c.pair)
    relative = np.zeros(model.dim)
    for sign, b in ((-1.0, first), (1.0, second)):
        r, w = c.point - state.x[b], state.w[b]
        relative = relative + sign * (state.v[b] + _skew(w) @ r)
    spin = float(c.normal @ (state.w[second] - state.w[first])) if model.dim == 3 else 0.0
    return relative, spin


def scene_order(model: Model, pair: int) -> tuple[int, int]:
    """The bodies of a pair in the order they were added to the scene."""
    p = model.pairs[pair]
    return (p.second, p.first) if p.swapped else (p.first, p.second)


def _pair_mass(model: Model, pair: int) -> float:
    p = model.pairs[pair]
    return float(1 / (1 / model.mass[p.first] + 1 / model.mass[p.second]))


def _dynamics(model: Model, solve: Any) -> float:
    """Momentum over each kick, and the pose."""
    start, end, h, dim = solve.start, solve.end, solve.h, model.dim
    half, before, after = solve.half, _nu(start), _nu(end)
    if solve.form == "euler":
        first = _impulse(model, end, solve, EULER) + h * model.loads(start.time)
        second = _impulse(model, end, solve, VELOCITY)
    else:
        first = _impulse(model, start, solve, POSITION) + h / 2 * model.loads(start.time)
        second = _impulse(model, end, solve, VELOCITY) + h / 2 * model.loads(start.time + h)
    worst = 0.0
    for b in model.moving:
        m, J = model.mass[b], model.inertia[b]
        rows = [half[b, :dim] - before[b, :dim] - first[b, :dim] / m]
        rows.append(after[b, :dim] - half[b, :dim] - second[b, :dim] / m)
        if dim == 2:
            J_0 = J_1 = J
            change = [J @ (half[b, 2:] - before[b, 2:]), J @ (after[b, 2:] - half[b, 2:])]
        else:
            J_0, J_1 = (R[b] @ J @ R[b].T for R in (start.R, end.R))
            left = right = J_1 @ half[b, 3:]
            if solve.form == "rattle":
                left = _tangent_inverse(h * half[b, 3:]).T @ J_0 @ half[b, 3:]
                right = _tangent_inverse(-h * half[b, 3:]).T @ J_1 @ half[b, 3:]
            change = [left - J_0 @ before[b, 3:], J_1 @ after[b, 3:] - right]
        for J_W, moment, impulse in ((J_0, change[0], first[b, dim:]), (J_1, change[1], second[b, dim:])):
            values, vectors = np.linalg.eigh(J_W)
            rows.append(vectors.T @ (moment - impulse) / np.sqrt(m * values))
        rows.append((end.x[b] - start.x[b]) / h - half[b, :dim])
        turned = np.max(np.abs(end.R[b] - _turn(half[b, dim:], h) @ start.R[b]))
        rows.append(np.array([turned * np.sqrt(np.max(np.diag(J)) / m) / h]))
        worst = max(worst, float(np.max(np.abs(np.concatenate(rows)))))
    return worst


def _nu(state: State) -> np.ndarray:
    return np.column_stack([state.v, state.w])


def _impulse(model: Model, pose: State, solve: Any, stage: int) -> np.ndarray:
    """Contact impulses and moments of one stage on every body, (B, dim + spins)."""
    dim = model.dim
    impulse = np.zeros((len(model.bodies), dim + model.spins))
    for c in solve.contacts:
        if c.stage != stage:
            continue
        first, second = scene_order(model, c.pair)
        force = c.p_n * c.normal + c.p_f[0] * c.tangent + (c.p_f[1] * c.binormal if dim == 3 else 0.0)
        for sign, body in ((-1.0, first), (1.0, second)):
            r = c.point - pose.x[body]
            impulse[body, :dim] += sign * force
            if dim == 3:
                impulse[body, dim:] += sign * (_skew(r) @ force + c.p_f[2] * c.normal)
            else:
                impulse[body, 2] += sign * (r[0] * force[1] - r[1] * force[0])
    return impulse


def _skew(w: np.ndarray) -> np.ndarray:
    if w.size == 1:
        return np.array([[0.0, -w[0]], [w[0], 0.0]])
    x, y, z = w.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _turn(w: np.ndarray, h: float) -> np.ndarray:
    """The rotation matrix of the rotation vector h w, as a matrix exponential."""
    from scipy.linalg import expm

    return np.asarray(expm(h * _skew(w)))


def _tangent_inverse(theta: np.ndarray) -> np.ndarray:
    """The inverse of the integral of exp(s [theta]x) over 0 <= s <= 1, read off a block exponential."""
    from scipy.linalg import expm

    block = np.zeros((6, 6))
    block[:3, :3], block[:3, 3:] = _skew(theta), np.eye(3)
    return np.linalg.inv(expm(block)[:3, 3:])


def _slip(model: Model, state: State, c: Any) -> np.ndarray:
    """(v_t, v_o, v_r) at a contact with the velocities of `state`."""
    relative, spin = contact_velocity(model, state, c)
    return np.array([c.tangent @ relative, c.binormal @ relative if model.dim == 3 else 0.0, spin])


def _law_slip(model: Model, solve: Any, c: Any) -> np.ndarray:
    """The slip that friction opposes in the contact's stage."""
    dim = model.dim
    moving_start = replace(solve.start, v=solve.half[:, :dim], w=solve.half[:, dim:])
    moving_end = replace(solve.end, v=solve.half[:, :dim], w=solve.half[:, dim:])
    if c.stage == VELOCITY:
        return _slip(model, solve.end, c)
    if c.stage == EULER:
        return _slip(model, moving_end, c)
    if c.lagged:
        return _slip(model, solve.start, c)
    last = next(k for k in solve.contacts if k.stage == VELOCITY and k.pair == c.pair)
    arrived = replace(last, point=c.end_point)
    if dim == 3:
        arrived.tangent, arrived.binormal = _carried_frame(model, solve, c, last)
    return (_slip(model, moving_start, c) + _slip(model, moving_end, arrived)) / 2


def _carried_frame(model: Model, solve: Any, c: Any, last: Any) -> tuple[np.ndarray, np.ndarray]:
    """Stage 1's tangents at the end of the step: turned with the normal, or as `direction` says."""
    law = model.pairs[c.pair].law
    if law.e_t == law.e_o:
        axis = np.cross(c.normal, last.normal)
        sine = float(np.linalg.norm(axis))
        angle = np.arctan2(sine, float(c.normal @ last.normal))
        turn = _turn(axis / sine, angle) if sine > 0 else np.eye(3)
        return turn @ c.tangent, turn @ c.binormal
    reference = np.array(law.direction)
    if law.frame is not None:
        reference = solve.end.R[model.names.index(law.frame)] @ reference
    n = last.normal
    across = reference - (reference @ n) * n
    t = across / np.linalg.norm(across)
    return t, np.cross(n, t)


def _friction(model: Model, solve: Any, c: Any, m_c: float) -> float:
    law = model.pairs[c.pair].law
    slip = _law_slip(model, solve, c)
    e = np.array([law.e_t, law.e_o, law.e_r]) if model.dim == 3 else np.array([law.e_t, 0.0, 0.0])
    if law.mu == 0:
        e = np.zeros(3)
    kept = e > 0
    s, w = c.p_f[kept] / (e[kept] * m_c), e[kept] * slip[kept]
    radius = law.mu * max(c.p_n / m_c, 0.0)
    y = s - w
    norm = float(np.linalg.norm(y))
    projected = y if norm <= radius else radius / norm * y
    lost = np.abs(c.p_f[~kept]).max(initial=0.0) / abs(m_c)
    return float(max(np.linalg.norm(s - projected), lost))


@dataclass(frozen=True)
class GeometryResidual:
    """How well the geometry of a solve is proved: the largest value over its pairs."""

    contact: float  # distance of contact points from both surfaces, m
    normal: float  # distance of the normal from both normal cones, rad
    overlap: float  # penetration of any other pair, m


def geometry_residual(model: Model, solve: Any) -> GeometryResidual:
    """Prove the geometry of a solve from the shapes: closed contacts touch, all other pairs are apart.

    A point on both surfaces whose normal lies in both normal cones shows that the bodies touch and
    do not overlap: the tangent plane there separates two convex sets.
    """
    touching = normal = overlap = 0.0
    closed = set()
    for c in solve.contacts:
        closed.add(c.pair)
        if c.stage == POSITION:  # acts at the start; stage 2 has the same contact at the end
            continue
        first, second = scene_order(model, c.pair)
        for sign, b in ((1.0, first), (-1.0, second)):
            body = model.placed(solve.end, b)
            local = body.R.T @ (c.point - body.x) + body.com
            touching = max(touching, float(abs(body.shape.violation(local[None])[0])))
            normal = max(normal, normal_cone_distance(body, local, sign * body.R.T @ c.normal))
    for i, p in enumerate(model.pairs):
        if i in closed:
            continue
        offset = np.linalg.norm(solve.end.x[p.second] - solve.end.x[p.first])
        if offset > model.reach[p.first] + model.reach[p.second]:
            continue
        gap = closest(model.placed(solve.end, p.first), model.placed(solve.end, p.second)).points.gap
        overlap = max(overlap, -gap)
    return GeometryResidual(touching, normal, overlap)


def normal_cone_distance(body: Placed, local: np.ndarray, n: np.ndarray) -> float:
    """Distance of n from the cone of outward normals at a point of the surface (shape's frame)."""
    from scipy.optimize import nnls

    size = body.shape.size if np.isfinite(body.shape.size) else 1.0
    near = ACTIVE * size
    columns: list[np.ndarray] = []
    for numbers in _constraint_values(body.shape)(local, body.shape.values):
        kind, data = int(numbers[0, 0]), np.asarray(numbers)
        if kind == _INEQUALITY and abs(data[1, 0]) < near:
            columns.append(data[2:, 0])
        elif kind == _SLAB and abs(abs(data[1, 0]) - data[2, 0]) < near:
            columns += [side * data[3:, 0] for side in (1.0, -1.0) if side * data[1, 0] > data[2, 0] - near]
        elif kind == _CONE:
            columns += _cone_normals(data, near, n)
    if not columns:
        return 1.0
    return float(nnls(np.array(columns).T, n)[1])


def _cone_normals(data: np.ndarray, near: float, n: np.ndarray) -> list[np.ndarray]:
    """Generators of the normal cone of |u| <= t: one on the side; at the apex the one nearest to n."""
    t, u, axis, jacobian = data[1, 0], data[2:4, 0], data[4:7, 0], data[7:13, 0].reshape(3, 2)
    radius = float(np.linalg.norm(u))
    if abs(radius - t) >= near:
        return []
    if radius > near:
        return [jacobian @ u / radius - axis]
    sigma = np.linalg.lstsq(np.column_stack([jacobian, -axis]), n, rcond=None)[0]
    inside = sigma[:2] * min(1.0, max(sigma[2], 0.0) / max(float(np.linalg.norm(sigma[:2])), 1e-300))
    return [jacobian @ inside - max(sigma[2], 0.0) * axis]


_INEQUALITY, _SLAB, _CONE = 0, 1, 2


def _constraint_values(shape: Shape) -> ca.Function:
    """Each constraint's kind, value and gradients at a point, as one column a constraint."""
    key = (shape.dim, shape.structure, shape.values.size)
    if key not in _VALUES:
        x, theta = ca.SX.sym("x", shape.dim), ca.SX.sym("theta", shape.values.size)
        columns = []
        for c in shape.constraints(x, theta):
            if isinstance(c, Inequality):
                column = ca.vertcat(_INEQUALITY, c.f, ca.gradient(c.f, x))
            elif isinstance(c, Slab):
                column = ca.vertcat(_SLAB, c.f, c.bound, ca.gradient(c.f, x))
            else:
                jacobian = ca.densify(ca.jacobian(c.u, x))
                column = ca.vertcat(_CONE, c.t, c.u, ca.densify(ca.gradient(c.t, x)), ca.vec(jacobian))
            columns.append(ca.densify(column))
        function = ca.Function("values", [x, theta], columns)
        _VALUES[key] = lambda *a: _as_list(function(*a))
    return _VALUES[key]


def _as_list(outputs: Any) -> list[np.ndarray]:
    return [np.asarray(o) for o in (outputs if isinstance(outputs, tuple) else (outputs,))]


_VALUES: dict[Any, Any] = {}
