"""Compiled code by name: loaded from disk (`disk`), or compiled and kept.

An object file is found by the hash of what it was made from: a name, the sources of the modules that emit
the code, the versions of CasADi and LLVM, and the processor.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from implicit_geom.machine import disk
from implicit_geom.machine.sources import Names, hash_of_sources
from implicit_geom.process.building import Kept
from implicit_geom.process.threads import BUILDING

LEVEL = 2  # of optimisation
MOST = 96  # codes that a process keeps: about 1.3 MB each
LOWERING = (  # what decides the code of a given CasADi function
    "implicit_geom.machine",
    "implicit_geom.process.building",
    "implicit_geom.process.threads",
)
Make = Callable[[], tuple[ir.Module, dict[str, Any]]]


class LoadedCode:
    """Loaded machine code: addresses of functions by name, and what was kept with them.

    (LLVM has a lock of its own: all calls of it are made while nobody may fork.)
    """

    def __init__(self, data: bytes, notes: dict[str, Any]) -> None:
        self.notes = notes
        self._addresses: dict[str, int] = {}
        with BUILDING:
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))
            self._engine.finalize_object()

    def __del__(self) -> None:
        if hasattr(self, "_engine"):
            with BUILDING:
                self._engine.close()

    def address(self, name: str) -> int:
        if name not in self._addresses:
            with BUILDING:
                self._addresses[name] = int(self._engine.get_function_address(name))
        if not self._addresses[name]:
            raise KeyError(f"compiled code has no function {name!r}")
        return self._addresses[name]

    def function(self, name: str, arguments: int) -> Callable[..., int]:
        """A callable of addresses, which keeps the code; Python's lock is released while it runs."""
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * arguments)
        found = kind(self.address(name))
        found.code = self  # type: ignore[attr-defined]
        return found


def load(name: str, make: Make, sources: Names = LOWERING) -> LoadedCode:
    """The code called `name`, from this process, from disk, or made and kept; from any thread.

    `sources`: the modules that decide what `make` emits.
    """
    return _LOADED.get(name, lambda: _load(name, make, sources))


_LOADED: Kept[LoadedCode] = Kept(MOST)


def _load(name: str, make: Make, sources: Names) -> LoadedCode:
    digest = _digest(name, sources)
    found = disk.read(digest)
    if found is not None:
        return LoadedCode(*found)
    module, notes = make()
    data = _compile(module)
    disk.write(digest, data, notes)
    return LoadedCode(data, notes)


def _compile(module: ir.Module) -> bytes:
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = _machine()
    options = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
    # (twice as quick to compile, and no slower to run)
    options.loop_unrolling = options.loop_interleaving = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    return bytes(machine.emit_object(parsed))


@cache
def _processor() -> tuple[str, str]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine() -> llvm.TargetMachine:
    cpu, features = _processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=LEVEL, jit=True)


@cache
def _made_from(sources: Names) -> str:
    """All that decides the code beside its name: sources, versions, processor."""
    versions = (ca.__version__, llvmlite.__version__, llvm.llvm_version_info, _processor(), LEVEL)
    return f"{hash_of_sources(sources)}\n{versions!r}"


def _digest(name: str, sources: Names) -> str:
    return hashlib.sha256(f"{name}\n{_made_from(sources)}".encode()).hexdigest()
