"""Interior points for the convex problem next to a step in the plane: friction lifts what slides.

With the projection on the cone |S| <= mu P_n itself a linearised step minimises a convex function:
u_n - mu |w| takes the place of u_n. Where nothing slips its solution is one of the step, elsewhere a start.
Mehrotra's predictor and corrector, with the slacks mu P_n - S = s and mu P_n + S = t and the multipliers y of
P_n, l of s, m of t.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import splu

from implicit_geom.condensed import FACTORS
from implicit_geom.linearised import Frozen, Impulses

STEPS = 40
SHIFT = 1e-8  # over a contact's own softness: impulses of sticking contacts are not unique
PRECISION = 1e-11  # of the solution, over the speed scale
INSIDE = 0.995  # of the way to the boundary
Moves = dict[str, np.ndarray]
PAIRS = (("P_n", "y"), ("s", "l"), ("t", "m"))  # each >= 0, with products that tend to zero


def suits(frozen: Frozen) -> bool:
    """Whether every contact has friction in one direction."""
    return all(
        bool(np.all(mu > 0)) and a.shape[1] == 2 for mu, a in zip(frozen.mu, frozen.softness, strict=True)
    )


def without_slip(frozen: Frozen) -> Impulses:
    """The impulses of the convex problem."""
    point = Point(frozen)
    for _ in range(STEPS):
        if point.linearise() < PRECISION * point.speed:
            break
        if not point.move():
            break
    P_n, limit = point.x["P_n"], point.mu * point.x["P_n"]
    return point.split(np.stack([P_n, np.clip(point.x["S"], -limit, limit)], axis=1))


class Point:
    """A point on the way."""

    def __init__(self, frozen: Frozen) -> None:
        self.frozen = frozen
        self.cuts = np.cumsum([len(mu) for mu in frozen.mu])[:-1]
        self.mu, self.a = np.concatenate(frozen.mu), np.concatenate(frozen.softness)
        self.speed = max(float(np.abs(np.concatenate(frozen.u0)).max(initial=0.0)), 1e-12)
        start = np.full(len(self.mu), self.speed)
        self.x: Moves = {name: start.copy() for name in ("y", "l", "m")}
        self.x |= {"nu": frozen.nu.copy(), "P_n": start / 2, "S": 0 * start}
        self.x |= {"s": self.mu * start / 2, "t": self.mu * start / 2}

    def split(self, values: np.ndarray) -> Impulses:
        """By groups."""
        return np.split(values, self.cuts)

    def linearise(self) -> float:
        """Residuals and factors here; the largest residual."""
        x, mu, frozen = self.x, self.mu, self.frozen
        self.u = np.concatenate(frozen.u(x["nu"]))
        self.f = frozen.f(x["nu"], self.split(np.stack([x["P_n"], x["S"]], axis=1)))
        self.r_n, self.r_t = self.u[:, 0] - mu * (x["l"] + x["m"]) - x["y"], self.u[:, 1] + x["l"] - x["m"]
        self.r_s, self.r_m = mu * x["P_n"] - x["S"] - x["s"], mu * x["P_n"] + x["S"] - x["t"]
        p, q, r = x["l"] / x["s"], x["m"] / x["t"], x["y"] / x["P_n"]
        shift_n, shift_t = SHIFT * self.a.T
        A00, A11, A01 = r + mu**2 * (p + q) + shift_n, p + q + shift_t, mu * (q - p)
        det = (r + shift_n) * A11 + mu**2 * (4 * p * q + shift_t * (p + q))
        self.D = np.stack([A11, -A01, -A01, A00], axis=1).reshape(-1, 2, 2) / det[:, None, None]
        self.upper = q >= p
        ends = max(float(np.minimum(x[a], x[b]).max()) for a, b in PAIRS)
        return max(ends, float(np.abs(self.r_n).max()), float(np.abs(self.r_t).max()))

    def move(self) -> bool:
        """A step towards the solution; whether one could be made."""
        x, frozen = self.x, self.frozen
        values = [frozen.momentum]
        for W, V, T, D in zip(frozen.W, frozen.V, frozen.T, self.split(self.D), strict=True):
            values.append(T - W @ D @ V)
        factors = splu(frozen.pattern.schur(values), **FACTORS)
        d = self._direction(factors, *(-x[a] * x[b] for a, b in PAIRS))
        k = self._reach(d)
        count = 3 * len(self.mu)
        barrier = sum(float(x[a] @ x[b]) for a, b in PAIRS) / count
        after = sum(float((x[a] + k * d[a]) @ (x[b] + k * d[b])) for a, b in PAIRS) / count
        aim = min(max((abs(after) / barrier) ** 3, 1e-2), 0.9) * barrier
        d = self._direction(factors, *(aim - x[a] * x[b] - d[a] * d[b] for a, b in PAIRS))
        k = INSIDE * self._reach(d)
        if not k > 1e-8:
            return False
        self.x = {name: value + k * d[name] for name, value in x.items()}
        return True

    def _direction(self, factors: splu, c_n: np.ndarray, c_s: np.ndarray, c_t: np.ndarray) -> Moves:
        """Where the products P_n y, s l, t m change by c_n, c_s, c_t and the residuals vanish."""
        x, mu, D, frozen = self.x, self.mu, self.D, self.frozen
        e_s, e_t = (c_s - x["l"] * self.r_s) / x["s"], (c_t - x["m"] * self.r_m) / x["t"]
        g = np.stack([c_n / x["P_n"] - self.r_n + mu * (e_s + e_t), e_t - e_s - self.r_t], axis=1)
        start = (D @ g[:, :, None])[:, :, 0]
        nothing = self.split(np.zeros_like(start))
        push = frozen.f(x["nu"], self.split(start)) - frozen.f(x["nu"], nothing)
        dnu = factors.solve(-push - self.f)
        du = np.concatenate(frozen.u(x["nu"] + dnu)) - self.u
        d_n, d_t = (start - (D @ du[:, :, None])[:, :, 0]).T
        ds, dt = mu * d_n - d_t + self.r_s, mu * d_n + d_t + self.r_m
        dl, dm = (c_s - x["l"] * ds) / x["s"], (c_t - x["m"] * dt) / x["t"]
        # the multiplier of a slack that vanishes follows from the velocities
        dm = np.where(self.upper, dl + du[:, 1] + self.r_t, dm)
        dl = np.where(self.upper, dl, dm - du[:, 1] - self.r_t)
        dt = np.where(self.upper & (x["m"] > x["t"]), (c_t - x["t"] * dm) / x["m"], dt)
        ds = np.where(~self.upper & (x["l"] > x["s"]), (c_s - x["s"] * dl) / x["l"], ds)
        dy = (c_n - x["y"] * d_n) / x["P_n"]
        return {"nu": dnu, "P_n": d_n, "S": d_t, "s": ds, "t": dt, "y": dy, "l": dl, "m": dm}

    def _reach(self, d: Moves) -> float:
        """The part of a move, at most one, that keeps everything positive."""
        names = [name for pair in PAIRS for name in pair]
        return 1 / max(1.0, *(float((-d[name] / self.x[name]).max()) for name in names))
