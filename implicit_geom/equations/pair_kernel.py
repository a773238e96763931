"""The NCP of a kind of pair as CasADi functions: rows, rows with Jacobian, what is reported of a solution."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from implicit_geom.equations.constraints import is_halfspace, sign_mask
from implicit_geom.equations.contact_ncp import ContactEquations, contact_equations
from implicit_geom.equations.contact_patch import curvature_form
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.process.building import Kept
from implicit_geom.process.lazy import cached_property
from implicit_geom.process.threads import BUILDING

KINDS = 48  # of pairs whose functions are kept: up to 2 MB each


class PairKernel:
    """The compiled functions of one kind of pair in one scheme.

    exact, smooth   (rows, rows with Jacobian) as functions of (unknowns, parameters); unknowns are
                    the velocities of the moving bodies, then the contact's own
    report          what `seen` names, of a solution
    """

    def __init__(self, kind: PairKind) -> None:
        self.kind = kind
        self._schemes: dict[str, PairKernel] = {kind.scheme: self}  # shared by all of them
        self._sparsity: dict[bool, ca.Sparsity] = {}
        self.layout = kind.layout
        none = np.zeros(0)
        half = is_halfspace(kind.first)
        self.signs = (none if half else sign_mask(kind.first), sign_mask(kind.second))
        found = contact_equations(kind, smooth=False)
        self.symbols = found.symbols
        self.unknowns = _unknowns(kind, found)
        self.exact = self._functions(found.rows, "exact")
        self.seen: dict[str, slice] = {}  # where each reported quantity sits
        start = 0
        for name, value in found.report.items():
            self.seen[name] = slice(start, start + value.numel())
            start += value.numel()
        everything = ca.densify(ca.vertcat(*found.report.values()))
        self.report = ca.Function("report", [self.unknowns, self.symbols.parameters], [everything])

    def scheme(self, name: str) -> PairKernel:
        """The same kind of pair in another scheme."""
        if name not in self._schemes:
            with BUILDING:
                if name not in self._schemes:
                    other = PairKernel(replace(self.kind, scheme=name))
                    other._schemes = self._schemes
                    self._schemes[name] = other
        return self._schemes[name]

    def sparsity(self, smooth: bool) -> ca.Sparsity:
        """The pattern of the rows' Jacobian, the same object every time."""
        if smooth not in self._sparsity:
            self._sparsity[smooth] = (self.smooth if smooth else self.exact)[1].sparsity_out(1)
        return self._sparsity[smooth]

    @cached_property
    def smooth(self) -> tuple[ca.Function, ca.Function]:
        """The smoothed functions, built only when a step needs the path."""
        with BUILDING:
            found = contact_equations(self.kind, smooth=True)
            own = ca.Function("own", [_unknowns(self.kind, found), found.symbols.parameters], [found.rows])
            return self._functions(own(self.unknowns, self.symbols.parameters), "smooth")

    @cached_property
    def curvature(self) -> ca.Function:
        """`contact_patch.curvature_form` of the pair, for kinds that may touch along lines or faces."""
        with BUILDING:
            return curvature_form(self.kind)

    def _functions(self, rows: ca.SX, name: str) -> tuple[ca.Function, ca.Function]:
        inputs = [self.unknowns, self.symbols.parameters]
        jacobian = ca.jacobian(rows, self.unknowns)
        return (
            ca.Function(f"{name}_rows", inputs, [ca.densify(rows)]),
            ca.Function(f"{name}_linear", inputs, [ca.densify(rows), jacobian]),
        )


def _unknowns(kind: PairKind, found: ContactEquations) -> ca.SX:
    nu = [nu for nu, move in zip(found.symbols.nu, kind.moves, strict=True) if move]
    return ca.vertcat(*nu, found.symbols.u)


_KERNELS: Kept[PairKernel] = Kept(KINDS)


def pair_kernel(kind: PairKind) -> PairKernel:
    """The kernel of a kind of pair, built on first use and kept."""
    first = replace(kind, scheme="euler")
    return _KERNELS.get(first.key, lambda: PairKernel(first)).scheme(kind.scheme)
