"""Independent check of a solved step: the NCP [C07, eqs. 3 to 5] recomputed with NumPy.

Nothing here is used by the solver. From the state at the start, the state at the end and the table of
contacts of a solve it recomputes

    dynamics          m/s   momentum balance, linear rows over m, angular rows over sqrt(m J), and the
                            pose that follows from the velocities
    gap               m     largest penetration, or distance left between bodies that press
    complementarity   m/s   min(p_n / m_c, gap / h), and any negative p_n / m_c
    friction          m/s   |s - Proj(s - w)| for the friction ellipsoid

with 1/m_c = 1/m_1 + 1/m_2. `geometry_residual` goes further: it proves each closed contact from
the shapes alone, and asks `distance()` for every other pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.closest_points import Placed
from implicit_geom.distance import closest
from implicit_geom.model import Model, State
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
    for c in contacts:
        m_c = _pair_mass(model, c.pair)
        natural = min(c.p_n / m_c, c.gap / solve.h)
        worst["complementarity"] = max(worst["complementarity"], abs(natural), -c.p_n / m_c)
        worst["friction"] = max(worst["friction"], _friction(model, solve.end, c, m_c))
    return worst


def contact_velocity(model: Model, state: State, c: Any) -> tuple[np.ndarray, float]:
    """Velocity of the second body's contact point relative to the first's, and spin about the normal."""
    first, second = scene_order(model, c.pair)
    if model.dim == 2:

        def velocity(b: int) -> np.ndarray:
            r = c.point - state.x[b]
            return state.v[b] + state.w[b, 0] * np.array([-r[1], r[0]])

        return velocity(second) - velocity(first), 0.0
    relative = state.v[second] + np.cross(state.w[second], c.point - state.x[second])
    relative = relative - state.v[first] - np.cross(state.w[first], c.point - state.x[first])
    return relative, float(c.normal @ (state.w[second] - state.w[first]))


def scene_order(model: Model, pair: int) -> tuple[int, int]:
    """The bodies of a pair in the order they were added to the scene."""
    p = model.pairs[pair]
    return (p.second, p.first) if p.swapped else (p.first, p.second)


def _pair_mass(model: Model, pair: int) -> float:
    p = model.pairs[pair]
    return float(1 / (1 / model.mass[p.first] + 1 / model.mass[p.second]))


def _dynamics(model: Model, solve: Any) -> float:
    start, end, h, dim = solve.start, solve.end, solve.h, model.dim
    loads = model.loads(start.time)
    impulse = h * loads
    for c in solve.contacts:
        first, second = scene_order(model, c.pair)
        force = c.p_n * c.normal + c.p_f[0] * c.tangent + (c.p_f[1] * c.binormal if dim == 3 else 0.0)
        for sign, body in ((-1.0, first), (1.0, second)):
            r = c.point - end.x[body]
            impulse[body, :dim] += sign * force
            if dim == 3:
                impulse[body, dim:] += sign * (np.cross(r, force) + c.p_f[2] * c.normal)
            else:
                impulse[body, 2] += sign * (r[0] * force[1] - r[1] * force[0])
    R0, R1 = start.R, end.R
    worst = 0.0
    for b in model.moving:
        m, J = model.mass[b], model.inertia[b]
        linear = end.v[b] - start.v[b] - impulse[b, :dim] / m
        if dim == 2:
            angular = (J[0, 0] * (end.w[b] - start.w[b]) - impulse[b, 2:]) / np.sqrt(m * J[0, 0])
        else:
            change = R1[b] @ J @ R1[b].T @ end.w[b] - R0[b] @ J @ R0[b].T @ start.w[b] - impulse[b, 3:]
            values, vectors = np.linalg.eigh(R0[b] @ J @ R0[b].T)
            angular = vectors.T @ change / np.sqrt(m * values)
        moved = (end.x[b] - start.x[b]) / h - end.v[b]
        turned = np.max(np.abs(R1[b] - _turn(end.w[b], h) @ R0[b])) * np.sqrt(np.max(np.diag(J)) / m) / h
        worst = max(worst, *np.abs(linear), *np.abs(angular), *np.abs(moved), turned)
    return float(worst)


def _turn(w: np.ndarray, h: float) -> np.ndarray:
    """The rotation matrix of the rotation vector h w, as a matrix exponential."""
    from scipy.linalg import expm

    cross = np.array([[0.0, -w[0]], [w[0], 0.0]]) if w.size == 1 else np.cross(np.eye(3), w)
    return np.asarray(expm(h * cross))


def _friction(model: Model, end: State, c: Any, m_c: float) -> float:
    law = model.pairs[c.pair].law
    relative, spin = contact_velocity(model, end, c)
    slip = np.array([c.tangent @ relative, c.binormal @ relative if model.dim == 3 else 0.0, spin])
    e = np.array([law.e_t, law.e_o, law.e_r]) if model.dim == 3 else np.array([law.e_t, 0.0, 0.0])
    if law.mu == 0:
        e = np.zeros(3)
    kept = e > 0
    s, w = c.p_f[kept] / (e[kept] * m_c), e[kept] * slip[kept]
    radius = law.mu * max(c.p_n, 0.0) / m_c
    y = s - w
    norm = float(np.linalg.norm(y))
    projected = y if norm <= radius else radius / norm * y
    lost = np.abs(c.p_f[~kept]).max(initial=0.0) / m_c
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
