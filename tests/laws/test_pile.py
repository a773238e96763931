"""Many bodies at once."""

from __future__ import annotations

import numpy as np
from law_scenes import assert_lawful

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.rotation import unit


def ellipsoids(count: int) -> Scene:
    """A shaft of five half-spaces and ellipsoids above each other."""
    rng = np.random.default_rng(0)
    scene = Scene()
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    walls = {"left": (1, 0, 0), "right": (-1, 0, 0), "front": (0, 1, 0), "back": (0, -1, 0)}
    for name, normal in walls.items():
        scene.add(name, shapes.halfspace(normal, offset=-0.6), fixed=True)
    for i in range(count):
        q = unit(rng.normal(size=4))
        place = (rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), 0.35 + 0.52 * i)
        scene.add(f"e{i}", shapes.ellipsoid(0.25, 0.2, 0.15), mass=1.0, position=place, orientation=q)
    scene.friction(mu=0.5, e_r=0.02)
    return scene


def fastest_point(run: Trajectory) -> float:
    """An upper bound on the speed of any point of any body at the end, m/s."""
    return float(
        max(
            np.linalg.norm(run[name].velocity[-1]) + 0.25 * np.linalg.norm(run[name].angular_velocity[-1])
            for name in run.names
        )
    )


def assert_solved(run: Trajectory) -> None:
    """Lawful at every step, and certified."""
    assert_lawful(run, 0.25)
    for name in ("dynamics", "complementarity", "friction"):
        assert run.steps[name].max() < 1e-7


def test_ten_ellipsoids_come_to_rest_in_a_box() -> None:
    """Ten ellipsoids fall into a box of five half-spaces and rest within 5 s, by implicit Euler."""
    run = simulate(ellipsoids(10), duration=1.0, step=0.01, stepper="implicit-euler")
    while fastest_point(run) >= 1e-3 and run.time[-1] < 4.999:
        run = run.resume(duration=0.25)
    assert_solved(run)
    assert fastest_point(run) < 1e-3


def test_ellipsoids_settle_in_a_box() -> None:
    """Four ellipsoids fall into the same box by RATTLE; impacts and friction take what the fall gave.

    They rock on: nothing resists rolling, and the step loses nothing by itself.
    """
    run = simulate(ellipsoids(4), duration=3.0, step=0.01, stepper="implicit-rattle")
    assert_solved(run)
    fallen = run.potential_energy[0] - run.potential_energy[-1]
    assert run.kinetic_energy.max() > 0.2 * fallen
    assert run.kinetic_energy[-1] < 0.05 * fallen
    ledger = run.ledger
    lost = ledger["friction"].sum() + ledger["impact"].sum()
    assert abs(ledger["remainder"].sum()) < 0.005 * lost
    assert all(np.abs(run[name].position[-1, :2]).max() < 0.45 for name in run.names if name[0] == "e")
