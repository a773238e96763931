"""The equations of a step: Jacobians by finite differences, scaling, symmetry under exchange and motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

import shapes
from implicit_geom import Scene, Trajectory, distance, simulate
from implicit_geom.body import angular_scaling, momentum_rows
from implicit_geom.model import Model
from implicit_geom.problem import StepProblem
from implicit_geom.rotation import matrix
from implicit_geom.steppers.euler import EulerStepper
from shapes.shape import Inequality, Slab

FORMS = ("projection", "fritz-john", "implicit")
PAIRS: dict[str, tuple[Any, Any]] = {
    "halfspace-sphere": (shapes.halfspace((0, 0, 1)), shapes.sphere(0.4)),
    "halfspace-capsule": (shapes.halfspace((0, 0.6, 0.8), 0.1), shapes.capsule(0.3, 0.5)),
    "halfspace-cone": (shapes.halfspace((0, 0, 1)), shapes.cone(0.4, 0.5)),
    "ellipsoid-ellipsoid": (shapes.ellipsoid(0.5, 0.4, 0.3), shapes.ellipsoid(0.3, 0.6, 0.2)),
    "superellipsoid-box": (shapes.superellipsoid(0.5, 0.4, 0.3, 4), shapes.box(0.3, 0.4, 0.5)),
    "cylinder-cone": (shapes.cylinder(0.4, 0.8), shapes.cone(0.4, 0.5)),
    "disc-polygon": (shapes.disc(0.5), shapes.polygon([(-0.4, -0.3), (0.5, -0.2), (0, 0.6)])),
    "halfplane-disc": (shapes.halfplane((0, 1)), shapes.disc(0.5)),
}


def step_problem(pair: str, form: str, seed: int) -> tuple[StepProblem, np.ndarray]:
    """A prepared step of two bodies near each other and a generic point of its unknowns."""
    rng = np.random.default_rng([seed, *pair.encode()])
    a, b = PAIRS[pair]
    dim = a.dim
    scene = Scene(dim=dim, gravity=(0,) * (dim - 1) + (-9.81,))
    spatial = dim == 3
    spin = (lambda: rng.normal(size=3)) if spatial else (lambda: float(rng.normal()))
    turn = (lambda: rng.normal(size=4)) if spatial else (lambda: float(rng.normal()))
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
    scene.friction(mu=0.4, **law)
    model = Model(scene, form)
    stepper, state = EulerStepper(model), model.initial_state()
    stepper._fill_warm(state, [0])
    problem = stepper._problem([0])
    z = problem.prepare(state, 0.02, model.loads(0.0), stepper.warm, 1e-10)
    return problem, z + 0.2 * rng.normal(size=z.size)


def central_differences(f: Callable[[np.ndarray], np.ndarray], z: np.ndarray, d: float = 1e-6) -> np.ndarray:
    columns = [(f(z + d * e) - f(z - d * e)) / (2 * d) for e in np.eye(z.size)]
    return np.array(columns).T


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", PAIRS)
def test_jacobian_of_a_step(pair: str, form: str) -> None:
    """All rows of a step: Jacobian equals central differences at generic points, exact and smoothed."""
    for eps in (0.0, 0.1):
        checked = 0
        for seed in range(6):
            problem, z = step_problem(pair, form, seed)
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
def test_smoothed_rows_tend_to_the_exact_ones(form: str) -> None:
    """As eps falls the smoothed rows tend to the exact ones, at least linearly, for every kind of pair."""
    for pair in PAIRS:
        problem, z = step_problem(pair, form, 1)
        exact = problem.residual(z, 0.0)
        errors = [np.abs(problem.residual(z, e) - exact).max() for e in (1e-3, 1e-4, 1e-5)]
        assert errors[1] < 0.2 * errors[0] + 1e-12
        assert errors[2] < 0.2 * errors[1] + 1e-12


def test_momentum_rows() -> None:
    """Momentum rows of a body: Jacobian against central differences, zero at the exact free motion."""
    rng = np.random.default_rng(0)
    for dim in (2, 3):
        function, at = momentum_rows(dim)
        p = np.zeros(max(s.stop for s in at.values()))
        p[at["U"]] = 2.0
        p[at["v_free"]] = rng.normal(size=dim)
        nu = rng.normal(size=dim + (3 if dim == 3 else 1))
        if dim == 3:
            q = rng.normal(size=4)
            R, J = matrix(q / np.linalg.norm(q)), np.diag([1.0, 2.0, 2.5])
            J_W = R @ J @ R.T
            p[at["h"]] = 0.3
            p[at["R"]], p[at["J"]] = R.T.ravel(), J.ravel()
            p[at["K"]] = angular_scaling(J_W, 1.5).T.ravel()
            p[at["momentum"]] = rng.normal(size=3)
        else:
            p[at["w_free"]], p[at["gyration"]] = 0.7, 0.4
        numeric = central_differences(lambda y, f=function, p=p: np.asarray(f(y, p)[0]).ravel(), nu)
        np.testing.assert_allclose(np.asarray(function(nu, p)[1]), numeric, rtol=0, atol=1e-8)
        rest = np.asarray(function(np.append(p[at["v_free"]], np.zeros(nu.size - dim)), p)[0]).ravel()
        np.testing.assert_allclose(rest[:dim], 0, atol=1e-15)
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


def one_step(pair: str, *, swap: bool = False, R: np.ndarray | None = None, y: Any = (0, 0, 0)) -> Trajectory:
    """Steps in which the upper body meets the lower; the whole scene moved by x -> R x + y."""
    R = np.eye(3) if R is None else R
    low, high = TOUCHING[pair]
    turn = quaternion(R)
    tilt = np.array([0.9, 0.2, -0.3, 0.1])
    height = 2.0
    for _ in range(50):  # lower it until the gap is 5 mm
        pose = ((0.05, 0.1, height) - matrix(tilt / np.linalg.norm(tilt)) @ high.com, tilt)
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
    return simulate(scene, duration=0.02, step=0.005)


def quaternion(R: np.ndarray) -> np.ndarray:
    """A quaternion of a rotation matrix with positive trace."""
    w = np.sqrt(1 + np.trace(R)) / 2
    return np.array([w, *(np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4 * w))])


def product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    v = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.array([p[0] * q[0] - p[1:] @ q[1:], *v])


@pytest.mark.parametrize("pair", TOUCHING)
def test_exchange_of_bodies(pair: str) -> None:
    """Bodies added in the other order: the same motion through an impact (1e-9), normals turned round."""
    a, b = one_step(pair), one_step(pair, swap=True)
    assert len(a.contacts) >= 1
    for name in ("low", "high"):
        np.testing.assert_allclose(a[name].position, b[name].position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(a[name].velocity, b[name].velocity, rtol=0, atol=1e-9)
        np.testing.assert_allclose(a[name].angular_velocity, b[name].angular_velocity, rtol=0, atol=1e-8)
    np.testing.assert_allclose(a.contacts["normal"], -b.contacts["normal"], atol=1e-8)
    np.testing.assert_allclose(a.contacts["p_n"], b.contacts["p_n"], rtol=1e-8)
    assert a.contacts["first"][0] == b.contacts["second"][0]


@pytest.mark.parametrize("first", ["ground", "body"])
@pytest.mark.parametrize("dim", [2, 3])
def test_impulses_act_on_the_second_body(first: str, dim: int) -> None:
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
    run = simulate(scene, duration=0.05, step=0.01)
    sign = 1.0 if first == "ground" else -1.0
    for k, c in enumerate(run.contacts):
        assert c["first"] == first
        np.testing.assert_allclose(c["normal"], sign * up, atol=1e-12)
        impulse = c["p_n"] * c["normal"] + c["p_t"] * c["tangent"] + c["p_o"] * c["binormal"]
        change = 2.0 * np.diff(run["body"].velocity, axis=0)[k] + 0.01 * 2.0 * 9.81 * up
        np.testing.assert_allclose(sign * impulse, change, atol=1e-10)
        assert c["p_n"] > 0


@pytest.mark.parametrize("pair", TOUCHING)
def test_rigid_motion_of_the_scene(pair: str) -> None:
    """The whole scene turned and moved: the same motion, turned and moved (1e-9)."""
    q = np.array([0.8, 0.3, -0.4, 0.2])
    R, y = matrix(q / np.linalg.norm(q)), np.array([0.3, -2.0, 1.0])
    a, b = one_step(pair), one_step(pair, R=R, y=y)
    assert len(a.contacts) >= 1
    for name in ("low", "high"):
        np.testing.assert_allclose(a[name].position @ R.T + y, b[name].position, rtol=0, atol=1e-9)
        np.testing.assert_allclose(a[name].velocity @ R.T, b[name].velocity, rtol=0, atol=1e-9)
        np.testing.assert_allclose(
            a[name].angular_velocity @ R.T, b[name].angular_velocity, rtol=0, atol=1e-8
        )
    np.testing.assert_allclose(a.contacts["p_n"], b.contacts["p_n"], rtol=1e-8)
