"""The candidate pairs of one kind: their parameters, their start values and their compiled functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.body import BodyRows
from implicit_geom.mapped import Mapped
from implicit_geom.model import Model, Pair, State
from implicit_geom.pair import PairKernel, flat


@dataclass
class WarmStart:
    """What a pair remembers from the last step: its unknowns, tangent reference and scales."""

    unknowns: np.ndarray  # r over L, D, n, l, k, P_n, S, sigma
    direction: np.ndarray
    m_c: float
    h: float


class ContactGroup:
    """All candidate pairs of one kind."""

    def __init__(self, model: Model, kernel: PairKernel, pairs: list[Pair]) -> None:
        self.model = model
        self.kernel = kernel
        self.pairs = pairs
        self.n = len(pairs)
        self.first = np.array([p.first for p in pairs])
        self.second = np.array([p.second for p in pairs])
        self.parameters = np.zeros((self.n, kernel.symbols.parameters.numel()))
        self.rows = Mapped(kernel.exact[0], self.n)
        self.linear = Mapped(kernel.exact[1], self.n)
        self.report = Mapped(kernel.report, self.n)
        self._smooth: tuple[Mapped, Mapped] | None = None
        self._set_constants()

    @property
    def smooth(self) -> tuple[Mapped, Mapped]:
        """Rows and rows with Jacobian of the smoothed equations, made when a step first needs them."""
        if self._smooth is None:
            rows, linear = self.kernel.smooth
            self._smooth = Mapped(rows, self.n), Mapped(linear, self.n)
        return self._smooth

    def set(self, name: str, value: Any) -> None:
        self.parameters[:, self.kernel.symbols.at[name]] = value

    def get(self, name: str) -> np.ndarray:
        return self.parameters[:, self.kernel.symbols.at[name]]

    def _set_constants(self) -> None:
        """Parameters that no step changes: scales, friction, shapes."""
        m = self.model
        size = np.minimum(m.size[self.first], m.size[self.second])
        self.set("L", np.where(np.isfinite(size), size, 1.0)[:, None])
        self.set("mu", np.array([[p.law.mu] for p in self.pairs]))
        kept = self.kernel.kind.components
        if kept:
            self.set("e", np.array([[getattr(p.law, f"e_{c}") for c in kept] for p in self.pairs]))
        for i, body in ((1, self.first), (2, self.second)):
            self.set(f"com{i}", m.com[body])
            self.set(f"theta{i}", np.array([m.bodies[k].shape.values for k in body]))

    def prepare(self, state: State, h: float, bodies: BodyRows, starts: list[WarmStart]) -> np.ndarray:
        """Set the parameters of a step; returns the unknowns to start from, (n, unknowns).

        These are the last step's, with impulses rescaled to this step's length and effective mass.
        """
        self.set("h", h)
        self.weigh(1.0)
        self.set("U", np.maximum(bodies.speed[self.first], bodies.speed[self.second])[:, None])
        self.set("direction", np.array([w.direction for w in starts]))
        self.set("offset", state.x[self.second] - state.x[self.first])
        for i, body in ((1, self.first), (2, self.second)):
            self.set(f"R{i}", np.array([flat(state.R[k]) for k in body]))
            self.set(f"weight{i}", bodies.weights[body])
        unknowns = np.array([w.unknowns for w in starts])
        m_c = self._effective_mass(unknowns, bodies)
        self.set("m_c", m_c[:, None])
        at = self.kernel.layout.at
        factor = np.array([w.m_c * h / w.h for w in starts]) / m_c
        unknowns[:, at["P_n"].start : at["S"].stop] *= factor[:, None]
        return unknowns

    def weigh(self, factor: float) -> None:
        """Weigh multipliers against constraints by factor * L in the natural maps (see `surface_rows`)."""
        self.set("c", factor * self.get("L"))

    def _effective_mass(self, unknowns: np.ndarray, bodies: BodyRows) -> np.ndarray:
        """1 / largest eigenvalue of the contact's own block of W^T M^-1 W at the start of the step."""
        m, dim = self.model, self.model.dim
        r_own = unknowns[:, self.kernel.layout.at["r"]] * self.get("L")
        offset = self.get("offset")
        known = self.kernel.layout.known_normal
        r2 = r_own if known else r_own - offset
        r1 = r_own + offset if known else r_own
        block = np.zeros((self.n, dim, dim))
        for body, r in ((self.first, r1), (self.second, r2)):
            lever = _lever(r)
            block += (1 / m.mass[body])[:, None, None] * np.eye(dim)
            block += np.einsum("nki,nkl,nlj->nij", lever, bodies.J_inverse[body], lever)
        return np.asarray(1 / np.linalg.eigvalsh(block)[:, -1])


def _lever(r: np.ndarray) -> np.ndarray:
    """The matrices X with X f = r x f; (n, dim) -> (n, spins, dim)."""
    if r.shape[1] == 2:
        return np.stack([-r[:, 1], r[:, 0]], axis=1)[:, None, :]
    zero = np.zeros(len(r))
    x, y, z = r.T
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)
