"""Sweeps over contacts, and subproblems where they get nowhere: both are the linearised step and no other."""

from __future__ import annotations

import numpy as np
import pytest
from heaps import fallen, heap, prepared

from implicit_geom.contact.gauss_seidel import GaussSeidel
from implicit_geom.contact.linearised import LinearisedStep
from implicit_geom.contact.proximal_rounds import AGAIN, proximal_rounds
from implicit_geom.contact.subproblems import LocalSubproblem, subproblem_bodies


def pressed(mu: float) -> LinearisedStep:
    """Ellipsoids that press on each other, linearised where their laws nearly hold."""
    problem, z = fallen(mu)
    linearised = LinearisedStep(problem, z, stiff=False, pairwise=True)
    swept = GaussSeidel(linearised).sweep(linearised.nu, linearised.start, 1e-3, 500)
    return LinearisedStep(problem, linearised.unknowns(swept.nu, swept.P), stiff=True, pairwise=True)


@pytest.mark.parametrize("rows", [2, 9])
def test_contacts_of_a_colour_share_no_body(rows: int) -> None:
    """And every contact has one colour; a heap of discs, with at most six at one of them, has few."""
    problem, z = prepared(heap(rows, 0.4), 0.05)
    pattern = LinearisedStep(problem, z, stiff=False).pattern
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
    linearised = LinearisedStep(problem, z, stiff=False, pairwise=True)
    swept = GaussSeidel(linearised).sweep(linearised.nu, linearised.start, 1e-8, 3000)
    assert linearised.largest_violation(linearised.nu, linearised.start) > 0.1
    assert swept.residual == linearised.largest_violation(swept.nu, swept.P) < 1e-8
    pushed = max(np.abs(W @ p[:, :, None]).max() for W, p in zip(linearised.W, swept.P, strict=True))
    assert np.abs(linearised.f(swept.nu, swept.P)).max() < 1e-12 * pushed
    nu, _, far, _ = proximal_rounds(linearised, linearised.nu, linearised.start, AGAIN, 1e-8)
    assert far < 1e-8
    assert np.abs(nu - swept.nu).max() < 1e-5 * np.abs(nu).max()


def test_turning_contacts_are_part_of_the_residual() -> None:
    """Sweeps leave T (nu - nu_0) as it is; repeated from their own end they solve f with T, too."""
    linearised = pressed(0.4)
    assert any(np.any(T) for T in linearised.T)
    sweeps = GaussSeidel(linearised)
    kick = linearised.nu + 1e-2 * np.random.default_rng(0).normal(size=linearised.nu.size)
    swept = sweeps.sweep(kick, linearised.start, 1e-9, 2000)
    # the turning had been guessed wrong
    assert swept.residual > 10 * linearised.largest_violation(swept.nu, swept.P)
    assert np.abs(linearised.f(swept.nu, swept.P)).max() > 1e-6
    for _ in range(60):
        swept = sweeps.sweep(swept.nu, swept.P, 1e-9, 2000)
    assert swept.residual < 1e-8
    assert np.abs(linearised.f(swept.nu, swept.P)).max() < 1e-8


@pytest.mark.parametrize("bodies", [[0, 1, 4, 5], list(range(8))])
def test_a_subproblem_is_a_part_of_the_step(bodies: list[int]) -> None:
    """Its contact velocities and momentum rows are those of the whole where only its bodies change."""
    linearised = pressed(0.4)
    if len(bodies) < 8:  # (the turning of contacts with bodies outside is held)
        linearised.T = [np.zeros_like(T) for T in linearised.T]
    rng = np.random.default_rng(1)
    nu = linearised.nu + rng.normal(size=linearised.nu.size)
    P = [p + rng.uniform(size=p.shape) for p in linearised.start]
    inside = np.zeros(8, bool)
    inside[bodies] = True
    part = LocalSubproblem(linearised, nu, P, inside)
    there = part.nu + rng.normal(size=part.nu.size)
    found = [p + rng.uniform(size=p.shape) for p in part.start]
    whole, everything = nu.copy(), [p.copy() for p in P]
    part.write_back(whole, everything, there, found)
    assert np.all((whole != nu).reshape(8, -1) == inside[:, None])
    changed = sum(int(np.sum(p != q)) for p, q in zip(P, everything, strict=True))
    assert changed == sum(p.size for p in found) > 0
    u = linearised.u(whole)
    for (k, within), v in zip(part.chosen, part.u(there), strict=True):
        assert np.abs(u[k][within] - v).max() < 1e-12
    rows = linearised.f(whole, everything)[part.at]
    assert np.abs(part.f(there, found) - rows).max() < 1e-12 * np.abs(rows).max()


def test_subproblems_are_around_contacts_that_fail() -> None:
    """One bad contact: its bodies and those that press on them, as one subproblem; none without one."""
    linearised = pressed(0.4)
    P = [np.ones_like(p) for p in linearised.start]
    nothing = [np.zeros(len(p)) for p in P]
    assert subproblem_bodies(linearised, P, nothing, 1e-3) == []
    pairs = next(
        k for k, g in enumerate(linearised.pattern.groups) if linearised.pattern.bodies(g).shape[1] == 2
    )
    ends = linearised.pattern.bodies(linearised.pattern.groups[pairs])
    bad = [r.copy() for r in nothing]
    bad[pairs][0] = 1.0
    (inside,) = subproblem_bodies(linearised, P, bad, 1e-3)
    near = {b for pair in ends.tolist() if set(pair) & set(ends[0].tolist()) for b in pair}
    assert set(np.flatnonzero(inside).tolist()) == near
    alone = [np.zeros_like(p) for p in P]
    (inside,) = subproblem_bodies(linearised, alone, bad, 1e-3)
    assert set(np.flatnonzero(inside).tolist()) == set(ends[0].tolist())
