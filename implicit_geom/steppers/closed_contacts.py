"""Closed contacts of a solution: warm starts, records, and what the velocity stage takes over."""

from __future__ import annotations

from itertools import repeat

import numpy as np

from implicit_geom.contact.rattle_ncp import (
    EndContact,
    StartContact,
    VelocityNCP,
    point_velocity,
    start_velocity,
)
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.equations.thresholds import IMPACT_SPEED, SLAP, SLIDES, TOUCH
from implicit_geom.geometry.polytopes import is_polytope
from implicit_geom.interface.errors import SimulationError
from implicit_geom.model.contact_group import ContactGroup, WarmStart
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.model.records import EULER, ContactRecord
from implicit_geom.steppers.memory import StepperMemory
from implicit_geom.steppers.search import SolutionSearch

ROUND_A_RIM = 0.5  # travel along a body in a step, over its size, that is a jump in any case


def start_contacts(memory: StepperMemory, problem: StepNCP, state: State) -> dict[int, StartContact]:
    """Gap and normal velocity of every candidate at the start of the step; before `accept`."""
    starts: dict[int, StartContact] = {}
    for g, _, members in problem.members():
        warm = [memory.warm[c] for c in members]
        unknowns = np.array([w.unknowns for w in warm])
        unknowns[:, g.kernel.layout.at["D"]] *= np.array([[abs(w.h / problem.h)] for w in warm])
        points = g.closest(unknowns, problem.h)
        normal, slip = start_velocity(g, state, points)
        touching = points.gap <= TOUCH * g.get("L")[:, 0]
        columns = (points.gap.tolist(), normal.tolist(), slip, touching.tolist(), points.r2)
        starts.update(zip(members, map(StartContact, *columns), strict=False))
    return starts


def accept(
    search: SolutionSearch,
    problem: StepNCP,
    z: np.ndarray,
    start: State,
    end: State,
    h: float,
    stage: int,
    starts: dict[int, StartContact],
    events: bool = False,
) -> tuple[list[ContactRecord], dict[int, EndContact]]:
    """Keep the unknowns for the next step; closed contacts for the records and for the velocity stage.

    `events`: impacts are events, see `impacts`: also of contacts that parted, and of vertices that follow
    one another.
    """
    memory, model = search.memory, search.model
    memory.begun = True
    records: list[ContactRecord] = []
    ends: dict[int, EndContact] = {}
    at_start = stage != EULER
    for (g, own, members), inputs in zip(problem.members(), problem.gather, strict=True):
        seen, u = g.seen(z[inputs]), z[own]
        names = {n: f"end_{n}" if at_start else n for n in ("r1", "r2", "n", "t", "o")}
        n, t, gap = seen[names["n"]], seen[names["t"]], seen["gap"][:, 0]
        m_c, U = g.get("m_c")[:, 0], g.get("U")[:, 0]
        reference = g.directions(n, g.get("direction"))
        if at_start:
            reference = np.where(g.given[:, None], reference, t)
        memory.broad.normals.update(zip(members, n, strict=True))
        memory.warm.update(zip(members, map(WarmStart, u, reference, m_c.tolist(), repeat(h)), strict=False))
        # closed: the natural map's active branch, P_n > gap / h; or just touching
        closed = seen["p_n"][:, 0] / m_c > gap / abs(h)
        touching = closed | (gap <= TOUCH * g.get("L")[:, 0])
        _take_over(g, seen, names, u, np.flatnonzero(touching), ends)
        chosen = np.flatnonzero(closed)
        for i in np.flatnonzero(closed & g.given).tolist():
            _check_tangent(model, model.pairs[members[i]], t[i])
        found = contact_records(model, g, seen, chosen, start if at_start else end, gap[chosen], stage)
        # (Euler's form leaves contacts approaching at a speed of order h)
        fast = (IMPACT_SPEED if at_start else SLAP) * U
        points = end.x[g.second] + seen[names["r2"]]
        slips = np.array([starts[c].slip for c in members]).reshape(g.n, -1)
        slips[:, [name == "r" for name in g.kernel.kind.components]] *= g.get("L")
        slid = np.linalg.norm(slips, axis=1) > SLIDES * U
        for i in np.flatnonzero(touching & ~closed).tolist():  # (for stage 2: just touching, without impulse)
            before, last = starts[members[i]], ends[members[i]]
            last.impact = not (before.touching and before.normal_velocity >= -fast[i])
            last.slid = bool(slid[i])
        for i, record in zip(chosen.tolist(), found, strict=True):
            c = members[i]
            before, last = starts[c], ends[c]
            speed = before.normal_velocity
            parts = events and not before.flat and speed > fast[i]
            slow = speed >= -fast[i] and not parts
            struck = not (before.touching and slow)
            if not struck and g.kernel.kind.patches:
                struck = _slaps(search, c, before, last, start, end, h, events)
            record.impact = last.impact = struck
            record.lagged = last.lagged = before.lagged
            record.slid = last.slid = bool(slid[i])
            if at_start:
                record.end_point = points[i]
        records += found
    return records, ends


