"""The NCPs of the two stages of the RATTLE step: positions, then velocities (`equations.contact_ncp`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from implicit_geom.contact.step_ncp import CONDENSED, StepNCP
from implicit_geom.equations.thresholds import LAG, POINT_SHIFT, TOUCH
from implicit_geom.equations.unknowns import flat
from implicit_geom.model.closest_point_problem import shorten
from implicit_geom.model.contact_group import ContactGroup, ContactPoints, WarmStart
from implicit_geom.model.model import Model, State
from implicit_geom.rotation import cross, rotational_velocity


@dataclass
class StartContact:
    """A pair at the start of a step."""

    gap: float  # m
    normal_velocity: float  # m/s
    slip: np.ndarray  # of the kept components
    touching: bool
    r2: np.ndarray  # closest point of the second body, from its centre of mass, m
    lagged: bool = False
    flat: bool = False  # along a line or a face: the point is any of it


class PositionNCP(StepNCP):
    """Stage 1: wrenches at the start, gaps at the end, velocities in between."""

    scheme = "position"
    at_end = False  # push every contact that may be a line or a face at its end-of-step point

    def __init__(self, model: Model, candidates: list[int], condensed: int = CONDENSED) -> None:
        super().__init__(model, candidates, condensed)
        self.starts: dict[int, StartContact] = {}

    def _start(self, g: ContactGroup, state: State, warm: dict[int, WarmStart]) -> np.ndarray:
        unknowns = super()._start(g, state, warm)
        at, dim = g.kernel.layout.at, self.model.dim
        points = g.closest(unknowns, self.h)
        B = g.patches(points, unknowns[:, at["l"].start : at["k"].stop])
        touching = points.gap <= TOUCH * g.get("L")[:, 0]
        flat_start = np.any(B, axis=(1, 2))
        if g.kernel.kind.patches:
            B[~touching | self.at_end] = np.eye(dim)
        g.set("B", flat(B))
        normal, slip = start_velocity(g, state, points)
        for i, body in ((1, g.first), (2, g.second)):
            g.set(f"start{i}", np.column_stack([state.v, state.w])[body])
        e = g.get("e")
        pressed = np.maximum(unknowns[:, at["P_n"]][:, 0], self._pulled(g))
        speed = np.linalg.norm(e * slip, axis=1)
        lag = touching & (speed > LAG * g.get("mu")[:, 0] * pressed) & (speed > 1e-9 * g.get("U")[:, 0])
        if g.kernel.kind.patches and dim == 3:
            # where the point is not known yet, it must slide wherever it is
            spin = np.einsum("ni,ni->n", points.n, state.w[g.second] - state.w[g.first])
            flat_there = np.any(B, axis=(1, 2))
            lag &= ~flat_there | (speed > LAG * np.abs(spin) * g.get("L")[:, 0])
        g.set("lag", lag[:, None])
        known = (touching.tolist(), points.r2, lag.tolist(), flat_start.tolist())
        columns = (points.gap.tolist(), normal.tolist(), slip, *known)
        self.starts.update(zip(warm, map(StartContact, *columns), strict=False))
        return unknowns

    def _pulled(self, g: ContactGroup) -> np.ndarray:
        """What the loads of the stage add to the speed of the faster body, m/s."""
        return np.maximum(self.bodies.pulled[g.first], self.bodies.pulled[g.second])

    def release_reversed_slip(self, z: np.ndarray) -> bool:
        """Contacts that slip against the slip of the start oppose the mean slip from now on; whether any."""
        found = False
        for (g, _, members), inputs in zip(self.members(), self.gather, strict=True):
            lag = g.get("lag")[:, 0] > 0
            if not np.any(lag):
                continue
            seen, e = g.seen(z[inputs]), g.get("e")
            back = lag & (np.einsum("ni,ni->n", e * seen["mean_slip"], e * seen["start_slip"]) <= 0)
            if np.any(back):
                found = True
                g.set("lag", (lag & ~back)[:, None])
                for i in np.flatnonzero(back):
                    self.starts[members[i]].lagged = False
        return found


class EndPointNCP(PositionNCP):
    """Stage 1 with B = I: less accurate, but solvable where a contact jumps from an edge to a face."""

    at_end = True


@dataclass
class EndContact:
    """A closed contact at the end of stage 1, where stage 2 takes over."""

    r1: np.ndarray
    r2: np.ndarray
    n: np.ndarray
    t: np.ndarray
    o: np.ndarray
    gap: float
    multipliers: np.ndarray  # l, k
    impulses: np.ndarray  # P_n, S, sigma of stage 1, to start from
    m_c: float
    lagged: bool = False
    slid: bool = False
    impact: bool = False
    bounce: float = 0.0
    drift: float = 0.0  # what the velocities of Euler's form lag behind at the normal, m/s


class VelocityNCP(StepNCP):
    """Stage 2: the impulses that leave no closed contact approaching."""

    scheme = "velocity"

    def __init__(self, model: Model, candidates: list[int], condensed: int = CONDENSED) -> None:
        super().__init__(model, candidates, condensed)
        for g, own, _ in self.members():
            at = g.kernel.layout.at
            self.shift[own[:, at["l"].start : at["k"].stop]] = POINT_SHIFT

    def prepare_contacts(
        self, state: State, h: float, impulse: np.ndarray, ends: dict[int, EndContact], tolerance: float
    ) -> np.ndarray:
        """Set the parameters from the state before the stage; returns the unknowns to start from."""
        self.h = h
        self.bodies.prepare(state, h, impulse)
        z = np.zeros(self.size)
        z[: self.bodies.size] = np.column_stack([state.v, state.w])[self.model.moving].ravel()
        self._tolerances(tolerance)
        for g, own, members in self.members():
            contacts = [ends[c] for c in members]
            points = ContactPoints(
                *(np.array([getattr(c, name) for c in contacts]) for name in ("r1", "r2", "n", "gap"))
            )
            multipliers = np.array([c.multipliers for c in contacts])
            z[own] = g.prepare_velocity(state, h, self.bodies, points, multipliers)
            for name in ("t", "o"):
                g.set(name, np.array([getattr(c, name) for c in contacts]))
            g.set("bounce", np.array([[c.bounce] for c in contacts]))
            g.set("sense", np.array([[1.0 if c.lagged else np.sign(h)] for c in contacts]))
            at = g.kernel.layout.at
            factor = np.array([c.m_c for c in contacts]) / g.get("m_c")[:, 0]
            z[own[:, at["P_n"].start :]] = np.array([c.impulses for c in contacts]) * factor[:, None]
            floor = 1e-15 * g.get("L")[:, 0] / (abs(h) * g.get("U")[:, 0])
            self.tolerance[own[:, at["l"].start : at["k"].stop]] += 32 * floor[:, None]
            self.proximal[own[:, at["P_n"].start :]] = 1 / g.get("U")
        return z

    def certified(self, z: np.ndarray) -> bool:
        return bool(np.all(np.isfinite(z)))

    def restrict(self, dz: np.ndarray) -> np.ndarray:
        """At most one body size for a contact point in an iteration."""
        dz = dz.copy()
        for g, own, _ in self.members():
            points = own[:, g.kernel.layout.at["r"]]
            steps = dz[points]
            shorten(steps)
            dz[points] = steps
        return dz


def start_velocity(
    g: ContactGroup, state: State, points: ContactPoints, n: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Normal velocity (n,) and slip (n, components) at the given points with the velocities of `state`."""
    n = points.n if n is None else n
    relative = point_velocity(state, g.second, points.r2) - point_velocity(state, g.first, points.r1)
    along = {}
    if n.shape[1] == 2:
        along["t"] = np.column_stack([n[:, 1], -n[:, 0]])
    else:
        reference = g.get("direction")
        frame = g.kernel.kind.frame
        if frame in ("first", "second"):
            body = g.first if frame == "first" else g.second
            reference = np.einsum("nij,nj->ni", state.R[body], reference)
        across = reference - np.einsum("ni,ni->n", reference, n)[:, None] * n
        along["t"] = across / np.maximum(np.linalg.norm(across, axis=1), 1e-15)[:, None]
        along["o"] = cross(n, along["t"])
    kept = g.kernel.kind.components
    slip = np.zeros((g.n, len(kept)))
    for i, name in enumerate(kept):
        if name == "r":
            slip[:, i] = np.einsum("ni,ni->n", n, state.w[g.second] - state.w[g.first])
        else:
            slip[:, i] = np.einsum("ni,ni->n", along[name], relative)
    return np.einsum("ni,ni->n", n, relative), slip


def point_velocity(state: State, body: Any, r: np.ndarray) -> np.ndarray:
    """Velocity of the point r from the centre of mass, of one body or of several."""
    return np.asarray(state.v[body] + rotational_velocity(state.w[body], r))


def impact_velocity(gap: float, before: float, free: float, h: float) -> float:
    """Normal velocity at the instant of impact, <= 0, for a gap that closes within the step.

    With the normal velocity running linearly from `before` at the start to `free` at the end of the
    step, were there no contact, the gap is used up at the speed sqrt(before^2 - 2 a gap).
    """
    a = (free - before) / h
    square = before**2 - 2 * a * max(gap, 0.0)
    return -float(np.sqrt(square)) if square > 0 else min(free, 0.0)


def with_velocities(state: State, nu: np.ndarray) -> State:
    """The state with other velocities, (B, dim + spins)."""
    dim = state.x.shape[1]
    return replace(state, v=nu[:, :dim], w=nu[:, dim:])
