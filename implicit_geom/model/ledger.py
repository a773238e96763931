"""The energy ledger: work of loads, friction and impacts in each step, and what is left.

A solve is one kick (`implicit-euler`, an impact) or two (the stages of `implicit-rattle`) at fixed poses. The
work of an impulse p in a kick is p . (u + u') / 2, with u and u' the velocities it acts against before and
after. Over a solve

    change of kinetic + potential = work - friction - impact + remainder

    work       of applied forces and torques, gravity apart
    friction   lost where a contact slides, or slid at the start; never negative
    impact     minus the work of all impulses of an impact, and of contacts that were open, or approaching,
               at the start (their friction included: of either part alone not even the sign is certain),
               and of gravity acting all step long on a body that was stopped on its way
    remainder  all else: the error of the time step

The loss in friction is that in a contact's kicks, -p_f . (u + u') / 2, as of all other impulses. A contact
that rolls runs along its body, though, while a kick acts at one place of it, where u is not the slip: in one
that hardly slides the loss may come out negative. It is then that of the friction law, -p_f . slip >= 0, and
what is left is the error of the time step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom import rotation
from implicit_geom.equations.thresholds import SLIDES_IN_LEDGER
from implicit_geom.model.energy import pair_sizes, slides_faster, speeds_at_hand
from implicit_geom.model.model import Model, State
from implicit_geom.model.momentum_rows import spins_of_momentum
from implicit_geom.model.records import (
    EULER,
    IMPACT,
    LAGGED,
    POSITION,
    VELOCITY,
    ContactRecord,
    Solve,
    takes_part,
)
from implicit_geom.model.solve_arrays import SolveArrays


def entries(model: Model, initial: State, solves: SolveArrays) -> dict[str, np.ndarray]:
    """The ledger of every solve, (S,) each, J: change, work, friction, impact, remainder.

    A solve starts where the one before it ended, the first one at `initial`; each row depends on its own
    solve alone, to the last bit.
    """
    found = terms(model, initial, solves)
    change, work = found.change.sum(axis=1), found.work.sum(axis=1)
    at = found.contacts["solve"]
    friction = np.bincount(at, found.friction, len(solves))
    impact = np.bincount(at, found.impact, len(solves)) - found.stopped.sum(axis=1)
    sums = {"change": change, "work": work, "friction": friction, "impact": impact}
    return {**sums, "remainder": change - work + friction + impact}


@dataclass(frozen=True)
class LedgerTerms:
    """The ledger's terms, J: change and work (S, B) of each body, friction and impact (C,) of each contact.

    `stopped` (S, B) is gravity's share of an impact, to be taken from it; `contacts` take part.
    """

    change: np.ndarray
    work: np.ndarray
    stopped: np.ndarray
    friction: np.ndarray
    impact: np.ndarray
    contacts: np.ndarray


def terms(model: Model, initial: State, solves: SolveArrays) -> LedgerTerms:
    """The terms of every solve."""
    path, c = solves.path(initial), solves.contacts
    kicks = _Kicks.of(model, path, solves)
    change = np.zeros((len(solves), len(model.bodies)))
    change[:, model.moving] = np.diff(_energies(model, path), axis=0)
    work = np.sum(kicks.applied * kicks.mean, axis=(0, 3))
    c = c[takes_part(solves.table["form"][c["solve"]], c["stage"])]
    normal, tangential = _works(model, path, kicks, c)
    struck = _struck(c)
    impact, friction = np.where(struck, -normal - tangential, 0.0), np.zeros(len(c))
    rows = c[~struck]
    h, slides = solves.table["h"], _slides(model, path, solves.table["h"], rows)
    friction[~struck] = _lost(rows, h[rows["solve"]], tangential[~struck], slides)
    return LedgerTerms(change, work, _stopped(model, path, kicks, c), friction, impact, c)


def _lost(c: np.ndarray, h: np.ndarray, work: np.ndarray, slides: np.ndarray) -> np.ndarray:
    """(C,) J: loss in friction of contacts that were not struck; that of a pair on its first row."""
    law = c["p_t"] * c["v_t"] + c["p_o"] * c["v_o"] + c["p_r"] * c["v_r"]
    # (a step that runs backwards has impulses of the other sign)
    sense = np.where(h < 0, -1.0, 1.0)
    work = np.where(slides | c["slid"], -sense * work, 0.0)
    law = np.where(slides, np.maximum(-sense * law, 0.0), 0.0)
    keys = c["solve"] * (int(c["pair"].max(initial=0)) + 1) + c["pair"]
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    both, laws = (np.bincount(group, values, len(first)) for values in (work, law))
    out = np.zeros(len(c))
    out[first] = np.where(both >= 0, both, laws)
    return np.asarray(sense * out)


def _struck(c: np.ndarray) -> np.ndarray:
    """(C,) whether the work of a contact's impulses belongs to an impact."""
    return np.asarray(c["impact"] | (c["stage"] == IMPACT))


