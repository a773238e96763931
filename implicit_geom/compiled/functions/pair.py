"""The functions of one pair in a compiled step, as SX.

They do what `model.contact_group`, `contact.rattle_ncp` and the steppers do with NumPy around a solve: set
the parameters of a contact's equations at its start, and read its contact off the solution at its end.
"""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np

from implicit_geom.compiled.functions.pair_end import PairEnd
from implicit_geom.equations.thresholds import IMPULSE_SHIFT, POINT_SHIFT


class PairFunctions(PairEnd):
    """The SX functions of a kind of pair, by scheme.

    prepare_S(bodies, constants, warm, h) -> parameters, unknowns, tolerances, start
                                                  (S = euler, position; for velocity: end instead of warm)
    rows_S(unknowns, parameters) -> rows
    linear_S(unknowns, parameters) -> rows, Jacobian
    finish_S(...) -> see each
    """

    def functions(self, rattle: bool) -> dict[str, ca.Function]:
        """Those that a stepper needs, by name."""
        found = {}
        for scheme in ("position", "velocity") if rattle else ("euler",):
            found[f"prepare_{scheme}"] = (
                self.prepare_velocity() if scheme == "velocity" else self.prepare(scheme)
            )
            found[f"rows_{scheme}"], found[f"linear_{scheme}"] = self.kernel.scheme(scheme).exact
            found[f"finish_{scheme}"] = (
                self.finish_velocity() if scheme == "velocity" else self.finish(scheme)
            )
        return found

    def shift(self, scheme: str) -> np.ndarray:
        """The diagonal added to the Newton matrix, see `contact.step_ncp`."""
        layout = replace(self.kind, scheme=scheme).layout
        shift = np.zeros(layout.size)
        shift[layout.at["r"]] = POINT_SHIFT
        if scheme == "velocity":
            shift[layout.at["l"].start : layout.at["k"].stop] = POINT_SHIFT
        shift[layout.at["P_n"].start :] = IMPULSE_SHIFT
        return shift
