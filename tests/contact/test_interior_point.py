"""Interior points in the friction cone: arithmetic of the cone, and linearised steps that they solve."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from heaps import fallen, heap, prepared

from implicit_geom.contact.interior_point import solve_by_interior_point
from implicit_geom.contact.linearised import LinearisedStep
from implicit_geom.contact.many_contacts import INSIDE
from implicit_geom.contact.proximal_rounds import solve_by_rounds
from implicit_geom.solvers import second_order_cone as lorentz
from implicit_geom.solvers.newton import NewtonOptions


def inside(rng: np.random.Generator, k: int, n: int = 200) -> np.ndarray:
    """Points of the cone, some close to its boundary."""
    x = rng.normal(size=(n, k))
    x[:, 0] = np.linalg.norm(x[:, 1:], axis=1) * (1 + 10 ** rng.uniform(-6, 1, n)) + 1e-9
    return x


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_quotient_undoes_the_product(k: int) -> None:
    """x o (r / x) = r."""
    rng = np.random.default_rng(k)
    x, r = inside(rng, k), rng.normal(size=(200, k))
    error = np.abs(lorentz.product(x, lorentz.quotient(r, x)) - r).max(axis=1)
    assert np.all(error < 1e-12 * (1 + np.abs(lorentz.quotient(r, x)).max(axis=1)) * x[:, 0])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_reach_ends_on_the_boundary(k: int) -> None:
    """x + t d is in the cone for the t given and for less, and not for a little more unless t = 1."""
    rng = np.random.default_rng(k)
    for x, d in zip(inside(rng, k), rng.normal(size=(200, k)), strict=True):
        x, d = x[None], d[None]
        t = lorentz.reach(x, d)
        assert 0 < t <= 1
        for part in (0.5 * t, 0.999 * t):
            there = x + part * d
            assert there[0, 0] >= np.linalg.norm(there[0, 1:])
        if t < 1:
            there = x + 1.001 * t * d
            assert there[0, 0] < np.linalg.norm(there[0, 1:])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_scaling_maps_both_points_to_one(k: int) -> None:
    """G y = G^-1 x with a symmetric G: the point of Nesterov and Todd."""
    rng = np.random.default_rng(k)
    x, y = inside(rng, k), inside(rng, k)
    scaling = lorentz.NesterovToddScaling.of(x, y)
    G, back = scaling.matrices(scaling.values), scaling.matrices(1 / scaling.values)
    assert np.abs(G - G.swapaxes(1, 2)).max() == 0.0
    one, two = np.einsum("nij,nj->ni", G, y), np.einsum("nij,nj->ni", back, x)
    assert np.all(np.abs(one - two).max(axis=1) < 1e-6 * np.abs(one).max(axis=1))


@pytest.mark.parametrize("mu", [0.6, 0.8])
def test_a_heap_at_rest_is_found_at_once(mu: float) -> None:
    """With enough friction nothing slips: the convex problem has the solution, and nothing moves.

    The first linearised step is within the tolerance; with little friction it is off by orders of magnitude.
    """
    problem, z = prepared(heap(6, mu), 0.05)
    found = solve_by_rounds(
        problem, z, partial(solve_by_interior_point, convex=True), INSIDE, NewtonOptions()
    )
    assert found.converged
    assert found.history[0] < 1
    assert np.abs(found.z[: problem.bodies.size]).max() < 1e-9
    slipping, z = prepared(heap(6, 0.3), 0.05)
    assert (
        solve_by_rounds(
            slipping, z, partial(solve_by_interior_point, convex=True), INSIDE, NewtonOptions()
        ).history[0]
        > 1e3
    )


@pytest.mark.parametrize("mu", [0.0, 0.2, 0.6])
def test_ellipsoids_that_fall_on_each_other(mu: float) -> None:
    """In space, with contacts that slip: impulses obey the laws of the linearised step to six digits."""
    linearised = LinearisedStep(*fallen(mu), stiff=False)
    nu, P = solve_by_interior_point(linearised, convex=False)
    assert linearised.largest_violation(linearised.nu, linearised.start) > 1e-2
    assert linearised.largest_violation(nu, P) < 1e-7
    pushed = max(np.abs(W @ p[:, :, None]).max() for W, p in zip(linearised.W, P, strict=True))
    assert np.abs(linearised.f(nu, P)).max() < 1e-6 * pushed


def test_friction_that_lifts_is_another_problem() -> None:
    """Negative control: where contacts slip the convex problem does not have the step's solution."""
    linearised = LinearisedStep(*fallen(0.2), stiff=False)
    nu, P = solve_by_interior_point(linearised, convex=True)
    assert linearised.largest_violation(nu, P) > 1e-2
