"""An engine's memory for one body in one contact, see `alone_functions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from implicit_geom.compiled.engine_group import fill_table
from implicit_geom.compiled.single.stage import MEASURES
from implicit_geom.compiled.tables import Alone, Group, Problem

if TYPE_CHECKING:
    from implicit_geom.compiled.engine import Engine


def warm_starts(engine: Engine) -> np.ndarray:
    """The table of a problem of which only the warm starts are of use."""
    tables = np.zeros((1, len(Group)), np.int64)
    engine.groups[0].fill_memory(tables[0])
    table = engine._whole(np.zeros(len(Problem)))
    return fill_table(table, {Problem.GROUPS: 1, Problem.GROUP_TABLES: engine._whole(tables)})


def table(engine: Engine) -> np.ndarray:
    """The table of `Alone`, with arrays of its own."""
    alone, g, array = engine.alone, engine.groups[0], engine._array
    assert alone is not None
    assert engine.records == (engine.lanes == 1)
    n, n2, handed = alone.unknowns, alone.impulses, engine.notes["handed"]
    entries = {
        Alone.UNKNOWNS: array(n),
        Alone.NEXT_UNKNOWNS: array(n),
        Alone.HANDED: array(handed["open"]),
        Alone.UNKNOWNS_2: array(n2),
        Alone.NEXT_UNKNOWNS_2: array(n2),
        Alone.HANDED_2: array(handed.get("turn", 1)),
        Alone.MEASURES: array(MEASURES),
        Alone.FLAGS: array(3),
        Alone.SUMMARY: array(alone.summary.size),
        Alone.CONSTANTS: g.constants,
        Alone.WARM: g.warm,
        Alone.NEXT_WARM: g.next_warm,
        Alone.ALLOWED: array(1),
        Alone.RECORD: g.records[0],
        Alone.MODE: g.modes,
        Alone.FIRST: g.pairs[0].first,
        Alone.SECOND: g.pairs[0].second,
        Alone.KEPT: array(n),
        Alone.FOUND: array(n),
        Alone.UNSOLVED: array(1),
    }
    return fill_table(engine._whole(np.zeros(len(Alone))), entries)
