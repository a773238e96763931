"""One body in one contact in the memory of compiled code, and whether a scene is of this sort."""

from __future__ import annotations

import numpy as np

from implicit_geom.compiled.memory.arrays import LaneArrays
from implicit_geom.compiled.memory.contacts import CandidateGroup
from implicit_geom.compiled.single.functions import SingleContactFunctions
from implicit_geom.compiled.single.stage_1 import MEASURES
from implicit_geom.compiled.single.stage_2 import SUMMARY
from implicit_geom.compiled.tables import GroupSlot, SingleSlot, SystemSlot
from implicit_geom.equations.pair_kernel import KINDS
from implicit_geom.geometry.over_planes import known_in_closed_form
from implicit_geom.model.model import Model
from implicit_geom.process.building import Kept

_FUNCTIONS: Kept[SingleContactFunctions] = Kept(KINDS)


def single_contact_functions(
    model: Model, candidates: list[int], rattle: bool
) -> SingleContactFunctions | None:
    """The functions for a scene of one body that moves, with one candidate pair of a known kind."""
    if model.moving.size != 1 or len(candidates) != 1:
        return None
    kernel = model.pairs[candidates[0]].kernel
    if not known_in_closed_form(kernel.kind):
        return None
    return _FUNCTIONS.get((kernel.kind.key, rattle), lambda: SingleContactFunctions(kernel, rattle))


def warm_start_table(arrays: LaneArrays, group: CandidateGroup) -> np.ndarray:
    """The table of a system of equations of which only the warm starts are used."""
    tables = np.zeros((1, len(GroupSlot)), np.int64)
    group.fill_warm_starts(tables[0])
    return arrays.table(
        len(SystemSlot), {SystemSlot.GROUPS: 1, SystemSlot.GROUP_TABLES: arrays.integers(tables)}
    )


def single_table(
    arrays: LaneArrays, single: SingleContactFunctions, group: CandidateGroup, precomputed: dict[str, int]
) -> np.ndarray:
    """The table of `SingleSlot`, with arrays of its own; `precomputed`: see `precomputed_sizes`."""
    n, n2, numbers = single.unknowns, single.impulses, arrays.numbers
    entries = {
        SingleSlot.UNKNOWNS: numbers(n),
        SingleSlot.NEXT_UNKNOWNS: numbers(n),
        SingleSlot.PRECOMPUTED: numbers(precomputed["start"]),
        SingleSlot.UNKNOWNS_2: numbers(n2),
        SingleSlot.NEXT_UNKNOWNS_2: numbers(n2),
        SingleSlot.PRECOMPUTED_2: numbers(precomputed.get("finish", 1)),
        SingleSlot.MEASURES: numbers(MEASURES),
        SingleSlot.FLAGS: numbers(3),
        SingleSlot.SUMMARY: numbers(SUMMARY.size),
        SingleSlot.CONSTANTS: group.constants,
        SingleSlot.WARM: group.warm,
        SingleSlot.NEXT_WARM: group.next_warm,
        SingleSlot.LAG_ALLOWED: numbers(1),
        SingleSlot.RECORD: group.records[0],
        SingleSlot.MODE: group.modes,
        SingleSlot.FIRST: group.pairs[0].first,
        SingleSlot.SECOND: group.pairs[0].second,
        SingleSlot.KEPT: numbers(n),
        SingleSlot.FOUND: numbers(n),
        SingleSlot.UNSOLVED: numbers(1),
    }
    return arrays.table(len(SingleSlot), entries)
