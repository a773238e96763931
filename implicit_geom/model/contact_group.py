"""Candidate pairs of one kind as arrays: parameters of their NCP, initial guesses, effective masses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.equations.contact_patch import patch_projector
from implicit_geom.equations.pair_kernel import PairKernel
from implicit_geom.equations.tangent import references
from implicit_geom.equations.unknowns import flat
from implicit_geom.machine.vectorized import VectorizedFunction
from implicit_geom.model.model import Model, State
from implicit_geom.model.momentum_rows import MomentumRows
from implicit_geom.model.pairs import PairTemplate


@dataclass
class WarmStart:
    """What a pair remembers from the last step: its unknowns, tangent reference and scales.

    The geometry is that at the end of the last step, and so at the start of the next.
    """

    unknowns: np.ndarray  # r over L, D, n, l, k, P_n, S, sigma
    direction: np.ndarray
    m_c: float
    h: float


@dataclass
class ContactPoints:
    """Where the pairs of a group are closest, (n, dim) each: from the centres of mass, world axes, m."""

    r1: np.ndarray
    r2: np.ndarray
    n: np.ndarray
    gap: np.ndarray  # (n,)


class ContactGroup:
    """All candidate pairs of one kind."""

    def __init__(
        self, model: Model, kernel: PairKernel, numbers: np.ndarray, templates: list[PairTemplate]
    ) -> None:
        self.model = model
        self.kernel = kernel
        self.numbers = numbers
        self.templates = templates  # of each pair
        self.n = len(numbers)
        self.swapped = np.array([template.swapped for template in templates], bool)
        # directions of friction that the scene gives, zero where it gives none
        self.given = np.array([template.law.direction is not None for template in templates], bool)
        self.given_direction = np.array(
            [template.law.direction or (0.0,) * model.dim for template in templates]
        )
        self.first, self.second = model.pairs.sides(numbers)  # bodies
        self.pieces = model.pairs.pieces(numbers)
        self.parameters = np.zeros((self.n, kernel.symbols.parameters.numel()))
        self.rows = VectorizedFunction(kernel.exact[0], self.n)
        self.linear = VectorizedFunction(kernel.exact[1], self.n)
        self.report = VectorizedFunction(kernel.report, self.n)
        self._smooth: tuple[VectorizedFunction, VectorizedFunction] | None = None
        self._curvature: VectorizedFunction | None = None
        self._set_constants()

    @property
    def smooth(self) -> tuple[VectorizedFunction, VectorizedFunction]:
        """Rows and rows with Jacobian of the smoothed equations, made when a step first needs them."""
        if self._smooth is None:
            rows, linear = self.kernel.smooth
            self._smooth = VectorizedFunction(rows, self.n), VectorizedFunction(linear, self.n)
        return self._smooth

    def set(self, name: str, value: Any) -> None:
        self.parameters[:, self.kernel.symbols.at[name]] = value

    def get(self, name: str) -> np.ndarray:
        return self.parameters[:, self.kernel.symbols.at[name]]

    def directions(self, n: np.ndarray, last: np.ndarray) -> np.ndarray:
        """The tangents' references: given, or world axes well away from the normals, kept while they are."""
        return np.where(self.given[:, None], self.given_direction, references(n, last))

    def _set_constants(self) -> None:
        """Parameters that no step changes: scales, friction, shapes."""
        m = self.model
        size = np.minimum(*(m.pieces.size[piece] for piece in self.pieces))
        self.set("L", np.where(np.isfinite(size), size, 1.0)[:, None])
        laws = [template.law for template in self.templates]
        self.set("mu", np.array([[law.mu] for law in laws]))
        kept = self.kernel.kind.components
        if kept:
            self.set("e", np.array([[getattr(law, f"e_{c}") for c in kept] for law in laws]))
        for i, piece in enumerate(self.pieces, start=1):
            self.set(f"com{i}", m.com[m.pieces.owner[piece]])
            self.set(f"theta{i}", np.array([m.pieces.shapes[k].values for k in piece.tolist()]))

    def prepare(self, state: State, h: float, bodies: MomentumRows, starts: list[WarmStart]) -> np.ndarray:
        """Set the parameters of a step; returns the unknowns to start from, (n, unknowns).

        These are the last step's, with impulses rescaled to this step's length and effective mass.
        """
        self._place(state, h, bodies)
        self.set("direction", np.array([w.direction for w in starts]))
        at = self.kernel.layout.at
        unknowns = np.array([w.unknowns for w in starts])
        unknowns[:, at["D"]] *= np.array([[abs(w.h / h)] for w in starts])
        points = self.closest(unknowns, h)
        m_c = self._effective_mass(points.r1, points.r2, bodies, h)
        self.set("m_c", m_c[:, None])
        factor = np.array([w.m_c * h / w.h for w in starts]) / m_c
        unknowns[:, at["P_n"].start : at["S"].stop] *= factor[:, None]
        return unknowns

    def _place(self, state: State, h: float, bodies: MomentumRows) -> None:
        """Poses, scales and weights."""
        self.set("h", h)
        self.weigh_multipliers(1.0)
        self.set("U", np.maximum(bodies.speed[self.first], bodies.speed[self.second])[:, None])
        self.set("offset", state.x[self.second] - state.x[self.first])
        for i, body in ((1, self.first), (2, self.second)):
            self.set(f"R{i}", flat(state.R[body]))
            self.set(f"weight{i}", bodies.weights[body])

    def closest(self, unknowns: np.ndarray, h: float) -> ContactPoints:
        """The closest points at the start of the step, from unknowns that hold the geometry there."""
        at, dim = self.kernel.layout.at, self.model.dim
        r, offset = unknowns[:, at["r"]] * self.get("L"), self.get("offset")
        if self.kernel.layout.known_normal:
            normal = self.get("theta1")[:, :dim]
            n = np.einsum("nji,nj->ni", self.get("R1").reshape(-1, dim, dim), normal)  # column-major R
            height = np.einsum("ni,ni->n", normal, self.get("com1")) - self.get("theta1")[:, dim]
            gap = np.einsum("ni,ni->n", n, offset + r) + height
            return ContactPoints(offset + r - gap[:, None] * n, r, n, gap)
        n, gap = unknowns[:, at["n"]], abs(h) * unknowns[:, at["D"]][:, 0]
        return ContactPoints(r, r + gap[:, None] * n - offset, n, gap)

    def prepare_velocity(
        self, state: State, h: float, bodies: MomentumRows, points: ContactPoints, multipliers: np.ndarray
    ) -> np.ndarray:
        """Set the parameters of a velocity stage at the given contact points; returns zero unknowns."""
        self._place(state, h, bodies)
        B = self.patches(points, multipliers)
        self.set("B", flat(B))
        self.set("m_c", self._effective_mass(points.r1, points.r2, bodies, h)[:, None])
        return np.zeros((self.n, self.kernel.layout.size))

    def seen(self, inputs: np.ndarray) -> dict[str, np.ndarray]:
        """What the kernel reports of a solution, by name; (n, size) each."""
        values = self.report(inputs, self.parameters)[0].copy()
        return {name: values[:, where] for name, where in self.kernel.seen.items()}

    def patches(self, points: ContactPoints, unknowns: np.ndarray) -> np.ndarray:
        """Projectors on the flat directions of contacts at the given points; sets r1, r2 and n."""
        self.set("r1", points.r1)
        self.set("r2", points.r2)
        self.set("n", points.n)
        dim = self.model.dim
        if not self.kernel.kind.patches:
            return np.zeros((self.n, dim, dim))
        if self._curvature is None:
            self._curvature = VectorizedFunction(self.kernel.curvature, self.n)
        form = self._curvature(unknowns, self.parameters)[0].reshape(self.n, dim, dim)
        return patch_projector(form, points.n, self.get("L")[:, 0])

    def weigh_multipliers(self, factor: float) -> None:
        """Weigh multipliers against constraints by factor * L in the natural maps (see `surface_rows`)."""
        self.set("c", factor * self.get("L"))

    def _effective_mass(self, r1: np.ndarray, r2: np.ndarray, bodies: MomentumRows, h: float) -> np.ndarray:
        """1 / largest eigenvalue of the contact's own block of the Delassus matrix W^T M^-1 W, at the start.

        It has the sign of h: a step that runs backwards has the same forces, and impulses of the other sign.
        """
        m, dim = self.model, self.model.dim
        block = np.zeros((self.n, dim, dim))
        for body, r in ((self.first, r1), (self.second, r2)):
            lever = _lever(r)
            block += (1 / m.mass[body])[:, None, None] * np.eye(dim)
            block += np.einsum("nki,nkl,nlj->nij", lever, bodies.J_inverse[body], lever)
        return np.copysign(1 / np.linalg.eigvalsh(block)[:, -1], h)


def _lever(r: np.ndarray) -> np.ndarray:
    """The matrices X with X f = r x f; (n, dim) -> (n, spins, dim)."""
    if r.shape[1] == 2:
        return np.stack([-r[:, 1], r[:, 0]], axis=1)[:, None, :]
    zero = np.zeros(len(r))
    x, y, z = r.T
    rows = [[zero, -z, y], [z, zero, -x], [-y, x, zero]]
    return np.stack([np.stack(row, axis=1) for row in rows], axis=1)