@dataclass(frozen=True)
class _Kicks:
    """The two kicks of every solve; Euler's form has its second one only where it has restitution, without
    loads, an impact has its first one only.

    mean      (2, S, B, dim + spins) of the velocities before and after
    applied   (2, S, B, dim + spins) impulse of the loads without gravity
    time      (2, S) over which gravity acts
    """

    mean: np.ndarray
    applied: np.ndarray
    time: np.ndarray

    @staticmethod
    def of(model: Model, path: State, solves: SolveArrays) -> _Kicks:
        nu, half, h = np.concatenate([path.v, path.w], axis=-1), solves.half, solves.table["h"]
        form = solves.table["form"] == "euler"
        euler, time = form[:, None, None], solves.table["time"]
        left, right = half, half
        impact = (solves.table["form"] == "impact")[:, None, None]
        if model.dim == 3 and not np.all(form):
            start, end = _momentum_velocities(model, path.q, half, h)
            left, right = np.where(euler, half, start), np.where(euler, half, end)
        if np.any(impact):
            left = np.where(impact, nu[1:], left)
        mean = np.stack([nu[:-1] + left, right + nu[1:]]) / 2
        share = np.stack([np.where(form, h, h / 2), np.where(form, 0.0, h / 2)])
        loads = model.loads_at(np.stack([time, np.where(form, time, time + h)]))
        weight = np.zeros(loads.shape[2:])
        weight[model.moving, : model.dim] = model.mass[model.moving, None] * model.scene.gravity
        acting = share[:, :, None, None] * solves.bodies[:, :, None]
        return _Kicks(mean, acting * (loads - weight), share)


