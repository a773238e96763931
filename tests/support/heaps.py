"""Steps with many contacts, prepared for a solver."""

from __future__ import annotations

import numpy as np

from implicit_geom import Scene, shapes, simulate
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.experiments.piles import pile as heap
from implicit_geom.model.model import Model, State
from implicit_geom.rotation import unit
from implicit_geom.steppers.euler import EulerStepper

__all__ = ["fallen", "heap", "prepared"]


def prepared(scene: Scene, h: float, state: State | None = None) -> tuple[StepNCP, np.ndarray]:
    """The equations of a step, the first one or that from a given state, and where they start."""
    model = Model(scene)
    stepper = EulerStepper(model)
    state = state or model.initial_state()
    impulse = h * model.loads(0.0)
    problem = StepNCP(model, stepper.memory.broad.candidates(state, h, impulse / h))
    stepper.memory.add(state, problem.candidates)
    return problem, problem.prepare(state, h, impulse, stepper.memory.warm, 1e-10)


def fallen(mu: float) -> tuple[StepNCP, np.ndarray]:
    """Eight ellipsoids that have just fallen on each other, with nothing known of their impulses."""
    rng = np.random.default_rng(3)
    scene = Scene()
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    for k in range(8):
        place = (0.245 * (k % 2), 0.245 * (k // 2 % 2), 0.15 + 0.245 * (k // 4))
        turn = unit(rng.normal(size=4))
        shape = shapes.ellipsoid(0.12, 0.1, 0.08)
        scene.add(f"e{k}", shape, mass=1.0, position=place, orientation=turn, velocity=(0, 0, -1.0))
    scene.friction(mu=mu)
    run = simulate(scene, duration=0.12, step=0.01, stepper="implicit-euler")
    return prepared(scene, 0.01, run.final)
