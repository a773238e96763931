"""Scenes that several folders share; modules that tests share are in `support`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from implicit_geom import Scene, shapes
from implicit_geom.rotation import unit

sys.path.insert(0, str(Path(__file__).parent / "support"))


@pytest.fixture
def eggs() -> Scene:
    """Two eggs that tumble, slide and touch the ground and each other; anisotropic friction."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    egg = shapes.ellipsoid(0.5, 0.4, 0.3)
    scene.add("low", egg, mass=1.0, position=(0, 0, 0.31), velocity=(1, 0.3, 0), angular_velocity=(1, 2, 3))
    scene.add("high", egg, mass=2.0, position=(0.1, 0, 0.95), orientation=unit((1, 0.1, 0.2, 0.3)))
    scene.friction(mu=0.4, e_o=0.5, e_r=0.01, direction=(1, 2, 3))
    scene.friction("low", "high", mu=0.2, e_o=1.0)
    return scene


@pytest.fixture
def bullet() -> Scene:
    """A small fast ball that would pass through a thin plate in one step: its steps are taken in parts."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("plate", shapes.box(1, 1, 0.01), fixed=True)
    scene.add("ball", shapes.sphere(0.05), mass=0.1, position=(0, 0, 1.0), velocity=(1, 0, -30))
    scene.friction(mu=0.3)
    return scene


@pytest.fixture
def disc() -> Callable[[], Scene]:
    """A planar disc that rolls."""

    def make() -> Scene:
        scene = Scene(dim=2, gravity=(0, -9.81))
        scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
        scene.add("disc", shapes.disc(1.0), mass=1.0, position=(0, 1), velocity=(-3, 0), angular_velocity=2.0)
        scene.friction(mu=0.4)
        return scene

    return make
