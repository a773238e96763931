"""One body in one contact: its closed forms, its Newton steps, and which scenes are stepped that way."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from compiled_scenes import EULER, RATTLE, RATTLE_4, TILTED, Build, egg, on_ground, planar, two_eggs

from implicit_geom import shapes
from implicit_geom.compiled.functions import rotation_vector, support_map
from implicit_geom.compiled.loops import extrapolation
from implicit_geom.geometry.over_planes import multiplier_factor
from implicit_geom.machine import small_systems
from implicit_geom.machine.availability import available
from implicit_geom.model.model import Model
from implicit_geom.rotation import exp_symbolic, tangent_inverse_symbolic
from implicit_geom.shapes.shape import Inequality, Shape

pytestmark = pytest.mark.skipif(not available(), reason="compiled code is not at hand")

ANGLES = (0.0, 1e-8, 0.01, 0.3, 0.8, rotation_vector.LARGEST)
QUADRICS = (shapes.ellipsoid(0.5, 0.4, 0.3), shapes.sphere(0.7), shapes.ellipse(0.6, 0.2), shapes.disc(0.3))


def vector(length: float, n: int = 3) -> np.ndarray:
    v = np.random.default_rng(n).normal(size=n)
    return length * v / np.linalg.norm(v)


def numbers(expression: ca.SX, symbols: list[ca.SX], values: list[np.ndarray | float]) -> np.ndarray:
    return np.array(ca.Function("f", symbols, [ca.densify(expression)])(*values))


@pytest.mark.parametrize("angle", ANGLES)
def test_series_of_a_turn_are_exact(angle: float) -> None:
    """Up to the largest turn series equal the closed forms to rounding."""
    theta, y = ca.SX.sym("theta", 3), ca.SX.sym("y", 3)
    D = tangent_inverse_symbolic(theta)
    pairs = [
        (rotation_vector.SERIES.matrix(theta), exp_symbolic(theta)),
        (rotation_vector.EXACT.matrix(theta), exp_symbolic(theta)),
        (rotation_vector.SERIES.tangent_inverse(theta), D),
        (rotation_vector.inverse_tangent_product(theta, y), D.T @ y),
    ]
    for short, exact in pairs:
        off = numbers(short - exact, [theta, y], [vector(angle), np.array([0.3, -0.7, 0.2])])
        assert np.max(np.abs(off)) < 4e-16


@pytest.mark.parametrize("angle", ANGLES)
def test_derivatives_of_a_turn(angle: float) -> None:
    """Derivatives by hand are those of CasADi, to what a Newton step needs."""
    h, w, g = 0.05, ca.SX.sym("w", 3), np.array([[0.2, -0.5, 0.9], [1.0, 0.3, 0.0]])
    M = np.array([[2.0, 0.1, -0.2], [0.1, 1.0, 0.3], [-0.2, 0.3, 3.0]])
    momentum = tangent_inverse_symbolic(h * w).T @ (ca.DM(M) @ w)
    off = ca.jacobian(momentum, w) - rotation_vector.inverse_tangent_derivative(w, ca.SX(h), ca.SX(ca.DM(M)))
    assert np.max(np.abs(numbers(off, [w], [vector(angle / h)]))) < 1e-6
    # exp(theta + D eps) = exp(eps) exp(theta): T is the inverse of D
    T = rotation_vector.tangent_product(ca.SX(ca.DM(g)), ca.SX(h), w)
    off = T @ tangent_inverse_symbolic(h * w) - h * ca.DM(g)
    assert np.max(np.abs(numbers(off, [w], [vector(angle / h)]))) < 1e-7


@pytest.mark.parametrize("shape", QUADRICS, ids=lambda s: s.kind)
def test_support_maps(shape: Shape) -> None:
    """Points are the shape's own support points, derivatives those of CasADi, multipliers make the normal."""
    d, theta = ca.SX.sym("d", shape.dim), ca.DM(shape.values)
    along, g = vector(1.0, shape.dim), np.eye(shape.dim)
    point = support_map.support(shape, theta, d)
    np.testing.assert_allclose(
        numbers(point, [d], [along]).ravel(), shape.support(along[None])[0], rtol=1e-14, atol=1e-15
    )
    off = ca.jacobian(point, d) - support_map.derivative(shape, theta, d, ca.SX(g))
    assert np.max(np.abs(numbers(off, [d], [along]))) < 1e-15
    x = ca.SX.sym("x", shape.dim)
    (constraint,) = shape.constraints(x, theta)
    assert isinstance(constraint, Inequality)
    gradient = numbers(ca.gradient(constraint.f, x), [x], [shape.support(along[None])[0]]).ravel()
    k = multiplier_factor(shape) * float(
        numbers(support_map.support_value(shape, theta, d), [d], [along])[0, 0]
    )
    np.testing.assert_allclose(k * gradient, along, rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", ["random", "permuted", "saddle"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_small_systems(n: int, kind: str) -> None:
    """Solved as numpy.linalg.solve does, also where the diagonal is zero."""
    rng = np.random.default_rng(n)
    M, b = rng.normal(size=(n, n)), rng.normal(size=(n, 2))
    if kind == "permuted":
        M = np.diag(rng.uniform(1, 2, n))[np.roll(np.arange(n), 1)]
    if kind == "saddle":
        M[n - n // 2 :, n - n // 2 :] = 0.0
    A, B = ca.SX.sym("A", n, n), ca.SX.sym("B", n, 2)
    for solve in (small_systems.solve, small_systems.eliminated):
        found = numbers(solve(A, B), [A, B], [M, b])
        np.testing.assert_allclose(found, np.linalg.solve(M, b), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("lengths", [(1.0,), (0.4, 0.4, -0.6, 0.4, 0.4)])
def test_rates_are_continued(lengths: tuple[float, ...]) -> None:
    """Weights reproduce linear functions of (t, l), and cubic ones where all parts are of one length."""
    weights = extrapolation.rate_weights(lengths, symmetric=True)
    repeated = np.tile(lengths, extrapolation.RATES + 1)
    starts = np.cumsum(repeated) - repeated

    def rate(t: np.ndarray, length: np.ndarray) -> np.ndarray:
        linear = 0.3 - 0.7 * t + 0.2 * length
        return linear if len(lengths) > 1 else linear + t**2 - 0.4 * t * length**2 + 0.1 * t**3

    for part in range(len(lengths)):
        now = extrapolation.RATES * len(lengths) + part
        past = now - 1 - np.arange(extrapolation.RATES)
        ends = rate(starts[past] + repeated[past], -repeated[past])
        known = np.column_stack([rate(starts[past], repeated[past]), ends])
        wanted = rate(starts[[now]], repeated[[now]])[0]
        assert abs(np.sum(weights[part] * known) - wanted) < 1e-5


SINGLE: dict[str, Build] = {
    "ellipsoid": egg,
    "sphere": lambda: on_ground(shapes.sphere(0.4), position=(0, 0, 0.4), velocity=(1, 0, 0)),
    "ellipse": lambda: planar(shapes.ellipse(0.6, 0.4), 0.6),
    "disc": lambda: planar(shapes.disc(0.5), 0.6),
}
NOT_SINGLE: dict[str, Build] = {
    "two bodies": two_eggs,
    "faces": lambda: on_ground(shapes.box(0.5, 0.3, 0.2), position=(0, 0, 0.7), orientation=TILTED),
    "no closed form": lambda: on_ground(shapes.superellipsoid(0.5, 0.4, 0.3, p=4), position=(0, 0, 0.3)),
}


@pytest.mark.parametrize("name", [*SINGLE, *NOT_SINGLE])
def test_which_scenes_have_a_single_contact(name: str) -> None:
    """One body with a known support map over a half-space, and nothing else."""
    from implicit_geom.compiled.memory.single import single_contact_functions

    model = Model({**SINGLE, **NOT_SINGLE}[name]())
    assert (single_contact_functions(model, [0], True) is not None) == (name in SINGLE)
    assert single_contact_functions(model, [], True) is None


@pytest.mark.parametrize("stepper", [EULER, RATTLE, RATTLE_4])
@pytest.mark.parametrize("name", list(SINGLE))
def test_newton_steps_converge_quadratically(
    name: str, stepper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step from a point off the solution by e leaves e^2: the matrix is the derivative, in all modes."""
    from implicit_geom import simulate
    from implicit_geom.compiled import engine
    from implicit_geom.compiled.single.functions import SingleContactFunctions

    seen: list[tuple[SingleContactFunctions, list[np.ndarray]]] = []
    run = engine.Engine.run

    def noted(self: engine.Engine, wanted: np.ndarray, h: float) -> np.ndarray:
        assert self.single is not None
        pair, group = self.groups[0].pairs[0], self.groups[0]
        first, second = pair.first, pair.second
        bodies = self.bodies
        known = [bodies.state[first], bodies.derived[first], bodies.constants[first], bodies.state[second]]
        known += [
            bodies.constants[second],
            group.constants[0],
            group.warm[0],
            np.array([[h]]),
            np.ones((1, 1)),
        ]
        seen.append((self.single, [k[:, 0].copy() for k in known]))
        return run(self, np.minimum(wanted, 1.0), h)

    monkeypatch.setattr(engine.Engine, "run", noted)
    simulate(SINGLE[name](), duration=0.3, step=0.01, stepper=stepper, progress=False)
    checked = 0
    for single, known in seen[5:]:
        f = single.functions
        z, precomputed = f["start"](*known)
        for _ in range(8):
            z = f["newton"](z, precomputed, *known)[0]
        if not float(f["residual"](z, precomputed, *known)[0]) < 1e-3:
            continue
        for size in (1e-3, 1e-4):
            off = size * vector(1.0, single.unknowns) * np.maximum(np.abs(np.array(z).ravel()), 0.1)
            after, _ = f["newton"](np.array(z).ravel() + off, precomputed, *known)
            assert np.max(np.abs(np.array(after - z))) < 30 * size**2
        checked += 1
    assert checked >= 10
