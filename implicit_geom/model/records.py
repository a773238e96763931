"""Records of a step: its solves, each with states, velocities and closed contacts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from implicit_geom.model.model import State

# stage of a contact record; LAGGED: Euler, wrench at the start
EULER, POSITION, VELOCITY, LAGGED, IMPACT = range(5)
STAGES = {"euler": (EULER, VELOCITY, LAGGED), "rattle": (POSITION, VELOCITY), "impact": (IMPACT,)}  # by form
Failure = tuple[str, list[list[float]]]  # why there is no solution, and the residual histories


def takes_part(form: np.ndarray, stage: np.ndarray) -> np.ndarray:
    """Whether a solve of that form has the stage: the impulses of other contacts do nothing."""
    has = [(form == name) & np.isin(stage, stages) for name, stages in STAGES.items()]
    return np.asarray(np.any(has, axis=0))


@dataclass
class ContactRecord:
    """A closed contact of a solve, in the scene's order of bodies.

    point, normal, tangent and binormal are where and how the impulses act: at the end of the step, or at
    its start for stage 1 of RATTLE and where the stage is LAGGED; the gap is that at the end.
    """

    pair: int
    point: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    binormal: np.ndarray
    gap: float
    p_n: float
    p_f: np.ndarray  # p_t, p_o, p_r
    slip: np.ndarray  # v_t, v_o, v_r, as the friction law sees them
    stage: int = EULER
    impact: bool = False  # the bodies were apart at the start, or approaching
    bounce: float = 0.0  # restitution times normal velocity of impact, m/s, <= 0
    approach: float = 0.0  # IMPACT: normal velocity before it, m/s
    compression: np.ndarray | None = None  # IMPACT, poisson and energetic: c_n, c_t, c_o, c_r of p in it
    lagged: bool = False  # stage 1: friction opposes the slip at the start
    end_point: np.ndarray | None = None  # stage 1: closest point of the second body at the end
    slid: bool = False  # it slid at the start of the solve
    feature: int = 0  # which contact of its pair
    start_gap: float = 0.0  # at the start of the step; this and the next two are of classical steppers
    gap_point: np.ndarray | None = None  # where the law's gap was taken: at the start if it is linearised
    gap_normal: np.ndarray | None = None


@dataclass
class Solve:
    """One accepted solve: a whole step, a part of one, or an impact: of no length, at one pose."""

    start: State
    end: State
    h: float  # negative where a part of a composed step runs backwards
    half: np.ndarray  # (B, dim + spins) the velocities that moved the bodies
    form: str  # euler, rattle or impact
    contacts: list[ContactRecord]
    iterations: int
    status: str  # converged or continued
    residual: float
    overlap: float = 0.0  # deepest overlap at the start, m
    bodies: np.ndarray | None = None  # (B,) which bodies it moves, where not all
    ledger: Any = None  # `implicit_geom.model.ledger.LedgerEntry`, once it has been asked for


@dataclass
class Attempt:
    """The outcome of a step: its solves, or why there are none.

    form    euler, rattle or rattle-4: the scheme that took the step, the plainest one of its parts
    guard   none; composed, substeps or euler where the guard of `implicit-rattle` took it otherwise
    why     the first reason for which it was not taken in one
    divided a part was halved
    """

    solves: list[Solve] = field(default_factory=list)
    reason: str = ""
    history: list[list[float]] = field(default_factory=list)
    form: str = "euler"
    guard: str = "none"
    why: str = ""
    divided: bool = False
