"""A semi-smooth Newton method for square systems F(z, eps) = 0. Knows no physics.

    full steps on one element of the generalised Jacobian, while they get somewhere;
    then damped (Levenberg-Marquardt) steps on |F|^2;
    where both stall, the caller may restart elsewhere or follow the smoothing path eps -> 0.

The Jacobian may be singular where a solution is not unique (a box on a plane, sticking contacts in
a pile): `system.shift`, a small diagonal, is added to the Newton matrix and never to the residual,
so that each step is a proximal one and the limit solves the unchanged equations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np


class NewtonMatrix(Protocol):
    """A Newton matrix that is not a dense array."""

    @property
    def size(self) -> int: ...

    def step(self, F: np.ndarray, shift: np.ndarray) -> np.ndarray | None:
        """The solution of (J + diag(shift)) dz = -F."""
        ...

    def shifted(self, diagonal: np.ndarray) -> NewtonMatrix: ...

    def dense(self) -> np.ndarray: ...


Jacobian = np.ndarray | NewtonMatrix
DENSE = 1000  # unknowns up to which damped steps, which need a dense matrix, are tried


class System(Protocol):
    """What the core needs to know of a system of equations."""

    shift: np.ndarray  # diagonal added to the Newton matrix
    proximal: np.ndarray  # diagonal that regularises the smoothing path
    tolerance: np.ndarray  # |F_i| <= tolerance_i ends the iteration

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray: ...

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, Jacobian]: ...

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        """The part of a step that may be taken at once."""
        ...

    def certified(self, z: np.ndarray) -> bool:
        """Whether a root of F is a solution that is wanted."""
        ...


@dataclass(frozen=True)
class NewtonOptions:
    """Limits of the iteration."""

    full_steps: int = 12  # undamped steps before damping starts
    damped_steps: int = 20
    polish: float = 1e-4  # a solution is corrected once more while its rows exceed this part of the tolerance
    growth: float = 1e3  # full steps end where |F| exceeds this multiple of its start
    path_starts: tuple[float, ...] = (1.0, 1e-2)  # first eps of the path; the next is tried if one fails
    path_factor: float = 0.3  # first ratio of successive eps, and its limits
    path_quickest: float = 0.1
    path_slowest: float = 0.95
    path_end: float = 1e-9
    path_damped_steps: int = 8
    path_tolerance: float = 1e-6  # on the rows, along the path


@dataclass
class NewtonResult:
    """Where the iteration ended: `converged` means every row is below its tolerance."""

    z: np.ndarray
    converged: bool
    iterations: int
    history: list[float] = field(default_factory=list)  # |F| over tolerance, largest row


def solve_by_newton(
    system: System, z0: np.ndarray, options: NewtonOptions, *, eps: float = 0.0, damped: bool = True
) -> NewtonResult:
    """Full Newton steps from z0, then damped ones from the best point met."""
    z = z0.copy()
    F, J = system.linearise(z, eps)
    best, best_norm = z, _norm(F)
    history = [_measure(system, F)]
    start_norm = max(best_norm, 1e-300)
    for iteration in range(options.full_steps + 1):
        if history[-1] <= 1:
            return _polish(system, z, F, J, eps, options, NewtonResult(z, True, iteration, history))
        if iteration == options.full_steps:
            break
        dz = newton_step(J, F, system.shift)
        if dz is None:
            break
        z = z + system.restrict(dz)
        F, J = system.linearise(z, eps)
        norm = _norm(F)
        history.append(_measure(system, F))
        if norm < best_norm:
            best, best_norm = z, norm
        if not norm < options.growth * start_norm:
            break
    if not damped or (not isinstance(J, np.ndarray) and J.size > DENSE):
        return NewtonResult(best, False, len(history) - 1, history)
    return levenberg_marquardt(system, best, options, eps=eps, history=history)


def _polish(
    system: System,
    z: np.ndarray,
    F: np.ndarray,
    J: Jacobian,
    eps: float,
    options: NewtonOptions,
    found: NewtonResult,
) -> NewtonResult:
    """One more Newton step for a solution that is only just one.

    What is left of a gap after one step is an inconsistency in the next, where sticking contacts
    allow no motion to remove it: the last digits are worth their price.
    """
    if found.history[-1] <= options.polish:
        return found
    dz = newton_step(J, F, system.shift)
    if dz is None:
        return found
    better = z + system.restrict(dz)
    measure = _measure(system, system.residual(better, eps))
    if not measure < found.history[-1]:
        return found
    return NewtonResult(better, True, found.iterations + 1, [*found.history, measure])


def levenberg_marquardt(
    system: System, z0: np.ndarray, options: NewtonOptions, *, eps: float, history: list[float]
) -> NewtonResult:
    """Minimise |F|^2 by trust-region steps: (J'J + damping D'D) dz = -J'F, D the column norms of J."""
    from scipy.linalg import lapack  # (here, because it doubles the time to import the package)

    z = z0
    F, J = _dense(system.linearise(z, eps))
    norm = _norm(F)
    scale = np.maximum(np.linalg.norm(J, axis=0), 1e-12)
    damping = min(1e-3, norm)
    for _ in range(options.damped_steps):
        history.append(_measure(system, F))
        if history[-1] <= 1:
            found = NewtonResult(z, True, len(history) - 1, history)
            return _polish(system, z, F, J, eps, options, found)
        scale = np.maximum(scale, np.linalg.norm(J, axis=0))
        stacked = np.vstack([J, np.sqrt(damping) * np.diag(scale)])
        if not np.all(np.isfinite(stacked)):
            break
        right = np.concatenate([-F, np.zeros(F.size)])
        # damping makes the columns independent, so that an unpivoted QR factorisation will do
        _, solution, info = lapack.dgels(stacked, right, overwrite_a=1, overwrite_b=1)
        if info != 0 or not np.all(np.isfinite(solution)):
            break
        dz = system.restrict(solution[: F.size])
        trial = system.residual(z + dz, eps)
        trial_norm = _norm(trial)
        predicted = norm**2 - _norm(F + J @ dz) ** 2
        ratio = (norm**2 - trial_norm**2) / predicted if predicted > 0 else -1.0
        if ratio > 1e-4:
            z = z + dz
            F, J = _dense(system.linearise(z, eps))
            norm = _norm(F)
        if ratio > 0.75:
            damping = max(damping / 10, 1e-15)
        elif ratio < 0.25:
            damping = min(damping * 4, 1e8)
            if damping >= 1e8:
                break
    return NewtonResult(z, history[-1] <= 1, len(history), history)


