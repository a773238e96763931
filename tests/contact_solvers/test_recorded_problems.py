"""Recorded problems of bins, stacks, an arch, a wedge and a jam: the default solver certifies all of them.

Those of our own scenes are what the scenes give.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from contact_cases import RECORDED, recorded

import implicit_geom.solvers.contact as _  # noqa: F401
from implicit_geom import contact_problem, shapes
from implicit_geom.experiments import contact_scenes
from implicit_geom.experiments.contact_problem_sets import SCENES
from implicit_geom.experiments.contact_problem_sets import recorded as read
from implicit_geom.experiments.piles import pile
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.pssn import points
from implicit_geom.solvers.contact.solve import solve_contact

NAMES = sorted(path.stem for path in RECORDED.glob("*.npz"))
UNIQUE = ("sphere2", "wedge20")  # motions
BEGINS = {  # scenes that are recorded as they begin
    "stack mu 0.6 ratio 10000": lambda: contact_scenes.stack(0.6, 1e4),
    "wedge mu 0.2 ratio 1": lambda: contact_scenes.wedge(0.2),
    "bricks mu 1": lambda: contact_scenes.bricks(1.0),
    "arch mu 0.2": lambda: contact_scenes.arch(0.2),
    "chain mu 0.6": lambda: contact_scenes.chain(0.6),
}


@pytest.fixture(scope="module")
def scene_problems() -> dict[str, ContactProblem]:
    return {name: make() for name, make in read(SCENES)}


def test_there_are_some() -> None:
    assert len(NAMES) >= 6


@pytest.mark.parametrize("name", NAMES)
def test_default_certifies(name: str) -> None:
    """Mass ratios of 1e4, mu = 1, redundant points: all residuals within 1e-8 m/s."""
    found = solve_contact(recorded(name))
    assert found.error <= 1e-8, found


@pytest.mark.parametrize("solver", ["nsgs", "admm", "cadoux-acary"])
@pytest.mark.parametrize("name", UNIQUE)
def test_agreement(name: str, solver: str) -> None:
    """Solvers that certify have the same contact velocities where the motion is unique."""
    reference, other = solve_contact(recorded(name)), solve_contact(recorded(name), solver)
    if other.converged:
        np.testing.assert_allclose(other.contact_velocity, reference.contact_velocity, atol=1e-6)
    else:
        assert solver == "cadoux-acary"


@pytest.mark.parametrize(("name", "budget"), [("stack10", 1), ("arch11", 5)])
def test_fallbacks(name: str, budget: int) -> None:
    """With a budget that is soon spent the fallbacks take over."""
    found = solve_contact(recorded(name), budget=budget)
    assert found.info["by"] in ("sticking", "admm", "sweeps", "best", "points")
    assert found.converged


def test_a_pile_at_rest() -> None:
    """465 discs that may stick without any slip: proximal points alone wander among slips, and find none."""
    found = solve_contact(contact_problem(pile(30, 0.8), step=0.05))
    assert found.info["by"] == "sticking"
    assert found.converged, found
    assert np.max(np.abs(found.velocity)) < 1e-6


@pytest.mark.parametrize("seed", [2, 26, 89])
def test_a_crowd_under_heavy_loads(seed: int) -> None:
    """Bodies of 1, 100 and 10,000 kg meet with mu = 2: sweeps stop short of 1e-8 m/s, or far away."""
    rng = np.random.default_rng(seed)
    scene = contact_scenes.bin_scene(0.5, float(rng.choice([0, 0.05, 0.3, 0.8, 1.5, 2.0])))
    kinds = (
        shapes.box(0.08, 0.06, 0.05),
        shapes.capsule(0.05, 0.12),
        shapes.cylinder(0.05, 0.12),
        shapes.ellipsoid(0.09, 0.07, 0.05),
        shapes.sphere(0.08),
    )
    for k, (layer, x, y) in enumerate(product(range(3), (-0.12, 0.12), (-0.12, 0.12))):
        shape, turn = kinds[int(rng.integers(5))], rng.normal(size=4)
        scene.add(
            f"body {k}",
            shape,
            mass=float(rng.choice([1, 1, 1e2, 1e4])),
            position=(x, y, 0.13 + 0.25 * layer),
            orientation=turn / np.linalg.norm(turn),
            velocity=rng.normal(size=3) - (0, 0, 6 * layer),
        )
    found = solve_contact(contact_problem(scene, step=0.05, reach=0.15))
    assert found.converged, found


def test_out_of_budget() -> None:
    """What is not solved is not called solved; the best of what was seen is returned."""
    found = solve_contact(recorded("cube27"), budget=1)
    assert not found.converged
    assert found.error == pytest.approx(min(found.history), rel=1e-6)


def test_scenes_are_certified(scene_problems: dict[str, ContactProblem]) -> None:
    """Bins, piles, stacks, bricks, an arch, wedges, a chain of spheres with a mass ratio of 1e4."""
    kinds = {name.split(" mu ")[0] for name in scene_problems}
    assert kinds == {
        *("spheres", "ellipsoids", "discs", "discs of 12 rows"),
        *("stack", "wedge", "bricks", "arch", "chain"),
    }
    for name, problem in scene_problems.items():
        found = solve_contact(problem)
        assert found.converged, (name, found)


@pytest.mark.parametrize("name", BEGINS)
def test_scenes_are_as_recorded(name: str, scene_problems: dict[str, ContactProblem]) -> None:
    """The Delassus form of what was recorded is that of the scene."""
    made, kept = contact_problem(BEGINS[name](), step=contact_scenes.STEP), scene_problems[name]
    np.testing.assert_allclose(kept.W.toarray(), made.W.toarray(), atol=1e-12)
    np.testing.assert_allclose(kept.q, made.q, atol=1e-12)
    np.testing.assert_array_equal(kept.mu, made.mu)


@pytest.mark.parametrize("name", ["arch11", "capsule27", "jammed27", "stack10"])
def test_proximal_points_alone(name: str) -> None:
    """Without sweeps: certified, from nothing; a solution is one at once; not without a budget."""
    found = solve_contact(recorded(name), sweeps=False)
    assert found.converged
    assert found.info["by"] == "points"
    again = solve_contact(recorded(name), sweeps=False, start=found)
    assert again.factorisations == 0
    assert again.converged
    assert not solve_contact(recorded(name), sweeps=False, budget=0).converged


def test_a_jam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ellipsoids wedged in a box, from 1e-10 m/s to 1e-13: c grows until rounding must be allowed for."""
    jammed = recorded("jammed27")
    start = solve_contact(jammed, tolerance=2e-10)
    assert solve_contact(jammed, sweeps=False, tolerance=1e-13, start=start).converged
    monkeypatch.setattr(points, "ROUNDING", 0.0)
    assert solve_contact(jammed, sweeps=False, tolerance=1e-13, start=start).error > 1e-11
