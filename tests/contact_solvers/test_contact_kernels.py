"""Machine code of the contact solvers against NumPy: law, slopes, factors, certificate, one contact's law."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from contact_cases import Contact, recorded, spatial, stack

from implicit_geom.solvers.contact.blocks import body_labels
from implicit_geom.solvers.contact.law import alart_curnier, contact_residuals, on_cones
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.pssn.newton import Compiled, Stepwise
from implicit_geom.solvers.contact.sweeps.sweep import Sweeps
from implicit_geom.solvers.contact.systems.system import BlockSystem, JointSystem

MORE = {2: {}, 3: {}, 4: {"e": (1, 0.5, 0.1)}, 5: {"mu_r": 0.1}}


def chain(d: int, bodies: int = 4) -> ContactProblem:
    """Bodies on each other and on the ground, moving at random; contacts of d rows."""
    rng = np.random.default_rng(d)
    contacts = [Contact(rng.normal(size=3)) for _ in range(2)]
    contacts += [Contact(rng.normal(size=3), j, i, rng.normal(size=3)) for i, j in pairwise(range(bodies))]
    contacts.append(Contact(rng.normal(size=3), 0, bodies - 1, rng.normal(size=3)))
    more = dict(MORE[d])
    if d == 5:
        more["mu_r"] = np.full(len(contacts), more["mu_r"])
    masses = rng.uniform(1, 3, bodies)
    problem = spatial(masses, contacts, rng.normal(size=6 * bodies), moments=max(0, d - 3), **more)
    if d > 2:
        return problem
    plane = (6 * np.arange(bodies)[:, None] + (0, 2, 4)).ravel()  # x, z and the turn about y
    H = problem.H.toarray().reshape(6 * bodies, -1, 3)[plane, :, :2].reshape(3 * bodies, -1)
    return ContactProblem(M=problem.M[plane][:, plane], H=H, v_free=problem.v_free[plane], mu=problem.mu)


def near_a_solution(problem: ContactProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocities by body, impulses and weights at which contacts are open, stick and slip."""
    rng = np.random.default_rng(7)
    blocks = problem.blocks
    s = Sweeps(problem)
    pb = s.run(np.zeros(problem.H.shape[1]), s.free.copy(), 3)
    v = blocks.spread(problem.velocity(pb) + 0.01 * rng.normal(size=problem.n))
    return v, pb, np.repeat(2 * problem.effective_mass, problem.dim)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_law_and_slopes(d: int) -> None:
    """P is that of NumPy, D its slope, R and X what is left of momentum."""
    problem = chain(d)
    system, (v, pb, rho) = BlockSystem(problem), near_a_solution(problem)
    blocks = problem.blocks

    def law(v: np.ndarray) -> np.ndarray:
        u = problem.H_ball.T @ blocks.gather(v) + problem.w_ball
        return alart_curnier((pb - rho * u).reshape(-1, d), problem.coefficients).ravel()

    P, D = system.terms(v, pb, rho)
    np.testing.assert_allclose(P, law(v), atol=1e-14)
    move, step = blocks.spread(np.random.default_rng(3).normal(size=problem.n)), 1e-6
    slope = (law(v + step * move) - law(v - step * move)) / (2 * step)
    du = (problem.H_ball.T @ blocks.gather(move)).reshape(-1, d, 1)
    np.testing.assert_allclose(-(D @ du).ravel(), slope, atol=1e-7)
    R, X, square = system.momentum(v, P)
    expected = problem.M @ (blocks.gather(v) - problem.v_free) - problem.H_ball @ P
    np.testing.assert_allclose(blocks.gather(R), expected, atol=1e-13)
    np.testing.assert_allclose(problem.M @ blocks.gather(X), expected, atol=1e-13)
    assert square == pytest.approx(R @ X)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_factors(d: int) -> None:
    """Block LU and the dense system give what NumPy gives, in any axes of the friction rows."""
    problem = chain(d, bodies=7)
    v, pb, rho = near_a_solution(problem)
    turn = Sweeps(problem).turn
    _, D = BlockSystem(problem).terms(v, pb, rho)
    assert np.any(D)
    H = problem.H_ball.toarray()
    K = problem.M.toarray() + H @ sp.block_diag(list(D)).toarray() @ H.T
    right = np.random.default_rng(2).normal(size=problem.n)
    for system, given in (
        (BlockSystem(problem), D),
        (JointSystem(problem), D),
        (BlockSystem(problem, turn), np.swapaxes(turn, 1, 2) @ D @ turn),
        (JointSystem(problem, turn), np.swapaxes(turn, 1, 2) @ D @ turn),
    ):
        system.factor(np.ascontiguousarray(given))
        found = problem.blocks.gather(system.solve(problem.blocks.spread(right)))
        np.testing.assert_allclose(K @ found, right, atol=1e-11)


