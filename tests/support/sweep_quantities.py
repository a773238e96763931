"""Functions of a run that a sweep's processes can import."""

from __future__ import annotations

from implicit_geom import Trajectory


def height(run: Trajectory) -> float:
    return float(run["egg"].position[-1, 2])


def refuse(run: Trajectory) -> float:
    raise RuntimeError("not this one")
