"""`simulate` with impacts left to the stages of the step: what the march made of CasADi's graphs knows."""

from __future__ import annotations

from typing import Any

from implicit_geom import Scene, Trajectory
from implicit_geom import simulate as simulate_events
from implicit_geom.scene.switches import Stepper


def simulate(scene: Scene | None, **options: Any) -> Trajectory:
    """`implicit_geom.simulate`; RATTLE steppers with `impacts="stages"`."""
    stepper = Stepper.of(options.get("stepper", "implicit-rattle"))
    if stepper.integrator.startswith("rattle"):
        options.setdefault("impacts", "stages")
    return simulate_events(scene, **options)
