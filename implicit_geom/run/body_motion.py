"""`run["egg"]`: one body at every time of a run, or of each run of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class BodyMotion:
    """One body at every time: `run["egg"].position`, rows as in `run.time`.

    position           (T+1, dim) m, of the centre of mass (the shape's origin of a fixed body), world frame
    orientation        (T+1, 4) unit quaternions w, x, y, z from the shape's axes to the world's; (T+1,) rad
                       in the plane
    velocity           (T+1, dim) m/s, of the centre of mass, world frame
    angular_velocity   (T+1, 3) rad/s, world frame; (T+1,) in the plane
    name               of the body

    Those of a batch have one more axis in front, (scenes, T+1, ...).

    >>> run["egg"].position.shape
    (51, 3)
    >>> run["egg"].position[-1].round(3)
    array([0. , 0. , 0.3])
    """

    position: np.ndarray
    orientation: np.ndarray
    velocity: np.ndarray
    angular_velocity: np.ndarray
    name: str = ""

    def __repr__(self) -> str:
        parts = ("position", "orientation", "velocity", "angular_velocity")
        sizes = ", ".join(f"{part} {getattr(getattr(self, part, None), 'shape', '?')}" for part in parts)
        return f"<BodyMotion{f' of {self.name!r}' if self.name else ''}: {sizes}>"