def _momentum_velocities(
    model: Model, q: np.ndarray, half: np.ndarray, h: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`half` with w of J_W w = D(h w_half)^T J_W w_half at the start, D(-h w_half)^T at the end."""
    m = model.moving
    R, J = rotation.matrix(q[:, m]), model.inertia[m]
    w = half[:, m, 3:]
    D = rotation.tangent_inverse(h[:, None, None] * w)  # D(-theta) = D(theta)^T
    found = []
    for R_WB, turned in ((R[:-1], np.swapaxes(D, -1, -2)), (R[1:], D)):
        R_BW = np.swapaxes(R_WB, -1, -2)
        momentum = turned @ (R_WB @ (J @ (R_BW @ w[..., None])))
        out = half.copy()
        out[:, m, 3:] = (R_WB @ (np.linalg.inv(J) @ (R_BW @ momentum)))[..., 0]
        found.append(out)
    return found[0], found[1]


def _energies(model: Model, path: State) -> np.ndarray:
    """Kinetic and potential energy of the moving bodies of stacked states, (S+1, moving) J."""
    m = model.moving
    v, w = path.v[:, m], path.w[:, m]
    if model.dim == 3:
        w = (np.swapaxes(rotation.matrix(path.q[:, m]), -1, -2) @ w[..., None])[..., 0]  # body axes
    angular = np.sum(w * (model.inertia[m] @ w[..., None])[..., 0], axis=-1)
    linear = model.mass[m] * np.sum(v * v, axis=-1)
    falling = model.mass[m] * np.sum(path.x[:, m] * model.scene.gravity, axis=-1)
    return np.asarray((linear + angular) / 2 - falling)


def _works(model: Model, path: State, kicks: _Kicks, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(C,) J: work of the normal impulse and of friction in its kick."""
    dim, at = model.dim, c["solve"]
    kick = np.where(c["stage"] == VELOCITY, 1, 0)
    pose = at + ((c["stage"] != POSITION) & (c["stage"] != LAGGED))
    one, two = (kicks.mean[kick, at, c[side]] for side in ("first", "second"))
    relative = two[:, :dim] - one[:, :dim]
    relative += rotation.rotational_velocity(two[:, dim:], c["point"] - path.x[pose, c["second"]])
    relative -= rotation.rotational_velocity(one[:, dim:], c["point"] - path.x[pose, c["first"]])
    normal = c["p_n"] * np.sum(c["normal"] * relative, axis=1)
    tangential = c["p_t"] * np.sum(c["tangent"] * relative, axis=1)
    if dim == 3:
        spin = np.sum(c["normal"] * (two[:, 3:] - one[:, 3:]), axis=1)
        tangential += c["p_o"] * np.sum(c["binormal"] * relative, axis=1) + c["p_r"] * spin
    return normal, tangential


def _slides(model: Model, path: State, h: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(C,) whether a contact's slip is more than rounding of its bodies' speeds."""
    speed = speeds_at_hand(model, path.v[:-1], path.w[:-1], h[:, None])
    at, size = c["solve"], pair_sizes(model, c["pair"])
    slip = np.sqrt(c["v_t"] ** 2 + c["v_o"] ** 2 + (size * c["v_r"]) ** 2)
    faster = np.maximum(speed[at, c["first"]], speed[at, c["second"]])
    return np.asarray(slip > SLIDES_IN_LEDGER * faster)


def _stopped(model: Model, path: State, kicks: _Kicks, c: np.ndarray) -> np.ndarray:
    """(S, B) J: work of gravity in the kicks on bodies that were struck, beyond that on their way."""
    struck = np.zeros(kicks.mean.shape[1:3], bool)
    hit = c[c["impact"] & (c["stage"] != IMPACT)]  # (an impact takes no time)
    for side in ("first", "second"):
        struck[hit["solve"], hit[side]] = True
    m, dim = model.moving, model.dim
    pulled = np.sum(kicks.time[:, :, None, None] * kicks.mean[:, :, m, :dim], axis=0)
    beyond = np.sum((pulled - np.diff(path.x[:, m], axis=0)) * model.scene.gravity, axis=-1)
    out = np.zeros(struck.shape)
    out[:, m] = np.where(struck[:, m], model.mass[m] * beyond, 0.0)
    return out


@dataclass(frozen=True)
class LedgerEntry:
    """The ledger of one solve, J.

    by_body   (2, B): change - work; gravity's share of the impact
    by_pair   friction and impact of each pair in contact
    """

    change: float
    work: float
    friction: float
    impact: float
    by_body: np.ndarray
    by_pair: dict[int, tuple[float, float]]

    @property
    def remainder(self) -> float:
        return self.change - self.work + self.friction + self.impact


def step_ledger(model: Model, solve: Solve) -> LedgerEntry:
    """The ledger of one solve; kept with it.

    The same as its row of `entries`, in the form that is quicker for a few bodies: the guard of the
    steppers asks for it in every step.
    """
    if solve.ledger is None:
        solve.ledger = _entry(model, solve)
    return solve.ledger


def _entry(model: Model, solve: Solve) -> LedgerEntry:
    dim, moving = model.dim, model.moving
    start, end, h, half = solve.start, solve.end, solve.h, solve.half
    states = State(
        0.0, *(np.stack([getattr(s, name) for s in (start, end)]) for name in ("x", "q", "v", "w"))
    )
    by_body = np.zeros((2, len(model.bodies)))
    by_body[0, moving] = np.diff(_energies(model, states), axis=0)[0]
    change = float(by_body[0].sum())
    before, after = (np.concatenate([s.v, s.w], axis=1) for s in (start, end))
    sense = -1.0 if h < 0 else 1.0  # (a step that runs backwards has impulses of the other sign)
    shares: tuple[float, ...]
    stages: tuple[int, ...]
    if solve.form == "impact":
        shares, times, stages = (0.0, 0.0), (start.time, start.time), (IMPACT,)
        left = right = after
    elif solve.form == "euler":
        shares, times, stages = (h, 0.0), (start.time, start.time), (EULER, VELOCITY)
        left = right = half
    else:
        shares, times, stages = (h / 2, h / 2), (start.time, start.time + h), (POSITION, VELOCITY)
        left, right = (half, half) if dim == 2 else _kicked(model, solve)
    speed = speeds_at_hand(model, start.v, start.w, h)
    means = ((before + left) / 2, (right + after) / 2)
    moved = moving if solve.bodies is None else moving[solve.bodies[moving]]
    weight = model.mass[moved, None] * model.scene.gravity
    work = 0.0
    impacts: dict[int, float] = {}
    kicked: dict[int, list[float]] = {}  # by pair: friction's loss in its kicks, and by its law
    pulled = np.zeros((len(model.bodies), dim))  # distance over which gravity acted in the kicks
    for mean, share, time, stage in zip(means, shares, times, stages):
        if share:
            loads = model.loads(time)[moved]
            loads[:, :dim] -= weight
            done = share * np.sum(loads * mean[moved], axis=1)
            by_body[0, moved] -= done
            work += float(done.sum())
            pulled += share * mean[:, :dim]
        x = start.x if stage == POSITION else end.x
        for c in (c for c in solve.contacts if c.stage == stage):
            normal, tangential = _work(model, x, mean, c)
            if c.impact or stage == IMPACT:
                impacts[c.pair] = impacts.get(c.pair, 0.0) - normal - tangential
                continue
            slides = slides_faster(model, c.pair, c.slip, SLIDES_IN_LEDGER, speed)
            sums = kicked.setdefault(c.pair, [0.0, 0.0])
            sums[0] -= sense * tangential if slides or c.slid else 0.0
            sums[1] += max(-sense * float(c.p_f @ c.slip), 0.0) if slides else 0.0
    lost = {pair: sense * (both if both >= 0 else laws) for pair, (both, laws) in kicked.items()}
    pairs = (model.pairs[c.pair] for c in solve.contacts if c.impact and solve.h)
    struck = {b for p in pairs for b in (p.first, p.second)}.intersection(moving.tolist())
    for b in sorted(struck):
        way = pulled[b] - (end.x[b] - start.x[b])
        by_body[1, b] = -float(model.mass[b] * (way @ model.scene.gravity))
    by_pair = {p: (lost.get(p, 0.0), impacts.get(p, 0.0)) for p in {**lost, **impacts}}
    impact = float(sum(impacts.values()) + by_body[1].sum())
    return LedgerEntry(change, work, float(sum(lost.values())), impact, by_body, by_pair)


def _kicked(model: Model, solve: Solve) -> tuple[np.ndarray, np.ndarray]:
    """`_momentum_velocities` of one solve."""
    m = model.moving
    w = solve.half[m, 3:]
    D = rotation.tangent_inverse(solve.h * w)
    R = np.stack([solve.start.R[m], solve.end.R[m]])
    J_W = R @ model.inertia[m] @ R.swapaxes(2, 3)
    out = np.stack([solve.half, solve.half])
    out[:, m, 3:] = spins_of_momentum(J_W, np.stack([D, D.swapaxes(1, 2)]), w)  # (D(-theta) = D(theta)^T)
    return out[0], out[1]


def _work(model: Model, x: np.ndarray, nu: np.ndarray, c: ContactRecord) -> tuple[float, float]:
    """Work of the normal impulse and of friction for the velocities nu, bodies at x."""
    pair = model.pairs[c.pair]
    bodies = sorted((pair.first, pair.second))
    u, dim = nu[bodies], model.dim
    velocity = u[:, :dim] + rotation.rotational_velocity(u[:, dim:], c.point - x[bodies])
    relative = velocity[1] - velocity[0]
    tangential = c.p_f[0] * float(c.tangent @ relative)
    if dim == 3:
        spin = float(c.normal @ (u[1, 3:] - u[0, 3:]))
        tangential += c.p_f[1] * float(c.binormal @ relative) + c.p_f[2] * spin
    return c.p_n * float(c.normal @ relative), tangential
