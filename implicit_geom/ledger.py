"""Where the energy of a step goes.

A solve is one kick (`implicit-euler`) or two (the stages of `implicit-rattle`) at fixed poses. The work of
an impulse p in a kick is p . (u + u') / 2, with u and u' the velocities it acts against before and
after. Over a solve

    change of kinetic + potential = work - friction - impact + remainder

    work       of applied forces and torques, gravity apart
    friction   minus the work of friction where a contact slides, or slid at the start
    impact     minus the work of all impulses of contacts that were open, or approaching, at the start (their
               friction included: of either part alone not even the sign is certain), and of gravity
               acting all step long on a body that was stopped on its way
    remainder  all else: the error of the time step
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.body import drifted, kicked
from implicit_geom.contact_geometry import is_halfspace
from implicit_geom.model import Model, State
from implicit_geom.rattle_problem import with_velocities
from implicit_geom.rotation import turning
from implicit_geom.steppers.solve import EULER, POSITION, VELOCITY

SLIDES = 1e-9  # slip, over the larger of 1 m/s and the speeds at hand, above which a contact slides
ROUNDING = 1e-12  # of the energies at hand: a gain below this is none
DIRECTIONS = 4000  # sampled for the smallest height of a body's centre over a plane


@dataclass(frozen=True)
class Entry:
    """The ledger of one solve, J."""

    change: float
    work: float
    friction: float
    impact: float

    @property
    def remainder(self) -> float:
        return self.change - self.work + self.friction + self.impact


def energy(model: Model, state: State) -> float:
    """Kinetic and potential energy, J."""
    return kinetic(model, state) + potential(model, state)


def kinetic(model: Model, state: State) -> float:
    m = model.moving
    v, w = state.v[m], state.w[m]
    if model.dim == 3:
        w = np.einsum("bji,bj->bi", state.R[m], w)  # body axes
    linear = np.einsum("b,bi,bi->", model.mass[m], v, v)
    return float(linear + np.einsum("bi,bij,bj->", w, model.inertia[m], w)) / 2


def potential(model: Model, state: State) -> float:
    m = model.moving
    return -float(np.sum(model.mass[m] * (state.x[m] @ model.scene.gravity)))


def step_ledger(model: Model, solve: Any) -> Entry:
    """The ledger of one solve; kept with it."""
    if solve.ledger is None:
        solve.ledger = _ledger(model, solve)
    return solve.ledger


def _ledger(model: Model, solve: Any) -> Entry:
    change = energy(model, solve.end) - energy(model, solve.start)
    work = friction = impact = 0.0
    pulled = np.zeros((len(model.bodies), model.dim))  # distance over which gravity acted in the kicks
    for pose, before, after, contacts, loads, time in _kicks(model, solve):
        mean = (before + after) / 2
        work += float(np.sum(loads * mean))
        pulled += time * mean[:, : model.dim]
        for c in contacts:
            normal, tangential = _work(model, pose, mean, c)
            if c.impact:
                impact -= normal + tangential
            elif c.slid or _slides(c, mean):
                friction -= tangential
    struck = {b for c in solve.contacts if c.impact for b in _bodies(model, c)}
    for b in struck.intersection(model.moving.tolist()):
        weight = model.mass[b] * model.scene.gravity
        impact -= float(weight @ (pulled[b] - (solve.end.x[b] - solve.start.x[b])))
    return Entry(change, work, friction, impact)


Kick = tuple[State, np.ndarray, np.ndarray, list[Any], np.ndarray, float]


def _kicks(model: Model, solve: Any) -> list[Kick]:
    """Pose, velocities before and after, contacts, applied impulse without gravity, time of each kick."""
    start, end, h = solve.start, solve.end, solve.h
    begin, final = _nu(start), _nu(end)
    stages = [[c for c in solve.contacts if c.stage == i] for i in range(3)]
    if solve.form == "euler":
        kicks: list[Kick] = [(end, begin, solve.half, stages[EULER], h * _applied(model, start.time), h)]
        if stages[VELOCITY]:
            kicks.append((end, solve.half, final, stages[VELOCITY], np.zeros_like(begin), 0.0))
        return kicks
    half = with_velocities(start, solve.half)
    left = np.column_stack([half.v, kicked(model, half, h)])
    right = _nu(drifted(model, with_velocities(end, solve.half), h))
    first, second = _applied(model, start.time), _applied(model, start.time + h)
    return [
        (start, begin, left, stages[POSITION], h / 2 * first, h / 2),
        (end, right, final, stages[VELOCITY], h / 2 * second, h / 2),
    ]


def _bodies(model: Model, c: Any) -> tuple[int, int]:
    """The two bodies of a contact in the scene's order."""
    p = model.pairs[c.pair]
    return (p.second, p.first) if p.swapped else (p.first, p.second)


