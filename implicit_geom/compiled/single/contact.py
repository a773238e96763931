"""One body that moves, in one contact with a fixed half-space: its equations with series for rotations."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca

from implicit_geom import rotation
from implicit_geom.compiled import structs
from implicit_geom.compiled.functions.body import body_functions
from implicit_geom.compiled.functions.pair import PairFunctions
from implicit_geom.compiled.functions.rotation_vector import SERIES
from implicit_geom.equations.contact_kinematics import cross
from implicit_geom.equations.contact_ncp import ContactEquations, contact_equations, impulse_and_couple
from implicit_geom.equations.pair_kernel import PairKernel
from implicit_geom.process.lazy import cached_property


class SingleContactPair(PairFunctions):
    """The functions of the pair, with rotations as series."""

    def __init__(self, kernel: PairKernel) -> None:
        super().__init__(kernel)
        self.rotations = SERIES

    def rotated(self, w: ca.SX, h: ca.SX, R: ca.SX) -> ca.SX:
        """exp(h w) R."""
        if self.dim == 2:
            return rotation.planar_symbolic(h * w) @ R
        return self.rotations.matrix(h * w) @ R

    def _seen(self, kernel: PairKernel) -> tuple[dict[str, ca.SX], list[ca.SX], ca.SX]:
        if kernel.kind.scheme == "velocity":
            return super()._seen(kernel)
        found = contact_equations(
            kernel.kind, False, lambda s: self.rotated(s.nu[1][self.dim :], s["h"], s.matrix("R2"))
        )
        old, new = found.symbols, kernel.symbols
        names, values = list(found.report), list(found.report.values())
        values = ca.substitute(values, [old.nu[1], old.u, old.parameters], [new.nu[1], new.u, new.parameters])
        nu = [ca.SX.zeros(new.nu[0].shape), new.nu[1]]
        return dict(zip(names, values, strict=True)), nu, new.u


class SingleContact:
    """The equations of a kind of pair of which `known_in_closed_form` holds.

    R, the orientation at the end of the step, is a symbol in them (`end_rotation`).
    """

    def __init__(self, kernel: PairKernel, rattle: bool) -> None:
        self.kernel, self.rattle = kernel, rattle
        self.scheme = "position" if rattle else "euler"
        self.kind = replace(kernel.kind, scheme=self.scheme)
        self.dim, self.spins = self.kind.first.dim, structs.spins(self.kind.first.dim)
        self.pair = SingleContactPair(kernel)
        self.impulses = self.kind.layout.size - self.kind.layout.geometry
        self.unknowns = self.spins + self.impulses

    @cached_property
    def body(self) -> dict[str, ca.Function]:
        """The functions of the body."""
        return body_functions(self.dim, SERIES).functions

    @cached_property
    def equations(self) -> ContactEquations:
        """Rows and report of the pair."""
        return contact_equations(self.kind, False, lambda _: self.end_rotation)

    @cached_property
    def end_rotation(self) -> ca.SX:
        return ca.SX.sym("R", self.dim, self.dim)

    def wrench(self, seen: dict[str, ca.SX]) -> tuple[ca.SX, ca.SX]:
        """W_n p_n + W_t p_t + W_o p_o + W_r p_r [C07, eq. 1]: impulse, and moment about the centre."""
        frame = seen["n"], seen["t"], seen["o"]
        force, couple = impulse_and_couple(self.kind, seen["p_n"], seen["p_f"], frame)
        return force, couple + cross(seen["r2"], force)
