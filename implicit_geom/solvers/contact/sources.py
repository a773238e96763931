"""The modules whose source decides the machine code of contact solvers, see `machine.object_cache`."""

from __future__ import annotations

EMITTING = (
    "implicit_geom.machine",
    "implicit_geom.process.building",
    "implicit_geom.process.threads",
    "implicit_geom.solvers.contact.pssn",
    "implicit_geom.solvers.contact.sweeps",
    "implicit_geom.solvers.contact.systems",
)
