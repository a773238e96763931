"""Newton steps by blocks are those of the dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
from searching import euler_run

from implicit_geom import Scene, shapes
from implicit_geom.contact.rattle_ncp import PositionNCP
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.model.model import Model
from implicit_geom.solvers.block_elimination import BlockMatrix
from implicit_geom.solvers.newton import newton_step
from implicit_geom.steppers.euler import EulerStepper
from implicit_geom.steppers.search import SearchOptions


def stack(count: int) -> Scene:
    """Ellipsoids, boxes and spheres above each other on a floor, one of them fixed."""
    scene = Scene()
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    kinds = (shapes.ellipsoid(0.25, 0.2, 0.15), shapes.sphere(0.15), shapes.box(0.4, 0.4, 0.3))
    for k in range(count):
        place = (0.03 * np.sin(k), 0.03 * np.cos(2 * k), 0.1501 + 0.3002 * k)
        mass = {"fixed": True} if k == 4 else {"mass": 1.0 + k}
        scene.add(f"b{k}", kinds[k % 3], position=place, **mass)
    scene.friction(mu=0.5, e_r=0.02)
    return scene


@pytest.mark.parametrize("kind", [StepNCP, PositionNCP])
def test_steps_agree(kind: type[StepNCP]) -> None:
    """The same rows, matrix and step from the dense matrix and by blocks, exact and smoothed."""
    model = Model(stack(9))
    state, h = model.initial_state(), 0.01
    found = []
    for limit in (10**9, 0):
        stepper = EulerStepper(model)
        impulse = h * model.loads(0.0)
        candidates = stepper.memory.broad.candidates(state, h, impulse / h)
        step = kind(model, candidates, limit)
        stepper.memory.add(state, candidates)
        z = step.prepare(state, h, impulse, stepper.memory.warm, 1e-10)
        z = z + 1e-2 * np.random.default_rng(0).normal(size=z.size)
        found.append([(*step.linearise(z, eps), step.shift) for eps in (0.0, 0.1)])
    for dense, blocks in zip(*found, strict=True):
        F, J, shift = dense
        assert isinstance(J, np.ndarray)
        assert isinstance(blocks[1], BlockMatrix)
        assert np.array_equal(F, blocks[0])
        assert np.array_equal(J, blocks[1].dense())
        x = np.random.default_rng(1).normal(size=F.size)
        assert np.abs(J @ x - blocks[1] @ x).max() < 1e-12 * np.abs(J).max() * np.abs(x).max() * F.size
        step, other = newton_step(J, F, shift), newton_step(blocks[1], F, shift)
        assert step is not None
        assert other is not None
        assert np.abs(step - other).max() < 1e-10 * np.abs(step).max()


def test_pile_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pile of discs that comes to rest moves the same way by blocks, steps and residuals alike."""
    scene = Scene(dim=2)
    scene.add("floor", shapes.halfplane((0, 1)), fixed=True)
    for row in range(3):
        for k in range(3 - row):
            place = (0.1001 * (k + row / 2), 0.0502 + 0.0875 * row)
            scene.add(f"d{row}{k}", shapes.disc(0.05), mass=1.0, position=place)
    scene.friction(mu=0.6)
    runs = []
    for limit in (10**9, 0):
        monkeypatch.setenv("IMPLICIT_GEOM_COMPILED", "0")
        # (a heap's step has several solutions: both runs must look for them in the same ways)
        search = SearchOptions(condensed=limit, many_contacts=False)
        runs.append(euler_run(scene, search, duration=0.2, step=0.01))
    assert np.abs(runs[0].states.x - runs[1].states.x).max() < 1e-9
    assert runs[1].steps["friction"].max() < 1e-8
    assert runs[1].steps["solves"].max() == 1
