"""The candidate pairs of one kind in an engine's memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from implicit_geom.compiled import blocks, support_maps
from implicit_geom.compiled.library import pair_code
from implicit_geom.compiled.pair_functions import PairFunctions
from implicit_geom.compiled.tables import Group
from implicit_geom.machine.object_cache import Code
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.model import Model
from implicit_geom.model.pairs import Pair
from implicit_geom.process.lazy import cached_property

if TYPE_CHECKING:
    from implicit_geom.compiled.engine import Engine


class EngineGroup:
    """The candidate pairs of one kind."""

    def __init__(self, engine: Engine, members: list[int]) -> None:
        self.engine, self.members = engine, members
        self.pairs: list[Pair] = [engine.model.pairs[c] for c in members]
        self.functions = PairFunctions(self.pairs[0].kernel)
        self.kind = self.functions.kind
        n, f = len(members), self.functions
        self.warm, self.next_warm, self.saved_warm = (engine._array(n, f.warm.size) for _ in range(3))
        self.start, self.end = engine._array(n, f.start.size), engine._array(n, f.end.size)
        self.records = [engine._array(n, f.record.size) for _ in range(2)]
        self.modes = engine._array(n)
        self.constants = engine._array(n, f.constants.size)

    @cached_property
    def code(self) -> Code:
        """The functions of the kind, which a body that is alone does not need."""
        return pair_code(self.kind, self.engine.rattle, self.engine.lanes)

    @property
    def notes(self) -> dict[str, Any]:
        return self.code.notes

    def load(self, lane: int, model: Model) -> None:
        """Everything that no step changes."""
        for i, c in enumerate(self.members):
            self._fill_constants(model, c, self.constants[i, :, lane])

    def layout(self, scheme: str) -> Any:
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
            "restitution": pair.law.restitution,
            "thin": thickness if np.isfinite(thickness) else 1e300,
            "tolerance": self.engine.options.tolerance,
            "stretch": 0.0,
        }
        if support_maps.known(self.kind):
            values["stretch"] = support_maps.stretch(pieces.shapes[pair.pieces[1]])
        for name, value in values.items():
            own[at[name]] = value

    def fill(self, table: np.ndarray, scheme: str, gather: np.ndarray, scatter: np.ndarray, N: int) -> None:
        """The group's table for one of the two problems."""
        engine, notes, layout = self.engine, self.notes[f"linear_{scheme}"], self.layout(scheme)
        row, column = np.array(notes["row"], int), np.array(notes["column"], int)
        places = scatter[:, row] * N + gather[:, column]
        kind = replace(self.kind, scheme=scheme)
        size = blocks.parameters(kind).size
        stage_2 = scheme == "velocity"
        entries = {
            Group.COUNT: len(self.members),
            Group.INPUTS: notes["inputs"],
            Group.ROWS: notes["rows"],
            Group.ENTRIES: len(row),
            Group.OWN: layout.size,
            Group.POINT: layout.at["r"].stop,
            Group.LINEAR: self.code.address(f"linear_{scheme}"),
            Group.PREPARE: self.code.address(f"prepare_{scheme}"),
            Group.FINISH: self.code.address(f"finish_{scheme}"),
            Group.GATHER: engine._whole(gather),
            Group.SCATTER: engine._whole(scatter),
            Group.PLACES: engine._whole(places),
            Group.PARAMETERS: engine._array(len(self.members), size),
            Group.N_PARAMETERS: size,
            Group.FIRST: engine._whole([p.first for p in self.pairs]),
            Group.SECOND: engine._whole([p.second for p in self.pairs]),
            Group.CONSTANTS: self.constants,
            Group.N_CONSTANTS: self.functions.constants.size,
            Group.WARM: self.warm,
            Group.NEXT_WARM: self.next_warm,
            Group.SAVED_WARM: self.saved_warm,
            Group.N_WARM: self.functions.warm.size,
            Group.START: self.start,
            Group.N_START: self.functions.start.size,
            Group.END: self.end,
            Group.N_END: self.functions.end.size,
            Group.ACTIVE: self.functions.end.at["active"].start if stage_2 else -1,
            Group.RECORD: self.records[1 if stage_2 else 0],
            Group.N_RECORD: self.functions.record.size,
            Group.IMPULSE: layout.at["P_n"].start,
            Group.MODES: self.modes,
            Group.SIGN: self.functions.constants.at["sign"].start,
            Group.ROWS_ALONE: self.code.address(f"rows_{scheme}"),
            Group.LAG: blocks.parameters(kind).at["lag"].start if scheme == "position" else -1,
            Group.START_LAG: self.functions.start.at["lag"].start,
        }
        fill_table(table, entries)

    def fill_memory(self, table: np.ndarray) -> None:
        """The group's warm starts alone."""
        entries = {
            Group.COUNT: len(self.members),
            Group.WARM: self.warm,
            Group.NEXT_WARM: self.next_warm,
            Group.SAVED_WARM: self.saved_warm,
            Group.N_WARM: self.functions.warm.size,
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


def fill_table(table: np.ndarray, entries: dict[Any, Any]) -> np.ndarray:
    """Write numbers, and addresses of arrays, to their slots."""
    for slot, value in entries.items():
        table[slot] = value.ctypes.data if isinstance(value, np.ndarray) else value
    return table
