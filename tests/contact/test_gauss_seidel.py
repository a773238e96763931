"""Sweeps over contacts, and spots where they get nowhere: both are the linearised step and no other."""

from __future__ import annotations

import numpy as np
import pytest
from heaps import fallen, heap, prepared

from implicit_geom.contact.gauss_seidel import Sweeps
from implicit_geom.contact.linearised import Frozen
from implicit_geom.contact.proximal_rounds import AGAIN, make_rounds
from implicit_geom.contact.subproblems import Spot, bodies_of_spots


def pressed(mu: float) -> Frozen:
    """Ellipsoids that press on each other, linearised where their laws nearly hold."""
    problem, z = fallen(mu)
    frozen = Frozen(problem, z, stiff=False, pairwise=True)
    swept = Sweeps(frozen).go(frozen.nu, frozen.start, 1e-3, 500)
    return Frozen(problem, frozen.unknowns(swept.nu, swept.P), stiff=True, pairwise=True)


@pytest.mark.parametrize("rows", [2, 9])
def test_contacts_of_a_colour_share_no_body(rows: int) -> None:
    """And every contact has one colour; a heap of discs, with at most six at one of them, has few."""
    problem, z = prepared(heap(rows, 0.4), 0.05)
    pattern = Frozen(problem, z, stiff=False).pattern
    met: list[list[int]] = [[] for _ in pattern.groups]
    for k, chosen in pattern.colours:
        bodies = pattern.bodies(pattern.groups[k])[chosen].ravel()
        assert np.unique(bodies).size == bodies.size
        met[k] += chosen.tolist()
    assert [sorted(m) for m in met] == [list(range(g.n)) for g in pattern.groups]
    assert len(pattern.colours) <= 2 * 7


@pytest.mark.parametrize("mu", [0.0, 0.1, 0.4])
def test_sweeps_end_at_the_solution(mu: float) -> None:
    """Momentum to rounding, laws to the tolerance asked for, velocities as by rounds."""
    problem, z = fallen(mu)
    frozen = Frozen(problem, z, stiff=False, pairwise=True)
    swept = Sweeps(frozen).go(frozen.nu, frozen.start, 1e-8, 3000)
    assert frozen.far(frozen.nu, frozen.start) > 0.1
    assert swept.far == frozen.far(swept.nu, swept.P) < 1e-8
    pushed = max(np.abs(W @ p[:, :, None]).max() for W, p in zip(frozen.W, swept.P, strict=True))
    assert np.abs(frozen.f(swept.nu, swept.P)).max() < 1e-12 * pushed
    nu, _, far, _ = make_rounds(frozen, frozen.nu, frozen.start, AGAIN, 1e-8)
    assert far < 1e-8
    assert np.abs(nu - swept.nu).max() < 1e-5 * np.abs(nu).max()


def test_turning_contacts_are_part_of_the_residual() -> None:
    """Sweeps leave T (nu - nu_0) as it is; repeated from their own end they solve f with T, too."""
    frozen = pressed(0.4)
    assert any(np.any(T) for T in frozen.T)
    sweeps = Sweeps(frozen)
    kick = frozen.nu + 1e-2 * np.random.default_rng(0).normal(size=frozen.nu.size)
    swept = sweeps.go(kick, frozen.start, 1e-9, 2000)
    assert swept.far > 10 * frozen.far(swept.nu, swept.P)  # the turning had been guessed wrong
    assert np.abs(frozen.f(swept.nu, swept.P)).max() > 1e-6
    for _ in range(60):
        swept = sweeps.go(swept.nu, swept.P, 1e-9, 2000)
    assert swept.far < 1e-8
    assert np.abs(frozen.f(swept.nu, swept.P)).max() < 1e-8


@pytest.mark.parametrize("bodies", [[0, 1, 4, 5], list(range(8))])
def test_a_spot_is_a_piece_of_the_step(bodies: list[int]) -> None:
    """Its contact velocities and momentum rows are those of the whole where only its bodies change."""
    frozen = pressed(0.4)
    if len(bodies) < 8:  # (the turning of contacts with bodies outside is held)
        frozen.T = [np.zeros_like(T) for T in frozen.T]
    rng = np.random.default_rng(1)
    nu = frozen.nu + rng.normal(size=frozen.nu.size)
    P = [p + rng.uniform(size=p.shape) for p in frozen.start]
    inside = np.zeros(8, bool)
    inside[bodies] = True
    spot = Spot(frozen, nu, P, inside)
    there = spot.nu + rng.normal(size=spot.nu.size)
    found = [p + rng.uniform(size=p.shape) for p in spot.start]
    whole, everything = nu.copy(), [p.copy() for p in P]
    spot.put(whole, everything, there, found)
    assert np.all((whole != nu).reshape(8, -1) == inside[:, None])
    changed = sum(int(np.sum(p != q)) for p, q in zip(P, everything, strict=True))
    assert changed == sum(p.size for p in found) > 0
    u = frozen.u(whole)
    for (k, within), v in zip(spot.chosen, spot.u(there), strict=True):
        assert np.abs(u[k][within] - v).max() < 1e-12
    rows = frozen.f(whole, everything)[spot.at]
    assert np.abs(spot.f(there, found) - rows).max() < 1e-12 * np.abs(rows).max()


def test_spots_are_around_contacts_that_fail() -> None:
    """One bad contact: its bodies and those that press on them, as one spot; none without one."""
    frozen = pressed(0.4)
    P = [np.ones_like(p) for p in frozen.start]
    nothing = [np.zeros(len(p)) for p in P]
    assert bodies_of_spots(frozen, P, nothing, 1e-3) == []
    pairs = next(k for k, g in enumerate(frozen.pattern.groups) if frozen.pattern.bodies(g).shape[1] == 2)
    ends = frozen.pattern.bodies(frozen.pattern.groups[pairs])
    bad = [r.copy() for r in nothing]
    bad[pairs][0] = 1.0
    (spot,) = bodies_of_spots(frozen, P, bad, 1e-3)
    near = {b for pair in ends.tolist() if set(pair) & set(ends[0].tolist()) for b in pair}
    assert set(np.flatnonzero(spot).tolist()) == near
    alone = [np.zeros_like(p) for p in P]
    (spot,) = bodies_of_spots(frozen, alone, bad, 1e-3)
    assert set(np.flatnonzero(spot).tolist()) == set(ends[0].tolist())
