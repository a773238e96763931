"""Solve, and leave local minima of |r|^2 / 2: other starts, D r = 0, proximal steps [T10, V-A].

T10 calls local minima very rare. With much friction they are not: where the Jacobians of an edge's two sides
have determinants of opposite sign a mixture of them, (26), is singular. What T10 proposes (another start; a
diagonal D) helps a part of such problems. The last resort here is a sequence of easier problems,

    (A + I/c) f(x) + v0 - f_last/c = v(x),     f_last = f(x) of the problem before,  c growing,

each solved by the same iteration, from the last x: a proximal-point method, at whose fixed point f = f_last.

Before, a start after many projected steps is tried, which need no factorisation.

Deviation: projected and proximal steps are not T10's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from implicit_geom.solvers.contact.t10.gauss_newton import SUCCESS, Outcome, minimise
from implicit_geom.solvers.contact.t10.maps import System
from implicit_geom.solvers.contact.t10.options import T10Options
from implicit_geom.solvers.contact.t10.starts import STARTS, from_impulses, row_sums, scaled, unit_diagonal

INNER = 8  # iterations of one proximal problem
QUICK, EASY = 2, 4  # after at most so many c grows
QUICK_GROW, GROW, SHRINK, SMALLEST = 4.0, 2.0, 0.1, 1e-6  # of c, where A has a unit diagonal
SHARPER = 0.1  # a proximal problem is solved to this part of the true residual


def solve(
    system: System,
    tolerance: float,
    options: T10Options,
    *,
    f: np.ndarray | None = None,
    v: np.ndarray | None = None,
    keep_path: bool = False,
) -> Outcome:
    """Solve to |r| <= tolerance from impulses f (n, d) and velocities v, or from the start of the options.

    Counts are those of all attempts together; f and v of the outcome are in the units of the system.
    """
    if not len(system.b):
        return Outcome(system.v0, SUCCESS, f=system.v0, v=system.v0)
    c = unit_diagonal(system) if options.scaled else np.ones((len(system.b), 1))
    own = scaled(system, c) if options.scaled else system
    size = np.broadcast_to(1 / c, system.v0.shape)
    plain = np.ones_like(system.v0)
    total = Outcome(system.v0)

    def attempt(x: np.ndarray, D: np.ndarray, limit: int) -> bool:
        """Minimise from x; whether that is a solution."""
        out = minimise(
            own, x, tolerance, options, weight=D, size=size,
            limit=min(limit, options.iterations - total.iterations),
            patience=options.patience if options.recovery else None, keep_path=keep_path,
        )  # fmt: skip
        _add(total, out)
        return out.status == SUCCESS

    x = STARTS[options.start](own) if f is None else from_impulses(own, f / c, None if v is None else c * v)
    attempts: list[Callable[[], bool]] = [
        lambda: attempt(x, plain, options.first if options.recovery else options.iterations)
    ]
    for way in options.recovery:
        if way == "restart":
            other = "free" if options.start == "stick" or f is not None else "stick"
            attempts.append(lambda other=other: attempt(STARTS[other](own), plain, options.first))  # type: ignore[misc]
        elif way == "sweep":
            attempts.append(lambda: attempt(STARTS["swept"](own), plain, options.first))
        elif way == "scale":
            attempts.append(lambda: attempt(STARTS[options.start](own), row_sums(own), options.first))
        else:
            attempts.append(lambda: _proximal(own, STARTS["zero"](own), tolerance, options, size, total))
    for each in attempts:
        if each() or total.iterations >= options.iterations:
            break
        total.restarts += 1
    total.f, total.v = c * own.f(total.x), own.v(total.x) / c
    return total


def _proximal(
    system: System, x: np.ndarray, tolerance: float, options: T10Options, size: np.ndarray, total: Outcome
) -> bool:
    """Proximal problems until |r| <= tolerance; whether that was reached."""
    c = 1.0
    f = system.f(x)
    plain, identity = np.ones_like(x), np.eye(len(system.A))
    while c > SMALLEST and total.iterations < options.iterations:
        near = System(system.A + identity / c, system.v0 - f / c, system.b, system.mu)
        rest = float(np.linalg.norm(size * system.r(x)))
        limit = min(INNER, options.iterations - total.iterations)
        out = minimise(
            near, x, max(0.3 * tolerance, SHARPER * rest), options, weight=plain, size=size, limit=limit
        )
        if out.status == SUCCESS:
            x, f = out.x, system.f(out.x)
            c *= QUICK_GROW if out.iterations <= QUICK else GROW if out.iterations <= EASY else 1.0
        else:
            c *= SHRINK
        out.x = x
        out.steps = out.steps or ["proximal"]
        now = float(np.linalg.norm(size * system.r(x)))
        out.history = [rest] * len(out.steps) + [now]
        out.status = SUCCESS if now <= tolerance else "proximal"
        _add(total, out)
        if now <= tolerance:
            return True
    return False


def _add(total: Outcome, out: Outcome) -> None:
    """Counts together; x and status of the better one."""
    total.factorisations += out.factorisations
    total.steps += out.steps
    if not total.history or out.history[-1] < min(total.history):
        total.x, total.status = out.x, out.status
    if total.history:  # entry k stays what k iterations have reached
        total.history[-1] = min(total.history[-1], out.history[0])
    total.history += out.history[1:] if total.history else out.history
    total.path += out.path
