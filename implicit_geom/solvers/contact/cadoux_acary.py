"""`cadoux-acary`: a fixed point on De Saxce's shift, each convex problem by an interior-point method.

    F(s) = mu |u_f(s)|,  u(s) from   min 1/2 p.W p + (q + s e_n).p  over the friction cones,    s = F(s)

[Cadoux 2009; Acary, Cadoux, Lemarechal, Malick 2011]. The convex problem has a solution for every s >= 0
where some velocities open all contacts; it is solved by Mehrotra's predictor and corrector with the scaling
of Nesterov and Todd, in x = (mu p_n, p_f), y = ((u_n + s) / mu, u_f), both in the cone x_0 >= |(x_1, ...)|.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers import second_order_cone as lorentz
from implicit_geom.solvers.contact.law import contact_error, on_cones
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solver
from implicit_geom.solvers.contact.systems.system import System, system_of

STEPS = 60  # of an interior-point method, at most
INSIDE = 0.995  # of the way to the boundary
SHIFT = 1e-7  # over W_nn: impulses of sticking contacts are not unique
REFINED = 2  # corrections of a direction: the factors' matrix has entries of all sizes
PATIENCE = 10  # shifts without a better solution
STALLED = 8  # steps without a better point


class Convex:
    """The convex problem of a shift. Rows of frictionless contacts are taken out of the friction cones."""

    def __init__(self, problem: ContactProblem, system: System) -> None:
        self.problem, self.system = problem, system
        rows, mu = problem.coefficients[0]
        self.rows, self.mu = rows, mu
        self.idle = ~(mu > 0)
        self.scale = np.ones((problem.contacts, problem.dim))  # x = scale p, y = u / scale
        self.scale[:, 0] = np.where(self.idle, 1.0, mu)
        self.discs = [(rows, np.where(self.idle, 1.0, mu))]
        self.mass = problem.effective_mass
        self.q = problem.q.reshape(-1, problem.dim)
        self.speed = max(float(np.max(np.abs(self.q), initial=0.0)), 1e-12)

    def velocities(self, p: np.ndarray) -> np.ndarray:
        """W p + q."""
        u = self.problem.H_ball.T @ self.problem.velocity(p.ravel()) + self.problem.w_ball
        return np.asarray(u).reshape(p.shape)

    def _times_W(self, p: np.ndarray) -> np.ndarray:
        return self.velocities(p) - self.q

    def solve(self, shift: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        """Impulses and contact velocities (without the shift) for a shift (n_c,)."""
        x, y = np.zeros_like(self.q), np.zeros_like(self.q)
        x[:, 0], y[:, 0] = self.scale[:, 0] * self.mass * self.speed, self.speed
        best, least, since = x / self.scale, np.inf, 0
        with np.errstate(all="ignore"):
            for _ in range(STEPS):
                p = x / self.scale
                rest = self._target(p, shift) - y
                gap = float(np.einsum("ni,ni->", x, y)) / len(x)
                error = self._error(p, shift)
                since = 0 if error < least else since + 1
                if error < least:
                    best, least = p, error
                if least < tolerance or since > STALLED or not np.isfinite(error):
                    break
                moved = self._step(x, y, rest, gap)
                if moved is None:
                    break
                x, y = moved
        return best, self.velocities(best)

    def _error(self, p: np.ndarray, shift: np.ndarray) -> float:
        """The largest |p - projection of p - m (W p + q + s)| over m, m/s."""
        u = self.velocities(p)
        u[:, 0] += shift
        u[self.idle, 1:] = 0.0
        rest = p - on_cones(p - self.mass[:, None] * u, self.discs)
        return float(np.max(np.abs(rest) / self.mass[:, None]))

    def _target(self, p: np.ndarray, shift: np.ndarray) -> np.ndarray:
        u = self.velocities(p)
        u[:, 0] += shift
        u[self.idle, 1:] = 0.0
        return u / self.scale

    def _step(
        self, x: np.ndarray, y: np.ndarray, rest: np.ndarray, gap: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """A step of predictor and corrector; None where none can be made."""
        scaling = lorentz.NesterovToddScaling.of(x, y)
        values = scaling.values
        soft = values**2 / (1 + (SHIFT / self.mass)[:, None] * values**2)
        D = scaling.matrices(soft) / (self.scale[:, :, None] * self.scale[:, None, :])
        D[self.idle, 1:, :] = D[self.idle, :, 1:] = 0.0
        if not np.all(np.isfinite(D)):
            return None
        self.system.factor(np.ascontiguousarray(D))
        middle = scaling.times(values, y)
        own = lorentz.product(middle, middle)

        def inverse(g: np.ndarray) -> np.ndarray:
            out = scaling.times(soft, g / self.scale) / self.scale
            out[self.idle, 1:] = 0.0
            return out

        def direction(right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """dx, dy with x o y changed by `right` and dy = W dx + rest."""
            g = self.scale * (scaling.times(1 / values, lorentz.quotient(right, middle)) - rest)
            g[self.idle, 1:] = 0.0
            dp = self.system.shifted(inverse, g)
            for _ in range(REFINED):
                left = g - self._times_W(dp) - self.scale * scaling.times(1 / soft, self.scale * dp)
                left[self.idle, 1:] = 0.0
                dp = dp + self.system.shifted(inverse, left)
            dy = self._times_W(dp) / self.scale + rest  # (from S dx it would lose all digits near the end)
            dy[self.idle, 1:] = 0.0
            return self.scale * dp, dy

        def reach(dx: np.ndarray, dy: np.ndarray) -> float:
            """How far x and y may go; in the scaling's own coordinates, where both are far from the edge."""
            scaled = scaling.times(1 / values, dx), scaling.times(values, dy)
            return min(lorentz.reach(middle, d) for d in scaled)

        dx, dy = direction(-own)
        t = reach(dx, dy)
        after = float(np.einsum("ni,ni->", x + t * dx, y + t * dy)) / len(x)
        right = -own - lorentz.product(scaling.times(1 / values, dx), scaling.times(values, dy))
        right[:, 0] += min(max((max(after, 0.0) / gap) ** 3, 1e-6), 0.9) * gap
        dx, dy = direction(right)
        t = INSIDE * reach(dx, dy)
        if not t > 1e-8:
            return None
        return x + t * dx, y + t * dy


