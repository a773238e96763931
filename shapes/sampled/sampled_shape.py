"""Shapes known only through their constraints: interior point, boundary samples, support, bounds.

Intersections and surfaces given as text share this file. An interior point comes from

    min t   such that   f_i(x) <= t for every constraint,

boundary points from ray casting (`shapes.sampled.boundary`). All samples lie on the boundary, so that
support points from them are never outside the body.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.process.lazy import cached_property
from implicit_geom.shapes.errors import EmptyShape, ShapeError
from implicit_geom.shapes.sampled.boundary import (
    boundary_points,
    farthest,
    sphere_directions,
    touching,
    unbounded,
)
from implicit_geom.shapes.sampled.evaluation import Allowance
from implicit_geom.shapes.sampled.mass import Moments, moments, polytope_moments
from implicit_geom.shapes.sampled.rays import Rays, columns
from implicit_geom.shapes.shape import Shape

SAMPLES = {2: 720, 3: 3000}  # rays for support points
BLOCK = 1000
FLAT = 1e-9  # depth over size below which the interior counts as empty
SIMPLER = "describe it with fewer operations, or as an intersection"
QUIET: dict[str, Any] = {
    "print_time": False,
    "error_on_fail": False,
    "show_eval_warnings": False,
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "ipopt.tol": 1e-11,
    "ipopt.acceptable_tol": 1e-9,
    "ipopt.max_iter": 300,
}


class SampledShape(Shape):
    """A shape without closed forms; a subclass gives constraints and calls `locate` when it is built."""

    support_exact = False
    _interior: np.ndarray
    # instructions of ray casting that the mass properties may take, 4 ns each: a minute, in the end
    quadrature_limit = 1e10

    def locate(self, scale: float) -> None:
        """Find an interior point and look round from there; `scale` is the expected size in m."""
        scale = scale if np.isfinite(scale) else 1.0
        point, depth = deepest_point(self, scale)
        if depth >= -FLAT * scale:
            raise EmptyShape(
                f"{self.kind}: empty, no point is inside all of the shapes (the best is {depth:.3g} m out)"
            )
        self.look_round(point, min(scale, -depth * 4))

    def look_round(self, point: np.ndarray, length: float) -> None:
        """Set up ray casting from an interior point and see whether the body is bounded."""
        self._interior = point
        self.rays = Rays(self, point, length, self.allowed)
        self.bounded = not unbounded(self.rays)
        self.support_exact = self.bounded and self.rays.all_affine

    @cached_property
    def allowed(self) -> Allowance:
        """What its rays may spend."""
        return Allowance()

    @property
    def interior(self) -> np.ndarray:
        return self._interior

    @cached_property
    def samples(self) -> np.ndarray:
        """Boundary points, edges and corners among them; every corner of a polytope. (M, dim)."""
        from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

        self._need_bounded("support points")
        if self.rays.all_affine:
            o = self.interior[None, :]
            f, g = self.rays.values(o)[0], self.rays.gradients(o)[0]
            planes = np.column_stack([g, f - g @ self.interior])
            try:
                corners = HalfspaceIntersection(planes, self.interior).intersections
                return np.asarray(corners[ConvexHull(corners).vertices])
            except QhullError:
                raise ShapeError(f"{self.kind}: too thin for its corners to be told apart") from None
        return boundary_points(self.rays, SAMPLES[self.dim])

    def support(self, directions: np.ndarray) -> np.ndarray:
        # in blocks: all directions against all samples at once may not fit in memory
        blocks = [directions[k : k + BLOCK] for k in range(0, len(directions), BLOCK)]
        best = [np.argmax(d @ self.samples.T, axis=1) for d in blocks]
        return self.samples[np.concatenate(best)] if best else np.empty((0, self.dim))

    @cached_property
    def support_error(self) -> float:
        """Twice the largest shortfall over fresh boundary points, each exact for its own normal.

        Their number has no common divisor with that of the samples, so that all offsets between
        the two occur.
        """
        if self.support_exact or not self.bounded:
            return 0.0
        points, normals = touching(self.rays, round(SAMPLES[self.dim] * 2.7) + 1)
        short = float(np.max(np.einsum("ij,ij->i", points - self.support(normals), normals)))
        if self.rays.kinked:  # normals at smooth points do not tell of a ridge inside one constraint
            n = np.vstack([np.eye(self.dim), -np.eye(self.dim), sphere_directions(12, self.dim, turn=0.3)])
            sampled = np.einsum("ij,ij->i", n, self.support(n))
            short = max(short, float(np.max(self.support_value(n) - sampled)))
        return 2 * max(short, 0.0)

    def support_value(self, directions: np.ndarray) -> np.ndarray:
        if self.support_exact:
            return np.einsum("ij,ij->i", self.support(directions), directions)
        return np.array([self._reach(n) for n in directions])

    def farthest_points(self, directions: np.ndarray) -> np.ndarray:
        if self.support_exact:
            return self.support(directions)
        sampled = self.support(directions)
        for k, n in enumerate(directions):
            point, _, good = self._solved(n)
            if good:
                sampled[k] = point
        return sampled

    def _reach(self, n: np.ndarray) -> float:
        """max n . x by interior-point steps; by cutting planes where a kink stops those."""
        _, reached, good = self._solved(n)
        return reached if good else farthest(self.rays, self.samples, n)

    def _solved(self, n: np.ndarray) -> tuple[np.ndarray, float, bool]:
        """The point farthest along n by interior-point steps, n . x there, and whether it is right."""
        answer = self._programme(x0=np.zeros(self.dim), p=n / np.linalg.norm(n), ubg=0)
        length = float(np.max(np.ptp(self.samples, axis=0)))
        reached = float(n @ self.interior - length * np.linalg.norm(n) * float(answer["f"]))
        sampled = float(np.max(self.samples @ n))
        near = reached >= sampled - 1e-9 * length * float(np.linalg.norm(n))
        good = near and bool(self._programme.stats()["success"])
        point = self.interior + length * np.array(answer["x"]).ravel()
        return point, max(reached, sampled), good

    @cached_property
    def _programme(self) -> ca.Function:
        """max n . y over the body in units of its length about the interior point, n a parameter."""
        length = float(np.max(np.ptp(self.samples, axis=0)))
        y, n = ca.SX.sym("y", self.dim), ca.SX.sym("n", self.dim)
        x = ca.SX(ca.DM(self.interior)) + length * y
        f = ca.vertcat(*[e for e, _ in columns(self, x, smoothing=1e-10 * length)]) / length
        nlp = {"x": y, "p": n, "f": -ca.dot(n, y), "g": f}
        return ca.nlpsol(
            "support", "ipopt", nlp, {**QUIET, "ipopt.max_iter": 100, "ipopt.bound_relax_factor": 0.0}
        )

    @cached_property
    def moments(self) -> Moments:
        """Volume, centre of mass and second moments at uniform density."""
        self._need_bounded("mass properties; give mass=, com= and inertia= or fix the body")
        advice = f"{self.kind}: its mass properties take too long; {SIMPLER}, or give com= and inertia="
        with np.errstate(all="ignore"), self.allowed.limit(self.quadrature_limit, advice):
            found = polytope_moments(self.samples) if self.rays.all_affine else moments(self.rays)
        if not (np.isfinite(found.second).all() and found.volume > 0):
            raise ShapeError(
                f"{self.kind}: too thin, large or small for its mass properties; give com= and inertia="
            )
        return found

    @property
    def volume(self) -> float:
        return self.moments.volume if self.bounded else np.inf

    @property
    def com(self) -> np.ndarray:
        return self.moments.com

    def inertia(self, mass: float) -> Any:
        return self.moments.inertia(mass)

    def _need_bounded(self, what: str) -> None:
        if not self.bounded:
            raise ShapeError(f"{self.kind}: an unbounded shape has no {what}")


def deepest_point(shape: Shape, scale: float) -> tuple[np.ndarray, float]:
    """The point of smallest violation and that violation in m; depth is cut off at -scale."""
    from scipy.optimize import minimize

    y, t = ca.SX.sym("y", shape.dim), ca.SX.sym("t")
    f = ca.vertcat(*[e for e, _ in columns(shape, scale * y, smoothing=1e-6 * scale)]) / scale
    nlp = {"x": ca.vertcat(y, t), "f": t, "g": f - t}
    solver = ca.nlpsol("interior", "ipopt", nlp, QUIET)
    free = [np.inf] * shape.dim
    best: tuple[np.ndarray, float] | None = None
    for start in (0.0, 0.1, -0.3):  # a second start only where the first one fails on a kink
        x0 = np.append(np.full(shape.dim, start) * np.arange(1, shape.dim + 1), 1.0)
        answer = solver(x0=x0, lbx=[-b for b in free] + [-1], ubx=[*free, np.inf], ubg=0)
        point = scale * np.array(answer["x"]).ravel()[:-1]
        depth = float(shape.violation(point)[0])
        if np.isfinite(depth) and (best is None or depth < best[1]):
            best = point, depth
        if best is not None and best[1] < -FLAT * scale and solver.stats()["success"]:
            return best
    if best is None:
        raise ShapeError(f"{shape.kind}: its constraints have no finite value near the origin")
    # a kink inside one constraint, such as the axis of a cone given as text: search without derivatives
    simplex = best[0] + scale * np.vstack([np.zeros(shape.dim), 0.3 * np.eye(shape.dim)])
    found = minimize(
        lambda x: max(float(np.nan_to_num(shape.violation(x)[0], nan=np.inf)), -scale),
        best[0],
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "xatol": 1e-9 * scale, "fatol": 1e-9 * scale},
    )
    return (np.asarray(found.x), float(found.fun)) if found.fun < best[1] else best