def test_shifted() -> None:
    """(W + S)^-1 g without W."""
    problem = chain(3)
    system = BlockSystem(problem)
    weight = np.linspace(0.5, 2, problem.contacts)[:, None]
    system.factor(np.ascontiguousarray(np.eye(3) / weight[:, :, None]))
    g = np.random.default_rng(4).normal(size=(problem.contacts, 3))
    found = system.shifted(lambda x: x / weight, g)
    np.testing.assert_allclose(problem.W @ found.ravel() + (weight * found).ravel(), g.ravel(), atol=1e-12)


@pytest.mark.parametrize("c", [1.0, 1e3])
@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_two_newtons(d: int, c: float) -> None:
    """Newton's method in machine code does what it does step by step."""
    problem = chain(d)
    v, pb, rho = near_a_solution(problem)
    results = []
    for newton in (
        Compiled(BlockSystem(problem)),
        Stepwise(BlockSystem(problem)),
        Stepwise(JointSystem(problem)),
    ):
        found = newton(v, pb, c * rho, 1e-8, c)
        assert newton.system.factorisations == found.steps > 0
        results.append(found)
    for other in results[1:]:
        assert other.solved == results[0].solved
        assert other.steps == results[0].steps
        np.testing.assert_allclose(other.P, results[0].P, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_certificate(d: int) -> None:
    """The error in machine code is that of the residuals; NaN is an infinite one."""
    problem = chain(d)
    sweeps = Sweeps(problem)
    s = np.random.default_rng(5).normal(size=problem.H.shape[1])
    v = problem.velocity(s)
    u = (problem.H_ball.T @ v + problem.w_ball).reshape(-1, d)
    own = sweeps.to_axes(s)
    error, moved = sweeps.certify(own)
    assert error == pytest.approx(np.max(contact_residuals(problem, u, s.reshape(-1, d))), rel=1e-12)
    np.testing.assert_allclose(problem.blocks.gather(moved), v, atol=1e-13)
    np.testing.assert_allclose(sweeps.from_axes(own), s, atol=1e-14)
    own[-1] = np.nan
    assert sweeps.certify(own)[0] == np.inf


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_sweeps_settle(d: int) -> None:
    """They stop where the residuals are below the tolerance, which they tell with the velocities."""
    problem = chain(d)
    sweeps = Sweeps(problem)
    v = sweeps.free.copy()
    s, error, done = sweeps.settle(np.zeros(problem.H.shape[1]), v, 2000, 1e-9)
    assert error < 1e-9
    assert error == pytest.approx(sweeps.certify(s)[0], rel=1e-12)
    np.testing.assert_array_equal(v, sweeps.velocities(s))
    _, left, fewer = sweeps.settle(np.zeros(len(s)), sweeps.free.copy(), done - 2, 1e-9)
    assert fewer == done - 2
    assert left > 1e-9


@pytest.mark.parametrize(("d", "bodies"), [(2, 12), (4, 12), (5, 20)])
def test_relaxation_saves_sweeps(d: int, bodies: int) -> None:
    """Half as many plain sweeps more do not suffice; the motion is theirs."""
    problem = chain(d, bodies)
    sweeps = Sweeps(problem)
    s, _, done = sweeps.settle(np.zeros(problem.H.shape[1]), sweeps.free.copy(), 2000, 1e-8)
    plain = sweeps.run(np.zeros(len(s)), sweeps.free.copy(), int(1.5 * done))
    assert sweeps.certify(plain)[0] > 1e-8
    plain = sweeps.run(plain, sweeps.velocities(plain), 500)
    np.testing.assert_allclose(sweeps.velocities(s), sweeps.velocities(plain), atol=1e-6)


@pytest.mark.parametrize("mu", [0.0, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("d", [2, 3, 4])
def test_one_contact_is_solved_exactly(d: int, mu: float) -> None:
    """A single sweep solves a problem of one contact, whatever its matrix."""
    rng = np.random.default_rng(11)
    states = set()
    for _ in range(60):
        n = 6
        H = rng.normal(size=(n, d)) * rng.choice([0.1, 1, 10], d)
        problem = ContactProblem(M=np.eye(n), H=H, v_free=rng.normal(size=n), mu=[mu])
        sweeps = Sweeps(problem)
        s = sweeps.run(np.zeros(d), sweeps.free.copy(), 1)
        assert sweeps.certify(s)[0] < 1e-11
        slips = np.linalg.norm(s[1:]) >= 0.999 * mu * s[0]
        states.add("open" if s[0] == 0 else "slips" if slips else "sticks")
    assert states >= ({"open", "slips"} if mu < 1 else {"open", "slips", "sticks"})


def test_projection_on_cones() -> None:
    """Of two discs: in the set, and no point of the set is on the far side of the projection."""
    rng = np.random.default_rng(6)
    discs = [(slice(1, 3), rng.uniform(0, 2, 200)), (slice(3, 5), rng.uniform(0, 2, 200))]
    z, other = rng.normal(size=(2, 200, 5))
    other[:, 0] = np.abs(other[:, 0])
    for rows, mu in discs:
        other[:, rows] *= (mu * other[:, 0] / np.linalg.norm(other[:, rows], axis=1))[:, None]
    x = on_cones(z, discs)
    for rows, mu in discs:
        assert np.all(np.linalg.norm(x[:, rows], axis=1) <= mu * x[:, 0] + 1e-14)
    np.testing.assert_allclose(np.einsum("ni,ni->n", z - x, x), 0, atol=1e-13)  # the set is a cone
    assert np.all(np.einsum("ni,ni->n", z - x, other) <= 1e-13)


def test_bodies() -> None:
    """Rows are put together to bodies as M allows; unequal ones are filled up."""
    assert body_labels(sp.csc_matrix(np.eye(12)), 6).tolist() == [0] * 6 + [1] * 6
    M = np.eye(5)
    M[1, 2] = M[2, 1] = M[3, 4] = M[4, 3] = 0.5
    assert body_labels(sp.csc_matrix(M), 6).tolist() == [0, 1, 1, 2, 2]
    H = np.random.default_rng(8).normal(size=(5, 6))
    problem = ContactProblem(M=M, H=H, v_free=np.ones(5), mu=[0.5, 0.5])
    W = H.T @ np.linalg.inv(M) @ H
    np.testing.assert_allclose(problem.W.toarray(), W, atol=1e-13)
    np.testing.assert_allclose(problem.W_blocks, [W[:3, :3], W[3:, 3:]], atol=1e-13)
    s = np.arange(6.0)
    np.testing.assert_allclose(problem.velocity(s), 1 + np.linalg.inv(M) @ H @ s, atol=1e-13)


def test_elimination_is_sparse() -> None:
    """Of a tower of bodies no block is filled in."""
    system = BlockSystem(stack([1.0] * 30).problem)
    assert system.pattern.blocks == 30 + 2 * 29
    assert len(system.pattern.targets) == 29
    assert BlockSystem(recorded("box27_mass_ratio")).pattern.blocks < 27 * 27 / 2
