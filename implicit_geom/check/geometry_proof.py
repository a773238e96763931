"""Proof of a solve's geometry from the shapes alone: closed contacts touch, all other pairs are apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.supports import overlapping_spheres
from implicit_geom.model.model import Model
from implicit_geom.model.placed_shape import KINDS, PlacedShape
from implicit_geom.model.records import POSITION
from implicit_geom.process.building import Kept
from implicit_geom.process.threads import building
from implicit_geom.shapes.shape import Inequality, Shape, Slab

ACTIVE = 1e-6  # a constraint this close to its bound, relative to the body, counts as active


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
        p = model.pairs[c.pair]
        # the normal points from the first body of the scene to the second
        for sign, piece in ((1.0, min(p.pieces)), (-1.0, max(p.pieces))):
            body = model.placed(solve.end, piece)
            local = body.R.T @ (c.point - body.x) + body.com
            touching = max(touching, float(abs(body.shape.violation(local[None])[0])))
            normal = max(normal, normal_cone_distance(body, local, sign * body.R.T @ c.normal))
    bodies = np.arange(len(model.bodies))
    unbounded = bodies[~np.isfinite(model.reach)]
    near = overlapping_spheres(solve.end.x, model.reach, np.setdiff1d(bodies, unbounded))
    fixed = np.isin(bodies, model.moving, invert=True)
    others = {(min(int(u), int(b)), max(int(u), int(b))) for u in unbounded for b in bodies if u != b}
    for i, j in sorted({*zip(*(side.tolist() for side in near), strict=True), *others}):
        if fixed[i] and fixed[j]:
            continue
        for number in model.pairs.number(*model.pieces.of_pairs(np.array([i]), np.array([j]))).tolist():
            if number not in closed:
                a, b = (model.placed(solve.end, piece) for piece in model.pairs[number].pieces)
                overlap = max(overlap, -find_closest_points(a, b).points.gap)
    return GeometryResidual(touching, normal, overlap)


def normal_cone_distance(body: PlacedShape, local: np.ndarray, n: np.ndarray) -> float:
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


def _constraint_values(shape: Shape) -> Callable[..., list[np.ndarray]]:
    """Each constraint's kind, value and gradients at a point, as one column a constraint."""
    return _VALUES.get((shape.dim, shape.structure, shape.values.size), lambda: _value_function(shape))


def _value_function(shape: Shape) -> Callable[..., list[np.ndarray]]:
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

    def call(*inputs: Any) -> list[np.ndarray]:
        with building():
            return _as_list(function(*inputs))

    return call


def _as_list(outputs: Any) -> list[np.ndarray]:
    return [np.asarray(o) for o in (outputs if isinstance(outputs, tuple) else (outputs,))]


_VALUES: Kept[Callable[..., list[np.ndarray]]] = Kept(KINDS)
