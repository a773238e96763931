"""What a minimisation of psi = |phi|^2 / 2 comes to, and what it minimises [MJ14, eqs. 25, 33]."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

EPSILON = 1e-30  # psi below which MJ14 stops
STATIONARY = 1e-13  # decrease that a model of psi predicts, over psi: below it there is nothing to gain


class Equations(Protocol):
    """A system phi(x) = 0."""

    def phi(self, x: np.ndarray) -> np.ndarray: ...

    def jacobian(self, x: np.ndarray) -> np.ndarray: ...


@dataclass
class Minimum:
    """Where a method ended, and why.

    status           solved (psi < epsilon), rounding (no decrease is left, all |phi| within the tolerance),
                     local minimum (no decrease is left otherwise), limit (of iterations)
    residual         the largest |phi|
    factorisations   of matrices of the size of x
    history          the largest |phi| by iteration
    """

    x: np.ndarray
    psi: float
    residual: float
    status: str
    iterations: int
    factorisations: int
    history: list[float] = field(default_factory=list)


def merit(phi: np.ndarray) -> float:
    """psi; inf where it is not a number."""
    psi = 0.5 * float(phi @ phi)
    return psi if np.isfinite(psi) else np.inf


def largest(phi: np.ndarray) -> float:
    """The largest |phi|."""
    return float(np.max(np.abs(phi), initial=0.0))


def stalled(phi: np.ndarray, tolerance: float) -> str:
    """The status of a method that gets no further."""
    return "rounding" if largest(phi) <= tolerance else "local minimum"
