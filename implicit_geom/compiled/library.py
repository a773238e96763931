"""Which functions are compiled together: those of a kind of pair, those of bodies, the march of a stepper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
from llvmlite import ir

from implicit_geom.compiled.functions.any_pair import any_pair_functions
from implicit_geom.compiled.functions.body import body_functions
from implicit_geom.compiled.functions.pair import PairFunctions
from implicit_geom.compiled.loops.substep import StaticSizes
from implicit_geom.compiled.march import emit_march
from implicit_geom.compiled.single.functions import SingleContactFunctions
from implicit_geom.compiled.sources import EMITTING
from implicit_geom.equations.pair_kernel import pair_kernel
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.machine.lowering import lower
from implicit_geom.machine.object_cache import LoadedCode, load


def pair_code(kind: PairKind, rattle: bool, lanes: int) -> LoadedCode:
    """The functions of a kind of pair, see `PairFunctions.functions`."""
    kind = replace(kind, scheme="euler")

    def make() -> tuple[ir.Module, dict[str, Any]]:
        return _lowered("pair", PairFunctions(pair_kernel(kind)).functions(rattle), lanes)

    return load(f"pair {kind.key!r} rattle={rattle} lanes={lanes}", make, EMITTING)


def body_code(dim: int, rattle: bool, lanes: int) -> LoadedCode:
    """The functions of a body, and those that all pairs share; only those that the stepper calls."""
    others = ("euler",) if rattle else ("position", "velocity", "drift", "energy")

    def make() -> tuple[ir.Module, dict[str, Any]]:
        functions = {**body_functions(dim).functions, **any_pair_functions(dim)}
        return _lowered("body", {n: f for n, f in functions.items() if not n.endswith(others)}, lanes)

    return load(f"body dim={dim} rattle={rattle} lanes={lanes}", make, EMITTING)


def march_code(
    dim: int, stepper: str, lanes: int, single: SingleContactFunctions | None = None
) -> LoadedCode:
    """The function `march` of a stepper: for any scene, or for one body in one contact of a kind.

    Its notes then say how many numbers are precomputed.
    """

    def make() -> tuple[ir.Module, dict[str, Any]]:
        notes = {} if single is None else {"precomputed": single.precomputed_sizes}
        return emit_march(StaticSizes(dim, lanes), stepper, single).ir, notes

    whose = "" if single is None else f" single {single.kind.key!r}"
    return load(f"march dim={dim} {stepper} lanes={lanes}{whose}", make, EMITTING)


def _lowered(name: str, functions: dict[str, ca.Function], lanes: int) -> tuple[ir.Module, dict[str, Any]]:
    """A module of functions; its notes hold the sparsity of each Jacobian."""
    module = ir.Module(name)
    notes = {}
    for label, function in functions.items():
        lower(module, label, function, lanes)
        if label.startswith("linear"):
            pattern = function.sparsity_out(1)
            notes[label] = {
                "inputs": function.nnz_in(0),
                "rows": function.nnz_out(0),
                "row": pattern.row(),
                "column": pattern.get_col(),
            }
    return module, notes
