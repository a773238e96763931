"""Impacts within a step: a part of it ends at the instant at which a point closes, and the velocities jump.

The contacts that rest on each other at the start of a part of a step persist through it; other points, open
ones and those that part, are watched. A flight is a step with the persisting contacts alone. Where one as
long as the part would take a watched point beyond the other body, or lifts a pair off the points on which it
rested while others touch (a block that rocks over), the instant of the first such event is found by its gap:
the root of a cubic through gaps and normal velocities of the flights tried so far. The flight to that instant
is followed by the impact of all points that are closed there (`contact.impact`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from implicit_geom.contact.impact import ImpactProblem
from implicit_geom.contact.position_rounds import position_rounds
from implicit_geom.equations.thresholds import IMPACT_SPEED, SLAP, TOUCH
from implicit_geom.geometry.patch_points import Patch
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.model.momentum_rows import kicked, stage_velocities
from implicit_geom.model.records import POSITION, VELOCITY, ContactRecord, Failure, Solve
from implicit_geom.steppers.events.records import after, impact_records, jump, position_records
from implicit_geom.steppers.events.touching_points import TouchingPoints, touching_points

TRIALS = 60
SHORT = 1e-5  # of a step: the length of a short flight
AIM = 0.01  # of the gap that counts as none: where a flight is to end
NEAR = 3e-6  # gap over the smaller body's size from which a short flight leads to the impact
SLACK = 0.1  # of the gap that counts as none: what loads may add to one in a short flight
DEEP = 0.2  # overlap over the smaller body's size that says nothing about the instant
REST = 2e-3  # of what loads add to the speed in a step: bounces slower than that are none

Old = dict[int, np.ndarray]  # the points on which pairs rest, by pair, in the second body's axes
Flight = Callable[[State, float, Old], list[Solve] | Failure]


@dataclass
class Trial:
    """A flight that was tried: its length, its solves, whether it goes too far, and the points watched."""

    length: float
    solves: list[Solve]
    beyond: bool
    watched: dict[int, tuple[float, float]] = field(default_factory=dict)  # least gap, and its velocity
    near: bool = False  # a short flight leads to the impact


class ImpactSearch:
    """Finds the impacts of a model in flights of one kind; `law` is the law of impact."""

    def __init__(self, model: Model, flight: Flight, law: str = "newton") -> None:
        self.model, self.flight, self.law = model, flight, law
        self.acceleration = np.zeros(len(model.bodies))  # by loads, m/s^2

    def next_impact(
        self, state: State, length: float, step: float, candidates: list[int]
    ) -> list[Solve] | Failure:
        """The solves up to the first impact within `length` and the impact, of a step of length `step`.

        The flight over the whole length where there is no impact in it.
        """
        pulled = self.pulled(state, step)
        self.acceleration = pulled / step
        points = [touching_points(self.model, state, c, pulled) for c in candidates]
        if any(np.any(p.striking) for p in points):
            return self.impact(state, points, pulled)
        old: Old = {p.number: p.material[p.resting] for p in points if np.any(p.resting)}
        low = Trial(0.0, [], False, self._watched(points, old, state, 0.0)[0])
        high = self._trial(state, length, step, old, candidates, pulled)
        if isinstance(high, Trial) and not high.beyond:
            if not high.near:
                return high.solves
            low = high
        for _ in range(TRIALS):
            if low.near:
                return self._strike(state, low, length, candidates, pulled)
            top = length if not isinstance(high, Trial) else high.length
            tau = self._next_length(low, high if isinstance(high, Trial) else None, top, points)
            if not low.length < tau < top:
                break
            found = self._trial(state, tau, step, old, candidates, pulled)
            if isinstance(found, Trial) and not found.beyond:
                low = found
            else:
                high = found if isinstance(found, Trial) else Trial(tau, [], True)
        return "no instant of impact was found", []

    def strikes(self, state: State, step: float, candidates: list[int]) -> bool:
        """Whether a point that is closed at a state approaches."""
        pulled = self.pulled(state, step)
        return any(np.any(touching_points(self.model, state, c, pulled).striking) for c in candidates)

    def closes(self, state: State, step: float, end: State, candidates: list[int]) -> bool:
        """Whether another point than those that rest at the start is closed, or beyond, at the end."""
        pulled = self.pulled(state, step)
        self.acceleration = pulled / step
        start = [touching_points(self.model, state, c, pulled) for c in candidates]
        old: Old = {p.number: p.material[p.resting] for p in start if np.any(p.resting)}
        there = [touching_points(self.model, end, c, pulled) for c in candidates]
        for p in there:
            mine = np.zeros(p.patch.gap.size, bool)
            if p.number in old:
                mine = p.near(old[p.number], moved_along(p, state, step)) | (p.patch.gap.size == 1)
            if np.any(p.closed & ~mine):
                return True
        return self._watched(there, old, state, step)[1]

    def short(self, state: State, h: float, step: float, pairs: list[int]) -> list[Solve] | Failure:
        """A flight of a length below SHORT steps, with the pairs that may touch."""
        pulled = self.pulled(state, step)
        old: Old = {}
        for c in pairs:
            p = touching_points(self.model, state, c, pulled)
            if np.any(p.resting):
                old[c] = p.material[p.resting]
        return short_flight(self.model, state, h, old)

    def by_rounds(self, state: State, h: float, old: Old) -> list[Solve] | Failure:
        """A flight with stage 1 at the points on which pairs rest, where Newton's method finds none."""
        model = self.model
        found, _ = resting_points(model, state, state, 0.0, old)
        stage = position_rounds(model, state, h, h / 2 * model.loads(state.time), found)
        if stage is None:
            return "rounds of contact problems did not settle", []
        moved = state.advanced(stage.nu, h)
        before = kicked(model, stage_velocities(model, moved, h), h / 2 * model.loads(state.time + h))
        second = resting_velocities(model, state, before, h, old)
        if second is None:
            return "no impulses were found at the end of a flight", []
        end, more, worst = second
        records = position_records(model, stage, list(old))
        residual = max(stage.residual, worst)
        return [
            Solve(state, end, h, stage.nu, "rattle", [*records, *more], stage.rounds, "continued", residual)
        ]

    def _strike(
        self, state: State, low: Trial, length: float, candidates: list[int], pulled: np.ndarray
    ) -> list[Solve] | Failure:
        """From a flight that ends close by, a short flight to the impact, and the impact."""
        solves, here = low.solves, low.solves[-1].end if low.solves else state
        points = [touching_points(self.model, here, c, pulled) for c in candidates]
        tau = min(self._time_left(p) for p in points)
        if tau > 0:
            old: Old = {p.number: p.material[p.resting] for p in points if np.any(p.resting)}
            more = short_flight(self.model, here, min(tau, length - low.length), old)
            if isinstance(more, tuple):
                return more
            solves, here = [*solves, *more], more[-1].end
            points = [touching_points(self.model, here, c, pulled) for c in candidates]
        struck = self.impact(here, points, pulled)
        return struck if isinstance(struck, tuple) else [*solves, *struck]

    def _reach(self, p: TouchingPoints, speed: np.ndarray | float) -> np.ndarray:
        """Gaps from which a short flight leads to the impact: loads must not change the speed on the way."""
        pull = float(self.acceleration[p.pair.first] + self.acceleration[p.pair.second])
        time = np.sqrt(2 * SLACK * TOUCH * p.size / max(pull, 1e-300))
        return np.minimum(NEAR * p.size, np.abs(speed) * time)

    def _time_left(self, p: TouchingPoints) -> float:
        """Until the next point of a pair closes, s."""
        coming = (p.velocity < -IMPACT_SPEED * p.speed) & (p.patch.gap <= self._reach(p, p.velocity))
        if not np.any(coming):
            return np.inf
        gap = np.where(p.closed, 0.0, p.patch.gap - AIM * TOUCH * p.size)
        return float(np.min(gap[coming] / -p.velocity[coming]))

    def pulled(self, state: State, step: float) -> np.ndarray:
        """(B,) What loads add to the bodies' speeds in the step, m/s."""
        loads = self.model.loads(state.time)[:, : self.model.dim]
        return np.asarray(abs(step) * np.linalg.norm(loads, axis=1) / self.model.mass)

    def _trial(
        self, state: State, length: float, step: float, old: Old, candidates: list[int], pulled: np.ndarray
    ) -> Trial | None:
        if length < SHORT * step:
            solves = short_flight(self.model, state, length, old)
        else:
            solves = self.flight(state, length, old)
        if isinstance(solves, tuple):
            return None
        end = solves[-1].end
        points = [touching_points(self.model, end, c, pulled) for c in candidates]
        watched, beyond, near = self._watched(points, old, state, length)
        return Trial(length, solves, beyond, watched, near)

    def _watched(
        self, points: list[TouchingPoints], old: Old, start: State, length: float
    ) -> tuple[dict[int, tuple[float, float]], bool, bool]:
        """Least gaps and their velocities by pair; whether one is beyond its body; whether one is near."""
        out: dict[int, tuple[float, float]] = {}
        beyond = near = False
        for p in points:
            gap, none = p.patch.gap, TOUCH * p.size
            open_ = np.ones(gap.size, bool)
            if p.number in old:
                rolled = length * float(
                    np.linalg.norm(start.w[p.pair.first]) + np.linalg.norm(start.w[p.pair.second])
                )
                mine = p.near(old[p.number], (SLAP + 2 * rolled) * p.size)
                if gap.size == 1:
                    continue
                open_ = ~mine
                if np.any(gap[open_] <= none) and not np.any(gap[mine] <= none):
                    beyond = True
                    continue
            if not np.any(open_):
                continue
            k = np.flatnonzero(open_)[np.argmin(gap[open_])]
            out[p.number] = float(gap[k]), float(p.velocity[k])
            if length > 0:
                beyond |= bool(gap[k] < -none)
                coming = p.velocity[open_] < -IMPACT_SPEED * p.speed
                near |= bool(np.any((gap[open_] <= self._reach(p, p.velocity[open_])) & coming))
        return out, beyond, near and not beyond

    def _next_length(self, low: Trial, high: Trial | None, top: float, points: list[TouchingPoints]) -> float:
        """Where the first of the watched gaps closes, as far as the trials can tell."""
        best = np.inf
        for p in points:
            if p.number not in low.watched:
                continue
            gap, speed = low.watched[p.number]
            other = None if high is None else high.watched.get(p.number)
            aim = float(self._reach(p, speed if other is None else other[1])) / 2
            if other is not None and -DEEP * p.size < other[0]:
                if other[0] < aim:
                    best = min(best, _root(low.length, gap - aim, speed, top, other[0] - aim, other[1]))
            elif speed < 0:
                best = min(best, low.length + (gap - aim) / -speed)
        middle = (low.length + top) / 2
        return best if low.length < best < top else middle

    def impact(
        self, state: State, points: list[TouchingPoints], pulled: np.ndarray, restitution: bool = True
    ) -> list[Solve] | Failure:
        """The impact of all points that are closed at a state."""
        closed = [p for p in points if np.any(p.closed)]
        found = [p.chosen(p.closed) for p in closed]
        problem = ImpactProblem(self.model, state, found)
        numbers = [p.number for p in closed for _ in range(int(np.sum(p.closed)))]
        problem.slow = REST * np.array(
            [pulled[pair.first] + pulled[pair.second] for pair in problem.rows.pairs]
        )
        impact = problem.solve(self.law, restitution)
        if impact is None:
            return "no impulses of an impact were found", []
        return [jump(self.model, state, impact, numbers)]


