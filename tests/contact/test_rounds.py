"""Rounds solve the true friction problem of a heap, whose contacts all close at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from heaps import fallen, heap, prepared
from searching import euler_run

from implicit_geom.contact.many_contacts import POINTS, SWEEPS, methods
from implicit_geom.contact.rounds import (
    InitialGuess,
    RoundOptions,
    from_convex_problem,
    from_last_impulses,
    from_zero_impulses,
    solve_by_rounds,
)
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.solvers.newton import NewtonOptions
from implicit_geom.steppers.search import SearchOptions

WAYS: dict[str, tuple[InitialGuess, RoundOptions]] = {
    "convex": (from_convex_problem, POINTS),
    "zero": (from_zero_impulses, POINTS),
    "sweeps": (from_zero_impulses, SWEEPS),
}


def assert_lawful(problem: StepNCP, z: np.ndarray, mu: float) -> None:
    """All rows within their tolerances, and the contact laws recomputed from the impulses."""
    assert np.all(np.abs(problem.residual(z, 0.0)) <= problem.tolerance)
    for (g, own, _), inputs in zip(problem.members(), problem.gather, strict=True):
        at, seen = g.kernel.layout.at, g.seen(z[inputs])
        P, S = z[own[:, at["P_n"].start]], z[own[:, at["S"]]]
        D = seen["gap"][:, 0] / problem.h
        size = np.linalg.norm(S, axis=1)
        assert np.abs(np.minimum(P, D)).max() < 1e-9
        assert np.all(size <= mu * P + 1e-9)
        if mu > 0:
            slip = seen["slip"]
            assert np.abs(slip * (mu * P - size)[:, None]).max() < 1e-8
            assert np.all(np.einsum("ni,ni->n", slip, S) <= 1e-9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mu", [0.0, 0.1, 0.3, 0.5, 0.8])
def test_first_step_of_a_heap(mu: float, way: str) -> None:
    """15 discs, no impulses known."""
    problem, z = prepared(heap(5, mu), 0.05)
    found = solve_by_rounds(problem, z, *WAYS[way], NewtonOptions())
    assert found.converged
    assert_lawful(problem, found.z, mu)


@pytest.mark.parametrize("make", [lambda: prepared(heap(9, 0.35), 0.05), lambda: fallen(0.4)])
def test_known_impulses_are_a_start(make: Callable[[], tuple[StepNCP, np.ndarray]]) -> None:
    """From a solution's impulses, in the plane and in space, fewer factorisations than from none."""
    problem, z = make()
    cold = solve_by_rounds(problem, z, *WAYS["zero"], NewtonOptions())
    again = solve_by_rounds(problem, cold.z, from_last_impulses, POINTS, NewtonOptions())
    assert cold.converged
    assert again.converged
    assert again.iterations < 0.2 * cold.iterations


@pytest.mark.parametrize("mu", [0.0, 0.2, 0.6])
def test_ellipsoids_that_fall_on_each_other(mu: float) -> None:
    """In space, with contacts that slip."""
    problem, z = fallen(mu)
    found = solve_by_rounds(problem, z, *WAYS["convex"], NewtonOptions())
    assert found.converged
    assert_lawful(problem, found.z, mu)


@pytest.mark.parametrize("mu", [0.6, 0.8])
def test_a_heap_at_rest_is_found_at_once(mu: float) -> None:
    """With enough friction nothing slips: the convex problem has the solution, and nothing moves."""
    problem, z = prepared(heap(6, mu), 0.05)
    found = solve_by_rounds(
        problem, z, from_convex_problem, RoundOptions(rounds=1, budget=0), NewtonOptions()
    )
    assert found.converged
    assert np.abs(found.z[: problem.bodies.size]).max() < 1e-9


def test_contact_problems_that_are_not_solved_do_not_arrive() -> None:
    """Negative control: without a factorisation, and sliding, nothing is found."""
    problem, z = prepared(heap(6, 0.3), 0.05)
    for begin in (from_convex_problem, from_zero_impulses):
        found = solve_by_rounds(problem, z, begin, RoundOptions(budget=0), NewtonOptions())
        assert not found.converged


def test_methods_are_for_many_contacts() -> None:
    """None for a few contacts, none for unknowns that carry sigma."""
    problem, z = prepared(heap(2, 0.3), 0.05)
    assert list(methods(problem, z, NewtonOptions())) == []
    problem, z = prepared(heap(5, 0.3), 0.05)
    assert len(list(methods(problem, z, NewtonOptions()))) == 3
    problem.model.friction_residual = "fritz-john"
    assert list(methods(problem, z, NewtonOptions())) == []


def test_large_steps_are_solved_by_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the other methods left out a heap is stepped all the same, and certified."""
    monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
    run = euler_run(heap(4, 0.3), SearchOptions(dense=0), duration=0.25, step=0.05)
    assert run.steps["solves"].max() == 1
    for name in ("dynamics", "complementarity", "friction"):
        assert run.steps[name].max() < 1e-8
