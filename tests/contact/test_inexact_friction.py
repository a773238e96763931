"""`friction_tolerance`: the friction law to a few digits, everything else as exact as ever."""

from __future__ import annotations

import numpy as np
import pytest
from heaps import heap, prepared

from implicit_geom import Trajectory, simulate
from implicit_geom.experiments.benchmarks.scale import box
from implicit_geom.solvers.block_elimination import BlockMatrix

ROUGH = 1e-3


def poured(friction_tolerance: float) -> Trajectory:
    """27 ellipsoids that fall into a box, until they press on each other."""
    return simulate(
        box(27),
        duration=0.5,
        step=0.01,
        stepper="implicit-euler",
        progress=False,
        friction_tolerance=friction_tolerance,
    )


@pytest.fixture(scope="module")
def rough() -> Trajectory:
    return poured(ROUGH)


def test_only_the_friction_law_is_rough(rough: Trajectory) -> None:
    """Momentum, gaps and normal impulses keep to 1e-9; friction to 1e-3 of the speeds, no better."""
    run = rough
    assert run.steps["dynamics"].max() < 1e-9
    assert run.steps["complementarity"].max() < 1e-9
    assert run.max_penetration < 1e-11
    speed = max(np.abs(run[name].velocity).max() for name in run.names)
    assert 1e-6 * speed < run.steps["friction"].max() < ROUGH * speed
    assert np.all(run.steps["residual"] <= ROUGH)


def test_the_motion_is_nearly_the_same(rough: Trajectory) -> None:
    """The energy left is that of the exact run to a percent of what was lost."""
    exact = poured(1e-10)
    assert exact.steps["friction"].max() < 1e-8
    lost = exact.energy[0] - exact.energy[-1]
    assert lost > 0.1 * exact.energy[0]
    assert abs(rough.energy[-1] - exact.energy[-1]) < 1e-2 * lost


@pytest.mark.parametrize("large", [False, True])
def test_rows_of_friction_that_is_held(large: bool) -> None:
    """They say S = S_held, in the residual and in the Jacobian; released, the law is back."""
    problem, z = prepared(heap(9 if large else 3, 0.4), 0.05)
    assert (problem.pattern is not None) == large
    law = problem.residual(z, 0.0)
    problem.hold_friction(z)
    rng = np.random.default_rng(0)
    dz = rng.normal(size=z.size)
    F, J = problem.linearise(z + dz, 0.0)
    assert np.abs(F - problem.residual(z + dz, 0.0)).max() < 1e-12 * np.abs(F).max()
    assert np.abs(F[problem.friction] - dz[problem.friction]).max() < 1e-15
    dense = J.dense() if isinstance(J, BlockMatrix) else J
    assert np.array_equal(dense[problem.friction], np.eye(z.size)[problem.friction])
    problem.hold_friction(None)
    assert np.array_equal(problem.residual(z, 0.0), law)


def test_a_contact_that_opens_keeps_no_friction() -> None:
    """Momentum balances with the impulses of the contacts that are listed, friction to a hundredth or not."""
    run = simulate(
        box(27), duration=0.8, step=0.01, stepper="implicit-euler", progress=False, friction_tolerance=1e-2
    )
    assert run.steps["friction"].max() > 1e-4
    assert run.steps["dynamics"].max() < 1e-9
    assert np.all(np.diff(run.energy) < 0)
