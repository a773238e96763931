"""Polytopes that cross like a plus sign have no vertex inside each other: no classical step passes them."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom import Scene, StepFailed, Stepper, Trajectory, distance, shapes, simulate


def plate_and_bar(h: float) -> Scene:
    """A bar that flies into a plate that is higher than it is, and thinner than its motion in a step."""
    scene = Scene(dim=2, gravity=(0, 0))
    scene.add("plate", shapes.rectangle(0.005, 0.1), fixed=True)
    bar = shapes.rectangle(0.1, 0.02)
    scene.add("bar", bar, mass=1.0, position=(-0.105 - 0.74 * h, 0), velocity=(2.0, 0))
    scene.friction(mu=0.1)
    return scene


def deepest(run: Trajectory) -> float:
    """The smallest gap of the two bodies at the end of any step, by `distance`."""
    a, b = (run.scene.bodies[name].shape for name in run.names)
    one, two = (run[name] for name in run.names)
    return min(
        distance(a, (one.position[k], one.orientation[k]), b, (two.position[k], two.orientation[k])).gap
        for k in range(len(run.time))
    )


@pytest.mark.parametrize("h", [0.02, 0.005])
@pytest.mark.parametrize("changes", [{"surface": "faceted"}, {"wrench": "start"}, {"friction": "pyramid"}])
def test_a_gap_of_the_end_of_the_step_stops_it(changes: dict[str, str], h: float) -> None:
    """The step is divided until the bar stops at the plate, without any energy gained."""
    run = simulate(plate_and_bar(h), duration=0.1, step=h, stepper=Stepper(**changes))
    assert abs(run["bar"].position[-1, 0] + 0.105) < 1e-9
    assert run.energy.max() <= 2.0 * (1 + 1e-12)
    assert deepest(run) > -1e-9
    assert run.max_penetration < 1e-9


def test_vertices_against_whole_shapes_fail_loudly() -> None:
    """`nguyen-trinkle` sees vertices alone: it says so where that is not enough."""
    with pytest.raises(StepFailed, match=r"'plate' and 'bar' are .* m inside each other"):
        simulate(plate_and_bar(0.02), duration=0.1, step=0.02, stepper="nguyen-trinkle")


def test_bars_in_space_tell_their_true_overlap() -> None:
    """A linearised gap may be overstepped: the overlap told is that of `distance`."""
    pytest.importorskip("coal", reason="polyhedra against each other need coal (extra `facets`)")
    scene = Scene(gravity=(0, 0, 0))
    c, s = np.cos(0.15), np.sin(0.15)
    scene.add("lower", shapes.box(1, 0.05, 0.05), fixed=True, orientation=(c, s, 0, 0))
    bar = shapes.box(0.05, 1, 0.05)
    scene.add("bar", bar, mass=1.0, position=(0.05, 0.02, 0.2), velocity=(0, 0, -1), orientation=(c, 0, s, 0))
    scene.friction(mu=0.1)
    run = simulate(scene, duration=0.2, step=0.01, stepper="stewart-trinkle")
    assert deepest(run) < -1e-3
    assert abs(run.max_penetration + deepest(run)) < 1e-8
