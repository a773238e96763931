"""The equations of a step: Jacobians by finite differences, scaling, symmetry under exchange and motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from implicit_geom import Scene, Trajectory, distance, shapes, simulate
from implicit_geom.contact.rattle_ncp import EndContact, PositionNCP, VelocityNCP
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.equations.momentum import momentum_rows
from implicit_geom.equations.unknowns import flat
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.model.model import Model
from implicit_geom.model.momentum_rows import angular_scaling
from implicit_geom.rotation import matrix, unit
from implicit_geom.scene.options import IMPLICIT
from implicit_geom.shapes.shape import Inequality, Slab
from implicit_geom.steppers.euler import EulerStepper

FORMS = ("projection", "fritz-john", "implicit")
SCHEMES: dict[str, type[StepNCP]] = {
    "euler": StepNCP,
    "position": PositionNCP,
    "velocity": VelocityNCP,
}
PAIRS: dict[str, tuple[Any, Any]] = {
    "halfspace-sphere": (shapes.halfspace((0, 0, 1)), shapes.sphere(0.4)),
    "halfspace-capsule": (shapes.halfspace((0, 0.6, 0.8), 0.1), shapes.capsule(0.3, 0.5)),
    "halfspace-cone": (shapes.halfspace((0, 0, 1)), shapes.cone(0.4, 0.5)),
    "ellipsoid-ellipsoid": (shapes.ellipsoid(0.5, 0.4, 0.3), shapes.ellipsoid(0.3, 0.6, 0.2)),
    "superellipsoid-box": (shapes.superellipsoid(0.5, 0.4, 0.3, 4), shapes.box(0.3, 0.4, 0.5)),
    "cylinder-cone": (shapes.cylinder(0.4, 0.8), shapes.cone(0.4, 0.5)),
    "disc-polygon": (shapes.disc(0.5), shapes.polygon([(-0.4, -0.3), (0.5, -0.2), (0, 0.6)])),
    "halfplane-disc": (shapes.halfplane((0, 1)), shapes.disc(0.5)),
    "halfplane-polygon": (
        shapes.halfplane((0, 1)),
        shapes.polygon([(-0.4, -0.3), (0.5, -0.2), (0, 0.6)]),
    ),
    "rectangle-rectangle": (shapes.rectangle(0.5, 0.3), shapes.rectangle(0.3, 0.4)),
}


def two_bodies(pair: str, form: str, rng: np.random.Generator) -> Model:
    """Two bodies near each other, with generic poses and velocities."""
    a, b = PAIRS[pair]
    dim = a.dim
    scene = Scene(dim=dim, gravity=(0,) * (dim - 1) + (-9.81,))
    spatial = dim == 3
    spin = (lambda: rng.normal(size=3)) if spatial else (lambda: float(rng.normal()))
    turn = (lambda: unit(rng.normal(size=4))) if spatial else (lambda: float(rng.normal()))
    if a.bounded:
        scene.add(
            "a", a, mass=1.3, orientation=turn(), velocity=rng.normal(size=dim), angular_velocity=spin()
        )
    else:
        scene.add("a", a, fixed=True)
    away = (0.3, -0.2, 1.1) if spatial else (0.2, 1.1)
    scene.add(
        "b",
        b,
        mass=0.7,
        position=away,
        orientation=turn(),
        velocity=rng.normal(size=dim),
        angular_velocity=spin(),
    )
    law = {"e_t": 1.0, "e_o": 0.5, "e_r": 0.1, "direction": (1, 2, 3), "frame": "b"} if spatial else {}
    if spatial and rng.integers(2):  # isotropic: the frame of stage 1 turns with the normal
        law = {"e_r": 0.1}
    scene.friction(mu=0.4, **law)
    return Model(scene, form)


def step_problem(pair: str, form: str, scheme: str, seed: int) -> tuple[StepNCP, np.ndarray]:
    """A prepared step, or stage of one, of two bodies and a generic point of its unknowns.

    The stages of RATTLE also run backwards, push within patches of every dimension, and have friction
    against the slip of the start as well as of the stage.
    """
    rng = np.random.default_rng([seed, *pair.encode()])
    model = two_bodies(pair, form, rng)
    stepper, state = EulerStepper(model), model.initial_state()
    stepper.memory.fill(state, [0])
    problem = stepper.search.equations(SCHEMES[scheme], [0])
    h = -0.02 if scheme != "euler" and seed in (1, 4) else 0.02
    impulse = h * model.loads(0.0)
    if isinstance(problem, VelocityNCP):
        z = problem.prepare_contacts(state, h, impulse, {0: end_contact(stepper, rng)}, 1e-10)
    else:
        z = problem.prepare(state, h, impulse, stepper.memory.warm, 1e-10)
    (g,) = problem.groups
    if scheme != "euler":
        axes = np.linalg.qr(rng.normal(size=(model.dim, model.dim)))[0][:, : seed % model.dim]
        g.set("B", flat(axes @ axes.T if g.kernel.kind.patches else np.zeros((model.dim, model.dim))))
    if scheme == "position":
        g.set("lag", seed % 2)
        for name in ("start1", "start2"):
            g.set(name, rng.normal(size=g.get(name).shape))
    return problem, z + 0.2 * rng.normal(size=z.size)


def end_contact(stepper: EulerStepper, rng: np.random.Generator) -> EndContact:
    """A closed contact, as stage 1 would leave it, with generic impulses; the only pair of two bodies."""
    model, (pair,) = stepper.model, stepper.model.pairs
    state = model.initial_state()
    points = find_closest_points(model.placed(state, pair.first), model.placed(state, pair.second)).points
    n = points.normal
    frame = np.linalg.qr(np.column_stack([n, rng.normal(size=(n.size, n.size - 1))]))[0]
    o = frame[:, 2] if n.size == 3 else np.zeros(2)
    layout = pair.kernel.layout
    multipliers = rng.normal(size=layout.first + layout.second)
    impulses = rng.normal(size=layout.size - layout.geometry)
    arms = (points.point_a - state.x[pair.first], points.point_b - state.x[pair.second])
    return EndContact(*arms, n, frame[:, 1], o, 0.0, multipliers, impulses, 0.5, bounce=-0.3)


def central_differences(f: Callable[[np.ndarray], np.ndarray], z: np.ndarray, d: float = 1e-6) -> np.ndarray:
    columns = [(f(z + d * e) - f(z - d * e)) / (2 * d) for e in np.eye(z.size)]
    return np.array(columns).T


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("pair", PAIRS)
def test_jacobian_of_a_step(pair: str, scheme: str, form: str) -> None:
    """Rows of a step or stage: Jacobian equals central differences at generic points, exact and smoothed."""
    for eps in (0.0, 0.1):
        checked = 0
        for seed in range(6):
            problem, z = step_problem(pair, form, scheme, seed)
            F, J = problem.linearise(z, eps)
            np.testing.assert_array_equal(F, problem.residual(z, eps))
            scale = np.abs(J).max(axis=1, keepdims=True) + 1
            wide, narrow = (
                central_differences(lambda y, e=eps, p=problem: p.residual(y, e), z, d) for d in (1e-5, 1e-6)
            )
            # a kink of the exact rows within reach shows as a difference between two widths
            smooth = np.abs(wide - narrow).max(axis=1) < 1e-5 * scale[:, 0]
            assert np.mean(smooth) > 0.8
            checked += int(np.sum(smooth))
            np.testing.assert_allclose((J / scale)[smooth], (narrow / scale)[smooth], rtol=0, atol=1e-5)
        assert checked > 5.5 * z.size


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_smoothed_rows_tend_to_the_exact_ones(scheme: str, form: str) -> None:
    """As eps falls the smoothed rows tend to the exact ones, at least linearly, for every kind of pair."""
    for pair in PAIRS:
        problem, z = step_problem(pair, form, scheme, 1)
        exact = problem.residual(z, 0.0)
        errors = [np.abs(problem.residual(z, e) - exact).max() for e in (1e-3, 1e-4, 1e-5)]
        assert errors[1] < 0.2 * errors[0] + 1e-12
        assert errors[2] < 0.2 * errors[1] + 1e-12


def skew(w: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), w)


def tangent(theta: np.ndarray) -> np.ndarray:
    """The integral of exp(s [theta]x) over 0 <= s <= 1, by Gauss's rule of 20 points."""
    s, weight = np.polynomial.legendre.leggauss(20)
    return np.asarray(sum(c * expm((x + 1) / 2 * skew(theta)) for x, c in zip(s, weight / 2)))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("dim", [2, 3])
