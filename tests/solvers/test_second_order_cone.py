"""Arithmetic of the second-order cone."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom.solvers import second_order_cone as lorentz


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
