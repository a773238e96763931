"""What a scene's author may not have meant, said once: `SceneNotice`, a warning of the `warnings` module."""

from __future__ import annotations

import sys
import warnings

from implicit_geom.interface.errors import SceneNotice
from implicit_geom.scene.scene import Scene

OURS = "implicit_geom."  # modules of this package
NO_FRICTION = "friction: mu = 0 for every pair, because scene.friction was not called"


def friction_missing(scene: Scene) -> str:
    """The notice for a scene whose bodies touch, given the first time; empty where friction was set."""
    if scene.friction_given:
        return ""
    if NO_FRICTION not in scene.told:
        scene.told.add(NO_FRICTION)
        warnings.warn(NO_FRICTION, SceneNotice, stacklevel=_outside())
    return NO_FRICTION


def _outside() -> int:
    """The stack level, seen from the caller, of the first frame that is not of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(OURS):
        level, frame = level + 1, frame.f_back
    return level
