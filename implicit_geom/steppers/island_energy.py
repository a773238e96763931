"""What energy a solve creates and loses, island by island, and what an island has at hand.

An island is what closed contacts connect, fixed bodies apart: a body's motion does not depend on others. Of
its ledger (`model.ledger`)

    made    change - work + friction: what the solve creates; a loss in friction pays for nothing, that of an
            impact does: of several impulses at once not even the sign is certain of one
    left    change - work + friction + impact: the remainder

and it is measured by the energy at hand, that of turning and falling (`EnergyScale.own`), and of

    1/2 sum m |v - V|^2 + 1/2 M s^2

V the velocity of the island's centre of mass, s its speed towards the surfaces that the island touches, the
largest |n . V|: how fast it slides along a plane, or flies, is nobody's business. Along a fixed surface that
is curved all of V counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.ledger import step_ledger, terms
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import IMPACT, Solve
from implicit_geom.model.solve_arrays import SolveArrays


@dataclass(frozen=True)
class IslandEnergies:
    """Energies of the islands of stacked solves, J; `label` (S, B) numbers them, -1 where a body stays.

    solve, made, left, at_hand    (I,)
    struck                        (I,) whether an impact is part of it
    """

    label: np.ndarray
    solve: np.ndarray
    made: np.ndarray
    left: np.ndarray
    at_hand: np.ndarray
    struck: np.ndarray


@dataclass(frozen=True)
class Touching:
    """Closed contacts of stacked solves: (C,) solve, bodies, whether on a plane; (C, dim) normals."""

    solve: np.ndarray
    first: np.ndarray
    second: np.ndarray
    flat: np.ndarray
    normal: np.ndarray


def island_energies(model: Model, scale: EnergyScale, initial: State, solves: SolveArrays) -> IslandEnergies:
    """Of every solve of a run."""
    found, path, c = terms(model, initial, solves), solves.path(initial), solves.contacts
    flat = _flat(model, c["pair"])
    touching = Touching(c["solve"], c["first"], c["second"], flat, c["normal"])
    label = islands_of_contacts(model, solves.bodies, touching)
    count = int(label.max(initial=-1)) + 1
    solve = np.zeros(count, int)
    solve[label[label >= 0]] = np.nonzero(label >= 0)[0]
    net = _by_island(label, found.change - found.work, count)
    rows = found.contacts
    at = np.maximum(label[rows["solve"], rows["first"]], label[rows["solve"], rows["second"]])
    friction = np.bincount(at, found.friction, count)
    impact = np.bincount(at, found.impact, count) - _by_island(label, found.stopped, count)
    states = [State(0.0, path.x[k], path.q[k], path.v[k], path.w[k]) for k in (slice(0, -1), slice(1, None))]
    ends = [at_hand(model, scale, s, label, touching, count) for s in states]
    made, hit = net + friction, rows["impact"] | (rows["stage"] == IMPACT)
    struck = np.bincount(at, hit, count) > 0
    return IslandEnergies(label, solve, made, made + impact, np.maximum(*ends), struck)


def step_islands(model: Model, scale: EnergyScale, solve: Solve) -> IslandEnergies:
    """Of one solve, in the form that is quicker."""
    entry = step_ledger(model, solve)
    pairs = [model.pairs[c.pair] for c in solve.contacts]
    numbers = np.array([c.pair for c in solve.contacts], int)
    first, second = (np.array([getattr(p, side) for p in pairs], int) for side in ("first", "second"))
    normal = np.array([c.normal for c in solve.contacts]).reshape(-1, model.dim)
    touching = Touching(np.zeros_like(first), first, second, _flat(model, numbers), normal)
    moved = np.ones((1, len(model.bodies)), bool) if solve.bodies is None else solve.bodies[None]
    label = islands_of_contacts(model, moved, touching)
    count = int(label.max(initial=-1)) + 1
    net, impact = _by_island(label, entry.by_body[:1], count), _by_island(label, entry.by_body[1:], count)
    for number, (friction, jump) in entry.by_pair.items():
        island = max(label[0, model.pairs[number].first], label[0, model.pairs[number].second])
        net[island] += friction
        impact[island] += jump
    ends = (_stacked(s) for s in (solve.start, solve.end))
    hand = [at_hand(model, scale, s, label, touching, count) for s in ends]
    struck = np.zeros(count, bool)
    for c, pair in zip(solve.contacts, pairs, strict=True):
        if c.impact:
            struck[max(label[0, pair.first], label[0, pair.second])] = True
    return IslandEnergies(label, np.zeros(count, int), net, net + impact, np.maximum(*hand), struck)


def islands_of_contacts(model: Model, moved: np.ndarray, touching: Touching) -> np.ndarray:
    """(S, B) numbers of the islands that contacts make of the bodies that solves move, -1 for others."""
    moves = np.zeros(moved.shape, bool)
    moves[:, model.moving] = moved[:, model.moving]
    t, count = touching, moves.size
    joined = moves[t.solve, t.first] & moves[t.solve, t.second]
    label = np.arange(count)
    if np.any(joined):
        start = t.solve[joined] * moved.shape[1]
        one, two = start + t.first[joined], start + t.second[joined]
        graph = csr_array((np.ones(len(one), bool), (one, two)), shape=(count, count))
        label = connected_components(graph, directed=False)[1]
    out = np.full(count, -1)
    out[moves.ravel()] = np.unique(label[moves.ravel()], return_inverse=True)[1]
    return out.reshape(moves.shape)


def at_hand(
    model: Model, scale: EnergyScale, state: State, label: np.ndarray, touching: Touching, count: int
) -> np.ndarray:
    """(I,) J: the energy of each island at stacked states."""
    known = label >= 0
    at, mass = label[known], np.broadcast_to(model.mass, label.shape)[known]
    v = state.v[known]
    own = scale.own(state)[known]
    total = np.bincount(at, mass, count)
    momentum = np.stack([np.bincount(at, mass * v[:, k], count) for k in range(model.dim)], axis=1)
    mean = momentum / total[:, None]
    energy = np.bincount(at, own + mass / 2 * np.sum((v - mean[at]) ** 2, axis=1), count)
    one, two = (label[touching.solve, side] for side in (touching.first, touching.second))
    fixed = (one < 0) != (two < 0)
    island, normal = np.maximum(one, two)[fixed], touching.normal[fixed]
    towards = np.sum(mean[island] * normal, axis=1) ** 2
    squares = np.where(touching.flat[fixed], towards, np.sum(mean[island] ** 2, axis=1))
    fastest = np.zeros(count)
    np.maximum.at(fastest, island, squares)
    return energy + total / 2 * fastest


def _flat(model: Model, pair: np.ndarray) -> np.ndarray:
    """(C,) whether a contact of a fixed body is on a plane of it."""
    if not len(pair):
        return np.zeros(0, bool)
    ends, pieces = model.pairs.pieces(pair), model.pieces
    flat = [pieces.flat[p] | ~pieces.fixed[p] for p in ends]
    return np.asarray(flat[0] & flat[1])


def _by_island(label: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Sums of what the bodies (S, B) have."""
    known = label >= 0
    return np.bincount(label[known], values[known], count).astype(float)


def _stacked(state: State) -> State:
    return State(state.time, state.x[None], state.q[None], state.v[None], state.w[None])
