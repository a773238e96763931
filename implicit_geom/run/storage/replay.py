"""Repeat a failed step from the file that StepFailed.write made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError, SimulationError, one_line
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import Attempt
from implicit_geom.model.solve_arrays import PARTS
from implicit_geom.run.make_stepper import AnyStepper, make_stepper
from implicit_geom.run.storage.replay_file import FORMAT, read_record
from implicit_geom.run.storage.run_content import unit
from implicit_geom.run.storage.solver_state import Memory, restore
from implicit_geom.run.storage.step_failed import StepFailed
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import read_scene, to_dict
from implicit_geom.shapes.errors import ShapeError


def replay_record(
    scene: Scene, state: State, h: float, memory: Memory, options: SimulationOptions
) -> dict[str, Any]:
    """Everything the step depends on, as plain data."""
    return {
        "format": FORMAT,
        "scene": to_dict(scene),
        "state": {part: getattr(state, part).tolist() for part in PARTS},
        "solver": memory.plain(),
        "step": h,
        "options": options.as_dict(),
    }


def replay(path: str | Path, *, scene: Scene | None = None) -> Attempt:
    """Repeat exactly the step that failed, from the file that `StepFailed.write` made.

    path    of the file
    scene   has to be passed again where its loads are functions of time

    The step's Attempt where it now succeeds, otherwise StepFailed again. SceneError where the file is not
    that of a failed step, or damaged.

    >>> crossing = Scene(dim=2, gravity=(0, 0))
    >>> crossing.add("plate", shapes.rectangle(0.005, 0.1), fixed=True)
    >>> crossing.add("bar", shapes.rectangle(0.1, 0.02), mass=1.0, position=(-0.12, 0), velocity=(2, 0))
    >>> try:
    ...     simulate(crossing, duration=0.1, step=0.02, stepper="nguyen-trinkle")
    ... except StepFailed as failure:
    ...     failure.write("failed.json")
    >>> try:
    ...     replay("failed.json")
    ... except StepFailed as again:
    ...     print(again.time)
    0.0
    """
    scene, options, stepper, state, h = prepare(path, scene)
    model, memory = stepper.model, Memory(stepper)
    try:
        attempt = stepper.step(state, h)
    except (SceneError, ShapeError, SimulationError):
        raise
    except (ValueError, ArithmeticError, LookupError, RuntimeError) as error:
        words = f"{type(error).__name__}: {one_line(error)}"
        raise SimulationError(f"{path}: the step cannot be taken: {words}") from error
    if attempt.solves and not attempt.reason:
        return attempt
    bodies = {
        name: (state.x[i], state.q[i], state.v[i], state.w[i] if model.dim == 3 else state.w[i, 0])
        for i, name in enumerate(model.names)
    }
    raise StepFailed(
        attempt.reason,
        time=state.time,
        state=bodies,
        history=attempt.history,
        replay=replay_record(scene, state, h, memory, options),
    )


def prepare(
    path: str | Path, scene: Scene | None = None
) -> tuple[Scene, SimulationOptions, AnyStepper, State, float]:
    """All that the step of a file needs, with the stepper as it was; SceneError where that cannot be."""
    record = read_record(path)
    try:
        options = SimulationOptions(**record["options"])
        if scene is None:
            scene = read_scene(record["scene"])[0]
        model = Model(scene, options.friction_residual)
        state = _state(record, model)
        stepper = make_stepper(model, options)
        restore(stepper, record["solver"])
        h = float(record["step"])
    except (SceneError, ShapeError) as error:
        raise SceneError(f"{path}: {one_line(error)}") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        words = f"{type(error).__name__}: {one_line(error)}"
        raise SceneError(f"{path}: the file of a failed step is damaged: {words}") from None
    return scene, options, stepper, state, h


def _state(record: dict[str, Any], model: Model) -> State:
    """The state at the start of the step, of the bodies of the scene."""
    first = model.initial_state()
    found = {}
    for part in PARTS:
        given = np.array(record["state"][part])
        if given.dtype.kind not in "fi":
            raise SceneError(f"state.{part} holds something else than numbers")
        found[part] = given.astype(float)
        wanted = getattr(first, part).shape
        if found[part].shape != wanted:
            raise SceneError(f"state.{part} has the shape {found[part].shape}, where {wanted} belongs")
    if model.dim == 3 and not unit(found["q"]):
        raise SceneError("state.q: a quaternion has not the length 1")
    return State(float(record["time"]), **found)
