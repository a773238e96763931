"""Closest points at given poses: the KKT rows [C07, eqs. 9, 22] as a system, and initial guesses for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca
import numpy as np

from implicit_geom.equations.closest_point import closest_point_rows
from implicit_geom.equations.constraints import is_halfspace, sign_mask
from implicit_geom.equations.thresholds import POINT_SHIFT
from implicit_geom.equations.unknowns import PairKind, Symbols, flat
from implicit_geom.machine.vectorized import ThreadSafeFunction
from implicit_geom.model.placed_shape import KINDS, PlacedShape, matched_support, multipliers, shape_key
from implicit_geom.process.building import Kept
from implicit_geom.process.lazy import cached_property
from implicit_geom.process.threads import BUILDING
from implicit_geom.shapes.shape import Shape

TOLERANCE = 1e-13  # on the closest-point rows, relative to the smaller body


@dataclass(frozen=True)
class ClosestPoints:
    """What `distance` found.

    gap                m, negative where the shapes overlap
    point_a, point_b   the closest point of each, world frame, m
    normal             unit vector from a to b, world frame
    """

    gap: float
    point_a: np.ndarray
    point_b: np.ndarray
    normal: np.ndarray


class ClosestPointSystem:
    """The KKT rows [C07, eqs. 9, 22] at fixed poses as a system for `solvers.newton`."""

    def __init__(self, a: PlacedShape, b: PlacedShape) -> None:
        self.a, self.b = a, b
        self.kernel = closest_point_kernel(a.shape, b.shape)
        layout = self.kernel.kind.layout
        self.layout = layout
        smaller = min(a.shape.size, b.shape.size)
        self.length = smaller if np.isfinite(smaller) else 1.0
        s = self.kernel.symbols
        p = np.zeros(s.parameters.numel())
        values = {
            "h": 1.0,
            "L": self.length,
            "c": self.length,
            "U": self.length,
            "offset": b.x - a.x,
            "R1": flat(a.R),
            "R2": flat(b.R),
            "com1": a.com,
            "com2": b.com,
            "theta1": a.shape.values,
            "theta2": b.shape.values,
        }
        for name, value in values.items():
            p[s.at[name]] = value
        self.parameters = p
        n = layout.geometry
        self.shift = np.zeros(n)
        self.shift[layout.at["r"]] = POINT_SHIFT
        self.proximal = np.zeros(n)
        # rounding of the larger body's coordinates is no fault of the rows
        sizes = [body.shape.size for body in (a, b) if body.shape.bounded]
        coordinates = float(np.linalg.norm(b.x - a.x)) + sum(sizes)
        self.rounding = float(np.finfo(float).eps) * coordinates  # m
        self.tolerance = np.full(n, max(TOLERANCE, self.rounding / self.length))

    def _p(self, eps: float) -> np.ndarray:
        self.parameters[self.kernel.symbols.at["eps"]] = eps
        return self.parameters

    def residual(self, z: np.ndarray, eps: float) -> np.ndarray:
        return self.kernel.call(z, self._p(eps), eps > 0)[0]

    def linearise(self, z: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray]:
        F, J = self.kernel.call(z, self._p(eps), eps > 0)
        return F, J

    def measure(self, z: np.ndarray) -> float:
        """The largest row over its tolerance."""
        return float(np.max(np.abs(self.residual(z, 0.0)) / self.tolerance))

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        """A closest point moves by at most the smaller body's size at once."""
        dz = dz.copy()
        shorten(dz[None, self.layout.at["r"]])
        return dz

    def gap(self, z: np.ndarray) -> float:
        return float(self.kernel.report(z, self.parameters)[0][0])

    def points(self, z: np.ndarray) -> ClosestPoints:
        seen = self.kernel.report(z, self.parameters)[0].copy()
        r1, r2, n = seen[1:].reshape(3, -1)
        return ClosestPoints(float(seen[0]), self.a.x + r1, self.b.x + r2, n)

    def certified(self, z: np.ndarray) -> bool:
        """Multipliers of the right sign: the normal points out of A and into B."""
        at = self.layout.at
        signs = np.concatenate([self.kernel.signs[0] * z[at["l"]], self.kernel.signs[1] * z[at["k"]]])
        return bool(np.all(signs >= -1e-9))

    def starts(self, n: np.ndarray) -> Iterator[np.ndarray]:
        """Unknowns to start from, given nearly the right direction; the best guess first."""
        if not self.b.shape.bounded:
            support_a = self.a.support(n[None])[0]
            yield self.start(n, support_a, support_a + self.b.violation(support_a) * n)
            return
        support_b = self.b.support(-n[None])[0]
        if self.layout.known_normal:
            yield self.start(n, support_b, support_b)
            return
        if not self.a.shape.bounded:
            yield self.start(n, support_b - self.a.violation(support_b) * n, support_b)
            return
        yield self.start(n, *matched_support(self.a, self.b, n))
        support_a = self.a.support(n[None])[0]
        across = (n @ (support_b - support_a)) * n
        for point in (support_a, support_b - across, (support_a + support_b - across) / 2):
            yield self.start(n, point, point + across)

    def start(self, n: np.ndarray, point_a: np.ndarray, point_b: np.ndarray) -> np.ndarray:
        at = self.layout.at
        z = np.zeros(self.layout.geometry)
        if self.layout.known_normal:
            z[at["r"]] = (point_b - self.b.x) / self.length
        else:
            z[at["r"]] = (point_a - self.a.x) / self.length
            z[at["D"]] = n @ (point_b - point_a)
            z[at["n"]] = n
            z[at["l"]] = multipliers(self.a, point_a, n)
        z[at["k"]] = multipliers(self.b, point_b, -n)
        return z


