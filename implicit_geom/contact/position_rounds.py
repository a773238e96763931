"""Stage 1 of RATTLE at given points, by rounds: each freezes the geometry of the last one's end of the step.

    u_n = gap(q+) / h + W_n^T (nu - nu_k),   u_t = slip_k + W_t^T (nu - nu_k)
    M (nu - nu_free) = W p,   nu_free: loads, and what is not linear in the angular momentum, at nu_k

A round is one contact problem (`solvers.contact`) with the wrenches W of the start; slip_k is the mean slip
of the stage at nu_k, or that of the start where friction lags (`contact.rattle_ncp`). Rounds converge by the
turn in a step. A pair that touches in one point rolls: its gap is that of the closest points at the end. The
points of a patch, and a vertex, are the same ones of the second body at both ends, with gaps over the tangent
plane there; where another point of a round body comes lower, it is one of them from then on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.contact.contact_rows import ContactRows, mass_and_free_velocity
from implicit_geom.contact.impact import solve_closely
from implicit_geom.contact.rattle_ncp import point_velocity
from implicit_geom.equations.thresholds import LAG, MAX_TURN, TOUCH
from implicit_geom.geometry.patch_points import Patch, patch_points
from implicit_geom.geometry.polytopes import is_polytope
from implicit_geom.geometry.supporting_features import vertices_of
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.model.placed_shape import PlacedShape
from implicit_geom.rotation import tangent_inverse
from implicit_geom.solvers.contact.problem import ContactProblem

ROUNDS = 30
SLOW = 0.5  # decrease of the change in four rounds that is too little
MOST = 32  # points of a patch
VERTEX = 1e-6  # distance from a vertex, over the body's size, that counts as none
CLOSE = 3e-12  # change of the velocities in a round, over the speeds at hand, that ends them
ENOUGH = 1e-10  # where rounding allows no less


@dataclass
class PositionSolution:
    """Velocities that move the bodies, (B, dim + spins), and the contacts' impulses and slips, (n_c, d)."""

    nu: np.ndarray
    rows: ContactRows
    impulse: np.ndarray
    slip: np.ndarray
    gap: np.ndarray
    lagged: np.ndarray
    end_point: np.ndarray
    rounds: int
    residual: float


def position_rounds(
    model: Model, state: State, h: float, impulse: np.ndarray, found: list[tuple[Pair, Patch]]
) -> PositionSolution | None:
    """Stage 1 with the contacts `found` at the start; None where rounds do not settle."""
    stage = _Stage(model, state, h, impulse, found)
    for k in range(ROUNDS):
        done = stage.round()
        if done is None:
            return None
        if done:
            return stage.solution(k + 1)
    return None


