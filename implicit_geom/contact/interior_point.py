"""An interior-point method for a step with its geometry linearised: friction as a second-order cone.

With y = (u_n / mu + |w|, w) and x = (mu P_n, S) Coulomb's law is (De Saxce)

    x_0 >= |(x_1, x_2)|,    y_0 >= |(y_1, y_2)|,    x . y = 0

and all equations are followed along x o y = b (1, 0, 0), b -> 0, by Mehrotra's predictor and corrector with
the scaling of Nesterov and Todd. Without the term |w| the problem is convex: a step in which friction lifts
what slides. Its solution is one of the step where nothing slips, and it is found from anywhere; with |w|
there is no such promise: bodies that fall on each other are solved in 15 to 40 factorisations, pressed
heaps to two or three digits, from where `proximal_rounds` goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.contact.linearised import Impulses, LinearisedStep
from implicit_geom.solvers import second_order_cone as lorentz
from implicit_geom.solvers.block_elimination import factorised

STEPS = 45
PATIENCE = 12  # steps without a better point that end it
SHIFT = 1e-8  # over a contact's diagonal of the Delassus matrix: impulses of sticking contacts are not unique
PRECISION = 1e-9  # of the contact laws, over the speed scale, that ends it
INSIDE = 0.99  # of the way to the boundary
LEAST_MU = 1e-3
SLIP_KNOWN = 0.1  # residual over the speed scale from which the slope of |w| is known well enough
TIED = 0.1  # b is at least this times the square of what is left of y's equation
SHORT = 0.3  # a step to be replaced by one that aims at larger b
CENTRED = 0.8


def solve_by_interior_point(linearised: LinearisedStep, *, convex: bool) -> tuple[np.ndarray, Impulses]:
    """Velocities and impulses, the best met; `convex`: without |w|."""
    point = InteriorPoint(linearised, convex)
    best, found, since = np.inf, (linearised.nu, linearised.start), 0
    with np.errstate(all="ignore"):
        for _ in range(STEPS):
            size = point.linearise()
            since = 0 if size < best else since + 1
            if size < best:
                best, found = size, (point.nu, point.impulses())
            if not size > PRECISION * point.speed or since > PATIENCE or not point.move():
                break
    return found


class InteriorPoint:
    """An iterate: velocities nu, impulses x and contact velocities y."""

    def __init__(self, linearised: LinearisedStep, convex: bool) -> None:
        self.linearised, self.convex = linearised, convex
        self.cuts = np.cumsum([len(mu) for mu in linearised.mu])[:-1]
        self.widths = [a.shape[1] for a in linearised.delassus_diagonal]
        mu = np.maximum(np.concatenate(linearised.mu), LEAST_MU)
        self.speed = max(float(np.abs(self.join(linearised.u(linearised.nu))).max(initial=0.0)), 1e-12)
        self.nu = linearised.nu.copy()
        shape = (len(mu), max(self.widths))
        self.scale = np.ones(shape)
        self.scale[:, 0] = mu
        self.x, self.y = np.zeros(shape), np.zeros(shape)
        self.x[:, 0], self.y[:, 0] = mu * self.speed / 2, self.speed
        self.shift = SHIFT * self.join(linearised.delassus_diagonal).max(axis=1)

    def join(self, values: Impulses) -> np.ndarray:
        """All groups as one array, zero where a contact has fewer components of friction."""
        width = max(self.widths)
        return np.concatenate([np.pad(v, ((0, 0), (0, width - v.shape[1]))) for v in values])

    def split(self, values: np.ndarray) -> Impulses:
        """By groups."""
        parts = np.split(values, self.cuts)
        return [p[:, :k] if p.ndim == 2 else p[:, :k, :k] for p, k in zip(parts, self.widths, strict=True)]

    def impulses(self) -> Impulses:
        """x as impulses that obey the law."""
        return self.linearised.project(self.split(self.x / self.scale))

    def linearise(self) -> float:
        """Residuals here; returns the largest of the contact laws, m/s."""
        linearised = self.linearised
        P = self.split(self.x / self.scale)
        u = linearised.u(self.nu)
        self.u, self.f = self.join(u), linearised.f(self.nu, P)
        slip = np.linalg.norm(self.u[:, 1:], axis=1)
        self.b = float(np.einsum("ni,ni->", self.x, self.y)) / len(self.x)
        self.rest = self.u / self.scale - self.y
        size = linearised.speed * linearised.largest_violation(self.nu, P)
        if self.convex:
            size = max(self.b / self.speed, float(np.abs(self.rest).max()))
        # how B y changes with u, B = diag(mu, 1, 1)
        self.slope = np.broadcast_to(np.eye(self.x.shape[1]), (*self.x.shape, self.x.shape[1])).copy()
        if not self.convex:
            self.rest[:, 0] += slip
            known = (slip**2 > self.b) & (size < SLIP_KNOWN * self.speed)
            direction = self.u[known, 1:] / slip[known, None]
            self.slope[known, 0, 1:] = self.scale[known, :1] * direction
        return size

    def move(self) -> bool:
        """A step towards the solution; whether one could be made."""
        linearised, x, y = self.linearised, self.x, self.y
        scaling = lorentz.NesterovToddScaling.of(x, y)
        G = scaling.values
        soft = 1 + self.shift[:, None] * G**2
        self.forward, self.back = scaling.matrices(G), scaling.matrices(1 / G)
        self.step_x = scaling.matrices(G / soft) / self.scale[:, :, None]
        self.step_y = scaling.matrices(G**2 / soft) / self.scale[:, :, None]
        self.D = self.step_y / self.scale[:, None, :] @ self.slope
        values = [linearised.momentum]
        for W, V, T, D in zip(linearised.W, linearised.V, linearised.T, self.split(self.D), strict=True):
            values.append(T - W @ D @ V)
        matrix = linearised.pattern.schur(values)
        if not np.all(np.isfinite(matrix.data)):
            return False
        try:
            factors = factorised(matrix)
        except RuntimeError:  # a singular matrix
            return False
        middle = _times(self.forward, y)
        square = lorentz.product(middle, middle)
        _, dx, dy = self._direction(factors, middle, -square)
        t = min(lorentz.reach(x, dx), lorentz.reach(y, dy))
        after = float(np.einsum("ni,ni->", x + t * dx, y + t * dy)) / len(x)
        aim = min(max((max(after, 0.0) / self.b) ** 3, 1e-3), 0.9)
        if not self.convex:
            aim = max(aim, min(0.9, TIED * float(np.abs(self.rest[:, 0]).max()) ** 2 / self.b))
        right = -square - lorentz.product(_times(self.back, dx), _times(self.forward, dy))
        right[:, 0] += aim * self.b
        moves = self._direction(factors, middle, right)
        t = self._reach(moves)
        if t < SHORT:
            square[:, 0] -= CENTRED * self.b
            other = self._direction(factors, middle, -square)
            if self._reach(other) > t:
                moves, t = other, self._reach(other)
        if not t > 1e-7:
            return False
        self.nu, self.x, self.y = self.nu + t * moves[0], x + t * moves[1], y + t * moves[2]
        return True

    def _reach(self, moves: tuple[np.ndarray, np.ndarray, np.ndarray]) -> float:
        return INSIDE * min(lorentz.reach(self.x, moves[1]), lorentz.reach(self.y, moves[2]))

    def _direction(
        self, factors: Any, middle: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Changes of nu, x, y after which the residuals vanish and x o y has changed by `right`."""
        linearised = self.linearised
        start = _times(self.step_x, lorentz.quotient(right, middle)) - _times(self.step_y, self.rest)
        nothing = self.split(np.zeros_like(start))
        push = linearised.f(self.nu, self.split(start)) - linearised.f(self.nu, nothing)
        dnu = factors.solve(-push - self.f)
        du = self.join(linearised.u(self.nu + dnu)) - self.u
        return (
            dnu,
            self.scale * (start - _times(self.D, du)),
            _times(self.slope, du) / self.scale + self.rest,
        )


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return (matrices @ vectors[:, :, None])[:, :, 0]
