"""A body given by the text of its implicit function: {f(x, y, z) <= 0}, f convex.

The function used in the equations is

    scale * f(x)                          in general,
    scale * ((g(x) / c)^(1/p) - 1)        for f = g - c, g homogeneous of degree p > 2,

with `scale` measured once so that |grad| is one on the surface in the median. The root form is the
gauge of the same set; without it a large p makes f flat inside and steep outside.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import casadi as ca
import numpy as np
import sympy as sp

from implicit_geom.interface.numbers import LARGEST
from implicit_geom.interface.words import shown
from implicit_geom.process.lazy import cached_property
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.formula.convexity import check_chords, check_hessian, check_single, lowest_points
from implicit_geom.shapes.formula.parse import OPAQUE, numeric, parse, to_casadi
from implicit_geom.shapes.sampled.boundary import sphere_directions
from implicit_geom.shapes.sampled.rays import Rays
from implicit_geom.shapes.sampled.sampled_shape import SIMPLER, SampledShape
from implicit_geom.shapes.shape import Constraint, Inequality
from implicit_geom.shapes.validate import finite

# instructions of ray casting, about 4 ns each, so that no text takes more than two seconds to be checked and
# weighed; ordinary bodies take a hundredth of that
INSPECTION, QUADRATURE = 1e8, 3.1e8
TINY = 1e-30  # keeps the p-th root differentiable at the origin


class Surface(SampledShape):
    """{f(x) <= 0}, f given as text; see `shapes.formula.parse` for what may be written.

    theta = (parameters in alphabetical order, scale), and the degree p for the root form.
    """

    kind = "surface"
    quadrature_limit = QUADRATURE

    def __init__(self, text: str, *, dim: int = 3, **parameters: float) -> None:
        if isinstance(dim, bool) or not isinstance(dim, int) or dim not in (2, 3):
            raise ShapeError(f"surface: dim = {shown(dim)} must be 2 or 3")
        self.dim = dim
        self.numbers = {k: finite(self.kind, k, parameters[k]) for k in sorted(parameters)}
        self.coordinates = "xyz"[:dim]
        expression = parse(text, self.coordinates, self.numbers)
        self.text = text
        self.expression = expression
        self.degree = self._root_degree()
        self.scale = 1.0
        advice = f"surface: {shown(text)} takes too long to check; {SIMPLER}"
        # a formula that overflows is refused by the checks, in words
        with np.errstate(all="ignore"), self.allowed.limit(INSPECTION, advice):
            self._inspect()

    @property
    def parameters(self) -> dict[str, Any]:
        plane = {"dim": 2} if self.dim == 2 else {}
        return {"text": self.text, **plane, **self.numbers}

    @property
    def structure(self) -> Hashable:
        return (self.kind, self.dim, self.text, tuple(self.numbers), self.degree is not None)

    @property
    def values(self) -> np.ndarray:
        tail = [] if self.degree is None else [self.degree]
        return np.array([*self.numbers.values(), self.scale, *tail])

    def constraints(self, x: ca.SX, theta: ca.SX) -> list[Constraint]:
        n = len(self.numbers)
        symbols = {k: theta[i] for i, k in enumerate(self.numbers)}
        at = {c: x[i] for i, c in enumerate(self.coordinates)}
        if self.degree is None:
            return [Inequality(theta[n] * to_casadi(self.expression, {**symbols, **at}))]
        curved, constant = self._parts
        g = to_casadi(curved, {**symbols, **at}) / -to_casadi(constant, symbols)
        return [Inequality(theta[n] * ((g + TINY) ** (1 / theta[n + 1]) - 1))]

    @cached_property
    def _parts(self) -> tuple[sp.Expr, sp.Expr]:
        """f as (terms with coordinates, terms without)."""
        symbols = [sp.Symbol(c, real=True) for c in self.coordinates]
        constant, curved = self.expression.as_independent(*symbols, as_Add=True)
        return curved, constant

    def _root_degree(self) -> float | None:
        """p > 2 if f = g - c with g >= 0 homogeneous of degree p and c > 0, otherwise None."""
        curved, constant = self._parts
        p = self._degree(curved)
        if p is None or p <= 2 or numeric(constant, self.numbers) >= 0:
            return None
        x = ca.SX.sym("x", self.dim)
        symbols = {k: ca.SX(v) for k, v in self.numbers.items()}
        symbols |= {c: x[i] for i, c in enumerate(self.coordinates)}
        g = ca.Function("g", [x], [to_casadi(curved, symbols)])
        # a convex g is nowhere negative; one that is has no p-th root and is left for the checks to refuse
        return p if np.all(np.asarray(g(sphere_directions(500, self.dim, turn=0.1).T)) >= 0) else None

    def _degree(self, e: sp.Expr) -> float | None:
        """Degree of positive homogeneity, read off the tree; None where there is none."""
        if not {s.name for s in e.free_symbols} & set(self.coordinates):
            return 0.0
        if isinstance(e, sp.Symbol):
            return 1.0
        inner = [self._degree(a) for a in e.args]
        if e.is_Add:
            return inner[0] if all(p == inner[0] for p in inner) else None
        if any(p is None for p in inner):
            return None
        if e.is_Mul:
            return float(sum(p for p in inner if p is not None))
        if isinstance(e, sp.Pow):
            return (inner[0] or 0.0) * numeric(e.exp, self.numbers)
        return inner[0] if isinstance(e, (sp.Abs, OPAQUE["abs"], OPAQUE["value"])) else None

    def _inspect(self) -> None:
        """Find the body, refuse it if it is empty, in pieces or not convex, and measure the scale."""
        lowest = lowest_points(self)
        point, value = lowest[0]
        if not value < 0:
            raise ShapeError(
                f"surface: no point lies inside {shown(self.text)}; its smallest value found is {value:.3g}"
            )
        # the rays alone: whether they end is asked after the checks, since only a convex body answers fast
        self._interior, length = point, max(float(np.linalg.norm(point)), 1.0)
        self.rays = Rays(self, point, length, self.allowed)
        d = sphere_directions(256, self.dim, turn=0.1)
        gauge = self.rays.gauge(d).max(axis=1)
        near = gauge > 1e-3 * gauge.max()  # of an unbounded body, only the part at hand
        if not near.any():
            raise ShapeError(f"surface: {shown(self.text)} has no surface in reach; all points are inside")
        radius = float(np.median(1 / gauge[near]))
        points = point + d[near] / gauge[near, None]
        inside = check_hessian(self, points)
        check_single(self, lowest, radius)
        check_chords(self, inside)
        if not 1 / LARGEST < radius < LARGEST:
            raise ShapeError(f"surface: {shown(self.text)} has the size {radius:.3g} m; scale it")
        steep = np.linalg.norm(self.rays.gradients(points)[:, 0], axis=1)
        if not 1 / LARGEST < np.median(steep) < LARGEST:
            told = f"{np.median(steep):.3g} on the surface; scale it"
            raise ShapeError(f"surface: the gradient of {shown(self.text)} is {told}")
        self.scale = float(1 / np.median(steep))
        self.look_round(point, radius)