def _nu(state: State) -> np.ndarray:
    return np.column_stack([state.v, state.w])


def _applied(model: Model, time: float) -> np.ndarray:
    loads = model.loads(time)
    loads[model.moving, : model.dim] -= model.mass[model.moving, None] * model.scene.gravity
    return loads


def _work(model: Model, pose: State, nu: np.ndarray, c: Any) -> tuple[float, float]:
    """Work of the normal impulse and of friction for the velocities nu."""
    dim = model.dim
    first, second = _bodies(model, c)
    relative = _velocity(nu[second], c.point - pose.x[second]) - _velocity(nu[first], c.point - pose.x[first])
    normal = c.p_n * float(c.normal @ relative)
    tangential = c.p_f[0] * float(c.tangent @ relative)
    if dim == 3:
        spin = float(c.normal @ (nu[second, 3:] - nu[first, 3:]))
        tangential += c.p_f[1] * float(c.binormal @ relative) + c.p_f[2] * spin
    return normal, tangential


def _velocity(nu: np.ndarray, r: np.ndarray) -> np.ndarray:
    return np.asarray(nu[: r.size] + turning(nu[r.size :], r))


def _slides(c: Any, nu: np.ndarray) -> bool:
    speed = float(np.max(np.abs(nu), initial=1.0))
    return bool(np.linalg.norm(c.slip) > SLIDES * speed)


class EnergyScale:
    """Energy above the lowest configuration that a scene can reach.

    Over a fixed horizontal half-space that is the one in which every body lies on its flattest side;
    elsewhere, and for shapes whose support is sampled, the body's own size is the depth it could fall.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        gravity = model.scene.gravity
        self.strength = float(np.linalg.norm(gravity))
        self.weight = self.strength * float(np.sum(model.mass[model.moving]))  # of all bodies, N
        self.depth = np.where(np.isfinite(model.size), model.size, 1.0)
        self.lowest = np.full(len(model.bodies), np.nan)  # height of the centre, where it is known
        if self.strength == 0:
            return
        self.up = -gravity / self.strength
        floors = [
            float(b.shape.values[-1] + b.position @ self.up)
            for b in model.bodies
            if b.fixed and is_halfspace(b.shape) and _is_level(b, self.up, model.dim)
        ]
        if floors:
            for i in model.moving:
                shape = model.bodies[i].shape
                if shape.bounded and shape.support_exact:
                    self.lowest[i] = max(floors) + _smallest_height(model, int(i))

    def above_lowest(self, state: State) -> float:
        """Kinetic energy and potential energy above the lowest configuration, J."""
        return kinetic(self.model, state) + self._potential(state)

    def rounding(self, state: State, h: float) -> float:
        """What rounding may make of the energy in a step, J.

        ROUNDING of the kinetic energy and of what lifts every body by its own size; and the energy of
        moving by a billionth of that size in the step, which counts as rest.
        """
        m = self.model.moving
        mass, depth = self.model.mass[m], self.depth[m]
        size = kinetic(self.model, state) + float(np.sum(mass * self.strength * depth))
        return ROUNDING * size + float(np.sum(mass * (1e-9 * depth / h) ** 2))

    def _potential(self, state: State) -> float:
        if self.strength == 0:
            return 0.0
        m = self.model.moving
        height = state.x[m] @ self.up - self.lowest[m]
        fall = np.where(np.isnan(height), self.depth[m], np.maximum(height, 0.0))
        return float(np.sum(self.model.mass[m] * self.strength * fall))


def _is_level(body: Any, up: np.ndarray, dim: int) -> bool:
    from implicit_geom import rotation

    R = rotation.matrix(body.orientation) if dim == 3 else rotation.planar(float(body.orientation))
    return bool(R @ body.shape.values[:-1] @ up > 1 - 1e-12)


def _smallest_height(model: Model, i: int) -> float:
    """The least distance of a body's centre of mass from a plane that touches it, over all directions."""
    shape, com = model.bodies[i].shape, model.com[i]
    if model.dim == 2:
        angle = np.linspace(0, 2 * np.pi, DIRECTIONS, endpoint=False)
        n = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        k = np.arange(DIRECTIONS) + 0.5
        z, turn = 1 - 2 * k / DIRECTIONS, np.pi * (1 + 5**0.5) * k  # a spiral over the sphere
        r = np.sqrt(1 - z**2)
        n = np.vstack([np.column_stack([r * np.cos(turn), r * np.sin(turn), z]), np.eye(3), -np.eye(3)])
    return float(np.min(shape.support_value(n) - n @ com))
