"""T10: f(x) and v(x) by definition, edges, projection, search, solutions against a fixed point."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solve import solve_contact
from implicit_geom.solvers.contact.t10.edges import (
    cone_basis,
    edge_normal,
    edges_at,
    local_model,
    on_cone_edge,
)
from implicit_geom.solvers.contact.t10.maps import BREAK, SLIP, STICK, System, blocks, impulse, velocity
from implicit_geom.solvers.contact.t10.options import AS_PRINTED, T10Options
from implicit_geom.solvers.contact.t10.recovery import solve
from implicit_geom.solvers.contact.t10.search import crossings, cubic_minimum
from implicit_geom.solvers.contact.t10.starts import from_impulses, scaled, sticking, swept, unit_diagonal


def random_system(seed: int, n: int = 4, d: int = 3, mu: float = 0.6, b: float = 0.0) -> System:
    """Contacts of random bodies, more rows than bodies can move: A is singular for n > 3."""
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n * d, 10))
    q = rng.normal(size=10)
    return System(K @ K.T / 10, (K @ q).reshape(n, d), np.full(n, b), np.full(n, mu))


def as_problem(system: System, seed: int = 0) -> ContactProblem:
    """The same contacts as a `ContactProblem`: M = I, H^T = chol(A + 1e-3 I)."""
    n, d = system.v0.shape
    H = np.linalg.cholesky(system.A + 1e-3 * np.eye(n * d)).T
    w = np.zeros((n, d))
    w[:, 0] = -system.b
    v_free = np.linalg.solve(H.T, system.v0.ravel())
    return ContactProblem(M=np.eye(n * d), H=H, v_free=v_free, w=w.ravel(), mu=system.mu, dim=d)


def fixed_point(system: System, sweeps: int = 200_000) -> np.ndarray:
    """Impulses by projected steps, one step length for all contacts: slow, and shares nothing with t10."""
    n, d = system.v0.shape
    step = 0.5 / np.linalg.eigvalsh(system.A)[-1]
    f = np.zeros((n, d))
    for _ in range(sweeps):
        z = f - step * ((system.A @ f.ravel()).reshape(n, d) + system.v0 - np.eye(1, d) * system.b[:, None])
        new = np.empty_like(f)
        for k in range(n):
            new[k, 0] = max(z[k, 0], 0.0)
            size = float(np.hypot.reduce(z[k, 1:]))
            new[k, 1:] = z[k, 1:] * (
                1.0 if size <= system.mu[k] * new[k, 0] else system.mu[k] * new[k, 0] / size
            )
        if np.max(np.abs(new - f)) < 1e-13:
            return new
        f = new
    raise AssertionError("the fixed point did not converge")


@pytest.mark.parametrize(("x", "f", "v"), [
    ((1.5, 0.3, -0.4), (0, 0, 0), (1.5, 0.3, -0.4)),  # break
    ((-0.5, 0.3, -0.4), (0.7, -0.3, 0.4), (0.2, 0, 0)),  # stick: |x_F| = 0.5 <= 0.8 * 0.7
    ((-0.3, 0.6, -0.8), (0.5, -0.24, 0.32), (0.2, 0.36, -0.48)),  # slip: 0.8 * 0.5 = 0.4 of |x_F| = 1
])  # fmt: skip
def test_f_and_v_are_the_papers_in_each_region_with_b(x: tuple, f: tuple, v: tuple) -> None:
    b, mu = np.array([0.2]), np.array([0.8])
    np.testing.assert_allclose(impulse(np.array([x]), b, mu)[0], f, atol=1e-15)
    np.testing.assert_allclose(velocity(np.array([x]), b, mu)[0], v, atol=1e-15)


def test_any_x_obeys_coulombs_law_and_v_is_f_plus_x() -> None:
    rng = np.random.default_rng(1)
    x, b, mu = rng.normal(size=(500, 3)), rng.normal(size=500), rng.uniform(0, 2, 500)
    f, v = impulse(x, b, mu), velocity(x, b, mu)
    size = np.linalg.norm(f[:, 1:], axis=1)
    assert np.all(f[:, 0] >= 0)
    assert np.all(v[:, 0] >= b)
    assert np.max(np.abs(f[:, 0] * (v[:, 0] - b))) == 0
    assert np.all(size <= mu * f[:, 0] + 1e-14)
    slip = np.linalg.norm(v[:, 1:], axis=1)
    work = np.einsum("ni,ni->n", v[:, 1:], f[:, 1:])
    np.testing.assert_allclose(work, -mu * f[:, 0] * slip, atol=1e-13)  # maximum dissipation
    np.testing.assert_allclose(v, f + x, atol=1e-14)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_jacobian_is_the_derivative_of_r_away_from_edges(d: int) -> None:
    system = random_system(3, n=6, d=d, b=0.1)
    x = np.random.default_rng(2).normal(size=(6, d))
    of = system.region(x)
    assert {BREAK, STICK, SLIP} >= set(of.tolist()) > {BREAK}
    J = system.jacobian(blocks(x, system.b, system.mu, of), np.broadcast_to(np.eye(d), (6, d, d)))
    h = 1e-6
    for k, e in enumerate(np.eye(6 * d).reshape(-1, 6, d)):
        slope = (system.r(x + h * e) - system.r(x - h * e)).ravel() / (2 * h)
        np.testing.assert_allclose(J[:, k], slope, atol=1e-8)


def test_projection_is_the_nearest_point_of_the_cone() -> None:
    rng = np.random.default_rng(4)
    x, b, mu = rng.normal(size=(40, 3)), rng.normal(size=40), rng.uniform(0.1, 2, 40)
    nearest = np.linalg.norm(on_cone_edge(x, b, mu) - x, axis=1)
    along, angle = np.meshgrid(np.linspace(0, 6, 1201), np.linspace(0, 2 * np.pi, 721))
    for k in range(40):
        cone = np.stack([b[k] - along, mu[k] * along * np.cos(angle), mu[k] * along * np.sin(angle)], axis=-1)
        brute = np.min(np.linalg.norm(cone - x[k], axis=-1))
        assert nearest[k] <= brute + 1e-12
        assert nearest[k] >= brute - 0.02
    assert np.any(on_cone_edge(x, b, mu)[:, 0] == b)  # some go to the apex


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_basis_is_orthonormal_and_tangent_where_the_printed_one_is_for_mu_one_alone(mu: float) -> None:
    x = np.array([[-1.0, 0.6 * mu, -0.8 * mu], [-2.0, -2 * mu, 0.0]])
    B = cone_basis(x, np.full(2, mu))
    normal = edge_normal(x, np.full(2, mu), np.ones(2, bool))
    for k in range(2):
        np.testing.assert_allclose(B[k].T @ B[k], np.eye(3), atol=1e-14)
        np.testing.assert_allclose(B[k][:, :2].T @ normal[k], 0, atol=1e-14)
    printed = np.array([mu * x[0, 0], x[0, 1], x[0, 2]])
    assert (abs(printed @ normal[0]) < 1e-14) == (mu == 1.0)


def on_active_cone() -> tuple[System, np.ndarray]:
    """A contact on its cone, the objective of which grows to both sides."""
    for seed in range(400):
        system = random_system(seed, n=2, mu=1.5)
        x = np.random.default_rng(seed).normal(size=(2, 3))
        x[0] = on_cone_edge(x[:1] - [1.0, 0, 0], system.b[:1], system.mu[:1])
        if edges_at(system, x).cone[0] and _model(system, x).cone[0]:
            return system, x
    raise AssertionError("none found")


def _model(system: System, x: np.ndarray, **other: bool):
    return local_model(
        system, x, system.r(x), **{"mixed": True, "bases": True, "apex_sticks": False, **other}
    )


def test_mixed_jacobian_is_in_the_subdifferential_and_its_gradient_is_in_the_edge() -> None:
    system, x = on_active_cone()
    model = _model(system, x)
    normal = edge_normal(x[:1], system.mu[:1], np.ones(1, bool))[0]
    g = system.jacobian(model.F, np.broadcast_to(np.eye(3), (2, 3, 3))).T @ system.r(x).ravel()
    assert abs(g[:3] @ normal) < 1e-12
    slip, stick = (blocks(x[:1], system.b[:1], system.mu[:1], np.array([of]))[0] for of in (SLIP, STICK))
    part = np.sum((model.F[0] - stick) * (slip - stick)) / np.sum((slip - stick) ** 2)
    assert 0 < part < 1
    np.testing.assert_allclose(model.F[0], part * slip + (1 - part) * stick, atol=1e-13)
    assert model.kept.sum() == 5


def test_on_an_inactive_edge_the_steeper_side_is_taken() -> None:
    seen = set()
    for seed in range(40):
        system = random_system(seed, n=2, mu=0.8)
        x = np.random.default_rng(seed).normal(size=(2, 3))
        x[0] = on_cone_edge(x[:1] - [1.0, 0, 0], system.b[:1], system.mu[:1])
        model = _model(system, x)
        if not edges_at(system, x).cone[0] or model.cone[0]:
            continue
        normal = np.zeros((2, 3))
        normal[0] = edge_normal(x[:1], system.mu[:1], np.ones(1, bool))[0]
        h = 1e-6
        fall = [np.sum(system.r(x + s * h * normal) ** 2) - np.sum(system.r(x) ** 2) for s in (1, -1)]
        side = (SLIP, STICK)[int(np.argmin(fall))]
        seen.add(side)
        np.testing.assert_allclose(
            model.F[0], blocks(x[:1], system.b[:1], system.mu[:1], np.array([side]))[0]
        )
    assert seen == {SLIP, STICK}


def test_crossings_are_all_changes_of_region() -> None:
    rng = np.random.default_rng(5)
    system = random_system(0, n=5, mu=0.9, b=0.3)
    for _ in range(30):
        x, e = rng.normal(size=(5, 3)), 3 * rng.normal(size=(5, 3))
        a, contact, _ = crossings(system, x, e)
        fine = np.linspace(0, 1, 20001)
        of = system.region(x + fine[:, None, None] * e)
        step, which = np.nonzero(np.diff(of, axis=0))
        assert sorted(which.tolist()) == sorted(contact.tolist())
        np.testing.assert_allclose(np.sort(fine[step]), a, atol=1e-4)


def test_cubic_minimum_of_a_cubic_is_exact() -> None:
    p = np.polynomial.Polynomial([0.3, -1.0, -0.5, 1.2])
    found = cubic_minimum(np.array([2.0]), *(np.array([q(t)]) for q in (p, p.deriv()) for t in (0.0, 2.0)))
    assert abs(p.deriv()(found[0])) < 1e-12
    up = cubic_minimum(np.array([1.0]), np.array([0.0]), np.array([1.0]), np.array([1.0]), np.array([1.0]))
    assert np.isnan(up[0])


def test_sticking_start_sticks_and_scaling_keeps_the_solutions() -> None:
    system = random_system(7, n=3, b=0.2)
    x = sticking(system)
    v = (system.A @ (np.eye(1, 3) * 0.2 - x).ravel()).reshape(3, 3) + system.v0
    np.testing.assert_allclose(v, np.eye(1, 3) * system.b[:, None], atol=1e-9)
    c = unit_diagonal(system)
    own = scaled(system, c)
    np.testing.assert_allclose(np.diag(own.A).reshape(3, 3).mean(axis=1), 1, atol=1e-12)
    out = solve(system, 1e-10, T10Options())
    assert np.linalg.norm(own.r(from_impulses(own, out.f / c))) < 1e-9


def test_projected_steps_come_close_to_the_solution() -> None:
    system = random_system(7, n=3, mu=0.4, b=-0.2)
    np.testing.assert_allclose(system.f(swept(system)), fixed_point(system), atol=1e-3)
    assert np.linalg.norm(system.r(swept(system))) < 1e-3 < 1e-2 * np.linalg.norm(system.r(sticking(system)))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("b", [0.0, -0.3])
def test_velocities_agree_with_those_of_a_fixed_point(seed: int, b: float) -> None:
    system = random_system(seed, n=3, mu=0.4, b=b)
    out = solve(system, 1e-11, T10Options())
    assert out.status == "success"
    other = fixed_point(system)
    v = (system.A @ other.ravel()).reshape(3, 3) + system.v0
    np.testing.assert_allclose(out.v, v, atol=1e-6)


SWITCHES = {"edge_aware": False, "tangent_bases": False, "cone_projection": False, "mixed_jacobian": False,
            "damping": False, "dogleg": False, "scaled": False, "apex_sticks": False, "corrections": 0,
            "start": "free", "recovery": ("scale", "restart", "sweep", "proximal")}  # fmt: skip


@pytest.mark.parametrize("switch", SWITCHES)
def test_every_switch_leads_to_the_same_velocities(switch: str) -> None:
    for seed in range(4):
        system = random_system(seed, n=3, mu=0.4)
        usual = solve(system, 1e-10, T10Options())
        changed = solve(system, 1e-10, replace(T10Options(), **{switch: SWITCHES[switch]}))
        assert changed.status == usual.status == "success"
        np.testing.assert_allclose(changed.v, usual.v, atol=1e-7)
    with pytest.raises(SceneError, match="edge_awre"):
        solve_contact(as_problem(system), "t10", edge_awre=False)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_contact_problems_certify_and_a_warm_start_is_done_at_once(seed: int, d: int) -> None:
    problem = as_problem(random_system(seed, n=4, d=d, mu=0.5, b=-0.2))
    found = solve_contact(problem, "t10", tolerance=1e-9)
    assert found.converged
    assert found.info["status"] == "success"
    again = solve_contact(problem, "t10", tolerance=1e-8, start=found)
    assert again.iterations == 0
    assert again.converged


def test_much_friction_needs_the_recovery() -> None:
    """With mu = 3 the iteration as printed ends in local minima; with recovery all problems are solved."""
    systems = [random_system(seed, n=4, mu=3.0) for seed in range(30)]
    printed = [solve(s, 1e-8, AS_PRINTED).status for s in systems]
    assert printed.count("success") < 30
    assert [solve(s, 1e-8, T10Options()).status for s in systems].count("success") == 30


def test_too_few_iterations_are_no_solution() -> None:
    """Negative control: what is not solved says so."""
    problem = as_problem(random_system(5, n=4, mu=0.2))
    full = solve_contact(problem, "t10", tolerance=1e-9)
    assert full.iterations > 1
    cut = solve_contact(problem, "t10", tolerance=1e-9, iterations=1, corrections=0)
    assert not cut.converged
    assert cut.info["status"] != "success"


def test_rolling_friction_is_refused() -> None:
    problem = ContactProblem(M=np.eye(6), H=np.eye(6, 5), v_free=np.zeros(6), mu=[0.5], mu_r=[0.1])
    with pytest.raises(SceneError, match="one friction disc"):
        solve_contact(problem, "t10")
