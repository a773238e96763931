"""Repeat a failed step from the file that StepFailed.write made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.errors import SceneError, StepFailed
from implicit_geom.model import Model, State
from implicit_geom.options import SimulationOptions
from implicit_geom.scene import Scene
from implicit_geom.scenefile import read_scene, to_dict
from implicit_geom.solver_state import Memory, restore
from implicit_geom.steppers import make_stepper
from implicit_geom.steppers.solve import Attempt

FORMAT = "implicit-geom failed step"


def replay_record(
    scene: Scene, state: State, h: float, memory: Memory, options: SimulationOptions
) -> dict[str, Any]:
    """Everything the step depends on, as plain data."""
    return {
        "format": FORMAT,
        "scene": to_dict(scene),
        "state": {part: getattr(state, part).tolist() for part in ("x", "q", "v", "w")},
        "solver": memory.plain(),
        "step": h,
        "options": options.as_dict(),
    }


def replay(path: str | Path, *, scene: Scene | None = None) -> Attempt:
    """Repeat exactly the step that failed; its Attempt where it now succeeds, otherwise StepFailed again.

    A scene with loads that are functions of time has to be passed again.
    """
    record = read_record(path)
    try:
        options = SimulationOptions(**record["options"])
        if scene is None:
            scene = read_scene(record["scene"])[0]
        model = Model(scene, options.friction_residual)
        state = State(
            record["time"], *(np.array(record["state"][part], float) for part in ("x", "q", "v", "w"))
        )
        stepper = make_stepper(model, options)
        restore(stepper, record["solver"])
        h = float(record["step"])
    except (KeyError, TypeError, IndexError) as error:
        raise SceneError(
            f"{path}: the file of a failed step is incomplete ({error}); write it again"
        ) from None
    memory = Memory(stepper)
    attempt = stepper.step(state, h)
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


def read_record(path: str | Path) -> dict[str, Any]:
    """The contents of a failed step's file."""
    try:
        record = json.loads(Path(path).read_text())
    except OSError as error:
        raise SceneError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SceneError(f"{path}: not a JSON file: {error}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise SceneError(f"{path}: not the file of a failed step")
    return record
