"""The inner problem of `pssn`: R(v) = M (v - v_free) - H P(v) = 0 with P about the impulses pb.

Newton's method with halved steps, until |M^-1 R| is a tenth of what the proximal point moves by, or of the
tolerance. `Compiled` does it in one call of machine code, for systems by body; `Stepwise` for all others.

P(v) amplifies the rounding of v by rho. For large rho v and P are therefore corrected at the end as
independent unknowns, with the last factors: dv = -K^-1 R, dP = -D H^T dv.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from implicit_geom.solvers.contact.pssn.limits import HALVINGS, PATIENCE, REFINED, STEPS
from implicit_geom.solvers.contact.systems.system import BlockSystem, System


class Inner(NamedTuple):
    """Where the inner problem's Newton method has come to."""

    P: np.ndarray
    steps: int
    solved: bool


class Newton(Protocol):
    """Solves inner problems from velocities v, proximal impulses pb, weights rho = c m."""

    def __call__(
        self, v: np.ndarray, pb: np.ndarray, rho: np.ndarray, tolerance: float, c: float
    ) -> Inner: ...


def newton_of(system: System) -> Newton:
    """The way that suits a system."""
    return Compiled(system) if isinstance(system, BlockSystem) else Stepwise(system)


class Compiled:
    """In machine code."""

    def __init__(self, system: BlockSystem) -> None:
        from implicit_geom.solvers.contact.pssn.newton_code import ARRAYS

        self.system = s = system
        n, rows = s.blocks.length, len(s.w)
        work: dict[str, np.ndarray] = {name: np.zeros(n) for name in ("v", "R", "X", "change")}
        work |= {name: np.zeros(rows) for name in ("pb", "P", "rho")}
        work |= {"old": np.zeros(2 * n), "D": np.zeros(rows * s.problem.dim), "square": np.zeros(1)}
        p = s.pattern
        work |= {"rows": s.rows, "H": s.H, "w": s.w, "mu": s.mu, "mass": s.mass, "inverse": s.inverse}
        work |= {"free": s.free, "places": s.places, "order": p.order, "first": p.first, "ties": p.ties}
        work |= {"upper": p.upper, "lower": p.lower, "corner": p.corner, "targets": p.targets}
        work |= {"blocks": s.values, "room": s.room}
        self.work, self.numbers = work, np.zeros(2)
        self.addresses = np.array([work[name].ctypes.data for name in ARRAYS], np.int64)
        counts = (s.problem.contacts, s.blocks.count, p.blocks)
        self._given = (*counts, self.addresses.ctypes.data, self.numbers.ctypes.data)
        self._call = compiled_newton(s.blocks.size, s.problem.dim)

    def __call__(self, v: np.ndarray, pb: np.ndarray, rho: np.ndarray, tolerance: float, c: float) -> Inner:
        work, numbers = self.work, self.numbers
        work["v"][:], work["pb"][:], work["rho"][:] = v, pb, rho
        numbers[:] = tolerance, c
        self._call(*self._given)
        steps, solved = int(numbers[0]), bool(numbers[1])
        self.system.factorisations += steps
        return Inner(work["P"].copy(), steps, solved)


@cache
def compiled_newton(size: int, d: int) -> Callable[..., int]:
    """The machine code for bodies of `size` rows and contacts of d rows."""
    from implicit_geom.machine.object_cache import load
    from implicit_geom.solvers.contact.pssn.newton_code import module
    from implicit_geom.solvers.contact.sources import EMITTING

    return load(f"contact newton {size} {d}", lambda: (module(size, d), {}), EMITTING).function("inner", 5)


class Stepwise:
    """Step by step, with any system."""

    def __init__(self, system: System) -> None:
        self.system = system

    def __call__(self, v: np.ndarray, pb: np.ndarray, rho: np.ndarray, tolerance: float, c: float) -> Inner:
        system = self.system
        P, D = system.terms(v, pb, rho)
        R, X, square = system.momentum(v, P)
        least, since = square, 0
        for steps in range(STEPS + 1):
            moved = float(np.max(np.abs(P - pb) / rho, initial=0.0))
            if np.max(np.abs(X), initial=0.0) < max(0.1 * tolerance, min(0.1 * moved, 1e-3)):
                if steps and c > REFINED:
                    P = self._refined(v, P, D, R)
                return Inner(P, steps, True)
            if steps == STEPS or since > PATIENCE or not np.isfinite(square):
                break
            system.factor(D)
            dv = system.solve(R)
            t = 1.0
            for _ in range(HALVINGS + 1):
                tried = v - t * dv
                P1, D1 = system.terms(tried, pb, rho)
                R1, X1, square1 = system.momentum(tried, P1)
                if square1 < square:
                    break
                t *= 0.5
            v, P, D, R, X, square = tried, P1, D1, R1, X1, square1
            since += 1
            if square < 0.25 * least:
                least, since = square, 0
        return Inner(P, steps, False)

    def _refined(self, v: np.ndarray, P: np.ndarray, D: np.ndarray, R: np.ndarray) -> np.ndarray:
        system = self.system
        for _ in range(2):
            dv = -system.solve(R)
            v = v + dv
            du = np.einsum("kri,kr->ki", system.H, dv[system.rows])
            P = P - np.einsum("kij,kj->ki", D, du).ravel()
            R, _, _ = system.momentum(v, P)
        return P
