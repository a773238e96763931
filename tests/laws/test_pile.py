"""Many bodies at once."""

from __future__ import annotations

import numpy as np
from law_scenes import assert_lawful

import shapes
from implicit_geom import Scene, Trajectory, simulate


def ten_ellipsoids() -> Scene:
    """A shaft of five half-spaces and ten ellipsoids above each other."""
    rng = np.random.default_rng(0)
    scene = Scene()
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    walls = {"left": (1, 0, 0), "right": (-1, 0, 0), "front": (0, 1, 0), "back": (0, -1, 0)}
    for name, normal in walls.items():
        scene.add(name, shapes.halfspace(normal, offset=-0.6), fixed=True)
    for i in range(10):
        q = rng.normal(size=4)
        place = (rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3), 0.35 + 0.52 * i)
        scene.add(f"e{i}", shapes.ellipsoid(0.25, 0.2, 0.15), mass=1.0, position=place, orientation=q)
    scene.friction(mu=0.5, e_r=0.02)
    return scene


def fastest_point(run: Trajectory) -> float:
    """An upper bound on the speed of any point of any body at the end, m/s."""
    return float(
        max(
            np.linalg.norm(run[f"e{i}"].velocity[-1])
            + 0.25 * np.linalg.norm(run[f"e{i}"].angular_velocity[-1])
            for i in range(10)
        )
    )


def test_ten_ellipsoids_come_to_rest_in_a_box() -> None:
    """Ten ellipsoids fall into a box of five half-spaces and rest within 5 s: lawful at every step."""
    run = simulate(ten_ellipsoids(), duration=1.0, step=0.01)
    while fastest_point(run) >= 1e-3 and run.time[-1] < 4.999:
        run = run.resume(duration=0.25)
    assert_lawful(run, 0.25)
    assert fastest_point(run) < 1e-3
    for name in ("dynamics", "complementarity", "friction"):
        assert run.steps[name].max() < 1e-7