class _Stage:
    def __init__(
        self, model: Model, state: State, h: float, impulse: np.ndarray, found: list[tuple[Pair, Patch]]
    ) -> None:
        self.model, self.state, self.h, self.impulse = model, state, h, impulse
        self.nu = np.column_stack([state.v, state.w])
        self.M, _ = mass_and_free_velocity(model, state, 0.0, np.zeros_like(impulse))
        dim, m = model.dim, model.moving
        self.pulled = np.linalg.norm(impulse[:, :dim], axis=1) / model.mass
        size = np.where(np.isfinite(model.size), model.size, 0.0)
        each = np.linalg.norm(state.v, axis=1) + size * np.linalg.norm(state.w, axis=1) + self.pulled
        self.speed = max(float(np.max(each[m])), 1e-300)
        self.error = np.inf
        self.history: list[float] = []
        self._contacts(found)

    def _contacts(self, found: list[tuple[Pair, Patch]]) -> None:
        """The contacts from now on."""
        model, state = self.model, self.state
        self.found = found
        self.rows = rows = ContactRows(model, state, found)
        self.H = rows.directions()
        self.which = np.array([k for k, (_, patch) in enumerate(found) for _ in patch.gap], int)
        second = np.array([pair.second for pair in rows.pairs], int)
        self.material = np.einsum("nji,nj->ni", state.R[second], rows.point - state.x[second])
        self.start_slip = rows.velocity()[:, 1:]
        speed = np.linalg.norm(rows.axes() * self.start_slip, axis=1)
        pressed = np.array([max(self.pulled[p.first], self.pulled[p.second]) for p in rows.pairs])
        self.lag = (speed > LAG * rows.mu * pressed) & (speed > 1e-9 * self.speed)
        self.start: np.ndarray | None = None

    def round(self) -> bool | None:
        """Another round; whether it is the last. None where its problem has no solution."""
        rows, moving = self.rows, self.model.moving
        gap, mean = self._end()
        if gap is None or mean is None:
            return False
        self.gap = gap
        v = self.nu[moving].ravel()
        seen = (self.H.T @ v).reshape(rows.count, rows.dim)
        w = np.zeros_like(seen)
        w[:, 0] = gap / self.h - seen[:, 0]
        slip = np.where(self.lag[:, None], self.start_slip, mean)
        w[:, 1:] = slip - seen[:, 1:]
        problem = ContactProblem(
            M=self.M, H=self.H, v_free=self._free(), w=w.ravel(), mu=rows.mu, e=rows.axes(), dim=rows.dim
        )
        found = solve_closely(problem, self.speed, self.start)
        if found.error > 1e-9 * self.speed:
            return None
        self.start = found.impulse
        change = float(np.max(np.abs(found.velocity - v) * self._lengths(), initial=0.0)) / self.speed
        before, self.error = self.error, change
        self.history.append(change)
        if len(self.history) > 8 and change > ENOUGH and change > SLOW * self.history[-5]:
            return None
        self.nu[moving] = found.velocity.reshape(moving.size, -1)
        if abs(self.h) * float(np.max(np.linalg.norm(self.nu[:, self.model.dim :], axis=1))) > MAX_TURN:
            return None
        self.law = found.contact_velocity.reshape(w.shape)[:, 1:]
        if change > CLOSE and not (change < ENOUGH and change > before / 4):
            return False
        back = self.lag & (np.sum(mean * self.start_slip, axis=1) <= 0)
        if np.any(back):
            self.lag &= ~back
            return False
        return True

    def _lengths(self) -> np.ndarray:
        """(n,) what turns each velocity into m/s."""
        m = self.model.moving
        size = np.where(np.isfinite(self.model.size[m]), self.model.size[m], 1.0)
        ones = np.ones((m.size, self.model.dim))
        return np.hstack([ones, np.repeat(size[:, None], self.model.spins, axis=1)]).ravel()

    def _free(self) -> np.ndarray:
        model, dim, m = self.model, self.model.dim, self.model.moving
        free = np.column_stack([self.state.v, self.state.w])[m]
        free[:, :dim] += self.impulse[m, :dim] / model.mass[m, None]
        torque = self.impulse[m, dim:]
        J_W = model.inertia[m]
        if dim == 3:
            R = self.state.R[m]
            J_W = R @ J_W @ np.swapaxes(R, 1, 2)
            w = self.nu[m, 3:]
            D = tangent_inverse(self.h * w)
            momentum = (J_W @ w[..., None])[..., 0]
            torque = torque - ((np.swapaxes(D, -1, -2) @ momentum[..., None])[..., 0] - momentum)
        free[:, dim:] += np.linalg.solve(J_W, torque[..., None])[..., 0]
        return free.ravel()

    def _end(self) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
        """Gaps at the end of the step and mean slips, (n_c,), (n_c, d - 1); None where points were added."""
        model, rows = self.model, self.rows
        end = self.state.advanced(self.nu, self.h)
        gap = np.zeros(rows.count)
        mean = np.zeros((rows.count, rows.dim - 1))
        self.point = np.zeros_like(rows.point)
        seen = (self.H.T @ self.nu[model.moving].ravel()).reshape(rows.count, rows.dim)[:, 1:]
        for k, (pair, patch) in enumerate(self.found):
            a, b = (model.placed(end, piece) for piece in pair.pieces)
            there = patch_points(a, b, np.inf)
            low = int(np.argmin(there.gap))
            own = np.flatnonzero(self.which == k)
            n = there.normal
            vertices = is_polytope(b.shape)
            if len(patch.gap) == 1 and not (vertices and self._is_vertex(b, own[0])):
                gap[own], points = there.gap[low], there.point_b[[low]]
            else:
                points = end.x[pair.second] + self.material[own] @ end.R[pair.second].T
                gap[own] = (points - there.point_a[low]) @ n
                size = min(model.pieces.size[piece] for piece in pair.pieces)
                lower = there.gap[low] < np.min(gap[own]) - 0.1 * TOUCH * size
                if lower and not vertices and len(patch.gap) < MOST:
                    self._add(k, there.point_b[low], end)
                    return None, None
            self.point[own] = points
            relative = point_velocity(end, pair.second, points - end.x[pair.second])
            relative = relative - point_velocity(end, pair.first, points - end.x[pair.first])
            mean[own] = (seen[own] + self._slips(own, pair, n, relative, end)) / 2
        return gap, mean

    def _is_vertex(self, b: PlacedShape, k: int) -> bool:
        """Whether a contact's point is a vertex of the second body."""
        apart = np.linalg.norm(vertices_of(b.shape) - b.com - self.material[k], axis=1)
        return bool(np.min(apart) <= VERTEX * b.shape.size)

    def _slips(
        self, own: np.ndarray, pair: Pair, n: np.ndarray, relative: np.ndarray, end: State
    ) -> np.ndarray:
        """(k, d - 1) slips at the end, in axes turned with the normal."""
        sign = -1.0 if pair.swapped else 1.0
        axes = [axis[own[0]] for axis in self.rows.axes_W]
        # (rows are in the scene's order of bodies, n and `relative` in the pair's)
        out = [sign * relative @ _turned(axis, sign * axes[0], n) for axis in axes[1:]]
        if self.rows.dim == 4:
            spin = float(n @ (end.w[pair.second] - end.w[pair.first]))
            out.append(np.full(len(relative), spin))
        return np.column_stack(out)

    def _add(self, k: int, point: np.ndarray, end: State) -> None:
        """Another point of a patch: where it was on the second body at the start."""
        pair, patch = self.found[k]
        b = pair.second
        start = self.state.x[b] + self.state.R[b] @ (end.R[b].T @ (point - end.x[b]))
        gap = float((start - patch.point_a[0]) @ patch.normal)
        more = Patch(
            patch.normal,
            np.vstack([patch.point_a, start - gap * patch.normal]),
            np.vstack([patch.point_b, start]),
            np.append(patch.gap, gap),
        )
        found = list(self.found)
        found[k] = (pair, more)
        self._contacts(found)

    def solution(self, rounds: int) -> PositionSolution:
        rows = self.rows
        assert self.start is not None
        p = self.start.reshape(rows.count, rows.dim)
        return PositionSolution(
            self.nu, rows, p, self.law, self.gap, self.lag, self.point, rounds, self.error
        )


def _turned(axis: np.ndarray, n: np.ndarray, to: np.ndarray) -> np.ndarray:
    """A tangent turned with the normal from n to `to`, by the shortest rotation."""
    if n.size == 2:
        turn = np.array([[n @ to, -(n[0] * to[1] - n[1] * to[0])], [n[0] * to[1] - n[1] * to[0], n @ to]])
        return np.asarray(turn @ axis)
    x = np.cross(n, to)
    y = np.cross(x, axis)
    return np.asarray(axis + y + np.cross(x, y) / (1 + n @ to))