def test_momentum_rows(dim: int, scheme: str) -> None:
    """Momentum rows of a body: Jacobian against central differences, zero where the balance holds."""
    rng = np.random.default_rng(0)
    function, at = momentum_rows(dim, scheme)
    p = np.zeros(max(s.stop for s in at.values()))
    p[at["U"]] = 2.0
    p[at["v_free"]] = rng.normal(size=dim)
    nu = rng.normal(size=dim + (3 if dim == 3 else 1))
    if dim == 3:
        q = rng.normal(size=4)
        R, J = matrix(q / np.linalg.norm(q)), np.diag([1.0, 2.0, 2.5])
        h, w = 0.3, nu[3:]
        p[at["h"]] = h
        p[at["R"]], p[at["J"]] = R.T.ravel(), J.ravel()
        p[at["K"]] = angular_scaling(R @ J @ R.T, 1.5).T.ravel()
        p[at["momentum"]] = rng.normal(size=3)
    else:
        p[at["w_free"]], p[at["gyration"]] = 0.7, 0.4
    numeric = central_differences(lambda y: np.asarray(function(y, p)[0]).ravel(), nu)
    np.testing.assert_allclose(np.asarray(function(nu, p)[1]), numeric, rtol=0, atol=1e-8)
    # the balance of the scheme, from its own formula
    if dim == 3:
        J_W = R @ J @ R.T
        turn = expm(h * skew(w))
        p[at["momentum"]] = {
            "euler": turn @ J_W @ turn.T @ w,
            "position": np.linalg.inv(tangent(h * w)).T @ J_W @ w,
            "velocity": J_W @ w,
        }[scheme]
    else:
        p[at["w_free"]] = nu[2]
    balanced = np.append(p[at["v_free"]], nu[dim:])
    np.testing.assert_allclose(np.asarray(function(balanced, p)[0]).ravel(), 0, atol=1e-14)


