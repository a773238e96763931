"""Proximal rounds solve the true friction problem of a heap, whose contacts all close at once."""

from __future__ import annotations

import numpy as np
import pytest
from heaps import fallen, heap, prepared
from searching import euler_run

from implicit_geom.contact.coulomb_projection import project, project_in_place, projection_derivative
from implicit_geom.contact.linearised import LinearisedStep
from implicit_geom.contact.many_contacts import COLD
from implicit_geom.contact.proximal_rounds import from_zero_impulses, solve_by_rounds
from implicit_geom.solvers.newton import NewtonOptions
from implicit_geom.steppers.search import SearchOptions


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.3, 0.5, 0.8])
def test_first_step_of_a_heap(mu: float) -> None:
    """15 discs, no impulses known: the rows of the step are solved, laws recomputed from the impulses."""
    problem, z = prepared(heap(5, mu), 0.05)
    found = solve_by_rounds(problem, z, from_zero_impulses, COLD[0], NewtonOptions())
    assert found.converged
    assert np.all(np.abs(problem.residual(found.z, 0.0)) <= problem.tolerance)
    for g, own, _ in problem.members():
        at = g.kernel.layout.at
        seen = g.seen(found.z[problem.gather[problem.groups.index(g)]])
        P, S = found.z[own[:, at["P_n"].start]], found.z[own[:, at["S"]]]
        D = seen["gap"][:, 0] / problem.h
        assert np.abs(np.minimum(P, D)).max() < 1e-9
        assert np.all(np.linalg.norm(S, axis=1) <= mu * P + 1e-9)
        if mu > 0:
            slip = seen["slip"][:, 0]
            assert np.abs(slip * (mu * P - np.abs(S[:, 0]))).max() < 1e-8
            assert np.all(slip * S[:, 0] <= 1e-9)


def test_rounds_without_falling_eps_do_not_arrive() -> None:
    """Negative control: one round is not a solution."""
    problem, z = prepared(heap(5, 0.3), 0.05)
    once = COLD[0].__class__(eps=0.3, rounds=1)
    assert not solve_by_rounds(problem, z, from_zero_impulses, once, NewtonOptions()).converged


def test_linearised_step_is_the_derivative() -> None:
    """Contact velocities and momentum rows of the linearised step against differences of the step's rows."""
    problem, z = prepared(heap(3, 0.4), 0.05)
    rng = np.random.default_rng(0)
    linearised = LinearisedStep(problem, z, stiff=False)
    z = linearised.unknowns(linearised.nu, linearised.start)  # closest points at the end of the step
    linearised = LinearisedStep(problem, z, stiff=False)
    P = [rng.uniform(1, 2, p.shape) * (1.0, 0.1) for p in linearised.start]
    z = linearised.unknowns(linearised.nu, P)
    linearised = LinearisedStep(problem, z, stiff=True)
    dnu = rng.normal(size=linearised.nu.size)
    sides = []
    for step in (1e-5, -1e-5):
        there = linearised.unknowns(linearised.nu + step * dnu, P)
        exact = LinearisedStep(problem, there, stiff=False)
        sides.append((exact.u(exact.nu), exact.f(exact.nu, P)))
    for k, u in enumerate(linearised.u(linearised.nu + dnu)):
        slope = (sides[0][0][k] - sides[1][0][k]) / 2e-5
        assert np.abs(u - linearised.u(linearised.nu)[k] - slope).max() < 1e-6 * np.abs(slope).max()
    slope = (sides[0][1] - sides[1][1]) / 2e-5
    change = linearised.f(linearised.nu + dnu, P) - linearised.f(linearised.nu, P)
    assert np.abs(change - slope).max() < 1e-6 * np.abs(slope).max()


def test_points_are_settled_where_the_bodies_end() -> None:
    """After a move that turns ellipsoids by some tenths of a radian the rows of the closest points vanish."""
    problem, z = fallen(0.3)
    linearised = LinearisedStep(problem, z, stiff=False)
    rng = np.random.default_rng(1)
    there = linearised.unknowns(linearised.nu + 10 * rng.normal(size=linearised.nu.size), linearised.start)
    rows = problem.residual(there, 0.0)
    for g, own, _ in problem.members():
        geometry = own[:, : g.kernel.layout.at["P_n"].start]
        assert np.abs(rows[geometry]).max() < 1e-9


@pytest.mark.parametrize("k", [1, 2, 4])
def test_projection_and_its_slope(k: int) -> None:
    """|S| <= mu P_n after the projection, points inside stay, slopes are those of differences."""
    rng = np.random.default_rng(k)
    z, mu = rng.normal(size=(400, k)), rng.uniform(0, 1, 400)
    P, D = project(z, mu), projection_derivative(z, mu)
    assert np.all(P[:, 0] >= 0)
    assert np.all(np.linalg.norm(P[:, 1:], axis=1) <= mu * P[:, 0] + 1e-15)
    assert np.abs(project(P, mu) - P).max() < 1e-15
    swept = z.copy()
    project_in_place(swept, mu)
    assert np.abs(swept - P).max() < 1e-15
    dz = rng.normal(size=z.shape)
    there, back = (project(z + s * dz, mu) for s in (1e-7, -1e-7))
    error = np.abs((there - back) / 2e-7 - (D @ dz[:, :, None])[:, :, 0]).max(axis=1)
    assert np.mean(error < 1e-5) > 0.99  # (all but those across a kink)


def test_large_steps_are_solved_by_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the other methods left out a heap is stepped all the same, and certified."""
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    run = euler_run(heap(4, 0.3), SearchOptions(dense=0), duration=0.25, step=0.05)
    assert run.steps["solves"].max() == 1
    for name in ("dynamics", "complementarity", "friction"):
        assert run.steps[name].max() < 1e-8