def follow_path(system: System, z0: np.ndarray, options: NewtonOptions) -> NewtonResult:
    """Solve F(z, eps) + eps B (z - z_last) = 0 for falling eps, each from the last solution z_last.

    Ends as soon as Newton's method works on F(z, 0) = 0 from there. The second term, with
    B = diag(system.proximal), keeps the equations regular where solutions are not unique. The fall
    is quick while it goes well; where a step fails, a shorter one is tried from the last solution.
    """
    coarse = replace(options, polish=1.0, damped_steps=options.path_damped_steps)
    iterations, history = 0, []  # (the history is that of F(z, 0): the path has tolerances of its own)
    last = NewtonResult(z0, False, 0)
    for first in options.path_starts:
        z, reached, factor, eps = z0, 0.0, options.path_factor, first
        while eps > options.path_end and factor < options.path_slowest:
            part = solve_by_newton(_OnPath(system, z, eps, options.path_tolerance), z, coarse, eps=eps)
            iterations += part.iterations
            if part.converged:
                z, reached = part.z, eps
                last = solve_by_newton(system, z, options, damped=False)
                iterations += last.iterations
                history += last.history
                if last.converged and system.certified(last.z):
                    return NewtonResult(last.z, True, iterations, history)
                factor = max(factor**1.5, options.path_quickest)
            elif reached == 0.0:
                break
            else:
                factor = factor**0.5
            eps = reached * factor
        last = solve_by_newton(system, z, options)
        iterations += last.iterations
        history += last.history
        if last.converged and system.certified(last.z):
            return NewtonResult(last.z, True, iterations, history)
    return NewtonResult(last.z, False, iterations, history)


class _OnPath:
    """The equations of a point on the path, which need no more than a few digits."""

    def __init__(self, system: System, reference: np.ndarray, eps: float, tolerance: float) -> None:
        self.system, self.reference = system, reference
        self.pull = eps * system.proximal
        self.proximal = system.proximal
        self.shift = system.shift
        self.tolerance = np.maximum(system.tolerance, tolerance)
        self.restrict = system.restrict
        self.certified = system.certified

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        return self.system.residual(z, eps) + self.pull * (z - self.reference)

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, Jacobian]:
        F, J = self.system.linearise(z, eps)
        F = F + self.pull * (z - self.reference)
        if not isinstance(J, np.ndarray):
            return F, J.shifted(self.pull)
        J = J.copy()
        J.flat[:: J.shape[0] + 1] += self.pull
        return F, J


def _dense(linear: tuple[np.ndarray, Jacobian]) -> tuple[np.ndarray, np.ndarray]:
    F, J = linear
    return F, J if isinstance(J, np.ndarray) else J.dense()


def newton_step(J: Jacobian, F: np.ndarray, shift: np.ndarray) -> np.ndarray | None:
    """-(J + diag(shift))^-1 F; None where the matrix is singular."""
    if not isinstance(J, np.ndarray):
        return J.step(F, shift)
    matrix = J.copy()
    matrix.flat[:: matrix.shape[0] + 1] += shift
    try:
        dz = np.linalg.solve(matrix, -F)
    except np.linalg.LinAlgError:
        return None
    return dz if np.all(np.isfinite(dz)) else None


def _norm(F: np.ndarray) -> float:
    largest = float(np.max(np.abs(F), initial=0.0))
    return float(np.sqrt(F @ F)) if largest < 1e150 else np.inf


def _measure(system: System, F: np.ndarray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.max(np.abs(F) / system.tolerance, initial=0.0))
    return value if np.isfinite(value) else float("inf")
