"""Islands of contact are solved apart: none holds up another, and together they are the whole step."""

from __future__ import annotations

import numpy as np
import pytest
from heaps import prepared

from implicit_geom import Scene, shapes, simulate
from implicit_geom.contact.islands import Islands, solve_islands
from implicit_geom.solvers.newton import NewtonOptions

ROWS, FAR = 9, 100.0


def heaps(places: list[float], rows: int = ROWS, mu: float = 0.3) -> Scene:
    """Triangular heaps of discs of 1 m, all contacts of which close at once, on one floor."""
    scene = Scene(dim=2, gravity=(0.0, -9.81))
    scene.add("floor", shapes.halfplane((0, 1)), fixed=True)
    for heap, at in enumerate(places):
        for row in range(rows):
            for k in range(rows - row):
                place = (at + k + row / 2, 0.5 + row * np.sqrt(3) / 2)
                scene.add(f"{heap}-{row}-{k}", shapes.disc(0.5), mass=1.0, position=place)
    scene.friction(mu=mu)
    return scene


def with_rollers(scene: Scene, count: int) -> Scene:
    """The scene with discs that slide on the floor by themselves."""
    for k in range(count):
        scene.add(f"roller{k}", shapes.disc(0.5), mass=1.0, position=(-3.0 * k - 5, 0.5), velocity=(-1.0, 0))
    return scene


def test_islands_are_the_heaps() -> None:
    """Two heaps and three discs alone are five islands; unknowns of a contact belong to its bodies' one."""
    problem, _ = prepared(with_rollers(heaps([0.0, FAR]), 3), 0.01)
    islands = Islands.of(problem)
    assert islands.count == 5
    nv = problem.velocities
    names = [problem.model.names[b] for b in problem.model.moving]
    of_body = islands.of_unknown[: nv * len(names)].reshape(-1, nv)
    assert np.all(of_body == of_body[:, :1])
    assert len({int(k) for k, name in zip(of_body[:, 0], names, strict=True) if name[0] == "0"}) == 1
    for _, own, members in problem.members():
        for c, where in zip(members, islands.of_unknown[own], strict=True):
            second = problem.model.names[problem.model.pairs[c].second]
            assert np.all(where == of_body[names.index(second), 0])
    together = [c for k in range(5) for c in islands.candidates(problem, k)]
    assert sorted(together) == problem.candidates


def test_an_island_that_is_lost_does_not_hold_up_the_others() -> None:
    """Full Newton steps do not solve a pressed heap; discs that slide beside it are solved all the same."""
    problem, z = prepared(with_rollers(heaps([0.0]), 3), 0.05)
    islands = Islands.of(problem)
    found = solve_islands(problem, islands, z, NewtonOptions())
    hard = islands.of_unknown[0]
    assert not found.solved[hard]
    assert np.sum(found.solved) == islands.count - 1
    F = np.abs(problem.residual(found.z, 0.0)) / problem.tolerance
    easy = islands.of_unknown != hard
    assert np.all(F[easy] <= 1)
    assert np.any(np.abs(problem.residual(z, 0.0))[easy] > problem.tolerance[easy])
    assert np.array_equal(found.z[~easy], z[~easy])


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_heaps_side_by_side_move_as_each_alone(mu: float) -> None:
    """Velocities after the first step of two heaps are those of the heap alone.

    Discs that touch side by side leave each other by (h v)^2 / 2 r: the rounding of a gap, some 1e-15 m, is
    one of sqrt(2 r gap) / h, some 1e-6 m/s, in v.
    """
    options = {"duration": 0.05, "step": 0.05, "stepper": "implicit-euler", "progress": False}
    alone = simulate(heaps([0.0], mu=mu), **options)
    both = simulate(heaps([0.0, FAR], mu=mu), **options)
    assert both.steps["solves"].tolist() == [1]
    for run in (alone, both):
        for law in ("dynamics", "complementarity", "friction"):
            assert run.steps[law].max() < 1e-9
    for name in alone.names[1:]:
        for heap in "01":
            other = both[heap + name[1:]]
            assert np.abs(other.velocity[-1] - alone[name].velocity[-1]).max() < 1e-6