def shorten(steps: np.ndarray) -> None:
    """Shorten each row to length one, in place: a Newton step along a flat face has no scale."""
    length = np.linalg.norm(steps, axis=-1, keepdims=True)
    steps /= np.maximum(length, 1.0)


class ClosestPointKernel:
    """The closest-point functions of two kinds of shape."""

    def __init__(self, first: Shape, second: Shape) -> None:
        self.kind = PairKind(first, second, components=(), moves=(False, False))
        self.symbols = s = Symbols(self.kind)
        self._exact = self._function(smooth=False)
        c = closest_point_rows(self.kind, s, smooth=False)
        seen = ca.densify(ca.vertcat(c.d, c.r1, c.r2, c.n))
        self.report = ThreadSafeFunction(ca.Function("report", [self._unknowns, s.parameters], [seen]))
        self.signs = (sign_mask(first) if not is_halfspace(first) else np.zeros(0), sign_mask(second))

    @property
    def _unknowns(self) -> ca.SX:
        return self.symbols.u[: self.kind.layout.geometry]

    @cached_property
    def _smooth(self) -> ThreadSafeFunction:
        """The smoothed functions, built only when a search needs the path."""
        with BUILDING:
            return self._function(smooth=True)

    def _function(self, smooth: bool) -> ThreadSafeFunction:
        z = self._unknowns
        rows = ca.densify(closest_point_rows(self.kind, self.symbols, smooth).rows)
        # the transpose, because NumPy reads CasADi's columns as rows
        jacobian = ca.densify(ca.jacobian(rows, z).T)
        return ThreadSafeFunction(ca.Function("geometry", [z, self.symbols.parameters], [rows, jacobian]))

    def call(self, z: np.ndarray, p: np.ndarray, smooth: bool) -> tuple[np.ndarray, np.ndarray]:
        F, J = (self._smooth if smooth else self._exact)(z, p)
        return F.copy(), J.reshape(z.size, z.size).copy()


_KERNELS: Kept[ClosestPointKernel] = Kept(KINDS)


def closest_point_kernel(first: Shape, second: Shape) -> ClosestPointKernel:
    """The kernel of two kinds of shape, built on first use and kept."""
    return _KERNELS.get((shape_key(first), shape_key(second)), lambda: ClosestPointKernel(first, second))
