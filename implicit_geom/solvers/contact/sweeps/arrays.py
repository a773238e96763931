"""The arrays that the machine code of the sweeps takes, by name and in order."""

from __future__ import annotations

ARRAYS = ("rows", "H", "MH", "W", "w", "values", "coupling", "mu", "mass", "radius", "free")
CERTIFIED = ("rows", "H", "MH", "w", "mu", "mass", "radius")
SWEPT = ARRAYS[:8]
