"""A box slides over the seam of a union as over one surface, and strikes an edge that stands out."""

from __future__ import annotations

import numpy as np
import pytest
from law_scenes import TWO, G

from implicit_geom import Scene, shapes, simulate

SPEED, MU, LENGTH = 2.0, 0.1, 0.4


def over_a_crack(start: float, crack: float, raised: float = 0.0) -> Scene:
    """A box on a flat ground of two blocks with a crack at x = 0; the second one stands out by `raised`."""
    scene = Scene(dim=2)
    left = shapes.rectangle(1, 0.2).moved((-1, -0.2))
    right = shapes.rectangle(1, 0.2).moved((1 + crack, -0.2 + raised))
    scene.add("ground", shapes.union(left, right), fixed=True)
    scene.add("box", shapes.rectangle(LENGTH / 2, 0.1), mass=1.0, position=(start, 0.1), velocity=(SPEED, 0))
    scene.friction(mu=MU)
    return scene


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("start", [-0.7, -0.613, -0.4 - 1e-3 / 3])
def test_a_flush_crack_is_no_obstacle(stepper: str, start: float) -> None:
    """Speed after the crack is that of sliding friction alone; the box neither turns nor rises."""
    run = simulate(over_a_crack(start, crack=0.003), duration=0.6, step=0.008, stepper=stepper)
    box = run["box"]
    assert box.position[-1, 0] - LENGTH / 2 > 0
    np.testing.assert_allclose(box.velocity[:, 0], SPEED - MU * G * run.time, atol=1e-9)
    np.testing.assert_allclose(box.orientation, 0, atol=1e-9)
    assert np.max(run.steps["friction"]) < 1e-9


@pytest.mark.parametrize("stepper", TWO)
def test_an_edge_that_stands_out_is_struck(stepper: str) -> None:
    """Negative control: an edge one millimetre higher stops the box or makes it turn."""
    run = simulate(over_a_crack(-0.613, crack=0.003, raised=1e-3), duration=0.4, step=0.008, stepper=stepper)
    free = SPEED - MU * G * run.time[-1]
    assert run["box"].velocity[-1, 0] < 0.9 * free
    assert run.max_penetration < 1e-9
