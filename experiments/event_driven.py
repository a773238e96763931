"""Event-driven references: free flight between impacts on a plane, and a block that rocks on its corners.

Flight: the centre of mass on a parabola, the rotation by Euler's equations (DOP853). The gap is the height of
the body's lowest point, from its support function; its root is the instant of the impact, where the law of
`impact_law` gives the velocities after it at that pose. Only impacts of one point are known here.

Block: half-width b and half-height H turns about one lower corner, R = |(b, H)|, tan alpha = b / H, by

    theta'' = -3 g / (4 R) sin(alpha sign(theta) - theta)

and where it is upright goes on about the other one with theta' times 1 - 3/2 sin^2 alpha, the only value that
keeps the angular momentum about the corner that is struck [Housner 1963].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from implicit_geom import Scene, rotation, shapes
from implicit_geom.experiments.impact_law import LAWS, Impulse

GRAVITY = 9.81
Swing = Callable[[float], np.ndarray]
TIGHT = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}
WIDEST = 2e-3  # s between two looks at the gap
GROWTH = 1.2  # the looks after an impact lie this much farther apart, one by one
FOREVER = 1e3  # s, for a block to fall
CLOSED = 1e-9  # of the body's size: a gap at the start of a flight that is none
SHORT = 1e-5  # s: a flight that returns sooner is a parabola of the gap, whose own rounding would hide it


@dataclass(frozen=True)
class State:
    """Pose and velocity of the centre of mass, world frame; in the plane q is an angle and w (1,)."""

    time: float
    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray

    @property
    def R(self) -> np.ndarray:
        return rotation.matrix(self.q) if len(self.x) == 3 else rotation.planar(float(self.q))


@dataclass(frozen=True)
class Impact:
    """One impact: the states around it, and its impulse (normal, then x and y; the frame of the plane)."""

    before: State
    after: State
    impulse: Impulse
    approach: float  # m/s


@dataclass(frozen=True)
class Body:
    """A shape of uniform density over the plane z = 0 (y = 0), with its contact law."""

    shape: shapes.Shape
    mass: float = 1.0
    mu: float = 0.0
    e: float = 0.0
    law: str = "newton"
    gravity: float = GRAVITY

    @property
    def inertia(self) -> np.ndarray:
        """(3, 3), (1, 1) in the plane."""
        return np.atleast_2d(self.shape.inertia(self.mass))

    def inertia_at(self, s: State) -> np.ndarray:
        """In world axes."""
        return s.R @ self.inertia @ s.R.T if len(s.x) == 3 else self.inertia

    def lowest(self, s: State) -> tuple[float, np.ndarray]:
        """Height of the lowest point, m, and its place relative to the centre of mass."""
        r = s.R @ (self.shape.support(-s.R[-1:])[0] - self.shape.com)
        return float(s.x[-1] + r[-1]), r

    def energy(self, s: State) -> float:
        """Kinetic and potential energy, J."""
        turning = s.w @ self.inertia_at(s) @ s.w
        return float(self.mass * (s.v @ s.v / 2 + self.gravity * s.x[-1]) + turning / 2)

    def contact(self, s: State, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """W and u of the point r for a contact with the plane."""
        arms = _arms(r)
        u = s.v + arms.T @ s.w
        W = np.eye(len(r)) / self.mass + arms.T @ np.linalg.solve(self.inertia_at(s), arms)
        return np.roll(np.roll(W, 1, 0), 1, 1), np.roll(u, 1)

    def struck(self, s: State) -> Impact:
        """The impact of the lowest point."""
        _, r = self.lowest(s)
        W, u = self.contact(s, r)
        impulse = LAWS[self.law](W, u, self.mu, self.e)
        push = np.roll(impulse.p, -1)
        w = s.w + np.linalg.solve(self.inertia_at(s), _arms(r) @ push)
        return Impact(s, replace(s, v=s.v + push / self.mass, w=w), impulse, -float(u[0]))

    def scene(self, s: State) -> Scene:
        """The same body for the steppers."""
        flat = len(s.x) == 2
        scene = Scene(dim=len(s.x), gravity=[*np.zeros(len(s.x) - 1), -self.gravity])
        ground = shapes.halfplane(normal=(0, 1)) if flat else shapes.halfspace(normal=(0, 0, 1))
        scene.add("plane", ground, fixed=True)
        pose = {"position": s.x, "orientation": float(s.q) if flat else s.q}
        spin = float(s.w[0]) if flat else s.w
        scene.add("body", self.shape, mass=self.mass, **pose, velocity=s.v, angular_velocity=spin)
        scene.friction(mu=self.mu, restitution=self.e)
        return scene


def _arms(r: np.ndarray) -> np.ndarray:
    """Moment of a force at r: arms @ force; (spins, dim)."""
    return rotation.skew(r) if len(r) == 3 else np.array([[-r[1], r[0]]])


class Flight:
    """The motion from a state as long as nothing is struck."""

    def __init__(self, body: Body, start: State, duration: float) -> None:
        self.body, self.start, self.duration = body, start, duration
        self._turning = None
        if len(start.x) == 3 and np.any(start.w):
            J = body.inertia

            def rates(_: float, y: np.ndarray) -> np.ndarray:
                q, w = y[:4], y[4:]  # spin in the body's axes
                dq = np.concatenate([[-q[1:] @ w], q[0] * w + np.cross(q[1:], w)]) / 2
                return np.concatenate([dq, -np.linalg.solve(J, np.cross(w, J @ w))])

            first = np.concatenate([start.q, start.R.T @ start.w])
            reach = max(duration, 2 * SHORT)  # (as far as `touch` looks)
            self._turning = solve_ivp(rates, (0, reach), first, dense_output=True, **TIGHT).sol

    def at(self, tau: float) -> State:
        """The state tau seconds after the start."""
        s, fall = self.start, np.zeros(len(self.start.x))
        fall[-1] = -self.body.gravity
        moved = replace(s, time=s.time + tau, x=s.x + tau * s.v + tau**2 / 2 * fall, v=s.v + tau * fall)
        if len(fall) == 2:
            return replace(moved, q=s.q + tau * s.w[0])
        if self._turning is None:
            return moved
        y = self._turning(tau)
        q = y[:4] / np.linalg.norm(y[:4])
        return replace(moved, q=q, w=rotation.matrix(q) @ y[4:])

    def gap(self, tau: float) -> float:
        return self.body.lowest(self.at(tau))[0]

    def touch(self) -> float | None:
        """When the gap is next zero, s after the start; None where it is not within the duration."""
        s = self.start
        _, r = self.body.lowest(s)
        rise = float(self.body.contact(s, r)[1][0])
        leaving = abs(self.gap(0.0)) < CLOSED * self.body.shape.size
        if leaving and rise <= 0:
            raise ArithmeticError(f"the contact at t = {s.time:g} s lasts: there is no flight")
        if leaving:
            # the gap's second derivative over a time in which it is well above rounding
            bend = (self.gap(2 * SHORT) - 2 * self.gap(SHORT) + self.gap(0.0)) / SHORT**2
            back = -2 * rise / bend if bend < 0 else np.inf
            if back < SHORT:
                return back if back < self.duration else None
        last, step = 0.0, SHORT if leaving else WIDEST
        if leaving:
            last = min(SHORT / 2, self.duration)
        while last < self.duration:
            look = min(last + step, self.duration)
            if self.gap(look) < 0:
                return float(brentq(self.gap, last, look, xtol=1e-16, rtol=1e-15))
            last, step = look, min(step * GROWTH, WIDEST)
        return None


def bounces(body: Body, start: State, duration: float) -> Iterator[tuple[Flight, Impact | None]]:
    """The flights in order, each with the impact that ends it; None after the last one."""
    end, s, length = start.time + duration, start, duration
    while True:
        left = max(end - s.time, 0.0)
        flight = Flight(body, s, min(length, left))
        tau = flight.touch()
        while tau is None and flight.duration < left:  # (flights get shorter and shorter: most are over soon)
            flight = Flight(body, s, min(2 * flight.duration, left))
            tau = flight.touch()
        if tau is None:
            yield flight, None
            return
        impact = body.struck(flight.at(tau))
        yield flight, impact
        s, length = impact.after, 2 * max(tau, SHORT)


def first_impacts(body: Body, start: State, duration: float, most: int) -> list[Impact]:
    """At most so many impacts from the start."""
    found = []
    for _, impact in bounces(body, start, duration):
        if impact is None or len(found) == most:
            break
        found.append(impact)
    return found


def states_at(body: Body, start: State, times: np.ndarray) -> list[State]:
    """The motion at rising times; at the very instant of an impact, before it."""
    out: list[State] = []
    for flight, impact in bounces(body, start, float(times[-1]) - start.time):
        until = np.inf if impact is None else impact.before.time
        while len(out) < len(times) and times[len(out)] <= until:
            out.append(flight.at(float(times[len(out)]) - flight.start.time))
        if len(out) == len(times):
            break
    return out


def _standing(_: float) -> np.ndarray:
    return np.zeros(2)


@dataclass(frozen=True)
class Rocking:
    """A block of half-width b and half-height H (m) that rocks without slip or bounce."""

    b: float
    H: float
    gravity: float = GRAVITY

    @property
    def alpha(self) -> float:
        """The angle of its diagonal to its height, rad."""
        return float(np.arctan2(self.b, self.H))

    @property
    def rate(self) -> float:
        """Housner's p, sqrt(3 g / (4 R)), 1/s."""
        return float(np.sqrt(3 * self.gravity / (4 * np.hypot(self.b, self.H))))

    @property
    def factor(self) -> float:
        """Of the angular velocity at an impact; its square is the share of energy that is kept."""
        return 1 - 1.5 * float(np.sin(self.alpha)) ** 2

    def swings(self, angle: float, duration: float) -> Iterator[tuple[float, float, Swing]]:
        """From rest at an angle: start and end of each swing about one corner, and (theta, theta') in it.

        Swings get shorter and shorter, infinitely many in a finite time; then the block stands.
        """
        rate = self.rate**2
        time, y = 0.0, np.array([angle, 0.0])
        while time < duration:
            side = 1.0 if (y[0] or y[1]) > 0 else -1.0

            def turning(_: float, y: np.ndarray, side: float = side) -> list[float]:
                return [y[1], -rate * np.sin(self.alpha * side - y[0])]

            def upright(t: float, y: np.ndarray, side: float = side) -> float:
                return side * y[0] if t > 0 else 1.0

            upright.terminal, upright.direction = True, -1  # type: ignore[attr-defined]
            # theta is a parabola in a short swing: 2 |theta'| / (rate sin alpha) long
            longest = np.inf if y[0] else abs(y[1]) / (rate * np.sin(self.alpha)) / 2
            if longest < SHORT:
                yield time, np.inf, _standing
                return
            found = solve_ivp(
                turning,
                (0, duration - time),
                y,
                dense_output=True,
                events=upright,
                max_step=longest,
                **TIGHT,
            )
            yield time, time + found.t[-1], found.sol
            time += found.t[-1]
            y = np.array([0.0, self.factor * found.y[1, -1]])

    def states_at(self, angle: float, times: np.ndarray) -> np.ndarray:
        """(T, 2) theta, theta' at rising times."""
        out: list[np.ndarray] = []
        for start, end, swing in self.swings(angle, float(times[-1])):
            while len(out) < len(times) and times[len(out)] <= end:
                out.append(swing(times[len(out)] - start))
        return np.array(out)

    def fall(self, angle: float) -> float:
        """How long it takes from rest at an angle to upright, s."""
        return next(self.swings(angle, FOREVER))[1]

    def impacts(self, angle: float, duration: float) -> np.ndarray:
        """The instants at which it is upright, s, until they follow each other too soon to be told apart."""
        ends = [end for _, end, _ in self.swings(angle, duration)]
        return np.array(ends[:-1])
