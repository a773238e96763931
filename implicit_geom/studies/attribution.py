"""Which of the four approximations an error comes from: Shapley values over the sixteen combinations."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial

import numpy as np

from implicit_geom.interface.errors import SceneError, SimulationError
from implicit_geom.studies.compared_runs import LETTERS, ComparedRuns, label

QUANTITIES = ("energy", "position")


@dataclass(frozen=True)
class Attribution:
    """The error of the fully approximate stepper, part by part: total = step + sum of `switches`.

    quantity   "energy" or "position"
    switches   what each switch adds, its Shapley value; negative where it takes errors of others away. What
               two switches do only together is shared between them
    saved      how much smaller the error is with this switch alone made exact
    step       what remains with all four exact: the error of the step size
    total      the error with all four approximate
    until      s; errors are the largest up to then: relative to the energy at hand, or in m

    >>> parts = attribution(compare(scene, duration=0.1, step=0.01, steppers="all"))["energy"]
    >>> bool(abs(sum(parts.switches.values()) + parts.step - parts.total) < 1e-12)
    True
    """

    quantity: str
    switches: dict[str, float]
    saved: dict[str, float]
    step: float
    total: float
    until: float

    @property
    def shares(self) -> dict[str, float]:
        """Each part over the total; they sum to one."""
        parts = {**self.switches, "step": self.step}
        return {name: value / self.total if self.total else np.nan for name, value in parts.items()}

    def __repr__(self) -> str:
        parts = ", ".join(f"{n} {v:.3g}" for n, v in {**self.switches, "step": self.step}.items())
        return f"<Attribution of the {self.quantity} error {self.total:.3g}: {parts}>"

    def __str__(self) -> str:
        unit = " m" if self.quantity == "position" else ""
        parts = {**self.switches, "step": self.step}
        told = ", ".join(f"{n} {v:.3g} ({self.shares[n]:.1%})" for n, v in parts.items())
        best = max(self.saved, key=lambda name: self.saved[name])
        left = f"; with an exact {best} alone {self.total - self.saved[best]:.3g}{unit}"
        return f"{self.quantity} error {self.total:.3g}{unit} up to t = {self.until:g} s: {told}{left}"


def shapley(worth: Mapping[frozenset[str], float]) -> dict[str, float]:
    """phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S + i) - v(S)), exact.

    `worth` is v for every subset of the names, the empty one included. The phi_i sum to v(all) - v(none);
    a name that never changes v has phi = 0; names that v does not tell apart have the same phi.
    """
    names = sorted(frozenset().union(*worth))
    n = len(names)
    subsets = [frozenset(s) for size in range(n + 1) for s in itertools.combinations(names, size)]
    missing = [s for s in subsets if s not in worth]
    if missing or len(worth) != len(subsets):
        raise SceneError(f"worth: must hold the {len(subsets)} subsets of {names} and nothing else")
    phi = dict.fromkeys(names, 0.0)
    for name, S in itertools.product(names, subsets):
        if name not in S:
            weight = factorial(len(S)) * factorial(n - len(S) - 1) / factorial(n)
            phi[name] += weight * (worth[S | {name}] - worth[S])
    return phi


def attribution(comparison: ComparedRuns) -> dict[str, Attribution]:
    """The energy and the position error of a comparison of all sixteen, part by part.

    comparison   of `compare(..., steppers="all")`

    {"energy": Attribution, "position": Attribution}. Where a run failed, all are measured up to its last good
    step, so that the errors can be compared. SceneError where one of the sixteen is missing, SimulationError
    where one took no step.

    >>> parts = attribution(compare(scene, duration=0.1, step=0.01, steppers="all"))
    >>> sorted(parts), list(parts["energy"].switches)
    (['energy', 'position'], ['surface', 'gap', 'wrench', 'friction'])
    """
    subsets = [frozenset(s) for size in range(5) for s in itertools.combinations(LETTERS, size)]
    if {label(s) for s in subsets} - set(comparison.found):
        raise SceneError('comparison: attribution needs all sixteen; take compare(..., steppers="all")')
    found = {s: comparison.found[label(s)] for s in subsets}
    refused = [f.label for f in found.values() if f.errors is None]
    until = min(float(f.errors.time[-1]) for f in found.values() if f.errors is not None)
    if refused or until <= comparison.reference.run.time[0]:
        raise SimulationError("attribution: a stepper of the sixteen did not take a single step")
    out = {}
    for quantity in QUANTITIES:
        worth = {
            s: float(np.max(getattr(f.errors.until(until), quantity)))
            for s, f in found.items()
            if f.errors is not None
        }
        phi = shapley(worth)
        nothing, everything = worth[frozenset()], worth[frozenset(LETTERS)]
        saved = {n: everything - worth[frozenset(LETTERS) - {n}] for n in LETTERS}
        parts = {n: phi[n] for n in LETTERS}
        out[quantity] = Attribution(quantity, parts, saved, nothing, everything, until)
    return out