@solver("cadoux-acary")
def cadoux_acary(
    problem: ContactProblem,
    *,
    tolerance: float,
    start: np.ndarray | None = None,
    outer: int = 100,
) -> ContactSolution:
    """Fixed point on De Saxce's shift with interior points inside.

    outer   fixed-point iterations, at most

    `start` gives the first shift only: interior points start from their own middle.
    """
    if problem.dim == 5:
        raise SceneError("cadoux-acary knows one friction disc a contact; rolling friction has two")
    s = np.zeros((problem.contacts, problem.dim)) if start is None else start.reshape(-1, problem.dim)
    if not problem.contacts:
        return solution_of(problem, s.ravel())
    convex = Convex(problem, system_of(problem))
    rows, mu = problem.coefficients[0]
    shift = mu * np.linalg.norm(convex.velocities(s)[:, rows], axis=1) * (start is not None)
    best, least, history = s.ravel(), np.inf, []
    for _ in range(outer):
        p, u = convex.solve(shift, max(0.1 * tolerance, 1e-2 * min(least, 1e-2)))
        s = on_cones(p, problem.coefficients).ravel()
        error = contact_error(problem, problem.velocity(s), s)
        history.append(error)
        if error < least:
            best, least = s, error
        stalled = len(history) > PATIENCE and min(history[-PATIENCE:]) > least
        if least <= 0.99 * tolerance or stalled or not np.isfinite(error):
            break
        shift = mu * np.linalg.norm(u[:, rows], axis=1)
    factorisations = convex.system.factorisations
    return solution_of(problem, best, iterations=len(history), factorisations=factorisations, history=history)