def _take_over(
    g: ContactGroup,
    seen: dict[str, np.ndarray],
    names: dict[str, str],
    u: np.ndarray,
    chosen: np.ndarray,
    ends: dict[int, EndContact],
) -> None:
    """What the velocity stage needs of the chosen contacts of a group."""
    at = g.kernel.layout.at
    columns = (
        *(seen[names[name]][chosen] for name in ("r1", "r2", "n", "t", "o")),
        seen["gap"][chosen, 0].tolist(),
        u[chosen, at["l"].start : at["k"].stop],
        u[chosen, at["P_n"].start :],
        g.get("m_c")[chosen, 0].tolist(),
    )
    rows = (EndContact(*row) for row in zip(*columns, strict=True))
    ends.update(zip(g.numbers[chosen].tolist(), rows, strict=True))


def contact_records(
    model: Model,
    g: ContactGroup,
    seen: dict[str, np.ndarray],
    chosen: np.ndarray,
    at: State,
    gap: np.ndarray,
    stage: int,
) -> list[ContactRecord]:
    """The chosen contacts of a group, with these gaps, from what its kernel reports; `at` has the poses."""
    dim = model.dim
    p_f, slip = np.zeros((2, len(chosen), 3))
    where = ["tor".index(name) for name in g.kernel.kind.components]
    p_f[:, where], slip[:, where] = seen["p_f"][chosen], seen["slip"][chosen]
    sign = np.where(g.swapped[chosen], -1.0, 1.0)
    p_f[:, 0] *= sign
    slip[:, 0] *= sign
    n, t, o = (seen[name][chosen] for name in ("n", "t", "o"))
    columns = (
        g.numbers[chosen].tolist(),
        at.x[g.second[chosen]] + seen["r2"][chosen][:, :dim],
        sign[:, None] * n,
        t,
        sign[:, None] * o,
        gap.tolist(),
        seen["p_n"][chosen, 0].tolist(),
        p_f,
        slip,
        repeat(stage, len(chosen)),
    )
    return [ContactRecord(*row) for row in zip(*columns, strict=True)]


def _slaps(
    search: SolutionSearch,
    c: int,
    before: StartContact,
    last: EndContact,
    start: State,
    end: State,
    h: float,
    events: bool,
) -> bool:
    """Whether a contact that was closed jumped to another part of the body: an edge that falls flat."""
    model = search.model
    pair = model.pairs[c]
    if not pair.kernel.kind.patches:
        return False
    b, L = pair.second, float(min(model.pieces.size[piece] for piece in pair.pieces))
    carried = start.R[b] @ (end.R[b].T @ last.r2)
    rolled = abs(h) * float(np.linalg.norm(start.w[pair.first]) + np.linalg.norm(start.w[b]))
    if float(np.linalg.norm(carried - before.r2)) < (SLAP + 2 * rolled) * L:
        return False
    relative = point_velocity(start, b, last.r2) - point_velocity(start, pair.first, last.r1)
    if events:
        turning = float(np.linalg.norm(start.w[pair.first]) + np.linalg.norm(start.w[b]))
        if last.n @ relative >= -SLAP * np.linalg.norm(relative) - IMPACT_SPEED * L * turning:
            return False
        travel = float(np.linalg.norm(carried - before.r2))
        if travel > ROUND_A_RIM * L or any(is_polytope(model.pieces.shapes[k]) for k in pair.pieces):
            return True
    weak = SLAP * abs(h) * float(np.linalg.norm(model.scene.gravity))  # (what gravity alone makes of rest)
    if last.n @ relative >= -SLAP * (weak + np.linalg.norm(relative)):
        return False
    # a contact that runs along a rim is no slap: the end must be a line or a face
    problem = search.equations(VelocityNCP, [c])
    nothing = np.zeros((len(model.bodies), problem.velocities))
    problem.prepare_contacts(end, h, nothing, {c: last}, search.tolerance)
    return bool(np.any(problem.groups[0].get("B")))


def _check_tangent(model: Model, pair: Pair, t: np.ndarray) -> None:
    """A given direction along the normal leaves the tangent without a meaning."""
    if pair.law.direction is not None and abs(np.linalg.norm(t) - 1) > 1e-6:
        names = f"{model.names[pair.first]!r} and {model.names[pair.second]!r}"
        raise SimulationError(
            f"friction.direction of {names} is parallel to the contact normal; choose one across it"
        )
