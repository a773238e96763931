"""The native engine's contact solver, and the law that its answers must obey, written anew."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from implicit_geom.engine.library import address, library

RECORDED = Path(__file__).parents[2] / "experiments" / "references"


@dataclass
class Problem:
    """Bodies with masses M (B, n, n) and velocities v (B, n); contacts between bodies `first` and `second`.

    J1, J2 (C, rows, n): u = J1 v_first + J2 v_second + w; a body of number -1 does not move.
    """

    M: np.ndarray
    v: np.ndarray
    first: np.ndarray
    second: np.ndarray
    J1: np.ndarray
    J2: np.ndarray
    w: np.ndarray
    mu: np.ndarray


@dataclass
class Answer:
    """Impulses and velocities of contacts, (C, rows), velocities of bodies, the solver's own error, m/s."""

    p: np.ndarray
    u: np.ndarray
    v: np.ndarray
    error: float


def solved(q: Problem, tolerance: float, enough: float) -> Answer:
    """What the engine finds."""
    found = library()
    assert found is not None
    found.ig_contact_solve.restype = ctypes.c_double
    bodies, dof = q.v.shape
    contacts, rows = q.w.shape
    J = np.ascontiguousarray(np.stack([q.J1, q.J2], axis=1), float)
    body = np.ascontiguousarray(np.column_stack([q.first, q.second]), np.int32)
    p, u, v = np.zeros((contacts, rows)), np.zeros((contacts, rows)), np.zeros((bodies, dof))
    arrays = [np.ascontiguousarray(a, float) for a in (q.M, np.linalg.inv(q.M), q.v, q.mu, q.w)]
    M, inverse, free, mu, w = (address(a) for a in arrays)
    one, every, counts = np.ones(contacts, np.int32), np.full(contacts, rows, np.int32), np.zeros(2, np.int32)
    error = found.ig_contact_solve(
        ctypes.c_int(dof), ctypes.c_int(bodies), M, inverse, free, ctypes.c_int(contacts), ctypes.c_int(rows),
        address(body), address(one), address(every), mu, address(J), w, ctypes.c_double(tolerance),
        ctypes.c_double(enough), address(p), address(u), address(v), address(counts),
    )  # fmt: skip
    assert error >= 0
    return Answer(p, u, v, float(error))


def momentum_error(q: Problem, a: Answer) -> float:
    """M (v - v_free) - H p, over the masses, m/s."""
    change = np.einsum("bij,bj->bi", q.M, a.v - q.v)
    for body, J in ((q.first, q.J1), (q.second, q.J2)):
        k = body >= 0
        np.add.at(change, body[k], -np.einsum("cri,cr->ci", J[k], a.p[k]))
    return float(np.max(np.abs(np.linalg.solve(q.M, change[:, :, None])), initial=0.0))


def contact_velocities(q: Problem, v: np.ndarray) -> np.ndarray:
    """u of the velocities of bodies."""
    u = q.w.copy()
    for body, J in ((q.first, q.J1), (q.second, q.J2)):
        k = body >= 0
        u[k] += np.einsum("cri,ci->cr", J[k], v[body[k]])
    return u


def law_error(q: Problem, a: Answer) -> float:
    """Signorini's and Coulomb's law, m/s: each impulse is the one nearest to itself less rho times u."""
    u, worst = contact_velocities(q, a.v), 0.0
    for k in range(len(q.mu)):
        mobility = 0.0
        for body, J in ((q.first[k], q.J1[k]), (q.second[k], q.J2[k])):
            if body >= 0:
                mobility += float(np.trace(J @ np.linalg.solve(q.M[body], J.T)))
        rho = q.w.shape[1] / mobility
        p_n, p_f, u_n, u_f = a.p[k, 0], a.p[k, 1:], u[k, 0], u[k, 1:]
        worst = max(worst, abs(p_n - max(0.0, p_n - rho * u_n)) / rho)
        wanted, radius = p_f - rho * u_f, q.mu[k] * max(p_n, 0.0)
        length = float(np.linalg.norm(wanted))
        if length > radius:
            wanted = wanted * (radius / length)
        worst = max(worst, float(np.linalg.norm(p_f - wanted)) / rho)
    return worst


def recorded(name: str) -> Iterator[tuple[str, Problem]]:
    """Problems of a file in experiments/references."""
    with np.load(RECORDED / name) as data:
        for key in sorted({key.split("/")[0] for key in data.files}):
            M, v, first, second, J1, J2, w, mu = (
                data[f"{key}/{part}"] for part in ("Mb", "vf", "b1", "b2", "J1", "J2", "w", "mu")
            )
            contacts = len(first)
            yield key, Problem(
                M, v.reshape(len(M), -1), first, second, J1, J2, w.reshape(contacts, -1),
                np.broadcast_to(mu, (contacts,)),
            )  # fmt: skip


def random_problem(seed: int, rows: int, dof: int) -> Problem:
    """Bodies that meet at points of their surfaces; the fourth row resists spin."""
    rng = np.random.default_rng(seed)
    bodies, contacts = 1 + seed % 4, 1 + seed % 9
    masses = 10.0 ** rng.uniform(-1, 1, bodies)
    size = rng.uniform(0.1, 0.3, bodies)
    M = np.zeros((bodies, dof, dof))
    linear = 3 if dof == 6 else 2
    for b in range(bodies):
        A = rng.normal(size=(dof - linear, dof - linear))
        M[b, :linear, :linear] = masses[b] * np.eye(linear)
        M[b, linear:, linear:] = masses[b] * size[b] ** 2 * (0.3 * np.eye(len(A)) + 0.02 * A @ A.T)
    second = rng.integers(0, bodies, contacts)
    first = np.array([rng.choice([-1, *(b for b in range(bodies) if b != k)]) for k in second])
    J = np.zeros((2, contacts, rows, dof))
    for k in range(contacts):
        frame = np.linalg.qr(rng.normal(size=(linear, linear)))[0].T
        for side, body, sign in ((0, first[k], -1), (1, second[k], 1)):
            if body < 0:
                continue
            arm = -sign * size[body] * frame[0]
            arm = arm + 0.2 * size[body] * rng.normal(size=linear)
            for r in range(min(rows, linear)):
                J[side, k, r, :linear] = sign * frame[r]
                e = frame[r]
                across = np.cross(arm, e) if linear == 3 else [arm[0] * e[1] - arm[1] * e[0]]
                J[side, k, r, linear:] = sign * np.asarray(across)
            if rows == 4:
                J[side, k, 3, 3:] = sign * 0.02 * frame[0]
    w = np.zeros((contacts, rows))
    w[:, 0] = rng.uniform(0, 0.05, contacts) * (rng.uniform(size=contacts) < 0.3)
    v = rng.normal(scale=0.5, size=(bodies, dof))
    mu = np.full(contacts, (0.0, 0.1, 0.5, 1.0)[seed % 4])
    return Problem(M, v, first, second, J[0], J[1], w, mu)
