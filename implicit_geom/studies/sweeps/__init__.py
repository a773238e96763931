"""Many runs of one scene: grids of values, processes, and tables that are written row by row."""

from implicit_geom.studies.sweeps.sweep import Sweep, sweep

__all__ = ["Sweep", "sweep"]
