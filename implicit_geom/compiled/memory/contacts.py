"""Candidate pairs, by kind, in the memory of compiled code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.pair import PairFunctions
from implicit_geom.compiled.library import pair_code
from implicit_geom.compiled.memory.arrays import LaneArrays, fill_table
from implicit_geom.compiled.tables import GroupSlot
from implicit_geom.equations.unknowns import UnknownLayout
from implicit_geom.geometry.over_planes import known_in_closed_form, multiplier_factor
from implicit_geom.machine.object_cache import LoadedCode
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.model import Model
from implicit_geom.model.pairs import Pair
from implicit_geom.process.lazy import cached_property


def grouped_by_kind(
    model: Model, candidates: list[int], arrays: LaneArrays, rattle: bool, tolerance: float
) -> list[CandidateGroup]:
    """Candidates by kind of pair, as in `contact.step_ncp`."""
    by_kind: dict[int, list[int]] = {}
    for c in candidates:
        by_kind.setdefault(id(model.pairs[c].kernel), []).append(c)
    return [CandidateGroup(model, members, arrays, rattle, tolerance) for members in by_kind.values()]


EVENTS = 2.0  # in place of a restitution


class CandidateGroup:
    """The candidate pairs of one kind; `members` are their numbers."""

    def __init__(
        self, model: Model, members: list[int], arrays: LaneArrays, rattle: bool, tolerance: float
    ) -> None:
        self.events = False  # impacts are events: every one leaves machine code
        self.members, self.rattle, self.tolerance = members, rattle, tolerance
        self.moving = set(model.moving.tolist())
        self.pairs: list[Pair] = [model.pairs[c] for c in members]
        self.functions = PairFunctions(self.pairs[0].kernel)
        self.kind = self.functions.kind
        n, f = len(members), self.functions
        self.arrays, numbers = arrays, arrays.numbers
        self.warm, self.next_warm, self.saved_warm = (numbers(n, f.warm.size) for _ in range(3))
        self.start, self.end = numbers(n, f.start.size), numbers(n, f.end.size)
        self.records = [numbers(n, f.record.size) for _ in range(2)]
        self.modes = numbers(n)
        self.constants = numbers(n, f.constants.size)

    @cached_property
    def code(self) -> LoadedCode:
        """The functions of the kind, which one body in a single contact does not need."""
        return pair_code(self.kind, self.rattle, self.arrays.lanes)

    @property
    def notes(self) -> dict[str, Any]:
        return self.code.notes

    def load(self, lane: int, model: Model) -> None:
        """Everything that no step changes."""
        for i, c in enumerate(self.members):
            self._fill_constants(model, c, self.constants[i, :, lane])

    def spread(self) -> None:
        """Give all lanes the scene of the first one."""
        self.constants[..., 1:] = self.constants[..., :1]

    def layout(self, scheme: str) -> UnknownLayout:
        """Of the unknowns of one contact."""
        return replace(self.kind, scheme=scheme).layout

    def _fill_constants(self, model: Model, c: int, own: np.ndarray) -> None:
        at, pair = self.functions.constants.at, model.pairs[c]
        pieces = model.pieces
        size, thickness = (min(of[list(pair.pieces)]) for of in (pieces.size, pieces.thickness))
        values = {
            "L": size if np.isfinite(size) else 1.0,
            "mu": pair.law.mu,
            "e": [getattr(pair.law, f"e_{name}") for name in self.kind.components],
            "com1": model.com[pair.first],
            "com2": model.com[pair.second],
            "theta1": pieces.shapes[pair.pieces[0]].values,
            "theta2": pieces.shapes[pair.pieces[1]].values,
            "sign": -1.0 if pair.swapped else 1.0,
            "flat": float(all(pieces.flat[p] or not pieces.fixed[p] for p in pair.pieces)),
            "restitution": EVENTS if self.events else pair.law.restitution,
            "thin": thickness if np.isfinite(thickness) else 1e300,
            "tolerance": self.tolerance,
            "multiplier_factor": 0.0,
        }
        if known_in_closed_form(self.kind):
            values["multiplier_factor"] = multiplier_factor(pieces.shapes[pair.pieces[1]])
        for name, value in values.items():
            own[at[name]] = value

    def fill(self, table: np.ndarray, scheme: str, gather: np.ndarray, scatter: np.ndarray, N: int) -> None:
        """The group's table for one of the two problems."""
        arrays, notes, layout = self.arrays, self.notes[f"linear_{scheme}"], self.layout(scheme)
        row, column = np.array(notes["row"], int), np.array(notes["column"], int)
        places = scatter[:, row] * N + gather[:, column]
        kind = replace(self.kind, scheme=scheme)
        size = structs.parameters(kind).size
        stage_2, m = scheme == "velocity", self.moving
        entries = {
            GroupSlot.COUNT: len(self.members),
            GroupSlot.INPUTS: notes["inputs"],
            GroupSlot.ROWS: notes["rows"],
            GroupSlot.ENTRIES: len(row),
            GroupSlot.OWN: layout.size,
            GroupSlot.POINT: layout.at["r"].stop,
            GroupSlot.LINEAR: self.code.address(f"linear_{scheme}"),
            GroupSlot.PREPARE: self.code.address(f"prepare_{scheme}"),
            GroupSlot.FINISH: self.code.address(f"finish_{scheme}"),
            GroupSlot.GATHER: arrays.integers(gather),
            GroupSlot.SCATTER: arrays.integers(scatter),
            GroupSlot.PLACES: arrays.integers(places),
            GroupSlot.PARAMETERS: arrays.numbers(len(self.members), size),
            GroupSlot.N_PARAMETERS: size,
            GroupSlot.FIRST: arrays.integers([p.first for p in self.pairs]),
            GroupSlot.SECOND: arrays.integers([p.second for p in self.pairs]),
            GroupSlot.CONSTANTS: self.constants,
            GroupSlot.N_CONSTANTS: self.functions.constants.size,
            GroupSlot.WARM: self.warm,
            GroupSlot.NEXT_WARM: self.next_warm,
            GroupSlot.SAVED_WARM: self.saved_warm,
            GroupSlot.N_WARM: self.functions.warm.size,
            GroupSlot.START: self.start,
            GroupSlot.N_START: self.functions.start.size,
            GroupSlot.END: self.end,
            GroupSlot.N_END: self.functions.end.size,
            GroupSlot.ACTIVE: self.functions.end.at["active"].start if stage_2 else -1,
            GroupSlot.RECORD: self.records[1 if stage_2 else 0],
            GroupSlot.N_RECORD: self.functions.record.size,
            GroupSlot.IMPULSE: layout.at["P_n"].start,
            GroupSlot.MODES: self.modes,
            GroupSlot.OWNER: arrays.integers([p.second if p.second in m else p.first for p in self.pairs]),
            GroupSlot.JOINS: arrays.integers([int(p.first in m and p.second in m) for p in self.pairs]),
            GroupSlot.ROWS_ONLY: self.code.address(f"rows_{scheme}"),
            GroupSlot.LAG: structs.parameters(kind).at["lag"].start if scheme == "position" else -1,
            GroupSlot.START_LAG: self.functions.start.at["lag"].start,
        }
        fill_table(table, entries)

    def fill_warm_starts(self, table: np.ndarray) -> None:
        """The group's table where nothing but its warm starts is used."""
        entries = {
            GroupSlot.COUNT: len(self.members),
            GroupSlot.WARM: self.warm,
            GroupSlot.NEXT_WARM: self.next_warm,
            GroupSlot.SAVED_WARM: self.saved_warm,
            GroupSlot.N_WARM: self.functions.warm.size,
        }
        fill_table(table, entries)

    def put(self, lane: int, warm: dict[int, WarmStart], normals: dict[int, np.ndarray]) -> None:
        at = self.functions.warm.at
        for i, c in enumerate(self.members):
            own, start = self.warm[i, :, lane], warm[c]
            own[at["u"]], own[at["direction"]] = start.unknowns, start.direction
            own[at["m_c"]], own[at["h"]] = start.m_c, start.h
            own[at["n"]] = normals.get(c, 0.0)

    def take(self, lane: int, warm: dict[int, WarmStart], normals: dict[int, np.ndarray]) -> None:
        at = self.functions.warm.at
        for i, c in enumerate(self.members):
            own = self.warm[i, :, lane]
            direction, m_c, h = own[at["direction"]].copy(), own[at["m_c"]], own[at["h"]]
            warm[c] = WarmStart(own[at["u"]].copy(), direction, float(m_c[0]), float(h[0]))
            normals[c] = own[at["n"]].copy()