def test_angular_scaling() -> None:
    """K^2 = (m J)^-1."""
    J = np.diag([1.0, 4.0, 9.0])
    np.testing.assert_allclose(
        angular_scaling(J, 4.0) @ angular_scaling(J, 4.0) @ J, np.eye(3) / 4, atol=1e-14
    )


SHAPES: dict[str, Callable[[float], Any]] = {
    "sphere": lambda s: shapes.sphere(0.7 * s),
    "ellipsoid": lambda s: shapes.ellipsoid(s, 0.5 * s, 0.3 * s),
    "superellipsoid": lambda s: shapes.superellipsoid(s, 0.5 * s, 0.4 * s, 6),
    "cylinder": lambda s: shapes.cylinder(0.4 * s, 1.5 * s),
    "capsule": lambda s: shapes.capsule(0.4 * s, s),
    "cone": lambda s: shapes.cone(0.5 * s, s),
    "box": lambda s: shapes.box(s, 0.5 * s, 0.3 * s),
    "polygon": lambda s: shapes.polygon([(-0.4 * s, -0.3 * s), (0.5 * s, -0.2 * s), (0, 0.6 * s)]),
    "ellipse": lambda s: shapes.ellipse(s, 0.4 * s),
}


def derivatives(shape: Any, x: np.ndarray) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Value, gradient and Hessian of each scalar constraint at x."""
    y, theta = ca.SX.sym("y", shape.dim), ca.SX.sym("theta", shape.values.size)
    out = []
    for c in shape.constraints(y, theta):
        terms = [c.f] if isinstance(c, Inequality | Slab) else [c.t, *ca.vertsplit(c.u)]
        for f in terms:
            H, g = ca.hessian(f, y)
            values = ca.Function("f", [y, theta], [f, g, H])(x, shape.values)
            out.append((float(values[0]), np.asarray(values[1]).ravel(), np.asarray(values[2])))
    return out


@pytest.mark.parametrize("kind", SHAPES)
def test_constraints_are_lengths(kind: str) -> None:
    """Constraints scale as lengths: f ~ s, gradient ~ 1 (a factor of 8 at most), Hessian ~ 1/s."""
    n = np.random.default_rng(2).normal(size=(20, SHAPES[kind](1.0).dim))
    x = SHAPES[kind](1.0).support(n)
    for point in x:
        base = derivatives(SHAPES[kind](1.0), point)
        assert 1 / 8 < max(np.linalg.norm(g) for _, g, _ in base) < 8
        for s in (1e-3, 1e3):
            for (f, g, H), (f0, g0, H0) in zip(derivatives(SHAPES[kind](s), s * point), base, strict=True):
                np.testing.assert_allclose(f / s, f0, atol=1e-9)
                np.testing.assert_allclose(g, g0, atol=1e-9)
                np.testing.assert_allclose(H * s, H0, atol=1e-6 * (1 + np.abs(H0).max()))


# A touching pair that presses, slides and spins; gravity along a given direction.
TOUCHING: dict[str, tuple[Any, Any]] = {
    "ellipsoids": (shapes.ellipsoid(0.5, 0.4, 0.3), shapes.ellipsoid(0.3, 0.6, 0.3)),
    "box-cylinder": (shapes.box(0.5, 0.4, 0.3), shapes.cylinder(0.2, 0.6)),
    "cone-superellipsoid": (shapes.cone(0.5, 0.6), shapes.superellipsoid(0.4, 0.3, 0.3, 4)),
}


def one_step(
    pair: str, stepper: str, *, swap: bool = False, R: np.ndarray | None = None, y: Any = (0, 0, 0)
) -> Trajectory:
    """Steps in which the upper body meets the lower; the whole scene moved by x -> R x + y."""
    R = np.eye(3) if R is None else R
    low, high = TOUCHING[pair]
    turn = quaternion(R)
    tilt = unit([0.9, 0.2, -0.3, 0.1])
    height = 2.0
    for _ in range(50):  # lower it until the gap is 5 mm
        pose = ((0.05, 0.1, height) - matrix(tilt) @ high.com, tilt)
        height -= distance(low, (-low.com, (1, 0, 0, 0)), high, pose).gap - 0.005
    bodies = {
        "low": {"shape": low, "mass": 2.0, "position": R @ (0, 0, 0) + y, "orientation": turn},
        "high": {
            "shape": high,
            "mass": 1.0,
            "position": R @ (0.05, 0.1, height) + y,
            "orientation": product(turn, tilt / np.linalg.norm(tilt)),
            "velocity": R @ (1, 0.5, -2),
            "angular_velocity": R @ (2, -3, 1),
        },
    }
    scene = Scene(gravity=R @ (0, 0, -9.81))
    for name in sorted(bodies, reverse=swap):
        scene.add(name, **bodies[name])
    scene.friction(mu=0.4, e_r=0.02)
    return simulate(scene, duration=0.02, step=0.005, stepper=stepper)


def quaternion(R: np.ndarray) -> np.ndarray:
    """A quaternion of a rotation matrix with positive trace."""
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.array([w, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w))])


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    v = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.array([p[0] * q[0] - p[1:] @ q[1:], *v])


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("pair", TOUCHING)
def test_exchange_of_bodies(pair: str, stepper: str) -> None:
    """Bodies added in the other order: the same motion through an impact (1e-9), normals turned round."""
    a, b = one_step(pair, stepper), one_step(pair, stepper, swap=True)
    assert len(a.contacts) >= 1
    for name in ("low", "high"):
        np.testing.assert_allclose(a[name].position, b[name].position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(a[name].velocity, b[name].velocity, rtol=0, atol=1e-9)
        np.testing.assert_allclose(a[name].angular_velocity, b[name].angular_velocity, rtol=0, atol=1e-8)
    np.testing.assert_allclose(a.contacts["normal"], -b.contacts["normal"], atol=1e-8)
    np.testing.assert_allclose(a.contacts["p_n"], b.contacts["p_n"], rtol=1e-8)
    assert a.contacts["first"][0] == b.contacts["second"][0]


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("first", ["ground", "body"])
@pytest.mark.parametrize("dim", [2, 3])
def test_impulses_act_on_the_second_body(first: str, dim: int, stepper: str) -> None:
    """Whatever the order of bodies, a contact's impulses are those on its second body, normal towards it."""
    scene = Scene(dim=dim, gravity=(0,) * (dim - 1) + (-9.81,))
    plane = shapes.halfspace((0, 0, 1)) if dim == 3 else shapes.halfplane((0, 1))
    ball = shapes.sphere(0.5) if dim == 3 else shapes.disc(0.5)
    up, along = np.eye(dim)[-1], np.eye(dim)[0]
    for name in sorted(["ground", "body"], reverse=first == "ground"):
        if name == "ground":
            scene.add(name, plane, fixed=True)
        else:
            scene.add(name, ball, mass=2.0, position=0.5 * up, velocity=3 * along)
    scene.friction(mu=0.2)
    run = simulate(scene, duration=0.05, step=0.01, stepper=stepper)
    assert len(run.contacts) == 5
    sign = 1.0 if first == "ground" else -1.0
    for k, c in enumerate(run.contacts):
        assert c["first"] == first
        np.testing.assert_allclose(c["normal"], sign * up, atol=1e-12)
        impulse = c["p_n"] * c["normal"] + c["p_t"] * c["tangent"] + c["p_o"] * c["binormal"]
        change = 2.0 * np.diff(run["body"].velocity, axis=0)[k] + 0.01 * 2.0 * 9.81 * up
        np.testing.assert_allclose(sign * impulse, change, atol=1e-10)
        assert c["p_n"] > 0


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("pair", TOUCHING)
def test_rigid_motion_of_the_scene(pair: str, stepper: str) -> None:
    """The whole scene turned and moved: the same motion, turned and moved (1e-9)."""
    q = np.array([0.8, 0.3, -0.4, 0.2])
    R, y = matrix(q / np.linalg.norm(q)), np.array([0.3, -2.0, 1.0])
    a, b = one_step(pair, stepper), one_step(pair, stepper, R=R, y=y)
    assert len(a.contacts) >= 1
    for name in ("low", "high"):
        np.testing.assert_allclose(a[name].position @ R.T + y, b[name].position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(a[name].velocity @ R.T, b[name].velocity, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            a[name].angular_velocity @ R.T, b[name].angular_velocity, rtol=0, atol=1e-8
        )
    np.testing.assert_allclose(a.contacts["p_n"], b.contacts["p_n"], rtol=1e-8)
