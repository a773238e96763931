"""The modules whose source decides compiled code: it is made again when one of them changes, and no other.

These are the modules that emit code (`library`) with all that they import within the package, which a test
compares. What only fills memory, runs code or reads results (`engine`, `memory`, `runner`, `lanes`) is none.
"""

from __future__ import annotations

EMITTING = (
    # surfaces, equations, and how both become machine code
    "implicit_geom.shapes",
    "implicit_geom.equations",
    "implicit_geom.rotation",
    "implicit_geom.machine",
    # a compiled step
    "implicit_geom.compiled.structs",
    "implicit_geom.compiled.tables",
    "implicit_geom.compiled.functions",
    "implicit_geom.compiled.loops",
    "implicit_geom.compiled.single",
    "implicit_geom.compiled.march",
    "implicit_geom.compiled.library",
    "implicit_geom.compiled.sources",
    # numbers that are written into the code: NewtonOptions, ExitReason
    "implicit_geom.solvers.newton",
    "implicit_geom.model.reasons",
    # what all of these are built with: caches of functions, and checks of a shape's arguments
    "implicit_geom.process.building",
    "implicit_geom.process.lazy",
    "implicit_geom.process.threads",
    "implicit_geom.interface.arguments",
    "implicit_geom.interface.errors",
    "implicit_geom.interface.numbers",
    "implicit_geom.interface.words",
)
