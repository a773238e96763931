"""Cannonball arrangements of discs in the plane [AH02, section 4 B]."""

from __future__ import annotations

import numpy as np

import shapes
from implicit_geom import Scene

DIAMETER, STEP = 3.0, 0.05  # m, s: AH02's


def count(rows: int) -> int:
    """Discs of a pile with that many in its lowest row."""
    return rows * (rows + 1) // 2


def rows_of(discs: int) -> int:
    """The lowest row of a pile of 1, 3, 6, 10, ... discs."""
    rows = round((np.sqrt(8 * discs + 1) - 1) / 2)
    if count(rows) != discs:
        raise ValueError(f"discs = {discs} do not fill a pile; nearest: {count(rows)}")
    return rows


def pile(rows: int, mu: float, diameter: float = DIAMETER, mass: float = 1.0) -> Scene:
    """Discs in a triangle on the floor, each touching its neighbours; `rows` of them in the lowest row."""
    scene = Scene(dim=2, gravity=(0.0, -9.81))
    scene.add("floor", shapes.halfplane((0, 1)), fixed=True)
    for row in range(rows):
        for k in range(rows - row):
            place = (diameter * (k + row / 2), diameter * (0.5 + row * np.sqrt(3) / 2))
            scene.add(f"d{row}-{k}", shapes.disc(diameter / 2), mass=mass, position=place)
    scene.friction(mu=mu)
    return scene