def resting_points(
    model: Model, start: State, there: State, length: float, old: Old
) -> tuple[list[tuple[Pair, Patch]], list[int]]:
    """The points on which pairs rested at the start that are closed after a flight, and their pairs."""
    found, order = [], []
    still = np.zeros(len(model.bodies))
    for c, material in old.items():
        p = touching_points(model, there, c, still)
        mine = p.closed & (p.near(material, moved_along(p, start, length)) | (p.patch.gap.size == 1))
        if np.any(mine):
            found.append(p.chosen(mine))
            order += [c] * int(np.sum(mine))
    return found, order


def resting_velocities(
    model: Model, start: State, before: State, length: float, old: Old
) -> tuple[State, list[ContactRecord], float] | None:
    """Stage 2 with the points on which pairs rested at the start: velocities, records, residual."""
    found, order = resting_points(model, start, before, length, old)
    impact = ImpactProblem(model, before, found).solve("newton", restitution=False)
    if impact is None:
        return None
    return after(model, before, impact), impact_records(model, impact, order, VELOCITY), impact.residual


def short_flight(model: Model, state: State, h: float, old: Old) -> list[Solve] | Failure:
    """A flight so short that gaps follow from velocities: stage 1 with the law of stage 2."""
    found, order = resting_points(model, state, state, h, old)
    first = ImpactProblem(model, state, found, h / 2).solve("newton", restitution=False)
    if first is None:
        return "no impulses were found in a short flight", []
    half = after(model, state, first)
    nu = np.column_stack([half.v, half.w])
    moved = stage_velocities(model, state.advanced(nu, h), h)
    second = resting_velocities(
        model, state, kicked(model, moved, h / 2 * model.loads(state.time + h)), h, old
    )
    if second is None:
        return "no impulses were found in a short flight", []
    end, more, worst = second
    records = impact_records(model, first, order, POSITION)
    for record in records:
        record.end_point = record.gap_point = record.point
        record.gap_normal = record.normal
    residual = max(first.residual, worst)
    return [Solve(state, end, h, nu, "rattle", [*records, *more], first.iterations, "converged", residual)]


def moved_along(p: TouchingPoints, start: State, length: float) -> float:
    """How far a contact may run along its body by rolling, m."""
    turning = np.linalg.norm(start.w[p.pair.first]) + np.linalg.norm(start.w[p.pair.second])
    return (SLAP + 2 * length * float(turning)) * p.size


def _root(t0: float, g0: float, v0: float, t1: float, g1: float, v1: float) -> float:
    """The first zero, after t0, of the cubic with these values and slopes at t0 and t1; inf where none."""
    h = t1 - t0
    c = [2 * (g0 - g1) + h * (v0 + v1), 3 * (g1 - g0) - h * (2 * v0 + v1), h * v0, g0]
    roots = np.roots(c)
    inside = roots[np.abs(roots.imag) < 1e-9].real
    inside = inside[(inside > 1e-12) & (inside < 1)]
    return t0 + h * float(inside.min()) if inside.size else np.inf
